"""What the index is asked: which units have a word, what stands around them, what they say.

Every look-up is given the ranges of ids that a scope may read, or ids that came out of one. Several that belong
together are made in one snapshot of the index (see ``Index.snapshot``). Writes nothing; knows no question.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from workspaces.memory.evidence import Unit
from workspaces.memory.query import COMMON
from workspaces.memory.schema import SPAN

if TYPE_CHECKING:
    import sqlite3

FIRST = 250
"""The newest units with a word that are always looked at, 0.2 ms of CPU; the rest of a common word only if it is worth
it."""

_SECTIONS = 1 << 24
"""More than a file has."""

_NEWEST = """
    SELECT asked.key, (SELECT group_concat(unit) FROM (
        SELECT rowid AS unit FROM units_fts WHERE units_fts MATCH asked.value AND rowid BETWEEN ?2 AND ?3
        ORDER BY rowid DESC LIMIT ?4
    )) FROM json_each(?1) AS asked
"""
_PRESENT = """
    SELECT value FROM json_each(?1)
    WHERE EXISTS (SELECT 1 FROM units_fts WHERE units_fts MATCH value AND rowid BETWEEN ?2 AND ?3)
"""
_PASSAGE = """
    SELECT units.id, chunks.id, path, place, chunks.text, start, start + length, units.start_line, units.end_line,
        trail, day
    FROM units JOIN chunks ON chunks.id = units.chunk JOIN files ON files.id = units.file
"""
_INSIDE = "area IN (SELECT id FROM areas WHERE name IN (SELECT value FROM json_each(?)))"
_PASSAGES = f"{_PASSAGE} WHERE {_INSIDE} AND units.id IN (SELECT value FROM json_each(?))"  # noqa: S608 - constants
_LATEST = f"""
    {_PASSAGE} WHERE {_INSIDE}
    ORDER BY day DESC NULLS LAST, path, place DESC LIMIT ?
"""


class Passage(NamedTuple):
    """A unit and the chunk it lies in. ``start`` and ``end`` are offsets into ``text``, which is the chunk's; ``place``
    is its number in its file. ``data`` is the text, or what the index keeps of it: few of those found are read."""

    id: int
    chunk: int
    path: str
    place: int
    data: bytes | str
    start: int
    end: int
    start_line: int
    end_line: int
    trail: tuple[str, ...]
    day: date | None

    @property
    def text(self) -> str:
        return self.data if isinstance(self.data, str) else text(self.data)


@dataclass(frozen=True, slots=True)
class Extent:
    """The areas of a scope: the ranges of their units' ids, both ends included, and how many units there are."""

    ranges: tuple[tuple[int, int], ...]
    units: int


@dataclass(frozen=True, slots=True)
class Posting:
    """The units that an expression finds. Where not ``complete`` there are more, and ``total`` is an estimate."""

    units: list[int]
    total: int
    complete: bool


def extent(db: sqlite3.Connection, areas: Iterable[str]) -> Extent:
    """What a scope can be searched for."""
    rows = db.execute(
        "SELECT id, next, units FROM areas WHERE units > 0 AND name IN (SELECT value FROM json_each(?)) ORDER BY id",
        (json.dumps(sorted(areas)),),
    ).fetchall()
    ranges = tuple((number * SPAN, number * SPAN + following - 1) for number, following, _ in rows)
    return Extent(ranges, sum(row[2] for row in rows))


def present(db: sqlite3.Connection, expressions: Sequence[str], extent: Extent) -> set[str]:
    """Those FTS5 expressions that find any unit of the scope: what a person says has many words that no note has."""
    found = set[str]()
    for first, last in extent.ranges:
        found.update(value for (value,) in db.execute(_PRESENT, (json.dumps(expressions), first, last)))
    return found


def postings(db: sqlite3.Connection, expressions: Sequence[str], extent: Extent, most: int) -> list[Posting]:
    """The units of the scope that each FTS5 expression finds, together about ``most`` of them.

    Of an expression that finds too many the newest are taken, and those that a rare one finds too, unless it finds
    most of the scope: so what is both is not missed, and a word that is everywhere costs no more than another.
    """
    found = _newest(db, expressions, extent, FIRST) if expressions else []
    rest = most - sum(len(posting.units) for posting in found)
    for at in sorted(range(len(found)), key=lambda at: found[at].total):
        if not found[at].complete and found[at].total <= rest:
            rest -= found[at].total
            (found[at],) = _newest(db, [expressions[at]], extent, 2 * found[at].total)
    rare = " OR ".join(f"({expressions[at]})" for at, one in enumerate(found) if one.complete and one.units)
    for at, posting in enumerate(found):
        if rare and not posting.complete and posting.total <= COMMON * extent.units:
            (both,) = _newest(db, [f"({expressions[at]}) AND ({rare})"], extent, most)
            found[at] = Posting([*{*posting.units, *both.units}], posting.total, complete=False)
    return found


def _newest(db: sqlite3.Connection, expressions: Sequence[str], extent: Extent, most: int) -> list[Posting]:
    """Of each at most ``most`` in an area; of more the total is an estimate, by how close together the newest are."""
    found = [Posting([], 0, complete=True) for _ in expressions]
    for first, last in extent.ranges:
        for at, listed in db.execute(_NEWEST, (json.dumps(expressions), first, last, most)):
            if not listed:
                continue
            units, one = list(map(int, listed.split(","))), found[at]
            is_all = len(units) < most
            total = len(units) if is_all else len(units) * (last - first + 1) // (last - min(units) + 1)
            found[at] = Posting(one.units + units, min(one.total + total, extent.units), one.complete and is_all)
    return found


def units(db: sqlite3.Connection, ids: Iterable[int], reach: int) -> list[Unit]:
    """Units by id, and those up to ``reach`` places away in the same file."""
    rows = db.execute(
        "SELECT file * ?1 + section, place, id, chunk, start_line, end_line, tokens, item, asks FROM units WHERE id IN"
        " (SELECT near.id FROM units JOIN units AS near ON near.file = units.file"
        " AND near.place BETWEEN units.place - ?2 AND units.place + ?2"
        " WHERE units.id IN (SELECT value FROM json_each(?3)))",
        (_SECTIONS, reach, json.dumps(list(ids))),
    )
    return [Unit._make(row) for row in rows]


def passages(db: sqlite3.Connection, ids: Iterable[int], areas: Iterable[str]) -> dict[int, Passage]:
    """The texts of units, by id, of those in ``areas``: asked once more here, where the text leaves."""
    return _passages(db, _PASSAGES, (json.dumps(sorted(areas)), json.dumps(list(ids))))


def latest(db: sqlite3.Connection, areas: Iterable[str], count: int) -> list[Passage]:
    """The newest units: by day, the last of a day first, then those of files without a day."""
    return list(_passages(db, _LATEST, (json.dumps(sorted(areas)), count)).values())


def _passages(db: sqlite3.Connection, select: str, values: Sequence[object]) -> dict[int, Passage]:
    rows = db.execute(select, values)
    return {row[0]: Passage._make((*row[:-2], lines(row[-2]), _day(row[-1]))) for row in rows}


def text(data: bytes) -> str:
    """A chunk's text as it was written."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


def lines(text: str) -> tuple[str, ...]:
    """A heading trail as it was written."""
    return tuple(text.split("\n")) if text else ()


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None
