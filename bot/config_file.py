"""The configuration file as text: reads it, knows the line of each key, changes one key and leaves the rest as it was.

Knows TOML and nothing of what the keys mean: ``bot.config`` validates a changed text before it is written. A file that
is broken is refused, never repaired; a file that someone else changed meanwhile is never overwritten.
"""

from __future__ import annotations

import copy
import functools
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.errors import BotError, ConfigError, Problem
from bot.redaction import names_a_secret
from bot.toml_positions import Key, Position, positions, table_ends

_BOM = "\ufeff"
_LARGEST = 1 << 20
"""Bytes. A settings file has a few kilobytes: a larger one is some other file, named by mistake."""


def read(path: Path) -> ConfigFile:
    """The file at ``path``; a missing one reads as empty. Raises ConfigError when it can't be read as TOML."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(_LARGEST + 1)
    except FileNotFoundError:
        return ConfigFile(path, "", exists=False)
    except OSError as error:
        raise ConfigError([Problem(f"can't be read: {error.strerror or error}", file=path)]) from error
    if len(raw) > _LARGEST:
        raise ConfigError([Problem("is over 1 MiB: this is no settings file", "is the path right?", file=path)])
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError([_bad_byte(path, raw, error.start)]) from error
    return ConfigFile(path, text)


@dataclass(frozen=True)
class ConfigFile:
    """One state of the file. ``text`` is exactly what is on the disk, or what ``write`` would put there.

    Creating one parses the text: ConfigError names the line and column of broken syntax.
    """

    path: Path
    text: str
    exists: bool = True

    def __post_init__(self) -> None:
        _ = self.data

    @functools.cached_property
    def data(self) -> dict[str, Any]:
        """The values as they are written, ``${VAR}`` and all. Not to be changed."""
        try:
            return tomllib.loads(self.text.removeprefix(_BOM))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError([_syntax_problem(self.path, self.text, str(error))]) from error
        except RecursionError as error:
            raise ConfigError([Problem("is nested too deeply", file=self.path)]) from error

    @functools.cached_property
    def _positions(self) -> dict[Key, Position]:
        return positions(self.text.removeprefix(_BOM))

    def position(self, key: Key) -> Position | None:
        """Where ``key`` stands; for one that the file doesn't have, the nearest table around it. None: nowhere."""
        while key and key not in self._positions:
            key = key[:-1]
        return self._positions.get(key)

    def get(self, key: Key) -> Any:
        """The value as written. Raises KeyError where the file has no such key."""
        node: Any = self.data
        for part in key:
            try:
                node = node[part]
            except (LookupError, TypeError):
                raise KeyError(key) from None
        return node

    def has(self, key: Key) -> bool:
        return key in self._positions

    def with_value(self, key: Key, value: Any) -> ConfigFile:
        """The file with ``key`` set; every other byte stays. Tables on the way are made; array items are not."""
        wanted = copy.deepcopy(self.data)
        try:
            _assign(wanted, key, value)
        except (LookupError, TypeError):
            raise self._refused(key) from None
        if isinstance(value, dict) and self.has(key) and isinstance(before := self.get(key), dict):
            changed = self._with_table(key, before, value)
            if changed.data == wanted:
                return changed
        return self._first_right(wanted, _with_value(self.text, key, value), key)

    def _with_table(self, key: Key, before: dict[str, Any], value: dict[str, Any]) -> ConfigFile:
        """The file with only those keys of a table changed that differ, so that its header and comments stay."""
        file = self
        for name, own in value.items():
            if name not in before or before[name] != own:
                file = file.with_value((*key, name), own)
        for name in before.keys() - value.keys():
            file = file.without((*key, name))
        return file

    def without(self, key: Key) -> ConfigFile:
        """The file with ``key`` and its value taken out. Raises KeyError where it has no such key.

        The header of a table ``[a]`` that it leaves empty goes too, unless a comment stands with it. An empty ``[a.b]``
        stays: that there is a ``b`` may be all it says.
        """
        wanted = copy.deepcopy(self.data)
        self.get(key)
        del _walk(wanted, key[:-1])[key[-1]]
        text = _edited(self.text, key, None)
        if text is not None and len(key) == 2 and wanted.get(str(key[0])) == {}:
            bare = {name: value for name, value in wanted.items() if name != key[0]}
            if _means(shorter := _without_header(text, key[:1]), bare):
                return ConfigFile(self.path, shorter, self.exists)
        try:
            return self._first_right(wanted, iter([text]), key)
        except BotError:  # the last table in a table that has no header of its own takes that with it
            around = key[:-1]
            while around and _walk(wanted, around) == {}:
                del _walk(wanted, around[:-1])[around[-1]]
                around = around[:-1]
            return self._first_right(wanted, iter([text]), key)

    def write(self, original: ConfigFile) -> None:
        """Put the text in the place of ``original``, at once and whole; a new file gets mode 0600, others keep theirs.

        Raises BotError when the file is no longer as ``original`` read it.
        """
        path = self.path.resolve()
        now = path.read_bytes() if path.exists() else b""
        if now != original.text.encode():
            raise BotError(f"{self.path} was changed by someone else meanwhile; nothing was written", "try again")
        replace(path, self.text.encode())

    def _first_right(self, wanted: dict[str, Any], texts: Iterator[str | None], key: Key) -> ConfigFile:
        """The first text that means exactly ``wanted``: an edit that would change anything else is never taken."""
        for text in texts:
            if text is not None and _means(text, wanted):
                return ConfigFile(self.path, text, self.exists)
        raise self._refused(key)

    def _refused(self, key: Key) -> BotError:
        place = self.position(key)
        where = f"{self.path}:{place.line}" if place else str(self.path)
        return BotError(f"{dotted(key)} can't be changed in place", f"edit it by hand: {where}")


