"""A hub without a model: who is told how to get one, and that its memory is no more open to others than a command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.message import Address
from agents.notebook import HOW_TO_ADD_A_MODEL, NO_TALK, NOT_FOR_A_GUEST
from bot.app import Hub
from bot.config import load
from bot.home import Home
from tests.fakes.adapter import FakeAdapter
from workspaces.workspace import INTERVIEW


@asynccontextmanager
async def hub_of(home: Home, door: FakeAdapter) -> AsyncIterator[Hub]:
    """A running hub on a channel that shows nothing but answers; 7 is the owner."""
    home.root.mkdir(exist_ok=True)
    home.config.write_text(
        'owners = ["telegram:7"]\n\n[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n'
        'direct = "open"\nallow = ["*"]\ngroups = ["-5"]\n'
    )
    async with Hub.open(load(home, {}), home, [door]) as hub:
        (home.workspace("main") / INTERVIEW).unlink(missing_ok=True)
        running = asyncio.create_task(hub.run())
        try:
            yield hub
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.parametrize(("sender", "advised"), [("7", True), ("8", False)])
async def test_only_the_owner_reads_how_to_add_a_model(
    home: Home, door: FakeAdapter, sender: str, advised: bool
) -> None:
    """What is to be done on the machine is nothing that a guest has to know."""
    async with hub_of(home, door):
        await door.says(door.message("sing me a song", sender=sender))
        (sent,) = await door.wait_sent(1)
    assert sent.text.startswith(NO_TALK)
    assert (HOW_TO_ADD_A_MODEL.replace("`", "") in sent.text.replace("`", "")) is advised


async def test_a_console_that_never_came_was_told_nothing(home: Home, door: FakeAdapter) -> None:
    """It may be gone before it shows the greeting: what it had to say is then said to the next one, and once."""
    console = Address("terminal", "terminal", "local", "direct", space="main")
    async with hub_of(home, door) as hub:
        for _ in range(2):
            greeting = await hub.greet(None, opening=False)
            assert greeting is not None
            assert greeting.notices == (HOW_TO_ADD_A_MODEL,)
        hub.arrived(console)
        greeting = await hub.greet(None, opening=False)
        assert greeting is not None
        assert greeting.notices == ()
    async with hub_of(home, door) as hub:
        greeting = await hub.greet("main", opening=False)
        assert greeting is not None
        assert greeting.notices == ()


@pytest.mark.parametrize("asked", ["undo that", "forget that", "/undo"])
async def test_in_a_group_a_guest_takes_no_note_back(home: Home, door: FakeAdapter, asked: str) -> None:
    """The same rule for words and for the command; the owner may, by either."""

    async def said(text: str, sender: str) -> str:
        before = len(door.sent)
        await door.says(door.message(text, sender=sender, chat="-5", kind="group", mentions_me=True))
        return (await door.wait_sent(before + 1))[before].text

    async with hub_of(home, door):
        assert (await said("remember that the gate code is 4411", "7")).startswith("Noted")
        assert await said(asked, "8") in (NOT_FOR_A_GUEST, "/undo is not for a guest here.")
        assert "4411" in await said("what is the gate code?", "8")
        assert (await said("undo that" if asked != "/undo" else asked, "7")).startswith("Taken back")
