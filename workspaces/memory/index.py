"""The index: one SQLite file derived from the Markdown. Owns every statement and every transaction.

Chunks are what is handed out, units (pieces of a chunk) what is looked up: by words in ``units_fts``, by meaning in
``units_vec``. Text is written first and vectors are filled in later, so that the write lock is never held across an
embedding, and a unit without a vector is found by its words meanwhile. A scope's areas are part of each look-up, never
a filter after it. Synchronous, for one thread at a time; knows no Markdown, no embedder and no ranking.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workspaces.database import DatabaseError, connect, has_vectors, sqlite
from workspaces.memory import documents, schema

if TYPE_CHECKING:
    import sqlite3

MOST_NEIGHBOURS = 4096
"""vec0 refuses a larger k."""

_INSIDE = "area IN (SELECT value FROM json_each(?))"
_UNITS_OF = "SELECT units.id FROM units JOIN chunks ON chunks.id = units.chunk WHERE chunks.path = ?"
_POSTINGS = f"""
    SELECT units.id, -bm25(units_fts, 1.0, 0.5, 1.0) FROM units_fts JOIN units ON units.id = units_fts.rowid
    WHERE units_fts MATCH ? AND {_INSIDE}
"""  # noqa: S608 - a constant
_PASSAGE = """
    SELECT units.id, chunks.id, path, text, start, start + length, units.start_line, units.end_line, trail, day
    FROM units JOIN chunks ON chunks.id = units.chunk
"""
_PASSAGES = f"{_PASSAGE} WHERE units.id IN (SELECT value FROM json_each(?))"  # noqa: S608 - a constant
_LATEST = f"""
    {_PASSAGE} WHERE units.{_INSIDE} ORDER BY day DESC NULLS LAST, path, units.start_line DESC, start DESC LIMIT ?
"""


class IndexUnavailable(Exception):
    """The index can't be used now: a read-only folder, a full disk, a lock that is never given up."""


class IndexDamaged(IndexUnavailable):
    """The file holds something else than this index; it can be moved aside and made anew."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What is known of a file: while ``mtime_ns`` and ``size`` are the same it is taken as unchanged.

    ``flaw`` says what could not be read of it as text, "" when all of it could.
    """

    hash: bytes
    mtime_ns: int
    size: int
    flaw: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A unit and the chunk it lies in. ``start`` and ``end`` are offsets into ``text``, which is the chunk's."""

    id: int
    chunk: int
    path: str
    text: str
    start: int
    end: int
    start_line: int
    end_line: int
    trail: tuple[str, ...]
    day: date | None


@dataclass(frozen=True, slots=True)
class Pending:
    """A unit without a vector yet. ``text`` is what is embedded, ``hash`` is of it."""

    id: int
    area: str
    hash: bytes
    text: str


@dataclass(frozen=True, slots=True)
class Postings:
    """Where the terms of a query are: ``found[i]`` maps units to a strength above 0 and up to 1, of ``total`` units."""

    found: tuple[Mapping[int, float], ...]
    total: int


