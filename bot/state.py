"""The hub's database: its schema, its migrations and its transactions.

One SQLite file, WAL. What is committed survives the end of the process at once, and a power cut once ``durable`` was
awaited: see docs/adr/0015. A file of an older version is copied before it is changed. The tables belong to the modules
that use them (inbox, outbox, people, pairing, health, usage); this one knows only their shape.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import structlog

from bot.turnstile import Turnstile
from workspaces import disk
from workspaces.database import BUSY_SECONDS, DatabaseDamaged, DatabaseError, connect, is_damage, sqlite
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

_QUEUES = """
-- left out since too many waited: 'event' has its beginning until an answer knew of it
ALTER TABLE inbox ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
-- whether a turn was begun on it in this session, so that the transcript may have it
ALTER TABLE inbox ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;
UPDATE inbox SET begun = 1 WHERE tries;
CREATE INDEX inbox_joins ON inbox (joins) WHERE joins IS NOT NULL;
CREATE INDEX inbox_dropped ON inbox (session, id) WHERE dropped;
CREATE INDEX inbox_set_aside ON inbox (id) WHERE tries > 3 AND done;
CREATE TABLE choices (                      -- what a person chose for one session; NULL is as the settings have it
    session TEXT PRIMARY KEY, queue TEXT, model TEXT
);
CREATE TABLE refused (                      -- where, when and by which turn it was said that the budget is spent
    session TEXT PRIMARY KEY, day TEXT NOT NULL, turn TEXT NOT NULL
);
"""

_ACCESS = """
-- a level of 0 among 'people' is one who is blocked
CREATE TABLE chats (                        -- the groups that were allowed beside the settings
    channel TEXT NOT NULL, account TEXT NOT NULL, chat TEXT NOT NULL, since TEXT NOT NULL,
    PRIMARY KEY (channel, account, chat)
);
CREATE TABLE owner_doors (                  -- where an owner last wrote directly, so that they can be told something
    channel TEXT NOT NULL, account TEXT NOT NULL, sender TEXT NOT NULL, address TEXT NOT NULL,
    PRIMARY KEY (channel, account, sender)
);
ALTER TABLE pairing ADD COLUMN address TEXT;    -- where the code was asked for
"""

_STEPS = (_FIRST, _USAGE, _DOORS, _QUEUES, _ACCESS)
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

BACKUP_DAYS = 30
"""How long a copy from before an upgrade is kept: time enough to find that one wants to go back."""


class Transaction:
    """A write transaction: committed at the end of its block, rolled back when that raises or is cancelled.

    Its statements touch pages in memory and its commit the page cache, so they run at once, in the loop.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        lock: Turnstile,
        committed: Callable[[], None],
        failed: Callable[[BaseException | None], None],
    ) -> None:
        """Private: use ``State.transaction``. ``committed`` hears when something was changed, ``failed`` of errors."""
        self._connection = connection
        self._lock = lock
        self._committed = committed
        self._failed = failed
        self._before = 0

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, values)

    async def execute_fetchall(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    async def __aenter__(self) -> Transaction:
        await self._lock.acquire()
        try:
            await self._begin()
        except BaseException as error:
            self._failed(error)
            self._lock.release()
            raise
        self._before = self._connection.total_changes
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
                if self._connection.total_changes > self._before:
                    self._committed()
        except BaseException as refused:
            error = refused
            raise
        finally:
            self._failed(error)
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
        path: Path,
        reader: sqlite3.Connection,
        writer: sqlite3.Connection,
        thread: Executor,
        flush: Callable[[], None],
    ) -> None:
        """Private: use ``State.open``. During a transaction a reader of its own sees only what is committed."""
        self._path = path
        self._reader = reader
        self._writer = writer
        self._thread = thread
        self._flush = flush
        self._writing = Turnstile()
        self._touched = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        """For a flush, which runs while there are any."""
        self._failed: BaseException | None = None
        self._damage: DatabaseDamaged | None = None
        self._upgraded: Path | None = None
        """The copy that was made when this opened a file of an older version."""
        self._committed, self._flushed, self._copied = 1, 0, 0
        """How many commits there were, what an earlier process left counting as one; and how many of them are on the
        disk, and how many in the database itself."""

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path, *, flush: Callable[[int], None] = disk.flush) -> AsyncIterator[State]:
        """Open or create the database; at the end of the block all that was committed is durable.

        A file of an older version is brought up to this one; ``backups`` names what it was before. Raises
        DatabaseDamaged, DatabaseError when it is from a newer version, and at the end OSError, as ``durable`` does.
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
                state = cls(path, reader, writer, thread, partial(flush, wal.fileno()))
                try:
                    await state._migrate()
                except sqlite().DatabaseError as error:
                    raise state._damage or error from error
                try:
                    yield state
                finally:
                    async with state._writing:  # what the thread still does with a connection ends first
                        await state.durable()

    async def _migrate(self) -> None:
        async with self.transaction() as db:
            version = (await db.execute_fetchall("PRAGMA user_version"))[0][0]
            if version > VERSION:
                raise DatabaseError(
                    f"{self._path} was written by a newer version (schema {version}, this one knows {VERSION}). "
                    f"Upgrade: {upgrade()}"
                )
            if 0 < version < VERSION:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._back_up, version)
            for step in _STEPS[version:]:
                for statement in step.split(";\n"):
                    if statement.strip():
                        await db.execute(statement)
            if version < VERSION:
                await db.execute(f"PRAGMA user_version = {VERSION}")

    def _back_up(self, version: int) -> None:
        """Copy the file as it is, of an older schema. Nobody writes meanwhile: the lock of the writers is held."""
        copy = self._path.with_name(f"{self._path.name}.schema-{version}")
        part = copy.with_name(f"{copy.name}.part")
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_WRONLY, 0o600))
        with closing(sqlite().connect(part)) as target:
            self._reader.backup(target)
        with part.open("rb") as file:
            disk.flush(file.fileno())
        part.replace(copy)
        self._upgraded = copy

    def transaction(self) -> Transaction:
        """A write transaction, to be entered; those of several tasks follow each other."""
        return Transaction(self._writer, self._writing, self._count, self._noted)

    def _noted(self, error: BaseException | None) -> None:
        if error is not None and (is_damage(error) or str(error).startswith("no such table")):  # they are all there
            self._damage = DatabaseDamaged(f"{self._path}: {error}")
            self._touched.set()

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
            if not self._waiting:
                self._begin_flush()
            ended = asyncio.get_running_loop().create_future()
            self._waiting.append(ended)
            await ended

    def _begin_flush(self) -> None:
        """In the thread, and back without a task and a future of its own: a turn waits for two flushes."""
        loop, reached = asyncio.get_running_loop(), self._committed

        def work() -> None:
            failed: BaseException | None = None
            try:
                self._flush()
            except BaseException as error:  # whoever waits is to hear of it
                failed = error
            loop.call_soon_threadsafe(self._end_flush, reached, failed)

        self._thread.submit(work)

    def _end_flush(self, reached: int, failed: BaseException | None) -> None:
        self._failed = failed
        self._flushed = self._flushed if failed else reached
        waiting, self._waiting = self._waiting, []
        for ended in waiting:
            if not ended.done():  # who waited may have been cancelled
                ended.set_result(None)

    async def keep(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Flush soon what nobody waits for, and copy the log into the database before it grows long. Until cancelled.

        Raises OSError when a flush failed: only a new process can know again what is on the disk. Raises
        DatabaseDamaged once somebody met with damage: whoever goes on writing makes it worse.
        """
        _forget(backups(self._path))
        if self._upgraded is not None:
            log.warning("state.upgraded", to=VERSION, backup=str(self._upgraded))
        while True:
            await self._touched.wait()
            if self._damage is None:
                await sleep(SOON_SECONDS)
                self._touched.clear()
                await self.durable()
                self._look()
            if self._damage is not None:
                raise self._damage
            if self._committed - self._copied >= LONGEST_LOG:
                await self._copy()

    def _look(self) -> None:
        """Read what was written last as another process would: the writer has its pages, and goes on without them."""
        try:
            for table in ("inbox", "outbox"):
                self._reader.execute(f"SELECT * FROM {table} ORDER BY id DESC LIMIT 1").fetchall()  # noqa: S608 - a constant
        except sqlite().DatabaseError as error:
            self._noted(error)

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
        try:
            return free.execute(sql, values).fetchall()
        except sqlite().DatabaseError as error:
            self._noted(error)
            raise

    async def row(self, sql: str, *values: Any) -> Any | None:
        """The first row of a query, None when there is none."""
        rows = await self.rows(sql, *values)
        return rows[0] if rows else None


def backups(path: Path) -> list[Path]:
    """The copies of the database at ``path`` from before upgrades of its schema, "limpet.sqlite.schema-2"."""
    return sorted(path.parent.glob(f"{path.name}.schema-*[0-9]"))


def _forget(copies: Sequence[Path]) -> None:
    """Remove those that are older than BACKUP_DAYS."""
    oldest = time.time() - BACKUP_DAYS * 86_400
    for copy in copies:
        with suppress(OSError):
            if copy.stat().st_mtime < oldest:
                copy.unlink()


def _log_of(connection: sqlite3.Connection, path: Path) -> BinaryIO:
    """The write-ahead log of the database at ``path``, which is there once ``connection`` has read."""
    connection.execute("PRAGMA user_version").fetchall()
    return Path(f"{path.resolve()}-wal").open("rb")
