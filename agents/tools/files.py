"""The files of the workspace as tools: read, write, edit, list, grep. Each call is confined to the scope of its turn.

What is not the agent's own notes or instructions comes back as foreign text, quoted with its source. The memory's files
are only read here: its own tools write them, and what those write can be taken back.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agents.enclosing import SEND_FILE
from agents.provenance import is_foreign_path
from agents.quoting import quoted
from agents.tools.pages import page
from agents.tools.permission import Need, Permission, is_instruction
from agents.tools.tool import Outcome, Tool, ToolError, tool
from workspaces import files, names
from workspaces.confined import Confined, Located
from workspaces.copies import Copies
from workspaces.key_shapes import KEY
from workspaces.memory.edits import Content
from workspaces.memory.sources import Sources
from workspaces.paths import OutOfReach
from workspaces.scope import Level

LARGEST = 10_000_000
"""Bytes of a file that is read, searched or edited."""

LARGEST_SENT = 50_000_000
"""Bytes of a file that is sent: more than that no platform takes from a bot."""

MOST_FOUND = 1_000
"""Lines that a search collects."""

_FOLDERS = frozenset({"memory", "media", "skills"})
"""Where a file would be in the way of notes, pictures or skills to come; below memory, what has no ending is a folder's
name as well: a chat's, or that of a kind of notes."""

_AROUND = 100
"""Characters on each side of what was found in a long line."""

_WRITES = Need(Level.MEMBER, in_groups=False)


def tools(root: Path, copies: Copies) -> tuple[Tool, ...]:
    """The tools over the workspace in ``root``; what they replace goes to ``copies``."""
    desk = _Desk(root, Sources(root), copies)
    return (*_reading(desk), *_writing(desk), _sending(desk))


def _reading(desk: _Desk) -> tuple[Tool, ...]:
    async def read(
        path: str, start: int = 1, lines: int | None = None, skip: int = 0, *, room: int, permission: Permission
    ) -> Outcome:
        """Read a text file.

        path: relative to the workspace
        start: first line, from 1
        skip: characters to leave out of it
        """
        with _refusing(path):
            at, text = await asyncio.to_thread(desk.read, permission, path)
        every = text.removesuffix("\n").split("\n") if text else []
        shown = page(every, room, start=start, skip=skip, most=lines)
        if shown.end < shown.start:
            return Outcome(f"{path} is empty." if not every else f"{path} has only {len(every)} lines.")
        source, rest = f"{path}#L{shown.start}-L{shown.end}", shown.rest()
        return Outcome(quoted(shown.text, source) + (f"\n{rest}" if rest else ""), is_foreign=is_foreign_path(at))

    async def list_files(
        path: str = "", deep: bool = False, start: int = 1, *, room: int, permission: Permission
    ) -> Outcome:
        """List a folder.

        deep: all below it
        """
        with _refusing(path):
            every = await asyncio.to_thread(desk.listed, permission, path, deep)
        if not every:
            return Outcome(f"There is nothing in {path or 'the workspace'}.")
        shown = page(every, room, start=start)
        return Outcome("\n".join(part for part in (quoted(shown.text, path or "."), shown.rest("Entries")) if part))

    async def grep(text: str, path: str = "", start: int = 1, *, room: int, permission: Permission) -> Outcome:
        """Find lines in files. Any case; no regex.

        path: file or folder
        """
        with _refusing(path):
            every, is_foreign = await asyncio.to_thread(desk.found, permission, path, text)
        if not every:
            return Outcome(f"No line holds {text!r}. It is looked for as plain text, in any case, not as a regex.")
        shown = page(every, room, start=start)
        parts = [quoted(shown.text, f"lines with {text!r}"), shown.rest("Finds")]
        if len(every) == MOST_FOUND:
            parts.append(f"(There may be more than {MOST_FOUND:,}: look for something rarer.)")
        return Outcome("\n".join(part for part in parts if part), is_foreign=is_foreign)

    return (
        tool(read, read_only=True),
        tool(list_files, name="list", read_only=True),
        tool(grep, read_only=True),
    )


