"""Where each key of a TOML text stands: ``tomllib`` gives the values and ``tomlkit`` edits, but neither says the line.

A reader of texts that ``tomllib`` has already accepted: it knows how far a value reaches, not what it means.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from typing import TypeAlias

Key: TypeAlias = tuple[str | int, ...]
"""A path into a document: names of tables and keys, and the index of an item in an array, from 0."""


@dataclass(frozen=True, slots=True)
class Position:
    """``line`` and ``column`` count from 1; columns are characters."""

    line: int
    column: int


def positions(text: str) -> dict[Key, Position]:
    """The place of every table, key and array item of ``text``, which must be valid TOML.

    A table that is only named on the way to another (``a`` in ``[a.b]``) stands where it was first named.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    found = {}
    for key, offset in _Reader(text).found.items():
        line = bisect_right(starts, offset)
        found[key] = Position(line, offset - starts[line - 1] + 1)
    return found


def table_ends(text: str) -> dict[Key, int]:
    """For each table with a header of its own, and for the top (``()``) if it has keys: where its last pair ends.

    The end is the offset after the value (or the header), before any comment on the same line.
    """
    return _Reader(text).ends


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_SCALAR = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r"|\"(?:[^\"\\\n]|\\.)*\""
    r"|'[^'\n]*'"
    r"|[^,\]}#\r\n]+",
    re.DOTALL,
)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Key, int] = {}
        self.items: dict[Key, int] = {}
        """The index of the newest item of each array of tables."""
        self.ends: dict[Key, int] = {}
        self.document()

    def document(self) -> None:
        table: Key = ()
        self.skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.ends[table] = self.at
            self.skip(_BLANK)

    def header(self) -> Key:
        start = self.at
        is_item = self.text.startswith("[[", self.at)
        self.at += 2 if is_item else 1
        *parents, last = self.names()
        self.at += 2 if is_item else 1
        path: Key = ()
        for name, offset in parents:
            path = self.latest((*path, self.note((*path, name), offset)))
        name, offset = last
        path = (*path, self.note((*path, name), offset))
        if is_item:
            index = self.items.get(path, -1) + 1
            self.items[path] = index
            path = (*path, index)
            self.found[path] = start
        return path

    def pair(self, table: Key) -> None:
        path = table
        for name, offset in self.names():
            path = (*path, self.note((*path, name), offset))
        self.at += 1
        self.skip(_SPACE)
        self.value(path)

    def names(self) -> list[tuple[str, int]]:
        """The parts of a dotted key with their offsets; leaves ``at`` on the character after it."""
        parts = []
        while True:
            self.skip(_SPACE)
            offset = self.at
            raw = self.take(_KEY)
            parts.append((_unquoted(raw), offset))
            self.skip(_SPACE)
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def value(self, path: Key) -> None:
        opening = self.text[self.at]
        if opening == "[":
            self.sequence(path, "]")
        elif opening == "{":
            self.sequence(path, "}")
        else:
            self.take(_SCALAR)

    def sequence(self, path: Key, closing: str) -> None:
        """An array, or an inline table."""
        self.at += 1
        self.skip(_BLANK)
        index = 0
        while self.text[self.at] != closing:
            if closing == "}":
                self.pair(path)
            else:
                self.note((*path, index), self.at)
                self.value((*path, index))
            index += 1
            self.skip(_BLANK)
            if self.text[self.at] == ",":
                self.at += 1
                self.skip(_BLANK)
        self.at += 1

    def note(self, path: Key, offset: int) -> str | int:
        self.found.setdefault(path, offset)
        return path[-1]

    def latest(self, path: Key) -> Key:
        """``path``, or its newest item where it is an array of tables."""
        return (*path, self.items[path]) if path in self.items else path

    def skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        assert match is not None  # both patterns match the empty text
        self.at = match.end()

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None, "not valid TOML: tomllib must have accepted the text before"
        self.at = match.end()
        return match[0]


def _unquoted(raw: str) -> str:
    if raw[0] == "'":
        return raw[1:-1]
    return next(iter(tomllib.loads(f"{raw} = 0"))) if raw[0] == '"' else raw
