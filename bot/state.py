"""The hub's database: its schema, its migrations and its transactions.

One SQLite file, WAL with ``synchronous=FULL``: what is committed here survives a power cut. The tables belong to the
modules that use them (inbox, outbox, people, pairing, health, usage); this one knows only their shape.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workspaces.database import DatabaseError, connect_async, sqlite
from workspaces.installation import upgrade

if TYPE_CHECKING:
    import aiosqlite

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


class State:
    """One open connection to the hub's database, shared by the tasks of one process."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._writing = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path) -> AsyncIterator[State]:
        """Open or create the database. Raises DatabaseError when it is damaged or from a newer version."""
        async with connect_async(path, synchronous="FULL") as connection:
            state = cls(connection)
            await state._migrate(path)
            yield state

    async def _migrate(self, path: Path) -> None:
        async with self.transaction() as db:
            version = (await _rows(db, "PRAGMA user_version"))[0][0]
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
    async def transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        """A write transaction: committed at the end of the block, rolled back when it raises or is cancelled."""
        async with self._writing:
            try:
                await self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                await asyncio.shield(self._connection.execute("COMMIT"))
            except BaseException:
                # One thread runs the statements in the order in which they were given: a BEGIN that was cancelled while
                # it waited for another process's lock is undone by this as well, and so is a COMMIT that a full disk
                # refused.
                with suppress(sqlite().OperationalError):  # it never began, or has ended
                    await asyncio.shield(self._connection.execute("ROLLBACK"))
                raise

    async def rows(self, sql: str, *values: Any) -> list[Any]:
        """All rows of a query."""
        return await _rows(self._connection, sql, *values)

    async def row(self, sql: str, *values: Any) -> Any | None:
        """The first row of a query, None when there is none."""
        rows = await self.rows(sql, *values)
        return rows[0] if rows else None


async def _rows(db: aiosqlite.Connection, sql: str, *values: Any) -> list[Any]:
    return list(await db.execute_fetchall(sql, values))