def _writing(desk: _Desk) -> tuple[Tool, ...]:
    async def write(path: str, text: str, *, permission: Permission) -> Outcome:
        """Make a file, or replace a whole one. Not for notes."""
        with _refusing(path):
            return Outcome(await asyncio.to_thread(desk.write, permission, path, text))

    async def edit(path: str, old: str, new: str, *, permission: Permission) -> Outcome:
        """Change one place in a file. Not for notes.

        old: exact text that is there once
        """
        with _refusing(path):
            return Outcome(await asyncio.to_thread(desk.edit, permission, path, old, new))

    return tool(write, need=_WRITES), tool(edit, need=_WRITES)


def _sending(desk: _Desk) -> Tool:
    async def send_file(path: str, caption: str = "", *, permission: Permission) -> Outcome:  # noqa: ARG001 - told later
        """Send a file with your answer."""
        with _refusing(path):
            size = await asyncio.to_thread(desk.size, permission, path)
        return Outcome(f"{path} ({size:,} bytes) goes with your answer.")

    return tool(send_file, name=SEND_FILE, read_only=True)  # to those who may have it read out to them, and no others


@dataclass(frozen=True, slots=True)
class _Desk:
    """What the tools do, synchronously. ``notes`` says which files are the memory's."""

    root: Path
    notes: Sources
    copies: Copies

    def read(self, permission: Permission, path: str) -> tuple[Located, str]:
        reach = Confined(self.root, permission.scope)
        at = reach.located(path)
        return at, _text(path, reach.read(at, most=LARGEST))

    def size(self, permission: Permission, path: str) -> int:
        reach = Confined(self.root, permission.scope)
        return len(reach.read(reach.located(path), most=LARGEST_SENT))

    def write(self, permission: Permission, path: str, text: str) -> str:
        reach = Confined(self.root, permission.scope)
        at = self._writable(reach, permission, path, text)
        old: bytes | None = None
        content = Content(new=True)
        try:
            old = reach.read(at, most=LARGEST)
            content = Content.decoded(old)
        except FileNotFoundError:
            self._check_name(at)
        fresh = replace(content, text=_clean(text).replace("\n", content.line_end), tail=b"").encoded()
        self._put(reach, path, at, fresh, old)
        count = len(text.removesuffix("\n").split("\n")) if text else 0
        return f"{path} {'was made' if old is None else 'was replaced'}: {count} {'line' if count == 1 else 'lines'}."

    def edit(self, permission: Permission, path: str, old: str, new: str) -> str:
        reach = Confined(self.root, permission.scope)
        at = self._writable(reach, permission, path, new)
        data = reach.read(at, most=LARGEST)
        _text(path, data)
        content = Content.decoded(data)
        start, end = _place(content.text, old, path)
        fresh = _clean(new).replace("\n", content.line_end)
        if content.text[start:end] == fresh:
            raise ToolError(f"Not written: {path} says that already.")
        edited = replace(content, text=content.text[:start] + fresh + content.text[end:])
        self._put(reach, path, at, edited.encoded(), data)
        return f"{path} was changed at line {_line(content.text, start)}."

    def listed(self, permission: Permission, path: str, deep: bool) -> list[str]:
        return [
            f"{entry.path}/" if entry.is_folder else f"{entry.path} ({entry.size:,} bytes, {entry.saved:%Y-%m-%d})"
            for entry in Confined(self.root, permission.scope).entries(path, deep=deep)
        ]

    def found(self, permission: Permission, path: str, text: str) -> tuple[list[str], bool]:
        """The lines that hold ``text``, and whether any is from a file that is not the agent's own."""
        wanted = re.compile(re.escape(text), re.IGNORECASE)
        if not text.strip() or "\n" in text:
            raise ToolError("Not done: the text to look for must be part of one line.")
        lines: list[str] = []
        is_foreign = False
        for entry, data in Confined(self.root, permission.scope).contents(path, most=LARGEST):
            if _is_binary(data):
                continue
            for number, line in enumerate(files.decode(data).text.split("\n"), 1):
                if match := wanted.search(line):
                    lines.append(f"{entry.path}:{number}: {_around(line, *match.span())}")
                    is_foreign = is_foreign or is_foreign_path(entry.path)
                    if len(lines) == MOST_FOUND:
                        return lines, is_foreign
        return lines, is_foreign

    def _writable(self, reach: Confined, permission: Permission, path: str, text: str) -> Located:
        """Where ``path`` leads, if ``text`` may be written there."""
        at = reach.located(path, write=True)
        if not permission.may_change(path, at):
            raise ToolError(f"Not written: {path} is not changed by guests or in groups.")
        if self.notes.includes(at) and not is_instruction(at):
            raise ToolError(
                f"Not written: {path} is memory. Use memory_append for today's note, memory_edit for other notes, or a "
                "name that ends in .txt."
            )
        if KEY.search(text):
            raise ToolError("Not written: it holds what looks like a key or token. Leave that out.")
        return at

    def _check_name(self, at: Located) -> None:
        """Refuse a new file in the place of a folder, in a folder in the place of a note, or under an unfit name."""
        *folders, last = at.casefold().split("/")
        if note := next((name for name in folders if name.endswith(".md")), ""):
            raise ToolError(f"Not written: {note} is a name for a note, not for a folder.")
        if at.casefold() in _FOLDERS or (folders[:1] == ["memory"] and "." not in last):
            raise ToolError(f"Not written: {at} is a name for a folder. Give the file an ending, such as .txt.")
        for name in at.split("/"):
            if flaw := names.flaw(name):
                raise ToolError(f"Not written: a file can't be called {name!r} on every system, since {flaw}.")

    def _put(self, reach: Confined, path: str, at: Located, fresh: bytes, old: bytes | None) -> None:
        if old is not None:
            self.copies.keep(at.rpartition("/")[2], old)
        if not reach.write(at, fresh, read=old):
            raise ToolError(f"Not written: somebody saved {path} in between. Read it again first.")


