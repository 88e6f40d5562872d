"""The vectors of the units, one table a vector space: made of whole numbers, and kept in step with the units.

A vector is kept as int8s of any scale, a cosine has none; a quarter of the disk and no loss that recall shows. Of many,
``signs`` (a bit a dimension, whether it is above the mean) are kept beside them, 32 bytes each instead of 256. The mean
is taken off because the vectors of some embedders share most of their signs. How they are searched is in ``nearness``.
Runs inside the caller's transaction; knows no text and no embedder.
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from workspaces.memory.schema import SPACE

if TYPE_CHECKING:
    import sqlite3

    from workspaces.memory.embedder import Matrix, Vector

FEW = 4096
"""Vectors that are compared one by one: 4 ms of CPU, where loading numpy costs a process 100. More have signs."""

PAGE = 1024
"""Units whose signs lie in one row: 32 kB at 256 dimensions."""

KEPT = timedelta(days=7)
"""How long a space that nobody opens is kept: settings are changed back, and another process may have others."""


@dataclass(frozen=True, slots=True)
class Space:
    """A vector space of this index. ``dims`` is None before its first vector. ``ready``: every unit had one once."""

    id: int
    embedder: str
    dims: int | None
    ready: bool

    def fits(self, dims: int | None) -> bool:
        """Whether vectors of ``dims`` belong here; None for dims that are not known yet."""
        return None in (dims, self.dims) or dims == self.dims


def packed(matrix: Matrix) -> list[bytes | None]:
    """The rows as int8s, the largest value scaled to 127; None for a row of zeros or of what is no number."""
    import numpy as np

    largest = np.abs(matrix).max(axis=1, keepdims=True, initial=0)
    fit = np.isfinite(largest[:, 0]) & (largest[:, 0] > 0)
    scaled = np.rint(matrix[fit] * (127 / largest[fit])).astype(np.int8)
    rows = iter(scaled)
    return [next(rows).tobytes() if good else None for good in fit]


def packed_query(vector: Vector) -> bytes | None:
    """As ``packed``, of one vector; without numpy where the process has not loaded it."""
    if "numpy" in sys.modules:  # the same numbers in a tenth of the time
        import numpy as np

        row = np.asarray(vector, dtype=np.float64)
        most = np.abs(row).max(initial=0.0)
        return np.rint(row * 127 / most).astype(np.int8).tobytes() if np.isfinite(most) and most > 0 else None
    values = [float(x) for x in vector]
    largest = max(map(abs, values), default=0.0)
    if not math.isfinite(math.fsum(values)) or largest <= 0:
        return None
    return array("b", [round(x * 127 / largest) for x in values]).tobytes()


def spaces(db: sqlite3.Connection) -> list[Space]:
    """All there are."""
    rows = db.execute("SELECT id, embedder, dims, ready FROM spaces ORDER BY id")
    return [Space(number, embedder, dims, bool(ready)) for number, embedder, dims, ready in rows]


def add(db: sqlite3.Connection, embedder: str, dims: int | None) -> None:
    """Make a space in which every unit waits for its vector; an old one of other dims goes."""
    for space in spaces(db):
        if space.embedder == embedder and space.fits(dims):
            return
        if space.embedder == embedder:
            drop(db, space)
    number = db.execute("INSERT INTO spaces(embedder, dims) VALUES (?, ?)", (embedder, dims)).lastrowid
    for statement in SPACE:
        db.execute(statement.format(space=number))
    db.execute("INSERT INTO waiting SELECT ?, id FROM units", (number,))


def drop(db: sqlite3.Connection, space: Space) -> None:
    """Forget a space and all in it."""
    db.execute(f"DROP TABLE vectors_{space.id}")
    db.execute(f"DROP TABLE signs_{space.id}")
    db.execute("DELETE FROM waiting WHERE space = ?", (space.id,))
    db.execute("DELETE FROM spaces WHERE id = ?", (space.id,))


def mark(db: sqlite3.Connection, embedders: Sequence[str], today: date) -> None:
    """Note that the spaces of ``embedders`` are in use, and drop what nobody used for long."""
    for space in spaces(db):
        if space.embedder in embedders:
            db.execute("UPDATE spaces SET opened = ? WHERE id = ?", (today.isoformat(), space.id))
    old = (today - KEPT).isoformat()
    unused = {number for (number,) in db.execute("SELECT id FROM spaces WHERE opened < ?", (old,))}
    for space in spaces(db):
        if space.id in unused:
            drop(db, space)


def fitted(db: sqlite3.Connection, space: Space, dims: int | None) -> Space:
    """The space for vectors of ``dims``: ``space``, or one made anew where it had others."""
    if space.dims == dims:
        return space
    if space.dims is None:
        db.execute("UPDATE spaces SET dims = ? WHERE id = ?", (dims, space.id))
    else:
        drop(db, space)
        add(db, space.embedder, dims)
    return next(other for other in spaces(db) if other.embedder == space.embedder)


def settle(db: sqlite3.Connection, space: Space, embedders: Sequence[str]) -> None:
    """Call the space ready, now that nothing waits and something has a vector; what stood in for it goes.

    ``embedders`` are those of this process, the preferred one last; the spaces of others are none of its business.
    """
    (filled,) = db.execute("SELECT filled FROM spaces WHERE id = ?", (space.id,)).fetchone()
    if not filled:
        return
    db.execute("UPDATE spaces SET ready = 1 WHERE id = ?", (space.id,))
    for other in spaces(db):
        if other.embedder in embedders[: embedders.index(space.embedder)]:
            drop(db, other)


def expect(db: sqlite3.Connection, units: Sequence[tuple[int, int]]) -> None:
    """New units, by id and hash: each takes the vector of a unit that says the same, or waits for one."""
    for space in spaces(db):
        same = known(db, space, [hash_ for _, hash_ in units])
        taken = {unit: same[hash_] for unit, hash_ in units if hash_ in same}
        waiting = [(space.id, unit) for unit, hash_ in units if hash_ not in same]
        db.executemany("INSERT INTO waiting VALUES (?, ?)", waiting)
        _store(db, space, taken)


def forget(db: sqlite3.Connection, units: Sequence[int]) -> None:
    """Units that are no more."""
    gone = json.dumps(units)
    for space in spaces(db):
        _erase(db, space, units)
        taken = db.execute(
            f"DELETE FROM vectors_{space.id} WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608 - a number of ours
            " RETURNING vector IS NOT NULL",
            (gone,),
        ).fetchall()
        _count(db, space, -sum(there for (there,) in taken))
        db.executemany("DELETE FROM waiting WHERE space = ? AND unit = ?", [(space.id, unit) for unit in units])


def fill(db: sqlite3.Connection, space: Space, vectors: Mapping[int, bytes | None]) -> None:
    """Give the units that wait their vectors, by hash, None for no vector."""
    waiting = db.execute(
        "SELECT unit, hash FROM units JOIN waiting ON unit = id"
        " WHERE space = ? AND hash IN (SELECT value FROM json_each(?))",
        (space.id, json.dumps(list(vectors))),
    ).fetchall()
    db.executemany("DELETE FROM waiting WHERE space = ? AND unit = ?", [(space.id, unit) for unit, _ in waiting])
    _store(db, space, {unit: vectors[hash_] for unit, hash_ in waiting})


def _store(db: sqlite3.Connection, space: Space, vectors: Mapping[int, bytes | None]) -> None:
    db.executemany(f"INSERT OR REPLACE INTO vectors_{space.id} VALUES (?, ?)", vectors.items())  # noqa: S608
    there = [unit for unit, vector in vectors.items() if vector is not None]
    _count(db, space, len(there))
    _sign(db, space, there)


def known(db: sqlite3.Connection, space: Space, hashes: Iterable[int]) -> dict[int, bytes | None]:
    """The vectors of texts, by their hash, of those that have one; what has none is tried once more."""
    rows = db.execute(
        f"SELECT hash, vector FROM units JOIN vectors_{space.id} USING (id)"  # noqa: S608
        " WHERE hash IN (SELECT value FROM json_each(?)) AND vector IS NOT NULL",
        (json.dumps(list(hashes)),),
    )
    return dict(rows)


def _count(db: sqlite3.Connection, space: Space, change: int) -> None:
    if change:
        db.execute("UPDATE spaces SET filled = filled + ? WHERE id = ?", (change, space.id))


def mean_of(db: sqlite3.Connection, space: Space) -> Any:
    """The mean of the space's vectors as float32s; None while there are no signs."""
    import numpy as np

    (mean,) = db.execute("SELECT mean FROM spaces WHERE id = ?", (space.id,)).fetchone()
    return None if mean is None else np.frombuffer(mean, dtype=np.float32)


