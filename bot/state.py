"""The hub's database: its schema, its migrations and its transactions.

One SQLite file, WAL. What is committed survives the end of the process at once, and a power cut once ``durable`` was
awaited: see docs/adr/0015. The tables belong to the modules that use them (inbox, outbox, people, pairing, health,
usage); this one knows only their shape.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import structlog

from workspaces import disk
from workspaces.database import BUSY_SECONDS, DatabaseError, connect, sqlite
from workspaces.installation import upgrade

if TYPE_CHECKING:
    import sqlite3

log = structlog.get_logger(__name__)

_FIRST = """
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    turn TEXT NOT NULL UNIQUE,          -- random: transcripts outlive this table
    channel TEXT NOT NULL, account TEXT NOT NULL, chat TEXT NOT NULL, message TEXT NOT NULL,
    session TEXT NOT NULL,
    event TEXT NOT NULL,                -- the Message as JSON; emptied when done
    owner TEXT NOT NULL,                -- the hub instance that answers it
    tries INTEGER NOT NULL DEFAULT 0,   -- how often a turn was begun on it
    done INTEGER NOT NULL DEFAULT 0,
    received_at TEXT NOT NULL,
    UNIQUE (channel, account, chat, message)
);
CREATE INDEX inbox_open ON inbox (session, id) WHERE NOT done;

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    turn TEXT NOT NULL, part INTEGER NOT NULL,
    lane TEXT NOT NULL,                 -- parts of one lane are sent in the order of id
    channel TEXT NOT NULL, account TEXT NOT NULL,
    body TEXT NOT NULL,                 -- the Part as JSON; emptied when sent
    state TEXT NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'attempting', 'sent', 'uncertain', 'failed')),
    tries INTEGER NOT NULL DEFAULT 0,
    repeat INTEGER NOT NULL DEFAULT 0,  -- a crash may have come after it was sent: that is said ahead of it
    message_id TEXT, error TEXT,
    owner TEXT NOT NULL,                -- the hub instance that sends it
    created_at TEXT NOT NULL,
    UNIQUE (turn, part)
);
CREATE INDEX outbox_open ON outbox (lane, id) WHERE state IN ('pending', 'attempting');

CREATE TABLE people (
    channel TEXT NOT NULL, sender TEXT NOT NULL,
    level INTEGER NOT NULL, name TEXT NOT NULL DEFAULT '', since TEXT NOT NULL,
    PRIMARY KEY (channel, sender)
);
CREATE TABLE pairing (
    code TEXT PRIMARY KEY,
    channel TEXT NOT NULL, account TEXT NOT NULL, sender TEXT NOT NULL,
    name TEXT NOT NULL, asked_at TEXT NOT NULL, expires_at TEXT NOT NULL,
    told INTEGER NOT NULL DEFAULT 0,    -- how often the code was sent to its asker
    UNIQUE (channel, account, sender)
);
CREATE TABLE moved (
    channel TEXT NOT NULL, account TEXT NOT NULL, chat TEXT NOT NULL, first_chat TEXT NOT NULL,
    PRIMARY KEY (channel, account, chat)
);
CREATE TABLE health (
    channel TEXT NOT NULL, account TEXT NOT NULL,
    state TEXT NOT NULL, detail TEXT NOT NULL, last_in TEXT, last_out TEXT, changed_at TEXT NOT NULL,
    PRIMARY KEY (channel, account)
);
"""

_USAGE = """
CREATE TABLE usage (
    day TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
    calls INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL, written INTEGER NOT NULL,
    cost REAL,                          -- USD of the calls with a known price; NULL when there was none
    unpriced INTEGER NOT NULL,          -- the other calls
    PRIMARY KEY (day, agent, model)
);
"""

_DOORS = """
-- the turn of the message that this one was sent as one with
ALTER TABLE inbox ADD COLUMN joins TEXT;
CREATE TABLE heard (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    channel TEXT NOT NULL, account TEXT NOT NULL, chat TEXT NOT NULL, message TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('said', 'changed', 'reacted')),
    name TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL
);
CREATE INDEX heard_in ON heard (session, id);
CREATE INDEX heard_of ON heard (channel, account, chat, message);
CREATE TABLE shown (                        -- the messages that show an answer which is still being written
    turn TEXT NOT NULL, part INTEGER NOT NULL, message_id TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (turn, part)
);
ALTER TABLE health ADD COLUMN reconnects INTEGER NOT NULL DEFAULT 0;
ALTER TABLE health ADD COLUMN heard_at TEXT;
CREATE INDEX outbox_sent ON outbox (channel, account, message_id) WHERE message_id IS NOT NULL;
"""

_STEPS = (_FIRST, _USAGE, _DOORS)
"""What makes each version of the schema from the one before. A step that was released is never changed."""

VERSION = len(_STEPS)

_APPLICATION = int.from_bytes(b"LIMP")
"""Says in the file's header whose it is."""