def _text(path: str, data: bytes) -> str:
    if _is_binary(data):
        raise ToolError(f"{path} is not a text file ({len(data):,} bytes).")
    return files.decode(data).text


def _is_binary(data: bytes) -> bool:
    return files.encoding(data) == "utf-8" and b"\0" in data[:8_000]


def _clean(text: str) -> str:
    """With LF line ends, and without the halves of characters that a model's JSON may hold."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\r\n", "\n").replace("\r", "\n")


def _place(text: str, wanted: str, path: str) -> tuple[int, int]:
    """The one place of ``wanted``, with any line ends."""
    if not wanted:
        raise ToolError("Not written: old is empty. To make a file or replace all of it, use write.")
    pattern = r"(?:\r\n|\r|\n)".join(re.escape(line) for line in _clean(wanted).split("\n"))
    found = [match.span(1) for match in re.finditer(f"(?=({pattern}))", text)]
    if not found:
        raise ToolError(f"Not written: that is not in {path} as you wrote it, to the letter. Read it first.")
    if len(found) > 1:
        lines = ", ".join(str(_line(text, start)) for start, _ in found[:10])
        raise ToolError(f"Not written: that is in {path} {len(found)} times, at lines {lines}. Give more of the text.")
    return found[0]


def _line(text: str, at: int) -> int:
    return len(re.findall(r"\r\n|\r|\n", text[:at])) + 1


def _around(line: str, start: int, end: int) -> str:
    """What stands around a find, whole where the line is short."""
    line, first, last = line.rstrip(), max(start - _AROUND, 0), end + _AROUND
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """What the disk refuses, as the model is told of it."""
    try:
        yield
    except OutOfReach as error:
        raise ToolError(str(error)) from error
    except FileNotFoundError:
        raise ToolError(f"There is no {path}. See what there is with list.") from None
    except IsADirectoryError:
        raise ToolError(f"{path} is a folder. See what is in it with list.") from None
    except NotADirectoryError:
        raise ToolError(f"{path} is not in a folder, or is a file itself: read it.") from None
    except OSError as error:
        raise ToolError(f"Not done: {path}: {error.strerror or error}.") from error
