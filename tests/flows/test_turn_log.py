"""The log of a turn: every line from the event to the reply names it, and nobody's secrets are in any of them."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.telegram_api import ANN, Fault, TelegramApi
from tests.flows.conftest import Limpet, connect

KEY = "a-provider-key-of-no-known-shape"


def lines(limpet: Limpet) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (limpet.home / "logs" / "limpet.log").read_text("utf-8").splitlines()]


async def test_every_line_from_the_event_to_the_reply_has_the_turn(limpet: Limpet, telegram: TelegramApi) -> None:
    """Those of modules that know nothing of turns as well, and of libraries: two chats at once are told apart."""

    def answer(request: Recorded) -> Reply:
        is_down = len(server.requests) == 1
        return Reply(status=500, body={"error": {"message": "later"}}) if is_down else Reply("One.")

    async with ModelServer(answer) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        telegram.fail("sendMessage", Fault(status=500, description="Internal Server Error"))
        async with limpet.hub() as hub:
            telegram.says("the first")
            await telegram.wait_sent(1)
            telegram.says("/compact")
            await telegram.wait_sent(2)
            await hub.stop()
    found = lines(limpet)
    turns = list(dict.fromkeys(line["turn"] for line in found if line["event"] == "message.accepted"))
    assert len(turns) == 2
    for turn in turns:
        events = [line["event"] for line in found if line.get("turn") == turn]
        assert events[0] == "message.accepted"
        assert events[-1] == "part.sent"
    unnamed = [line["event"] for line in found if "turn" not in line]
    assert all(event.startswith(("hub.", "telegram/", "not_ready", "settings")) for event in unnamed), unnamed


async def test_a_key_that_a_provider_says_back_is_in_no_line(limpet: Limpet, telegram: TelegramApi) -> None:
    """G-OPS-06: by its value, for it has no look; in the log, on the screen, in status and in the chat."""
    refused = Reply(status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}})
    async with ModelServer(lambda _: refused) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        limpet.env["LIMPET_MODELS__API_KEY"] = KEY
        async with limpet.hub() as hub:
            telegram.says("What is a limpet?")
            (sent,) = await telegram.wait_sent(1)
            status = await limpet("status", "--json")
            doctor = await limpet("doctor", "--json")
            await hub.stop()
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    files = "".join(p.read_bytes().decode("latin-1") for p in limpet.home.rglob("*") if p.is_file())
    said = [*hub.log, status.out, status.err, doctor.out, doctor.err, sent.text, files]
    assert not any(KEY in text for text in said)
