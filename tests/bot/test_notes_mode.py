"""A hub without a model, on a channel that shows nothing but answers: who is told how to get one."""

from __future__ import annotations

import asyncio

import pytest

from agents.notebook import HOW_TO_ADD_A_MODEL, NO_TALK
from bot.app import Hub
from bot.config import load
from bot.home import Home
from tests.fakes.adapter import FakeAdapter
from workspaces.workspace import INTERVIEW


@pytest.mark.parametrize(("sender", "advised"), [("7", True), ("8", False)])
async def test_only_the_owner_reads_how_to_add_a_model(
    home: Home, door: FakeAdapter, monkeypatch: pytest.MonkeyPatch, sender: str, advised: bool
) -> None:
    """What is to be done on the machine is nothing that a guest has to know."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    home.root.mkdir()
    home.config.write_text(
        'owners = ["telegram:7"]\n\n[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n'
        'direct = "open"\nallow = ["*"]\n'
    )
    async with Hub.open(load(home, {}), home, [door]) as hub:
        (home.workspace("main") / INTERVIEW).unlink(missing_ok=True)
        running = asyncio.create_task(hub.run())
        await door.says(door.message("sing me a song", sender=sender))
        (sent,) = await door.wait_sent(1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert sent.text.startswith(NO_TALK)
    assert (HOW_TO_ADD_A_MODEL.replace("`", "") in sent.text.replace("`", "")) is advised