def _sign(db: sqlite3.Connection, space: Space, units: Sequence[int]) -> None:
    """Write the signs of units that got a vector; of all there are, once they have become many."""
    if not units:
        return
    filled, mean = db.execute("SELECT filled, mean FROM spaces WHERE id = ?", (space.id,)).fetchone()
    if filled <= FEW:
        return
    if mean is None:
        _learn(db, space)
        rows = db.execute(f"SELECT id, vector FROM vectors_{space.id} WHERE vector IS NOT NULL ORDER BY id")  # noqa: S608
    else:
        rows = db.execute(
            f"SELECT id, vector FROM vectors_{space.id}"  # noqa: S608
            " WHERE id IN (SELECT value FROM json_each(?)) AND vector IS NOT NULL",
            (json.dumps(units),),
        )
    center, width = mean_of(db, space), width_of(space)
    while batch := rows.fetchmany(PAGE):
        signs = signs_of([vector for _, vector in batch], center, width)
        _write(db, space, dict(zip((unit for unit, _ in batch), signs, strict=True)))


def _learn(db: sqlite3.Connection, space: Space) -> None:
    """The mean of the vectors there are when they become many, of length 1. It moves what is compared, no cosine."""
    rows = db.execute(f"SELECT vector FROM vectors_{space.id} WHERE vector IS NOT NULL")  # noqa: S608
    mean = _unit([vector for (vector,) in rows]).mean(axis=0, dtype="float32")
    db.execute("UPDATE spaces SET mean = ? WHERE id = ?", (mean.tobytes(), space.id))