AGAIN_SECONDS = 0.005
"""Until the write lock is asked for again while another process has it."""

SOON_SECONDS = 1.0
"""Until what nobody waits for is flushed."""

LONGEST_LOG = 250
"""Commits until the log is copied into the database: about four megabytes, as many as SQLite would take by itself."""


class Transaction:
    """A write transaction: committed at the end of its block, rolled back when that raises or is cancelled.

    Its statements touch pages in memory and its commit the page cache, so they run at once, in the loop.
    """

    def __init__(self, connection: sqlite3.Connection, lock: asyncio.Lock, committed: Callable[[], None]) -> None:
        """Private: use ``State.transaction``. ``committed`` is told when something was changed."""
        self._connection = connection
        self._lock = lock
        self._committed = committed
        self._before = 0

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, values)

    async def execute_fetchall(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    async def __aenter__(self) -> Transaction:
        await self._lock.acquire()
        try:
            await self._begin()
        except BaseException:
            self._lock.release()
            raise
        self._before = self._connection.total_changes
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
                if self._connection.total_changes > self._before:
                    self._committed()
        finally:
            if self._connection.in_transaction:  # a commit that a full disk refused leaves it open
                self._connection.execute("ROLLBACK")
            self._lock.release()

    async def _begin(self) -> None:
        """Take the write lock; another process has it for milliseconds. Raises OperationalError after BUSY_SECONDS."""
        loop = asyncio.get_running_loop()
        end = loop.time() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite().OperationalError as error:
                if "locked" not in str(error) or loop.time() > end:
                    raise
            else:
                return
            await asyncio.sleep(AGAIN_SECONDS)


class State:
    """The hub's database, open, shared by the tasks of one process.

    A commit writes into the page cache, so it runs in the loop; what waits for the disk runs in a thread, and what
    waits for another process is tried again.
    """

    def __init__(
        self,
        reader: sqlite3.Connection,
        writer: sqlite3.Connection,
        thread: Executor,
        flush: Callable[[], None],
    ) -> None:
        """Private: use ``State.open``. During a transaction a reader of its own sees only what is committed."""
        self._reader = reader
        self._writer = writer
        self._thread = thread
        self._flush = flush
        self._writing = asyncio.Lock()
        self._touched = asyncio.Event()
        self._flushing: asyncio.Task[None] | None = None
        self._failed: OSError | None = None
        self._committed, self._flushed, self._copied = 1, 0, 0
        """How many commits there were, what an earlier process left counting as one; and how many of them are on the
        disk, and how many in the database itself."""

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path, *, flush: Callable[[int], None] = disk.flush) -> AsyncIterator[State]:
        """Open or create the database; at the end of the block all that was committed is durable.

        Raises DatabaseError when it is damaged or from a newer version, and at the end OSError, as ``durable`` does.
        """
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "state") as thread:
            opening = partial(loop.run_in_executor, thread)
            with (
                closing(await opening(connect, path)) as reader,
                closing(await opening(connect, path)) as writer,
                await opening(_log_of, reader, path) as wal,
            ):
                writer.execute("PRAGMA busy_timeout = 0")
                writer.execute("PRAGMA wal_autocheckpoint = 0")
                state = cls(reader, writer, thread, partial(flush, wal.fileno()))
                await state._migrate(path)
                try:
                    yield state
                finally:
                    async with state._writing:  # what the thread still does with a connection ends first
                        await state.durable()

    async def _migrate(self, path: Path) -> None:
        async with self.transaction() as db:
            version = (await db.execute_fetchall("PRAGMA user_version"))[0][0]
            if version > VERSION:
                raise DatabaseError(
                    f"{path} was written by a newer version (schema {version}, this one knows {VERSION}). "
                    f"Upgrade: {upgrade()}"
                )
            for step in _STEPS[version:]:
                for statement in step.split(";\n"):
                    if statement.strip():
                        await db.execute(statement)
            if version < VERSION:
                await db.execute(f"PRAGMA user_version = {VERSION}")

    def transaction(self) -> Transaction:
        """A write transaction, to be entered; those of several tasks follow each other."""
        return Transaction(self._writer, self._writing, self._count)

    def _count(self) -> None:
        self._committed += 1
        self._touched.set()

    async def durable(self) -> None:
        """Return once all that was committed before the call survives a power cut. Who waits meanwhile shares a flush.

        Raises OSError when a flush fails, and ever after: the system forgets what it could not write, and a later flush
        that succeeds says nothing of it.
        """
        wanted = self._committed
        while self._flushed < wanted:
            if self._failed is not None:
                raise self._failed.with_traceback(None)
            if self._flushing is None:
                self._flushing = asyncio.create_task(self._flush_all())
            await asyncio.shield(self._flushing)

    async def _flush_all(self) -> None:
        reached = self._committed
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._flush)
            self._flushed = reached
        except OSError as error:
            self._failed = error
            raise
        finally:
            self._flushing = None

    async def keep(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Flush soon what nobody waits for, and copy the log into the database before it grows long. Until cancelled.

        Raises OSError when a flush failed: only a new process can know again what is on the disk.
        """
        while True:
            await self._touched.wait()
            await sleep(SOON_SECONDS)
            self._touched.clear()
            await self.durable()
            if self._committed - self._copied >= LONGEST_LOG:
                await self._copy()

    async def _copy(self) -> None:
        """Copy the log into the database, so that it begins anew. A cancellation comes after that."""
        async with self._writing:
            self._copied = self._committed
            copying = asyncio.get_running_loop().run_in_executor(self._thread, self._checkpoint)
            try:
                await asyncio.shield(copying)
            except asyncio.CancelledError:
                await asyncio.wait([copying])
                raise
            except sqlite().OperationalError as error:  # no room for it now: the log grows meanwhile
                log.warning("state.not_copied", reason=str(error))

    def _checkpoint(self) -> None:
        """SQLite waits for the disk here, and again at the first commit into the new log: so that is made here too."""
        self._writer.execute("PRAGMA wal_checkpoint").fetchall()
        self._writer.execute(f"PRAGMA application_id = {_APPLICATION}")

    async def rows(self, sql: str, *values: Any) -> list[Any]:
        """All rows of a query, of what was committed."""
        free = self._reader if self._writing.locked() else self._writer  # the writer still has its pages
        return free.execute(sql, values).fetchall()

    async def row(self, sql: str, *values: Any) -> Any | None:
        """The first row of a query, None when there is none."""
        rows = await self.rows(sql, *values)
        return rows[0] if rows else None


def _log_of(connection: sqlite3.Connection, path: Path) -> BinaryIO:
    """The write-ahead log of the database at ``path``, which is there once ``connection`` has read."""
    connection.execute("PRAGMA user_version").fetchall()
    return Path(f"{path.resolve()}-wal").open("rb")
