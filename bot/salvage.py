"""A damaged state database: recognised, put aside, and what can still be read of it taken into a new one.

``limpet run`` looks before it opens the state; nobody else may have the file open then. The old file is kept, byte for
byte, as ``limpet.sqlite.<time>.aside``. A kill at any moment of it leaves the old file in its place, or the new one
ready beside it for the next start. Knows the tables by what the schema says of them, and no row's meaning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from bot.state import State
from workspaces import disk
from workspaces.database import DatabaseDamaged, connect, is_damage, sqlite

if TYPE_CHECKING:
    import sqlite3

log = structlog.get_logger(__name__)

_SUFFIXES = ("-wal", "-shm", "")
"""The database itself last: as long as it is in its place, nothing was done."""


@dataclass(frozen=True, slots=True)
class Salvage:
    """``reason`` is SQLite's word for the damage; ``aside`` is where the file is now. ``kept`` counts rows by table."""

    reason: str
    aside: Path
    kept: dict[str, int] = field(default_factory=dict)


def damage(path: Path) -> str | None:
    """What is broken in the database at ``path``, in SQLite's words; None for a sound one, or where there is none.

    Reads all of it. Raises DatabaseError and sqlite's OperationalError where it can't be read for another reason.
    """
    if not path.exists():
        return None
    try:
        with closing(connect(path)) as database:
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except DatabaseDamaged as error:
        return str(error.__cause__ or error)
    except sqlite().DatabaseError as error:
        if not is_damage(error):
            raise
        return str(error)
    return None if found == "ok" else str(found).splitlines()[-1]


async def mend(path: Path) -> Salvage | None:
    """Put a damaged database at ``path`` aside and make a new one of what can be read; None where it is sound.

    Raises OSError, sqlite's OperationalError and DatabaseError where the disk has no room for it.
    """
    ready = path.with_name(f"{path.name}.ready")
    if await asyncio.to_thread(ready.exists):  # a kill came in between
        aside = await asyncio.to_thread(_exchange, path, ready)
        log.error("state.damaged", reason="found before, and mended now", aside=str(aside))
        return Salvage("found before", aside)
    reason = await asyncio.to_thread(damage, path)
    if reason is None:
        return None
    kept = await _copied(path, ready)
    salvage = Salvage(reason, await asyncio.to_thread(_exchange, path, ready), kept)
    log.error("state.damaged", reason=reason, aside=str(salvage.aside), kept=kept)
    return salvage


def put_aside(path: Path) -> list[Path]:
    """The damaged databases that once were at ``path``, oldest first."""
    return sorted(path.parent.glob(f"{path.name}.*.aside"))


async def _copied(path: Path, ready: Path) -> dict[str, int]:
    """Make ``ready`` of what can be read at ``path``: whole, or not at all. Returns the rows of each table."""
    fresh = path.with_name(f"{path.name}.fresh")
    for suffix in _SUFFIXES:
        fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
    kept: dict[str, int] = {}
    async with State.open(fresh) as state, state.transaction() as db:
        names = await db.execute_fetchall("SELECT name FROM sqlite_schema WHERE type = 'table'")
        for (table,) in names:
            columns = [row[1] for row in await db.execute_fetchall(f"PRAGMA table_info({table})")]
            shared, rows = await asyncio.to_thread(_read, path, table, columns)
            sql = f"INSERT OR IGNORE INTO {table} ({', '.join(shared)}) VALUES ({', '.join('?' * len(shared))})"  # noqa: S608
            for row in rows:
                with suppress(sqlite().IntegrityError):  # what is no row of ours any more
                    kept[table] = kept.get(table, 0) + (await db.execute(sql, row)).rowcount
    with closing(connect(fresh)) as database:  # all of it into the one file
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        database.execute("PRAGMA journal_mode = DELETE").fetchall()
    with fresh.open("rb") as file:
        disk.flush(file.fileno())
    fresh.replace(ready)
    return kept


def _read(path: Path, table: str, columns: list[str]) -> tuple[list[str], list[Any]]:
    """Those of ``columns`` that the old table has, and its rows; none where not even that can be read."""
    try:
        with closing(sqlite().connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as database:
            database.execute("PRAGMA writable_schema = ON")  # or a file that lost its end is refused as a whole
            there = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
            shared = [column for column in columns if column in there]
            return shared, list(_rows(database, table, shared)) if shared else []
    except sqlite().Error:
        return [], []


def _rows(database: sqlite3.Connection, table: str, columns: list[str]) -> Iterator[Any]:
    """The rows that can be read: from the first on until there is damage, then from the last on back to it."""
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    for order in ("ASC", "DESC"):
        try:
            yield from database.execute(
                f"SELECT {', '.join(columns)} FROM {table} NOT INDEXED ORDER BY rowid {order}"  # noqa: S608 - our names
            )
        except sqlite().Error:
            continue
        return


def _exchange(path: Path, ready: Path) -> Path:
    """Put what is at ``path`` aside and ``ready`` in its place; returns where the old file is."""
    name = f"{path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S}.aside"
    for suffix in _SUFFIXES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(path.with_name(name + suffix))
    ready.rename(path)
    return path.with_name(name)