def signs_of(vectors: Sequence[bytes], mean: Any, width: int) -> list[bytes]:
    """For each vector a bit a dimension, padded to ``width`` bytes."""
    import numpy as np

    return [row.tobytes().ljust(width, b"\0") for row in np.packbits(_unit(vectors) > mean, axis=1)]


def _unit(vectors: Sequence[bytes]) -> Matrix:
    """The vectors as float32s of length 1."""
    import numpy as np

    rows: Matrix = np.frombuffer(b"".join(vectors), dtype=np.int8).reshape(len(vectors), -1).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def width_of(space: Space) -> int:
    """Bytes of one unit's signs: whole 64-bit words."""
    return ((space.dims or 0) + 63) // 64 * 8


def _erase(db: sqlite3.Connection, space: Space, units: Iterable[int]) -> None:
    """What was deleted must not stand in the way of what is like it."""
    if db.execute("SELECT mean FROM spaces WHERE id = ?", (space.id,)).fetchone()[0] is not None:
        _write(db, space, dict.fromkeys(units, bytes(width_of(space))))


def _write(db: sqlite3.Connection, space: Space, signs: Mapping[int, bytes]) -> None:
    """Put signs into their pages, each page read and written once."""
    width = width_of(space)
    pages: dict[int, dict[int, bytes]] = {}
    for unit, bits in signs.items():
        pages.setdefault(unit // PAGE, {})[unit % PAGE] = bits
    for page, slots in pages.items():
        row = db.execute(f"SELECT bits FROM signs_{space.id} WHERE page = ?", (page,)).fetchone()  # noqa: S608
        data = bytearray(row[0] if row else bytes(width * PAGE))
        for slot, bits in slots.items():
            data[slot * width : (slot + 1) * width] = bits
        if any(data):
            db.execute(f"INSERT OR REPLACE INTO signs_{space.id} VALUES (?, ?)", (page, bytes(data)))  # noqa: S608
        else:
            db.execute(f"DELETE FROM signs_{space.id} WHERE page = ?", (page,))  # noqa: S608 - all of it was deleted
