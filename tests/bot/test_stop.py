"""A stop is answered where it was said, whatever it ended and wherever that had been asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from adapters.adapter import TurnReport
from adapters.message import Address
from bot.app import Hub
from bot.config import load
from bot.home import Home
from bot.state import State
from bot.turns import NOTHING_RUNS, NOTHING_RUNS_NOW, STOPPED
from tests.bot.conftest import Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import ModelServer, Reply
from workspaces.workspace import INTERVIEW


@dataclass
class Console(FakeAdapter):
    """A door that also hears how its turns ended: ``ends`` are the ids of the messages, with what failed."""

    ends: list[tuple[str, str]] = field(default_factory=list)
    elsewhere: set[str] = field(default_factory=set)
    """Messages that were said at another screen than the rest."""

    def is_one_screen(self, address: Address, message_id: str, other_id: str) -> bool:
        return (message_id in self.elsewhere) == (other_id in self.elsewhere)

    def is_attended(self, address: Address, message_id: str) -> bool:
        return False

    async def notice(self, address: Address, text: str) -> None:
        return

    async def preview(self, address: Address, turn: str, delta: str) -> None:
        return

    async def done(self, address: Address, in_reply_to: str, report: TurnReport) -> None:
        self.ends.append((in_reply_to, f"{report.parts} parts"))

    async def fail(self, address: Address, in_reply_to: str, text: str, code: int) -> None:
        self.ends.append((in_reply_to, text))

    async def hindered(self, text: str, code: int) -> None:
        return

    async def ended(self, number: int) -> list[tuple[str, str]]:
        async with asyncio.timeout(10):
            while len(self.ends) < number:
                await asyncio.sleep(0.01)
        return self.ends


@asynccontextmanager
async def linked(
    home: Home, door: FakeAdapter, console: Console, server: ModelServer, more: str = ""
) -> AsyncIterator[None]:
    """A hub where the owner's chat at ``door`` and the console are one person's, and one session."""
    home.root.mkdir()
    home.config.write_text(
        f'owners = ["telegram:1"]\n\n[identities]\nann = ["telegram:1", "terminal:local"]\n\n'
        f'[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n\n'
        '[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n' + more
    )
    async with Hub.open(load(home, {}), home, [door, console]) as hub:
        (home.workspace("main") / INTERVIEW).unlink(missing_ok=True)
        running = asyncio.create_task(hub.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("asked_at", ["telegram", "terminal", "both"])
@pytest.mark.parametrize("stopped_at", ["telegram", "terminal"])
async def test_it_is_heard_where_it_was_said_and_where_it_was_asked(
    home: Home, door: FakeAdapter, asked_at: str, stopped_at: str
) -> None:
    console = Console("terminal", "terminal")
    async with ModelServer(lambda _: Reply("never", wait=True)) as server, linked(home, door, console, server):
        if asked_at != "terminal":
            await door.says(door.message("think", sender="1"))
        if asked_at != "telegram":
            await console.says(console.message("think", sender="local", message_id="q"))
        await server.arrived(1)
        where = door if stopped_at == "telegram" else console
        await where.says(where.message("/stop", sender="1" if where is door else "local", message_id="stop"))
        if stopped_at == "telegram":
            assert [sent.text for sent in await door.wait_sent(1)] == [STOPPED]
            assert await console.ended(asked_at != "telegram") == ([("q", STOPPED)] if asked_at != "telegram" else [])
        elif asked_at == "telegram":
            assert [sent.text for sent in await console.wait_sent(1)] == [STOPPED]
            assert await console.ended(1) == [("stop", "1 parts")]
        else:
            assert await console.ended(2) == [("q", STOPPED), ("stop", "0 parts")], "the turn's end says so once"


async def test_who_stops_it_at_another_screen_is_told_as_well(home: Home, door: FakeAdapter) -> None:
    console = Console("terminal", "terminal", elsewhere={"stop"})
    async with ModelServer(lambda _: Reply("never", wait=True)) as server, linked(home, door, console, server):
        await console.says(console.message("think", sender="local", message_id="q"))
        await server.arrived(1)
        await console.says(console.message("/stop", sender="local", message_id="stop"))
        assert await console.ended(2) == [("q", STOPPED), ("stop", "1 parts")]
        assert [sent.text for sent in await console.wait_sent(1)] == [STOPPED]


async def test_a_stop_that_a_crash_cut_off_does_not_deny_what_it_did(
    serve: Serve, door: FakeAdapter, home: Home
) -> None:
    """The turn is ended and the answer to the stop was not stored: the next try finds nothing to end."""
    async with ModelServer(lambda _: Reply("never", wait=True)) as server, serve(server):
        await door.says(door.message("think hard"))
        await server.arrived(1)
        async with State.open(home.database) as beside:
            async with beside.transaction() as db:
                await db.execute(
                    "CREATE TRIGGER full BEFORE INSERT ON outbox"
                    " WHEN (SELECT tries FROM inbox WHERE turn = NEW.turn) = 1"
                    " BEGIN SELECT RAISE(ABORT, 'full'); END"
                )
            await door.says(door.message("/stop"))
            assert [sent.text for sent in await door.wait_sent(1)] == [NOTHING_RUNS_NOW]
            async with beside.transaction() as db:
                await db.execute("DROP TRIGGER full")
        await door.says(door.message("/stop"))
        assert [sent.text for sent in await door.wait_sent(2)] == [NOTHING_RUNS_NOW, NOTHING_RUNS]
    assert len(server.requests) == 1
