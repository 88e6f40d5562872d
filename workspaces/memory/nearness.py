"""How near the units of a scope are to a question, by the cosine of their vectors. Reads only.

Few are all compared, once, by sqlite-vec's own distance: that says which are nearest, how near those beside them are,
and how near one usually is. Of many their signs choose the nearest first (see ``vectors``), which numpy counts at once,
and only those are compared. Runs inside the caller's snapshot; knows no text and no embedder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from workspaces.memory import vectors
from workspaces.memory.vectors import PAGE

if TYPE_CHECKING:
    import sqlite3

    from workspaces.memory.lookups import Extent
    from workspaces.memory.vectors import Space

OVERSAMPLING = 3
"""How many more units the signs choose than are asked for."""

KEPT_SIGNS = 32 << 20
"""Bytes of signs that are kept from one search to the next: a million units of 256 dimensions."""

SAMPLE = 125
"""Units that say how near an unrelated one is to a question; recall is the same with 250."""

GAPS = 3
"""How many times as many numbers are tried for a sample where there are gaps in them."""


class Nearness(Protocol):
    """What is known of one question's meaning among the units of one scope. Units without a vector are in no answer.

    ``is_exact``: none is nearer than the ``nearest``; else it may be, and those are the ones that look so.
    """

    is_exact: bool

    def nearest(self, count: int) -> dict[int, float]:
        """The cosines of the ``count`` nearest."""

    def of(self, units: Iterable[int]) -> dict[int, float]:
        """The cosines of given units, which lie in the scope."""

    def sample(self) -> Sequence[float]:
        """The cosines of about ``SAMPLE`` units from all over the scope; fewer where many numbers are unused."""


def nearness(db: sqlite3.Connection, space: Space, query: bytes, extent: Extent, signs: Signs) -> Nearness:
    """``query`` is the question's vector as int8s; ``signs`` are those of ``db``."""
    if space.dims != len(query):
        return Few({}, extent)
    mean = vectors.mean_of(db, space) if extent.units > vectors.FEW else None
    return _all(db, space, query, extent) if mean is None else _Many(db, space, query, extent, signs, mean)


@dataclass(frozen=True, slots=True)
class Few:
    """``distances`` are of all units, by id, in order."""

    distances: dict[int, float]
    extent: Extent
    is_exact = True

    def nearest(self, count: int) -> dict[int, float]:
        least = sorted(self.distances.values())[:count][-1:]
        near = [(distance, unit) for unit, distance in self.distances.items() if [distance] <= least]
        return {unit: 1 - distance for distance, unit in sorted(near)[:count]}

    def of(self, units: Iterable[int]) -> dict[int, float]:
        known = self.distances
        return {unit: 1 - known[unit] for unit in units if unit in known}

    def sample(self) -> Sequence[float]:
        every, spans = _every(self.extent), dict[tuple[int, int], float]()
        for unit, distance in reversed(self.distances.items()):
            first = max(first for first, _ in self.extent.ranges if first <= unit)
            spans[first, (unit - first) // every] = 1 - distance  # of each span its first unit stays
        return list(spans.values())


def _all(db: sqlite3.Connection, space: Space, query: bytes, extent: Extent) -> Few:
    select = (
        f"SELECT id, vec_distance_cosine(vec_int8(vector), vec_int8(?)) FROM vectors_{space.id}"  # noqa: S608 - a number of ours
        " WHERE id BETWEEN ? AND ? AND vector IS NOT NULL ORDER BY id"
    )
    distances = dict[int, float]()
    for first, last in extent.ranges:
        distances |= db.execute(select, (query, first, last))
    return Few(distances, extent)


def _every(extent: Extent) -> int:
    """How many numbers a unit of the sample stands for."""
    numbers = sum(last - first + 1 for first, last in extent.ranges)
    return max(1, extent.units // SAMPLE, numbers // (GAPS * SAMPLE))


@dataclass(frozen=True, slots=True)
class _Many:
    db: sqlite3.Connection
    space: Space
    query: bytes
    extent: Extent
    signs: Signs
    mean: Any
    is_exact = False

    def nearest(self, count: int) -> dict[int, float]:
        (wanted,) = vectors.signs_of([self.query], self.mean, vectors.width_of(self.space))
        found = self.of(self.signs.near(self.db, self.space, wanted, self.extent.ranges, count * OVERSAMPLING))
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:count])

    def of(self, units: Iterable[int]) -> dict[int, float]:
        rows = self.db.execute(
            f"SELECT id, 1 - vec_distance_cosine(vec_int8(vector), vec_int8(?)) FROM vectors_{self.space.id}"  # noqa: S608
            " WHERE id IN (SELECT value FROM json_each(?)) AND vector IS NOT NULL",
            (self.query, json.dumps(list(units))),
        )
        return dict(rows)

    def sample(self) -> Sequence[float]:
        every = _every(self.extent)
        spans = [
            (unit, min(unit + every - 1, last))
            for first, last in self.extent.ranges
            for unit in range(first, last + 1, every)
        ]
        rows = self.db.execute(
            f"SELECT 1 - vec_distance_cosine(vec_int8(vector), vec_int8(?)) FROM json_each(?) AS span"  # noqa: S608
            f" JOIN vectors_{self.space.id} AS found ON found.id = (SELECT id FROM vectors_{self.space.id}"
            " WHERE id BETWEEN span.value ->> 0 AND span.value ->> 1 AND vector IS NOT NULL LIMIT 1)",
            (self.query, json.dumps(spans)),
        )
        return [cosine for (cosine,) in rows]


