"""The index: one SQLite file derived from the Markdown. Owns the transactions and what is written.

Chunks are what is handed out, units (pieces of a chunk) what is looked up: by words in ``units_fts``, by meaning in the
vector spaces. Text is written first and vectors are filled in later, so that the write lock is never held across an
embedding, and a unit without a vector is found by its words meanwhile. A unit that is still in its file when the file
is saved again keeps its id, its words and its vectors. Synchronous, for one thread at a time; knows no Markdown, no
embedder and no ranking.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from workspaces.database import BUSY_SECONDS, DatabaseError, connect, has_vectors, sqlite
from workspaces.memory import documents, lookups, schema, vectors
from workspaces.memory.embedder import EmbedderError
from workspaces.memory.nearness import Signs
from workspaces.memory.schema import SPAN
from workspaces.memory.vectors import Space

if TYPE_CHECKING:
    import sqlite3

    from workspaces.memory.lookups import Extent

C = TypeVar("C")

LARGE_LOG = 1 << 20
"""Bytes; putting a smaller one away would cost each note two more syncs of the disk."""

_OF_FILE = "SELECT id FROM units WHERE file = ?"

PAGES = 2000
"""Pages of 4 kB that SQLite keeps in memory."""


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
class Pending:
    """A unit without a vector yet. ``text`` is what is embedded, ``hash`` is of it."""

    id: int
    hash: int
    text: str


@dataclass(frozen=True, slots=True)
class Counts:
    """``embedded``: units with a vector of ``embedder``, which serves searches. ``waiting``: those still to get one."""

    files: int = 0
    chunks: int = 0
    units: int = 0
    embedded: int = 0
    waiting: int = 0
    embedder: str | None = None
    takes_vectors: bool = False


class State:
    """What every search begins with; it holds until anything is written.

    ``birth`` is another one after the index was made anew: then ids that were looked up before mean nothing any more.
    ``space`` is the one that searches use, None for none; ``is_filling``: a unit waits for its vector in it.
    ``takes_vectors``: units can have vectors here.
    """

    def __init__(self, birth: str, space: Space | None, *, is_filling: bool, takes_vectors: bool) -> None:
        self.birth, self.space = birth, space
        self.is_filling, self.takes_vectors = is_filling, takes_vectors
        self.signs = Signs()
        self._extents: dict[frozenset[str], Extent] = {}

    def extent(self, db: sqlite3.Connection, areas: frozenset[str]) -> Extent:
        """What a scope can be searched for."""
        if areas not in self._extents:
            self._extents[areas] = lookups.extent(db, areas)
        return self._extents[areas]


class Index:
    """An open index."""

    def __init__(self, path: Path, connection: sqlite3.Connection, spaces: Sequence[str], identity: str) -> None:
        """Private: use ``Index.open``."""
        self.path = path
        self._name = str(path)
        self._inode = path.stat().st_ino
        self._db = connection
        self._spaces = spaces
        self._identity = identity
        self._refitted: set[str] = set()
        self._state: tuple[tuple[int, int], State] | None = None

    @classmethod
    def open(
        cls, path: Path, *, cutting: str, embedders: Sequence[tuple[str, int | None]], today: date | None = None
    ) -> Index:
        """Open or create. ``cutting`` names how text is cut. ``embedders``: ids and dims (None: not known yet), the
        preferred one last, before it what stands in for it until it has a vector for every unit. Spaces of others that
        nobody opened for ``KEPT`` before ``today`` go; None: they stay.

        Raises IndexDamaged for a file that is no index of this version, else IndexUnavailable.
        """
        with reported():
            db = connect(path, vectors=bool(embedders))
            try:
                db.execute(f"PRAGMA cache_size = {PAGES}")
                usable = embedders if embedders and has_vectors(db) else ()
                index = cls(path, db, [name for name, _ in usable], cutting)
                with index._transaction():
                    if not schema.prepare(db, cutting):
                        raise IndexDamaged(f"{path} was made by another version")
                    index._attend(usable, today)
            except BaseException:
                db.close()
                raise
            return index

    def attend(self, embedders: Sequence[tuple[str, int | None]]) -> None:
        """See that there is a space for each of them, though another process dropped it."""
        names = {space.embedder for space in vectors.spaces(self._db)}
        if any(name not in names for name, _ in embedders[-1:]) and self._spaces:
            with self._transaction():
                self._attend(embedders, None)

    def _attend(self, embedders: Sequence[tuple[str, int | None]], today: date | None) -> None:
        for name, dims in embedders if not self._is_served_by(*embedders[-1:]) else embedders[-1:]:
            vectors.add(self._db, name, dims)
        if today:
            vectors.mark(self._db, self._spaces, today)

    def _is_served_by(self, *preferred: tuple[str, int | None]) -> bool:
        """Whether the preferred embedder, if there is one, needs no other to stand in for it."""
        spaces = [(self._space(name), dims) for name, dims in preferred]
        return any(space is not None and space.ready and space.fits(dims) for space, dims in spaces)

    def close(self) -> None:
        self._db.close()

    def is_gone(self) -> bool:
        """Whether another file is in its place, or none."""
        try:
            return os.stat(self._name).st_ino != self._inode  # noqa: PTH116 - it is asked before each unit of work
        except FileNotFoundError:
            return True

    def is_current(self) -> bool:
        """Whether its text is cut as it should be now."""
        return schema.meta(self._db, "identity") == self._identity

    def become(self, other: Index) -> None:
        """Take over all that ``other`` holds, in one step for every process that has this index open."""
        other._db.backup(self._db)
        self._state = None  # SQLite counts this as no change

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """For look-ups that belong together: what others write meanwhile, or put in the index's place, is not seen."""
        self._db.execute("BEGIN")
        try:
            yield self._db
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def state(self) -> State:
        """The state of the snapshot in which this is asked first; the one of before where nothing was written since."""
        (others,) = self._db.execute("PRAGMA data_version").fetchone()
        change = (others, self._db.total_changes)
        if self._state is None or self._state[0] != change:
            birth, space = schema.meta(self._db, "birth") or "", self.serving()
            is_filling = space is not None and self.is_filling(space.embedder)
            self._state = change, State(birth, space, is_filling=is_filling, takes_vectors=bool(self._spaces))
        return self._state[1]

    def shrink_log(self) -> None:
        """Put a large write-ahead log into the database: while somebody is reading what can be, without waiting."""
        try:
            if self.path.with_name(f"{self.path.name}-wal").stat().st_size < LARGE_LOG:
                return
        except FileNotFoundError:
            return
        self._db.execute("PRAGMA busy_timeout = 0")
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")

    def files(self) -> dict[str, FileState]:
        """All files, by path."""
        rows = self._db.execute("SELECT path, hash, mtime_ns, size, flaw FROM files")
        return {path: FileState(*state) for path, *state in rows}

    def counts(self) -> Counts:
        """How much there is."""
        one = "(SELECT count(*) FROM files), (SELECT count(*) FROM chunks), (SELECT sum(units) FROM areas)"
        files, chunks, units = self._db.execute(f"SELECT {one}").fetchone()
        space, filled, waiting = self.serving(), 0, 0
        if space:
            (filled,) = self._db.execute("SELECT filled FROM spaces WHERE id = ?", (space.id,)).fetchone()
            (waiting,) = self._db.execute("SELECT count(*) FROM waiting WHERE space = ?", (space.id,)).fetchone()
        return Counts(files, chunks, units or 0, filled, waiting, space.embedder if space else None, bool(self._spaces))

    def flaws(self) -> list[str]:
        """A sentence for each file that is not all text."""
        rows = self._db.execute("SELECT path, flaw FROM files WHERE flaw <> '' ORDER BY path")
        return [f"{path}: {flaw}." for path, flaw in rows]

    def serving(self) -> Space | None:
        """The space that searches use: the preferred embedder's when it is ready, else the one before it."""
        ours = [space for space in vectors.spaces(self._db) if space.embedder in self._spaces]
        ours.sort(key=lambda space: self._spaces.index(space.embedder))
        ready = [space for space in ours if space.ready]
        serving = ready[-1:] or ours[:1]
        return serving[0] if serving else None

    def is_filling(self, embedder: str) -> bool:
        """Whether a unit waits for its vector."""
        space = self._space(embedder)
        found = space and self._db.execute("SELECT 1 FROM waiting WHERE space = ? LIMIT 1", (space.id,)).fetchone()
        return found is not None

    def touch(self, path: str, state: FileState) -> None:
        """The file was saved again with the same bytes."""
        row = (state.mtime_ns, state.size, path, state.hash)
        with self._transaction():
            self._db.execute("UPDATE files SET mtime_ns = ?, size = ? WHERE path = ? AND hash = ?", row)

    def remove(self, path: str) -> None:
        """Forget a file, in every table."""
        with self._transaction():
            row = self._db.execute("SELECT id, area FROM files WHERE path = ?", (path,)).fetchone()
            if row:
                file, area = row
                self._forget(area, [unit for (unit,) in self._db.execute(_OF_FILE, (file,))])
                self._db.execute("DELETE FROM chunks WHERE file = ?", (file,))
                self._db.execute("DELETE FROM files WHERE id = ?", (file,))

    def put(self, document: documents.Document, state: FileState) -> None:
        """Put a file in the place of what was known of it."""
        with self._transaction():
            area = self._area(document.area)
            file = self._file(document, area, state)
            known = self._known(file)
            self._db.execute("DELETE FROM chunks WHERE file = ?", (file,))
            fresh = self._put_parts(document, file, area, known)
            self._forget(area, [unit for units in known.values() for unit in units])
            vectors.expect(self._db, fresh)

    def _put_parts(
        self, document: documents.Document, file: int, area: int, known: dict[tuple[str, str], list[int]]
    ) -> list[tuple[int, int]]:
        """Write chunks and units; what is in ``known`` is used up. Returns the ids and hashes of new units."""
        (at,) = self._db.execute("SELECT next FROM areas WHERE id = ?", (area,)).fetchone()
        fresh: list[tuple[int, int]] = []
        units: list[tuple[object, ...]] = []
        texts: list[tuple[object, ...]] = []
        for part in document.parts:
            chunk = self._put_chunk(file, part)
            for entry in part.entries:
                unit = entry.unit
                text = part.chunk.text[unit.start : unit.end]
                same = known.get((part.header, text))
                if same:
                    number = same.pop(0)
                else:
                    number, at = area * SPAN + at, at + 1
                    fresh.append((number, entry.hash))
                    texts.append((number, text, part.header, entry.label, entry.grams))
                span = (unit.start, unit.end - unit.start, unit.start_line, unit.end_line)
                kind = entry.tokens, entry.item, entry.asks
                units.append((number, file, part.section, len(units), chunk, *span, *kind, entry.hash))
        self._db.executemany("INSERT OR REPLACE INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", units)
        self._db.executemany("INSERT INTO units_fts(rowid, text, header, label, grams) VALUES (?, ?, ?, ?, ?)", texts)
        self._db.execute("UPDATE areas SET next = ?, units = units + ? WHERE id = ?", (at, len(fresh), area))
        return fresh

    def _put_chunk(self, file: int, part: documents.Part) -> int | None:
        chunk = part.chunk
        row = (file, chunk.start_line, chunk.end_line, part.header, "\n".join(chunk.trail))
        insert = "INSERT INTO chunks VALUES (NULL, ?, ?, ?, ?, ?, ?)"
        return self._db.execute(insert, (*row, zlib.compress(chunk.text.encode("utf-8", "surrogatepass")))).lastrowid

    def _area(self, name: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO areas(name) VALUES (?)", (name,))
        (number,) = self._db.execute("SELECT id FROM areas WHERE name = ?", (name,)).fetchone()
        return int(number)

    def _file(self, document: documents.Document, area: int, state: FileState) -> int:
        """The id of the file's row, brought up to date."""
        row = (area, document.day and document.day.isoformat(), state.hash, state.mtime_ns, state.size, state.flaw)
        self._db.execute(
            "INSERT INTO files(path, area, day, hash, mtime_ns, size, flaw) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT(path) DO UPDATE SET (area, day, hash, mtime_ns, size, flaw) ="
            " (excluded.area, excluded.day, excluded.hash, excluded.mtime_ns, excluded.size, excluded.flaw)",
            (document.path, *row),
        )
        (number,) = self._db.execute("SELECT id FROM files WHERE path = ?", (document.path,)).fetchone()
        return int(number)

    def _known(self, file: int) -> dict[tuple[str, str], list[int]]:
        """The ids of a file's units by what they are found by: the words above them and their own."""
        chunks = {
            number: (header, lookups.text(text))
            for number, header, text in self._db.execute("SELECT id, header, text FROM chunks WHERE file = ?", (file,))
        }
        known: dict[tuple[str, str], list[int]] = {}
        select = "SELECT id, chunk, start, start + length FROM units WHERE file = ? ORDER BY place"
        for unit, chunk, start, end in self._db.execute(select, (file,)):
            header, text = _there(chunks, chunk)
            known.setdefault((header, text[start:end]), []).append(unit)
        return known

    def _forget(self, area: int, units: Sequence[int]) -> None:
        if not units:
            return
        self._db.executemany("DELETE FROM units_fts WHERE rowid = ?", [(unit,) for unit in units])
        self._db.execute("DELETE FROM units WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(units),))
        self._db.execute("UPDATE areas SET units = units - ? WHERE id = ?", (len(units), area))
        vectors.forget(self._db, units)

    def pending(self, embedder: str, count: int, after: int = -1) -> list[Pending]:
        """Up to ``count`` units with ids above ``after`` that wait for a vector."""
        space = self._space(embedder)
        if space is None:
            return []
        rows = self._db.execute(
            "SELECT unit, hash, chunk, start, start + length FROM waiting JOIN units ON units.id = unit"
            " WHERE space = ? AND unit > ? ORDER BY unit LIMIT ?",
            (space.id, after, count),
        ).fetchall()
        select = "SELECT id, trail, text FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        wanted = json.dumps(sorted({chunk for _, _, chunk, _, _ in rows}))
        chunks = {
            number: (lookups.lines(trail), lookups.text(text))
            for number, trail, text in self._db.execute(select, (wanted,))
        }
        found: list[Pending] = []
        for unit, hash_, chunk, start, end in rows:
            trail, whole = _there(chunks, chunk)
            found.append(Pending(unit, hash_, documents.embedded(trail, whole[start:end])))
        return found

    def known(self, embedder: str, hashes: Iterable[int]) -> dict[int, bytes | None]:
        """The vectors that there are of texts, by hash."""
        with self.snapshot() as db:
            space = self._space(embedder)
            return vectors.known(db, space, hashes) if space else {}

    def fill(self, embedder: str, made: Mapping[int, bytes | None]) -> None:
        """Give the units that wait their vectors, by the hash of what was embedded: numbers may be others' by now.

        Raises EmbedderError where another process fills this embedder's space with vectors of other dims.
        """
        with self._transaction():
            if (space := self._space(embedder)) is None:
                return
            dims = next((len(vector) for vector in made.values() if vector is not None), space.dims)
            if not space.fits(dims):
                if embedder in self._refitted:
                    raise EmbedderError(f"two processes make vectors of {space.dims} and {dims} values", lasting=True)
                self._refitted.add(embedder)
            vectors.fill(self._db, vectors.fitted(self._db, space, dims), made)

    def settle(self, embedder: str) -> None:
        """Let the embedder's space serve searches once none of its units waits any more."""
        space = self._space(embedder)
        if space and not space.ready and not self.is_filling(embedder):
            with self._transaction():
                vectors.settle(self._db, space, self._spaces)

    def _space(self, embedder: str) -> Space | None:
        return next((space for space in vectors.spaces(self._db) if space.embedder == embedder), None)

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
    except (module.DatabaseError, zlib.error, MemoryError) as error:
        raise IndexDamaged(str(error)) from error  # of memory: a damaged word list asks SQLite for more than there is
    except DatabaseError as error:
        damage = isinstance(error.__cause__, module.DatabaseError)
        damage = damage and not isinstance(error.__cause__, module.OperationalError)
        raise (IndexDamaged if damage else IndexUnavailable)(str(error)) from error
    except OSError as error:
        raise IndexUnavailable(str(error)) from error


def _there(chunks: Mapping[int, C], number: int) -> C:
    if number not in chunks:
        raise IndexDamaged(f"chunk {number} is missing")
    return chunks[number]


_SUFFIXES = ("", "-wal", "-shm")


def move_aside(path: Path) -> None:
    """Make room for a new index; the last one that was moved aside is kept as ``<name>.aside``."""
    for suffix in _SUFFIXES:
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(path.with_name(f"{path.name}.aside{suffix}"))


def remove(path: Path) -> None:
    """Remove an index and its journals."""
    for suffix in _SUFFIXES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
