"""The hub's database: its schema, its migrations and its transactions.

One SQLite file, WAL with ``synchronous=FULL``: what is committed here survives a power cut. The tables belong to the
modules that use them (inbox, outbox, people, pairing, health, usage); this one knows only their shape.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workspaces.database import BUSY_SECONDS, DatabaseError, connect, sqlite
from workspaces.installation import upgrade

if TYPE_CHECKING:
    import sqlite3

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

_STEPS = (_FIRST, _USAGE)
"""What makes each version of the schema from the one before. A step that was released is never changed."""

VERSION = len(_STEPS)

AGAIN_SECONDS = 0.005
"""Until the write lock is asked for again while another process has it."""


class Transaction:
    """A write transaction that is open. Its statements touch pages in memory, so they run at once, in the loop."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, values)

    async def execute_fetchall(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()


class State:
    """The hub's database, open, shared by the tasks of one process.

    What waits for the disk, a commit, runs in a thread; what waits for another process is tried again.
    """

    def __init__(self, reader: sqlite3.Connection, writer: sqlite3.Connection, thread: Executor) -> None:
        """Private: use ``State.open``. A reader of its own sees what is committed, and never waits for a commit."""
        self._reader = reader
        self._writer = writer
        self._thread = thread
        self._writing = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path) -> AsyncIterator[State]:
        """Open or create the database. Raises DatabaseError when it is damaged or from a newer version."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "state") as thread:
            opening = partial(loop.run_in_executor, thread, partial(connect, path, synchronous="FULL"))
            with closing(await opening()) as reader, closing(await opening()) as writer:
                writer.execute("PRAGMA busy_timeout = 0")
                state = cls(reader, writer, thread)
                await state._migrate(path)
                yield state

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

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """A write transaction: committed at the end of the block, rolled back when it raises or is cancelled."""
        async with self._writing:
            await self._begin()
            before = self._writer.total_changes
            try:
                yield Transaction(self._writer)
                await self._commit(waits=self._writer.total_changes > before)
            except BaseException:
                if self._writer.in_transaction:  # a commit that a full disk refused leaves it open
                    self._writer.execute("ROLLBACK")
                raise

    async def _begin(self) -> None:
        """Take the write lock; another process has it for milliseconds. Raises OperationalError after BUSY_SECONDS."""
        loop = asyncio.get_running_loop()
        end = loop.time() + BUSY_SECONDS
        while True:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
            except sqlite().OperationalError as error:
                if "locked" not in str(error) or loop.time() > end:
                    raise
            else:
                return
            await asyncio.sleep(AGAIN_SECONDS)

    async def _commit(self, *, waits: bool) -> None:
        """``waits`` is False where nothing was changed. A cancellation comes after it, so that its outcome is known."""
        if not waits:
            self._writer.execute("COMMIT")
            return
        committed = asyncio.get_running_loop().run_in_executor(self._thread, self._writer.execute, "COMMIT")
        try:
            await asyncio.shield(committed)
        except asyncio.CancelledError:
            await asyncio.wait([committed])
            raise

    async def rows(self, sql: str, *values: Any) -> list[Any]:
        """All rows of a query, of what was committed."""
        return self._reader.execute(sql, values).fetchall()

    async def row(self, sql: str, *values: Any) -> Any | None:
        """The first row of a query, None when there is none."""
        rows = await self.rows(sql, *values)
        return rows[0] if rows else None
