"""A Markdown file as the index takes it: its chunks, and what each is found by beside its own words.

The date of a daily note and the headings above a text go to the keyword index, the headings to the embedder too;
neither is part of the text that is handed out. Knows no folder and no database.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from workspaces import files
from workspaces.memory import chunks, words
from workspaces.scope import area_of

if TYPE_CHECKING:
    from workspaces.memory.settings import MemorySettings

_DAILY = re.compile(r"(\d{4}-\d\d-\d\d)(\D[^/]*)?\.md$")
_MARKER = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s+(\[[ xX]\]\s+)?(\d\d:\d\d\s+)?")


@dataclass(frozen=True, slots=True)
class Entry:
    """A unit beside its text: what it names before a colon, pairs of characters for the keyword index, about how many
    tokens it has, whether it is an item of a list, or a question, and a hash (a signed 64-bit integer) of what is
    embedded."""

    unit: chunks.Unit
    label: str
    grams: str
    tokens: int
    item: bool
    asks: bool
    hash: int


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk, the words it is found by beside its own, and its units. Chunks that follow each other below the same
    headings have the same ``section``."""

    chunk: chunks.Chunk
    section: int
    header: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """``day`` is the day a daily note is about; None for every other file."""

    path: str
    area: str
    day: date | None
    parts: tuple[Part, ...]


def document(path: str, text: str, settings: MemorySettings) -> Document:
    """Cut ``text``, the contents of ``path``."""
    day = day_of(path)
    parts: list[Part] = []
    section, above = 0, None
    cut = chunks.chunked(text, size=settings.chunk_tokens, overlap=settings.chunk_overlap, unit=settings.unit_tokens)
    for chunk in cut:
        section, above = section + (above not in (None, chunk.trail)), chunk.trail
        entries = tuple(_entry(unit, chunk.text[unit.start : unit.end], chunk.trail) for unit in chunk.units)
        parts.append(Part(chunk, section, _header(chunk.trail, day), entries))
    return Document(path, area_of(path), day, tuple(parts))


def _entry(unit: chunks.Unit, text: str, trail: tuple[str, ...]) -> Entry:
    digest = files.digest(embedded(trail, text).encode("utf-8", "surrogatepass"))
    number = int.from_bytes(digest[:8], "big", signed=True)
    kind = words.is_item(text), words.asks(text)
    return Entry(unit, words.label(text), words.grams(text), words.tokens(text), *kind, number)


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
