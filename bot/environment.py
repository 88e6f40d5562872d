"""The variables a configuration may name, and where they are looked for: the process, then ``.env`` of the home.

Resolves ``${VAR}`` and ``${VAR:-default}`` in values, and keeps secrets in ``.env``. Knows no setting; nothing it
resolves is ever written back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.errors import ConfigError, Problem
from bot.home import Home
from bot.toml_positions import Key


@dataclass(frozen=True, slots=True)
class Environment:
    """The variables of the process over those that ``env_file`` stores. An empty one of the process counts as unset.

    ``bad_lines`` are the lines of ``env_file`` that set nothing and are no remark either, from 1.
    """

    process: Mapping[str, str]
    env_file: Path
    stored: Mapping[str, str] = field(default_factory=dict)
    bad_lines: tuple[int, ...] = ()

    @classmethod
    def of(cls, home: Home, environ: Mapping[str, str] | None = None) -> Environment:
        """The variables of ``environ`` (None: of the process) and of the home's ``.env``. Raises ConfigError."""
        environ = os.environ if environ is None else environ
        entries = _entries(_text(home.env_file))
        return cls(
            {name: value for name, value in environ.items() if value},
            home.env_file,
            {entry.name: entry.value for entry in entries if entry.name is not None and entry.value is not None},
            tuple(entry.line for entry in entries if entry.is_bad),
        )

    @property
    def variables(self) -> Mapping[str, str]:
        """All of them."""
        return {**self.stored, **self.process}

    def get(self, name: str) -> str | None:
        return self.process.get(name) or self.stored.get(name) or None

    def place(self, name: str) -> str:
        """Where a variable that is set comes from, for a message."""
        return "the environment" if self.process.get(name) else str(self.env_file)

    @property
    def places(self) -> str:
        """Where a variable was looked for, in order, for a message."""
        return f"not in the environment, not in {self.env_file}"


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A reference that stands for nothing. ``name`` is the variable, None where the reference itself is malformed."""

    key: Key
    name: str | None


_REFERENCE = re.compile(r"\$(\$\{)|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|)")


def resolve(data: Mapping[str, Any], environment: Environment) -> tuple[dict[str, Any], list[Unresolved]]:
    """``data`` with every reference in its values replaced, and those that could not be.

    ``$${`` stands for a literal ``${``. An unresolved value is left as it is written.
    """
    unresolved: list[Unresolved] = []
    return _resolved(data, (), environment, unresolved), unresolved


def references(node: Any) -> Iterator[str]:
    """The variables that a text names, or any text in a table or list."""
    if isinstance(node, str):
        yield from (match[2] for match in _REFERENCE.finditer(node) if match[2])
    elif isinstance(node, Mapping | list):
        for inner in node.values() if isinstance(node, Mapping) else node:
            yield from references(inner)


def _resolved(node: Any, key: Key, environment: Environment, unresolved: list[Unresolved]) -> Any:
    if isinstance(node, Mapping):
        return {name: _resolved(value, (*key, name), environment, unresolved) for name, value in node.items()}
    if isinstance(node, list):
        return [_resolved(value, (*key, index), environment, unresolved) for index, value in enumerate(node)]
    if isinstance(node, str) and "${" in node:

        def value_of(match: re.Match[str]) -> str:
            escaped, name, default = match.groups()
            if escaped:
                return "${"
            value = environment.get(name) if name else None
            if value is None and default is None:
                unresolved.append(Unresolved(key, name))
                return match[0]
            return value if value is not None else default

        return _REFERENCE.sub(value_of, node)
    return node


def store(env_file: Path, name: str, value: str) -> None:
    """Keep a secret in ``.env`` (mode 0600): the line of ``name`` is replaced or added, all others stay as they are.

    Raises ValueError for a value that spans lines.
    """
    if re.search(r"[\r\n\0]", value):
        raise ValueError(f"the value of {name} spans lines")
    plain = re.fullmatch(r"[A-Za-z0-9_:./@%+,=-]*", value)
    quoted = value if plain else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    line = f"{name}={quoted}\n"
    entries = _entries(_text(env_file))
    kept = [entry.lead + (line if entry.name == name else entry.text) for entry in entries]
    if all(entry.name != name for entry in entries):
        if kept and not kept[-1].endswith("\n"):
            kept.append("\n")
        kept.append(line)
    _write(env_file, "".join(kept))


def remove(env_file: Path, name: str) -> None:
    """Take every line of ``name`` out of ``.env``; all others stay as they are."""
    _write(env_file, "".join(e.lead + e.text for e in _entries(_text(env_file)) if e.name != name))


@dataclass(frozen=True, slots=True)
class _Entry:
    """One statement of ``.env``. ``lead`` is the blank space before it, ``text`` the rest with its line end.

    ``name`` is None for a remark and for a bad line, ``value`` for a bad line.
    """

    lead: str
    text: str
    line: int
    name: str | None
    value: str | None

    @property
    def is_bad(self) -> bool:
        return self.value is None and bool(self.text.strip()) and not self.text.startswith("#")


def _entries(text: str) -> list[_Entry]:
    if not text:
        return []
    import io

    from dotenv.parser import parse_stream

    entries = []
    for binding in parse_stream(io.StringIO(text)):
        own = binding.original.string.lstrip()
        lead = binding.original.string.removesuffix(own)
        entries.append(_Entry(lead, own, binding.original.line + lead.count("\n"), binding.key, binding.value))
    return entries


def _text(env_file: Path) -> str:
    """What ``.env`` holds, "" where there is none. Raises ConfigError when it can't be read."""
    try:
        return env_file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError([Problem(f"can't be read: {reason}", file=env_file)]) from error


def _write(env_file: Path, text: str) -> None:
    from bot.config_file import replace

    replace(env_file, text.encode())
    env_file.chmod(0o600)
