"""A state database that is damaged: put aside once, what can be read is kept, and it is said. G-OPS-14."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bot import salvage
from bot.home import Home
from bot.state import State
from tests.fakes.model_server import ModelServer, Reply
from tests.fakes.telegram_api import ANN, BOB, TelegramApi
from tests.flows.conftest import Limpet, connect
from tests.flows.test_telegram import CODE

ROWS = 400


async def filled(path: Path) -> None:
    """A database with many messages that wait, and one person."""
    async with State.open(path) as state, state.transaction() as db:
        for number in range(ROWS):
            await db.execute(
                "INSERT INTO inbox (turn, channel, account, chat, message, session, event, owner, received_at)"
                " VALUES (?, 'fake', 'fake', '1', ?, 's', ?, 'dead', '2026-11-30T12:00:00+00:00')",
                (f"turn-{number}", str(number), "x" * 300),
            )
        await db.execute("INSERT INTO people (channel, sender, level, since) VALUES ('fake', '8', 1, '2026-11-30')")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def garbage(path: Path) -> None:
    path.write_bytes(b"this is not a database at all" * 1000)


def torn_page(path: Path) -> None:
    """One page in the middle of the table of messages: 4 kB of noise."""
    data = path.read_bytes()
    at = data.index(b"turn-200") // 4096 * 4096
    path.write_bytes(data[:at] + bytes(range(256)) * 16 + data[at + 4096 :])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40_960])


def no_schema(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(3996) + data[4096:])


DAMAGES: dict[str, tuple[Callable[[Path], None], int]] = {
    "garbage": (garbage, 0),
    "a torn page": (torn_page, ROWS - 20),
    "a cut end": (cut, ROWS // 4),
    "no schema": (no_schema, 0),
}
"""Each with how many of the messages can be read all the same, at least."""


@pytest.mark.parametrize("name", DAMAGES)
async def test_what_can_be_read_is_kept_and_the_old_file_too(tmp_path: Path, name: str) -> None:
    spoil, least = DAMAGES[name]
    path = tmp_path / "limpet.sqlite"
    await filled(path)
    assert await salvage.mend(path) is None, "a sound one is left alone"
    spoil(path)
    before = path.read_bytes()
    assert salvage.damage(path)
    done = await salvage.mend(path)
    assert done is not None
    assert done.aside.read_bytes() == before
    assert salvage.put_aside(path) == [done.aside]
    assert salvage.damage(path) is None
    async with State.open(path) as state:
        kept = await state.rows("SELECT turn, event FROM inbox")
        assert least <= len(kept) <= ROWS
        assert all(event == "x" * 300 for _, event in kept)
        assert len(kept) == done.kept.get("inbox", 0)
    assert await salvage.mend(path) is None, "and once is enough"


async def test_a_kill_between_the_renames_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new file is whole and has its own name before the old one is touched."""
    path = tmp_path / "limpet.sqlite"
    rename = Path.rename
    for cut_off in range(1, 4):
        await filled(path)
        torn_page(path)
        left = cut_off

        def killed(source: Path, target: Path) -> Path:
            nonlocal left
            left -= 1
            if not left:
                raise KeyboardInterrupt
            return rename(source, target)

        monkeypatch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            await salvage.mend(path)
        monkeypatch.setattr(Path, "rename", rename)
        assert await salvage.mend(path) is not None
        async with State.open(path) as state:
            ((kept,),) = await state.rows("SELECT count(*) FROM inbox")
        assert kept >= ROWS - 20
        for file in tmp_path.iterdir():
            file.unlink()


async def test_a_hub_starts_with_what_is_left_and_says_so(limpet: Limpet, telegram: TelegramApi) -> None:
    """It is no crash loop: the hub answers, whoever was let in still is, and status names the old file."""
    async with ModelServer(lambda _: Reply("Here.")) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        async with limpet.hub() as hub:
            telegram.says("let me in", user=BOB)
            (sent,) = await telegram.wait_sent(1)
            code = CODE.search(sent.text)
            assert code is not None
            assert (await limpet("pairing", "approve", code[0], "--guest")).code == 0
            await hub.stop()
        path = Home(limpet.home).database
        with closing(sqlite3.connect(path)) as database:
            (page,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'outbox'").fetchone()
        data = path.read_bytes()
        path.write_bytes(data[: (page - 1) * 4096] + b"\xa5" * 4096 + data[page * 4096 :])
        told = await limpet("doctor", "--json")
        assert any("damaged" in problem["what"] for problem in told.json["problems"])
        async with limpet.hub() as hub:
            assert "aside=" in await hub.until("state.damaged")
            telegram.says("am I still in?", user=BOB)
            assert (await telegram.wait_sent(2))[-1].text == "Here."
            status = await limpet("status")
            (aside,) = salvage.put_aside(path)
            assert f"the old one is {aside} — see the log" in status.out
            await hub.stop()
        async with limpet.hub() as hub:
            await hub.until("hub.started")
            assert not any("state.damaged" in line for line in hub.log)


def spoil(path: Path) -> None:
    """Write over all that the state has on the disk."""
    for name in (path.name, f"{path.name}-wal"):
        with path.with_name(name).open("r+b") as spoilt:
            size = spoilt.seek(0, 2)
            spoilt.seek(0)
            spoilt.write(b"\xa5" * size)


@pytest.mark.faults
async def test_damage_that_is_met_while_it_runs_is_put_aside_as_well(limpet: Limpet, telegram: TelegramApi) -> None:
    """The hub doesn't go on writing into it, also while it has all that it needs in memory, and doesn't end either."""
    async with ModelServer(lambda _: Reply("Here.")) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        async with limpet.hub() as hub:
            telegram.says("one")
            await telegram.wait_sent(1)
            spoil(Home(limpet.home).database)
            telegram.says("two")
            await hub.until("state.damaged")
            sent = len(telegram.sent)
            telegram.says("three")
            await telegram.wait_sent(sent + 1)
            assert await hub.stop() == 0


async def test_a_stop_while_a_damaged_state_is_put_aside_is_heard(limpet: Limpet, telegram: TelegramApi) -> None:
    async with ModelServer(lambda _: Reply("Here.")) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        async with limpet.hub() as hub:
            telegram.says("one")
            await telegram.wait_sent(1)
            spoil(Home(limpet.home).database)
            telegram.says("two")
            await hub.until("state.damaged")
            assert await hub.stop() == 0


async def test_who_is_not_alone_leaves_it_and_says_what_mends_it(limpet: Limpet) -> None:
    home = Home(limpet.home)
    limpet.configure("")
    home.state.mkdir()
    home.database.write_bytes(b"this is not a database at all" * 100)
    asked = await limpet("chat", "--once", "hello")
    assert asked.code == 1
    assert f"{home.database}: file is not a database — the next start puts it aside" in asked.err
    assert "Traceback" not in asked.err
    assert home.database.exists()