class Index:
    """An open index."""

    def __init__(self, path: Path, connection: sqlite3.Connection, embedder: str | None) -> None:
        """Private: use ``Index.open``."""
        self.path = path
        self._embedder = embedder
        self._db = connection

    @classmethod
    def open(cls, path: Path, *, cutting: str, embedder: tuple[str, int] | None) -> Index:
        """Open or create. ``cutting`` names how text is cut; ``embedder`` is an id and dims, None for no vectors.

        Raises IndexDamaged for a file that is no index or one that was cut otherwise, else IndexUnavailable.
        """
        with reported():
            db = connect(path, vectors=embedder is not None)
            try:
                name = f"{embedder[0]}/{embedder[1]}" if embedder and has_vectors(db) else None
                index = cls(path, db, name)
                with index._transaction():
                    if not schema.prepare(db, f"{schema.VERSION} {cutting}"):
                        raise IndexDamaged(f"{path} was made in another way")
                    if name and embedder:
                        schema.prepare_vectors(db, name, embedder[1])
            except BaseException:
                db.close()
                raise
            return index

    def close(self) -> None:
        self._db.close()

    def files(self) -> dict[str, FileState]:
        """All files, by path."""
        rows = self._db.execute("SELECT path, hash, mtime_ns, size, flaw FROM files")
        return {path: FileState(*state) for path, *state in rows}

    def counts(self) -> tuple[int, int, int]:
        """Files, chunks, and units with a vector."""
        one = (
            "(SELECT count(*) FROM files), (SELECT count(*) FROM chunks), (SELECT count(*) FROM units WHERE vector = 1)"
        )
        files, chunks, vectors = self._db.execute(f"SELECT {one}").fetchone()
        return files, chunks, vectors

    def flaws(self) -> list[str]:
        """A sentence for each file that is not all text."""
        rows = self._db.execute("SELECT path, flaw FROM files WHERE flaw <> '' ORDER BY path")
        return [f"{path}: {flaw}." for path, flaw in rows]

    def takes_vectors(self) -> bool:
        """Whether units can have vectors here."""
        return self._embedder is not None

    def is_filling(self) -> bool:
        """Whether a unit waits for its vector."""
        return self._db.execute("SELECT 1 FROM units WHERE vector = 0 LIMIT 1").fetchone() is not None

    def has_vectors(self) -> bool:
        """Whether anything can be found by meaning."""
        return (
            self.takes_vectors()
            and self._db.execute("SELECT 1 FROM units WHERE vector = 1 LIMIT 1").fetchone() is not None
        )

    def touch(self, path: str, state: FileState) -> None:
        """The file was saved again with the same bytes."""
        row = (state.mtime_ns, state.size, path, state.hash)
        with self._transaction():
            self._db.execute("UPDATE files SET mtime_ns = ?, size = ? WHERE path = ? AND hash = ?", row)

    def remove(self, path: str) -> None:
        """Forget a file, in every table."""
        with self._transaction():
            self._remove(path)

    def put(self, document: documents.Document, state: FileState) -> None:
        """Put a file in the place of what was known of it."""
        with self._transaction():
            self._remove(document.path)
            self._db.execute(
                "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)",
                (document.path, document.area, state.hash, state.mtime_ns, state.size, state.flaw),
            )
            units: list[tuple[object, ...]] = []
            texts: list[tuple[object, ...]] = []
            first = self._next_unit()
            for part in document.parts:
                chunk = self._put_chunk(document, part)
                for entry in part.entries:
                    unit, at = entry.unit, first + len(units)
                    span = (unit.start, unit.end - unit.start, unit.start_line, unit.end_line)
                    units.append((at, chunk, document.area, *span, entry.grams, entry.hash))
                    texts.append((at, part.chunk.text[unit.start : unit.end], part.header, entry.grams))
            self._db.executemany("INSERT INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)", units)
            self._db.executemany("INSERT INTO units_fts(rowid, text, header, grams) VALUES (?, ?, ?, ?)", texts)

    def _put_chunk(self, document: documents.Document, part: documents.Part) -> int | None:
        chunk, day = part.chunk, document.day.isoformat() if document.day else None
        row = (chunk.start_line, chunk.end_line, chunk.text, part.header, "\n".join(chunk.trail), day)
        insert = "INSERT INTO chunks VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
        return self._db.execute(insert, (document.path, document.area, *row)).lastrowid

    def _remove(self, path: str) -> None:
        # FTS5 with external content must be told the words that go while they are still there to be read.
        gone = f"SELECT 'delete', id, text, header, grams FROM unit_text WHERE id IN ({_UNITS_OF})"  # noqa: S608 - constants
        self._db.execute(f"INSERT INTO units_fts(units_fts, rowid, text, header, grams) {gone}", (path,))
        if self._embedder:
            self._db.execute(f"DELETE FROM units_vec WHERE rowid IN ({_UNITS_OF})", (path,))  # noqa: S608 - constants
        self._db.execute(f"DELETE FROM units WHERE id IN ({_UNITS_OF})", (path,))  # noqa: S608 - constants
        self._db.execute("DELETE FROM chunks WHERE path = ?", (path,))
        self._db.execute("DELETE FROM files WHERE path = ?", (path,))

    def _next_unit(self) -> int:
        """No id is used twice, so that a vector that was left behind can't come to belong to another text."""
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'units'").fetchone()
        return row[0] + 1 if row else 1

    def pending(self, count: int) -> list[Pending]:
        """Up to ``count`` units that wait for a vector."""
        rows = self._db.execute(
            "SELECT units.id, units.area, units.hash, trail, substr(text, start + 1, length)"
            " FROM units JOIN chunks ON chunks.id = units.chunk WHERE vector = 0 ORDER BY units.id LIMIT ?",
            (count,),
        )
        return [
            Pending(unit, area, hash_, documents.embedded(_lines(trail), text))
            for unit, area, hash_, trail, text in rows
        ]

    def cached(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """The vectors that are known already, as float32 blobs, by hash."""
        found: dict[bytes, bytes] = {}
        for wanted in set(hashes):
            row = self._db.execute(
                "SELECT vector FROM embedding_cache WHERE embedder = ? AND hash = ?", (self._embedder, wanted)
            ).fetchone()
            if row:
                found[wanted] = row[0]
        return found

    def fill(self, units: Sequence[Pending], vectors: Mapping[bytes, bytes]) -> None:
        """Give units their vectors by hash; one without is marked as having none. Doing it twice does no harm."""
        with self._transaction():
            for unit in units:
                vector = vectors.get(unit.hash)
                waits = self._db.execute(
                    "UPDATE units SET vector = ? WHERE id = ? AND hash = ? AND vector = 0",
                    (1 if vector else 2, unit.id, unit.hash),
                ).rowcount
                if waits and vector:
                    self._db.execute("INSERT INTO units_vec VALUES (?, ?, ?)", (unit.id, unit.area, vector))
            cache = [(self._embedder, hash_, vector) for hash_, vector in vectors.items()]
            self._db.executemany("INSERT OR IGNORE INTO embedding_cache VALUES (?, ?, ?)", cache)

    def prune(self) -> None:
        """Drop the vectors of text that is nowhere any more."""
        with self._transaction():
            self._db.execute("DELETE FROM embedding_cache WHERE hash NOT IN (SELECT hash FROM units)")

    def postings(self, matches: Sequence[str], areas: Iterable[str]) -> Postings:
        """Look up FTS5 expressions one by one, within ``areas`` only.

        A strength is the BM25 of that expression alone over its best in the scope: so it means the same in an index
        of one note, where BM25 itself is about zero. A word in a header counts half.
        """
        inside = json.dumps(sorted(areas))
        (total,) = self._db.execute(f"SELECT count(*) FROM units WHERE {_INSIDE}", (inside,)).fetchone()  # noqa: S608 - a constant
        found: list[dict[int, float]] = []
        for match in matches:
            rows = self._db.execute(_POSTINGS, (match, inside)).fetchall()
            best = max((score for _, score in rows), default=1.0) or 1.0
            found.append({unit: max(score / best, 1e-6) for unit, score in rows})
        return Postings(tuple(found), total)

    def nearest(self, vector: bytes, areas: Iterable[str], count: int) -> dict[int, float]:
        """The cosines of the ``count`` nearest units of each area."""
        rows = self._db.execute(
            f"SELECT rowid, distance FROM units_vec WHERE embedding MATCH ? AND k = ? AND {_INSIDE}",  # noqa: S608 - a constant
            (vector, min(count, MOST_NEIGHBOURS), json.dumps(sorted(areas))),
        )
        return _cosines(rows)

    def cosines(self, vector: bytes, units: Iterable[int]) -> dict[int, float]:
        """The cosines of given units, of those that have a vector."""
        rows = self._db.execute(
            "SELECT rowid, vec_distance_cosine(embedding, ?) FROM units_vec"
            " WHERE rowid IN (SELECT value FROM json_each(?))",
            (vector, json.dumps(list(units))),
        )
        return _cosines(rows)

    def passages(self, units: Iterable[int]) -> dict[int, Passage]:
        """The texts of units, by id."""
        rows = self._db.execute(_PASSAGES, (json.dumps(list(units)),))
        return {row[0]: _passage(*row) for row in rows}

    def latest(self, areas: Iterable[str], count: int) -> list[Passage]:
        """The newest units: by day, the last of a day first, then those of files without a day."""
        rows = self._db.execute(_LATEST, (json.dumps(sorted(areas)), count))
        return [_passage(*row) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise


@contextmanager
def reported() -> Iterator[None]:
    """Errors of SQLite and of the disk as IndexDamaged or IndexUnavailable."""
    module = sqlite()
    try:
        yield
    except module.OperationalError as error:
        damage = str(error).startswith(("no such table", "no such column", "malformed", "vtable constructor failed"))
        raise (IndexDamaged if damage else IndexUnavailable)(str(error)) from error
    except module.DatabaseError as error:
        raise IndexDamaged(str(error)) from error
    except DatabaseError as error:
        damage = isinstance(error.__cause__, module.DatabaseError)
        damage = damage and not isinstance(error.__cause__, module.OperationalError)
        raise (IndexDamaged if damage else IndexUnavailable)(str(error)) from error
    except OSError as error:
        raise IndexUnavailable(str(error)) from error


def move_aside(path: Path) -> None:
    """Make room for a new index; the last one that was moved aside is kept as ``<name>.aside``."""
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(path.with_name(f"{path.name}.aside{suffix}"))


def _passage(*row: Any) -> Passage:
    *span, trail, day = row
    return Passage(*span, _lines(trail), date.fromisoformat(day) if day else None)  # type: ignore[call-arg]  # a row of _PASSAGES


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.split("\n")) if text else ()


def _cosines(rows: Iterable[tuple[int, float | None]]) -> dict[int, float]:
    """A vector of zeros has no distance."""
    return {unit: 1 - distance for unit, distance in rows if distance is not None}
