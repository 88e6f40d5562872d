"""A database of every older version is brought up to this one: it loses nothing, and a copy from before is kept."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bot import state as state_module
from bot.state import _STEPS, BACKUP_DAYS, VERSION, State, backups
from workspaces.database import DatabaseError, sqlite

OLD = range(1, VERSION)


def statements(step: str) -> list[str]:
    return [statement for statement in step.split(";\n") if statement.strip()]


def built(path: Path, version: int) -> dict[str, list[dict[str, Any]]]:
    """A file of ``version`` as that version made it, with a row in each of its tables; the rows by table."""
    rows: dict[str, list[dict[str, Any]]] = {}
    with closing(sqlite().connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        for step in _STEPS[:version]:
            for statement in statements(step):
                database.execute(statement)
        for (table,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            for number in range(3):
                row = {c[1]: value(table, c[1], c[2], number) for c in database.execute(f"PRAGMA table_info({table})")}
                marks = ", ".join("?" * len(row))
                database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
                rows.setdefault(table, []).append(row)
        database.execute(f"PRAGMA user_version = {version}")
    return rows


def value(table: str, column: str, kind: str, number: int) -> object:
    allowed = {("outbox", "state"): "pending", ("heard", "kind"): "said"}
    if (table, column) in allowed:
        return allowed[table, column]
    if kind == "TEXT":
        return f"{column} {number}"
    return float(number) if kind == "REAL" else number + 1 if column == "id" else number


@pytest.mark.parametrize("version", OLD)
async def test_each_version_keeps_its_rows_and_gets_the_schema_of_a_new_one(tmp_path: Path, version: int) -> None:
    path = tmp_path / "limpet.sqlite"
    rows = built(path, version)
    async with State.open(tmp_path / "new.sqlite") as new:
        schema = await new.rows("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")
    async with State.open(path) as state:
        assert await state.row("PRAGMA user_version") == (VERSION,)
        assert await state.rows("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name") == schema
        assert await state.row("PRAGMA integrity_check") == ("ok",)
        for table, expected in rows.items():
            kept = await state.rows(f"SELECT {', '.join(expected[0])} FROM {table} ORDER BY rowid")
            assert kept == [tuple(row.values()) for row in expected], table


@pytest.mark.parametrize("version", OLD)
async def test_the_copy_from_before_is_a_whole_file_of_that_version(tmp_path: Path, version: int) -> None:
    path = tmp_path / "limpet.sqlite"
    rows = built(path, version)
    async with State.open(path):
        pass
    (copy,) = backups(path)
    assert copy.name == f"limpet.sqlite.schema-{version}"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("*.part*"))
    with closing(sqlite().connect(copy)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (version,)
        for table, expected in rows.items():
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (len(expected),)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    copy.rename(path)  # as one who goes back, and forth again
    async with State.open(path) as state:
        assert await state.row("PRAGMA user_version") == (VERSION,)


async def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "limpet.sqlite"
    built(path, VERSION - 1)
    steps = (*_STEPS[:-1], "CREATE TABLE fresh (a);\nCREATE TABLE inbox (a);\n")
    monkeypatch.setattr(state_module, "_STEPS", steps)
    with pytest.raises(sqlite().OperationalError, match="already exists"):
        async with State.open(path):
            pass
    with closing(sqlite().connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (VERSION - 1,)
        assert database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'fresh'").fetchall() == []


async def test_without_a_copy_nothing_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "limpet.sqlite"
    built(path, 1)
    (tmp_path / f"{path.name}.schema-1.part").mkdir()
    with pytest.raises(OSError, match="schema-1"):
        async with State.open(path):
            pass
    with closing(sqlite().connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)


async def test_a_new_file_and_one_of_this_version_are_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "limpet.sqlite"
    for _ in range(2):
        async with State.open(path):
            pass
    assert backups(path) == []


async def test_a_copy_is_kept_for_a_month(tmp_path: Path) -> None:
    path = tmp_path / "limpet.sqlite"
    young, old = (tmp_path / f"{path.name}.schema-{number}" for number in (2, 1))
    for copy, days in ((young, BACKUP_DAYS - 1), (old, BACKUP_DAYS + 1)):
        copy.write_bytes(b"x")
        moment = time.time() - days * 86_400
        os.utime(copy, (moment, moment))
    async with State.open(path) as state:
        keeping = asyncio.create_task(state.keep())
        await asyncio.sleep(0)
        keeping.cancel()
        await asyncio.wait([keeping])
    assert backups(path) == [young]


async def test_a_newer_one_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "limpet.sqlite"
    built(path, VERSION)
    with closing(sqlite().connect(path)) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match=r"newer version .* Upgrade: \S"):
        async with State.open(path):
            pass
    assert path.read_bytes() == before
    assert backups(path) == []
