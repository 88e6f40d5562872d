"""A Markdown file as the index takes it: its chunks, and what each is found by beside its own words.

The date of a daily note and the headings above a text go to the keyword index, the headings to the embedder too;
neither is part of the text that is handed out. Knows which files are memory, and no database.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from workspaces import files
from workspaces.memory import chunks, words
from workspaces.scope import area_of

if TYPE_CHECKING:
    from pathlib import Path

    from workspaces.memory.settings import MemorySettings

CURATED = ("MEMORY.md", "USER.md")
"""The files beside ``memory/`` that are indexed; the other bootstrap files are instructions, not memory."""

FOLDER = "memory"

_DAILY = re.compile(r"(\d{4}-\d\d-\d\d)(\D[^/]*)?\.md$")
_MARKER = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s+(\[[ xX]\]\s+)?(\d\d:\d\d\s+)?")


@dataclass(frozen=True, slots=True)
class Entry:
    """A unit beside its text: pairs of characters for the keyword index, and a hash of what is embedded."""

    unit: chunks.Unit
    grams: str
    hash: bytes


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk, the words it is found by beside its own, and its units."""

    chunk: chunks.Chunk
    header: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """``day`` is the day a daily note is about; None for every other file."""

    path: str
    area: str
    day: date | None
    parts: tuple[Part, ...]


def found(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The memory files below ``root``, as workspace-relative paths, with their state.

    Hidden files and folders are left out, and so is every symbolic link: what a link inside the memory leads to is
    there under its own name, and what is outside is not memory. A folder that can't be read counts as empty.
    """
    for name in CURATED:
        path = root / name
        if path.is_file() and not path.is_symlink():
            yield name, path.stat()
    if not (root / FOLDER).is_symlink():
        yield from _below(root / FOLDER, FOLDER)


def document(path: str, text: str, settings: MemorySettings) -> Document:
    """Cut ``text``, the contents of ``path``."""
    day = day_of(path)
    parts: list[Part] = []
    cut = chunks.chunked(text, size=settings.chunk_tokens, overlap=settings.chunk_overlap, unit=settings.unit_tokens)
    for chunk in cut:
        entries: list[Entry] = []
        for unit in chunk.units:
            own = chunk.text[unit.start : unit.end]
            entries.append(Entry(unit, words.grams(own), files.digest(embedded(chunk.trail, own).encode())))
        parts.append(Part(chunk, _header(chunk.trail, day), tuple(entries)))
    return Document(path, area_of(path), day, tuple(parts))


def day_of(path: str) -> date | None:
    """The day in the name of a daily note."""
    match = _DAILY.search(path.rsplit("/", 1)[-1])
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def embedded(trail: tuple[str, ...], text: str) -> str:
    """What stands for a unit before the embedder: its headings in words, and the text without bullet and time."""
    titles = [title for title in trail if any(ch.isalpha() for ch in title)]
    return "\n".join([*titles, _MARKER.sub("", text, count=1)])


def _header(trail: tuple[str, ...], day: date | None) -> str:
    titles = " ".join(trail)
    if day is None:
        return titles
    return f"{titles} {day.isoformat()} {_WEEKDAYS[day.weekday()]} {_MONTHS[day.month - 1]} {day.day}"


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
"""Written out, because ``strftime`` speaks the language of the machine."""


def _below(folder: Path, relative: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        path = f"{relative}/{entry.name}"
        try:
            if entry.is_dir():
                yield from _below(folder / entry.name, path)
            elif entry.name.endswith(".md") and entry.is_file():
                yield path, entry.stat()
        except OSError:  # removed since it was listed
            continue
