"""The hub's database: durable, versioned, and transactions that don't mix."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.state import AGAIN_SECONDS, VERSION, State
from workspaces.database import DatabaseError, sqlite


async def test_it_is_write_ahead_and_for_the_owner_only(state: State, tmp_path: Path) -> None:
    assert await state.row("PRAGMA journal_mode") == ("wal",)
    assert await state.row("PRAGMA synchronous") == (1,), "a commit waits for no disk: tests/bot/test_durable.py"
    assert await state.row("PRAGMA foreign_keys") == (1,)
    assert await state.row("PRAGMA user_version") == (VERSION,)
    assert (tmp_path / "limpet.sqlite").stat().st_mode & 0o777 == 0o600


async def test_transactions_of_several_tasks_do_not_mix(state: State) -> None:
    async def write(number: int) -> None:
        async with state.transaction() as db:
            await db.execute("INSERT INTO moved VALUES ('c', 'a', ?, 'x')", (str(number),))
            await asyncio.sleep(0)
            if number % 2:
                raise RuntimeError("rolled back")

    results = await asyncio.gather(*(write(n) for n in range(10)), return_exceptions=True)
    assert sum(isinstance(r, RuntimeError) for r in results) == 5
    rows = await state.rows("SELECT chat FROM moved ORDER BY chat")
    assert [chat for (chat,) in rows] == ["0", "2", "4", "6", "8"]


async def test_a_cancelled_transaction_is_rolled_back(state: State) -> None:
    entered = asyncio.Event()

    async def write() -> None:
        async with state.transaction() as db:
            await db.execute("INSERT INTO moved VALUES ('c', 'a', '1', 'x')")
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(write())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await state.rows("SELECT * FROM moved") == []
    async with state.transaction() as db:
        await db.execute("INSERT INTO moved VALUES ('c', 'a', '2', 'x')")
    assert len(await state.rows("SELECT * FROM moved")) == 1


async def test_what_is_not_committed_is_seen_by_nobody_else(state: State) -> None:
    async with state.transaction() as db:
        await db.execute("INSERT INTO moved VALUES ('c', 'a', '1', 'x')")
        assert len(await db.execute_fetchall("SELECT * FROM moved")) == 1
        assert await state.rows("SELECT * FROM moved") == []
    assert len(await state.rows("SELECT * FROM moved")) == 1


async def test_a_write_waits_for_another_process_and_holds_up_no_reader(state: State, tmp_path: Path) -> None:
    other = sqlite().connect(tmp_path / "limpet.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def write() -> None:
        async with state.transaction() as db:
            await db.execute("INSERT INTO moved VALUES ('c', 'a', '1', 'x')")

    task = asyncio.create_task(write())
    for _ in range(3):
        await asyncio.sleep(2 * AGAIN_SECONDS)
        assert await state.rows("SELECT * FROM moved") == []
    assert not task.done()
    other.execute("COMMIT")
    other.close()
    await task
    assert len(await state.rows("SELECT * FROM moved")) == 1


async def test_a_begin_that_was_cancelled_while_it_waited_leaves_nothing_open(state: State, tmp_path: Path) -> None:
    other = sqlite().connect(tmp_path / "limpet.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def write(chat: str) -> None:
        async with state.transaction() as db:
            await db.execute("INSERT INTO moved VALUES ('c', 'a', ?, 'x')", (chat,))

    task = asyncio.create_task(write("1"))
    await asyncio.sleep(0.1)
    task.cancel()
    next_one = asyncio.create_task(write("2"))
    await asyncio.sleep(0)
    other.execute("COMMIT")
    other.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    await next_one
    assert await state.rows("SELECT chat FROM moved") == [("2",)]


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "limpet.sqlite"
    path.write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(DatabaseError, match=r"limpet\.sqlite"):
        async with State.open(path):
            pass
    assert path.read_bytes().startswith(b"this is not"), "it is never overwritten"
