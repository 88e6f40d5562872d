"""Another program talks with the bot over signed HTTP: set up by commands, and one answer whatever happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from yarl import URL

from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.webhook_program import SECRET, WebhookProgram
from tests.flows.conftest import Limpet
from tests.flows.test_telegram import CODE


@pytest.fixture
async def program() -> AsyncIterator[WebhookProgram]:
    async with WebhookProgram() as program:
        yield program


async def add(limpet: Limpet, program: WebhookProgram, server: ModelServer, *more: str) -> None:
    """``limpet channels add``, as a person who has the secret in the environment does it."""
    limpet.configure(f'[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n')
    limpet.env["HOME_SECRET"] = SECRET
    given = ("callback_url=" + program.url, f"port={URL(program.bot).port}", *more)
    added = await limpet(
        "channels", "add", "home", "--kind", "webhook", *(word for pair in given for word in ("--set", pair)), "--json"
    )
    assert added.code == 0, added.err
    assert added.json["link"] == program.bot
    assert SECRET not in (limpet.home / "limpet.toml").read_text("utf-8")


async def test_a_program_is_paired_and_answered(limpet: Limpet, program: WebhookProgram) -> None:
    async with ModelServer(lambda _: Reply("The **lamp** is on.")) as server:
        await add(limpet, program, server)
        async with limpet.hub():
            program.say(program.message("Is the lamp on?"))
            (asked,) = await program.wait_taken(1)
            code = CODE.search(asked["text"])
            assert code is not None
            assert server.requests == []
            approved = await limpet("pairing", "approve", code[0], "--guest", "--json")
            assert approved.code == 0, approved.err
            program.say(program.message("Is the lamp on?"))
            _, answer = await program.wait_taken(2)
            assert (answer["chat"], answer["text"], answer["html"]) == (
                "kitchen",
                "The lamp is on.",
                "The <b>lamp</b> is on.",
            )
            people = (await limpet("pairing", "list", "--json")).json["people"]
            assert [(person["sender"], person["level"]) for person in people] == [("home/ann", "guest")]
            status = (await limpet("status", "--json")).json
            (channel,) = status["channels"]
            assert (channel["account"], channel["state"]) == ("home", "connected")
    assert SECRET not in (limpet.home / "state" / "limpet.sqlite").read_bytes().decode("latin-1")


async def test_kill_9_after_the_200_gives_exactly_one_answer(limpet: Limpet, program: WebhookProgram) -> None:
    """G-DLV-21: the message was stored before the program was told so; said again, it is the same one."""

    def answer(request: Recorded) -> Reply:
        return Reply("never sent", wait=True) if len(server.requests) == 1 else Reply("It is on.")

    async with ModelServer(answer) as server:
        await add(limpet, program, server, 'direct="open"', 'allow=["*"]')
        message = json.dumps(program.message("Is the lamp on?")).encode()
        async with limpet.hub() as hub:
            async with asyncio.timeout(10):
                while not await _is_taken(program, message):
                    await asyncio.sleep(0.02)
            await server.arrived(1)
            await hub.kill()
        assert program.taken == []
        async with limpet.hub():
            await program.wait_taken(1)
            assert await _is_taken(program, message), "a repetition is confirmed"
            program.say(program.message("And now?"))
            await program.wait_taken(2)
        assert [taken["text"] for taken in program.taken] == ["It is on."] * 2
        asked = [request.messages[-1]["content"] for request in server.requests]
        assert [("And now?" in words) for words in asked] == [False, False, True]


async def test_a_port_that_is_taken_stops_no_other_channel(limpet: Limpet, program: WebhookProgram) -> None:
    async with ModelServer(lambda _: Reply("Hello.")) as server:
        await add(limpet, program, server, 'direct="open"', 'allow=["*"]')
        text = (limpet.home / "limpet.toml").read_text("utf-8")
        limpet.configure(text + text[text.index("[channels.home]") :].replace("[channels.home]", "[channels.second]"))
        limpet.env["SECOND_SECRET"] = SECRET
        async with limpet.hub() as hub:
            await hub.until("channel.failed")
            program.say(program.message("hello"))
            await program.wait_taken(1)
            states: dict[str, Any] = {}
            while {channel["state"] for channel in states.values()} != {"connected", "failed"}:
                status = await limpet("status", "--json")
                states = {channel["account"]: channel for channel in status.json["channels"]}
    (failed,) = (channel for channel in states.values() if channel["state"] == "failed")
    assert "set another port or host" in failed["detail"]
    assert status.code == 1


async def _is_taken(program: WebhookProgram, message: bytes) -> bool:
    try:
        return await program.post(message) == (200, {"ok": True})
    except OSError:
        return False