class Signs:
    """Finds units by their signs, and keeps what it read: it is for one state of the index (see ``Index.state``)."""

    def __init__(self) -> None:
        self._of: tuple[object, ...] = ()
        self._pages: list[int] = []
        self._words: Any = None

    def near(
        self, db: sqlite3.Connection, space: Space, wanted: bytes, ranges: Sequence[tuple[int, int]], count: int
    ) -> list[int]:
        """The ids of the ``count`` units in ``ranges`` whose signs differ least from ``wanted``."""
        import numpy as np

        pages, words = self._pages, self._words
        if self._of != (space.id, *ranges):
            pages, words = _read(db, space, ranges)
            if words.nbytes <= KEPT_SIGNS:
                self._of, self._pages, self._words = (space.id, *ranges), pages, words
        differing = np.zeros(len(pages) * PAGE, dtype=np.uint16)
        for own, asked in zip(words, np.frombuffer(wanted, dtype=np.uint64), strict=True):
            differing += np.bitwise_count(own ^ asked)
        within = np.bincount(differing).cumsum()  # how many differ in so many signs or fewer
        best = np.flatnonzero(differing <= np.searchsorted(within, min(count, len(differing))))
        best = best[np.argsort(differing[best], kind="stable")][:count]
        return [pages[at // PAGE] * PAGE + at % PAGE for at in best.tolist()]


def _read(db: sqlite3.Connection, space: Space, ranges: Sequence[tuple[int, int]]) -> tuple[list[int], Any]:
    """The pages of signs that ``ranges`` lie in, and their signs: a row for each 64 dimensions, a column a unit."""
    import numpy as np

    pages: list[int] = []
    bits: list[bytes] = []
    for first, last in ranges:
        select = f"SELECT page, bits FROM signs_{space.id} WHERE page BETWEEN ? AND ?"  # noqa: S608
        for page, row in db.execute(select, (first // PAGE, last // PAGE)):
            pages.append(page)
            bits.append(row)
    words = np.empty((vectors.width_of(space) // 8, len(pages) * PAGE), dtype=np.uint64)
    for at, row in enumerate(bits):
        words[:, at * PAGE : (at + 1) * PAGE] = np.frombuffer(row, dtype=np.uint64).reshape(PAGE, -1).T
    return pages, words