def replace(path: Path, content: bytes) -> None:
    """Replace a file as one step that a crash can't tear: a temporary file beside it, synced, then renamed.

    Raises OSError that names ``path``.
    """
    try:
        _replace(path, content)
    except OSError as error:  # as it comes it names the temporary file, or none
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = path.stat().st_mode & 0o7777 if path.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


_PART = r"""(?:"([^"]*)"|'([^']*)'|([^.\[\]"'\s]+))(?:\[(\d+)\])?"""


def key_of(text: str) -> Key:
    """``channels.telegram.allow``, ``bindings[0].agent`` or ``agents."a.b".model`` as a path. Raises ValueError."""
    if not re.fullmatch(rf"{_PART}(?:\.{_PART})*", text):
        raise ValueError(f"{text!r} is no key")
    parts: list[str | int] = []
    for match in re.finditer(_PART, text):
        parts.append(next(name for name in match.groups()[:3] if name is not None))
        if match[4] is not None:
            parts.append(int(match[4]))
    return tuple(parts)


def dotted(key: Key) -> str:
    """The path as a person writes it; ``key_of`` reads it back."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else f'"{part}"'
            text += f".{name}" if text else name
    return text


def toml_value(value: Any) -> str:
    """``value`` as it would be written in the file."""
    return str(_item(value).as_string())


def _with_value(text: str, key: Key, value: Any) -> Iterator[str | None]:
    """Texts with ``key`` set, the one that disturbs the least first."""
    yield _edited(text, key, value) if key in positions(text.removeprefix(_BOM)) else None
    if isinstance(value, dict):
        yield _appended(text, key, "\n".join(f"{dotted((name,))} = {toml_value(own)}" for name, own in value.items()))
    if isinstance(key[-1], str):
        yield _inserted(text, key, f"{dotted(key[-1:])} = {toml_value(value)}")
        yield _appended(text, key[:-1], f"{dotted(key[-1:])} = {toml_value(value)}")
    yield _edited(text, key, value)


def _inserted(text: str, key: Key, line: str) -> str | None:
    """``line`` after the last pair of its table, so that comments above the next table stay with that."""
    newline = "\r\n" if "\r\n" in text else "\n"
    bom, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    end = table_ends(text).get(key[:-1])
    if end is None:
        return None
    at = text.find("\n", end) + 1
    if at == 0:
        return f"{bom}{text}{newline}{line}{newline}"
    return f"{bom}{text[:at]}{line}{newline}{text[at:]}"


def _appended(text: str, table: Key, line: str) -> str | None:
    """``line``, or several, in a table that the file doesn't have, or at the top of one without top-level keys."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if not table:
        first = re.search(r"^(?:#[^\n]*\n)*[ \t]*\[", text, re.MULTILINE)
        at = first.start() if first else len(text)
        return f"{text[:at]}{line}{newline}{newline if first else ''}{text[at:]}"
    if not all(isinstance(part, str) for part in table):
        return None
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    lines = [f"[{dotted(table)}]", *line.splitlines()]
    return text + gap + "".join(f"{line}{newline}" for line in lines)


def _without_header(text: str, table: Key) -> str:
    """``text`` without the line of an empty table and the blank ones below it, if no comment stands with it."""
    place = positions(text.removeprefix(_BOM)).get(table)
    if place is None:
        return text
    lines = text.splitlines(keepends=True)
    above, header, below = lines[: place.line - 1], lines[place.line - 1], lines[place.line :]
    while below and not below[0].strip():
        below = below[1:]
    if "#" in header or (below and below[0].lstrip().startswith("#")) or (above and above[-1].lstrip().startswith("#")):
        return text
    if not below:
        while above and not above[-1].strip():
            above = above[:-1]
    return "".join([*above, *below])


def _edited(text: str, key: Key, value: Any) -> str | None:
    """By tomlkit: replaces the value of ``key``, or takes the key out where ``value`` is None."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    bom, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    try:
        document = tomlkit.parse(text)
        table: Any = document
        for part in key[:-1]:
            if part not in table and isinstance(part, str):
                table[part] = tomlkit.table()
            table = table[part]
        if value is None:
            del table[key[-1]]
        else:
            table[key[-1]] = _item(value)
    except (TOMLKitError, LookupError, TypeError):
        return None
    return bom + document.as_string()


def _item(value: Any) -> Any:
    """``value`` for tomlkit; what is None in a table is left out, as TOML has no word for it."""
    import tomlkit

    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update({name: _item(inner) for name, inner in value.items() if inner is not None})
        return table
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        for inner in value:
            array.append(_item(inner))
        return array
    return tomlkit.item(value)


def _walk(node: Any, key: Key) -> Any:
    for part in key:
        node = node[part]
    return node


def _assign(data: dict[str, Any], key: Key, value: Any) -> None:
    node: Any = data
    for part in key[:-1]:
        node = node.setdefault(part, {}) if isinstance(node, dict) else node[part]
    node[key[-1]] = value


def _means(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text.removeprefix(_BOM)) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _syntax_problem(path: Path, text: str, message: str) -> Problem:
    """tomllib says the place in its message only: ``... (at line 3, column 5)`` or ``(at end of document)``."""
    lines = text.removeprefix(_BOM).splitlines() or [""]
    match = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    reason = message[: match.start()] if match else message
    if match and match[1]:
        line, column = int(match[1]), int(match[2])
    else:
        line, column = len(lines), len(lines[-1]) + 1
    shown = lines[min(line, len(lines)) - 1]
    caret = re.sub(r"[^\t]", " ", shown[: column - 1]) + "^"
    mend = None
    if reason == "Invalid value" and re.match(r"[A-Za-z_@/.~$]", shown[column - 1 :]):
        mend = 'text needs quotes: key = "text"'
    elif reason.startswith("Illegal character '\\n'"):
        mend = "a text ends on the line it began on: close its quotes"
    shown = _veiled(shown)
    return Problem(_lowered(reason), mend, file=path, line=line, column=column, excerpt=f"    {shown}\n    {caret}")


def _veiled(line: str) -> str:
    """``line`` with the value of a key that is called like a secret blotted out, as wide as it was."""
    name, equals, value = line.partition("=")
    if not names_a_secret(name.strip().strip("\"'")):
        return line
    return name + equals + re.sub(r"[^\s\"'\[\]{},#]", "*", value)


def _bad_byte(path: Path, raw: bytes, offset: int) -> Problem:
    start = raw.rfind(b"\n", 0, offset) + 1
    column = len(raw[start:offset].decode("utf-8", "replace")) + 1
    line = raw.count(b"\n", 0, offset) + 1
    return Problem(f"byte 0x{raw[offset]:02x} is not UTF-8", "save it as UTF-8", file=path, line=line, column=column)


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
