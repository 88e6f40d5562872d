"""Messages that come while another is answered, in every mode, through kill -9: each answered once, and in order."""

from __future__ import annotations

import asyncio
import re

import pytest

from bot.queueing import MODES
from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.telegram_api import ANN, TelegramApi
from tests.flows.conftest import Hub, Limpet, connect

_NUMBER = re.compile(r"#\d+")


def unanswered(request: Recorded) -> list[str]:
    """The numbers of what was said since the last answer."""
    numbers: list[str] = []
    for message in request.messages:
        if message["role"] == "assistant":
            numbers.clear()
        elif message["role"] == "user":
            numbers += _NUMBER.findall(str(message["content"]))
    return numbers


async def numbers_sent(telegram: TelegramApi, last: str) -> list[str]:
    """All numbers in the answers, once the last is among them."""
    async with asyncio.timeout(60):
        while True:
            found = [number for sent in telegram.sent for number in _NUMBER.findall(sent.text)]
            if last in found:
                return found
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("mode", MODES)
async def test_kill_9_while_messages_wait_loses_none_and_answers_none_twice(
    limpet: Limpet, telegram: TelegramApi, mode: str
) -> None:
    """G-DLV-15, G-DLV-19: killed in the first turn, and again in the one after it; the mode was chosen in the chat."""
    holds = [True]

    def model(request: Recorded) -> Reply:
        return Reply(f"re: {' '.join(unanswered(request))}", wait=holds[0])

    async def killed_in_a_turn(hub: Hub, server: ModelServer, requests: int) -> None:
        await server.arrived(requests)
        await telegram.wait_confirmed()
        await asyncio.sleep(0.2)
        await hub.kill()

    async with ModelServer(model) as server:
        connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]')
        async with limpet.hub() as hub:
            telegram.says(f"/queue {mode}")
            await telegram.wait_sent(1)
            telegram.says("#1")
            await server.arrived(1)
            for number in (2, 3, 4):
                telegram.says(f"#{number}")
            await killed_in_a_turn(hub, server, 2 if mode == "interrupt" else 1)
        asked = len(server.requests)
        async with limpet.hub() as hub:
            telegram.says("#5")
            await killed_in_a_turn(hub, server, asked + 1)
        holds[0] = False
        async with limpet.hub():
            telegram.says("#6")
            found = await numbers_sent(telegram, "#6")
    assert found == [f"#{number}" for number in range(1, 7)]
    turns = [_NUMBER.findall(sent.text) for sent in telegram.sent if "re:" in sent.text]
    if mode == "followup":
        assert turns == [[f"#{number}"] for number in range(1, 7)]
    elif mode == "collect":
        assert turns[0] == ["#1"]
        assert turns[1][:4] == ["#2", "#3", "#4", "#5"]
    else:
        assert turns[0][:4] == ["#1", "#2", "#3", "#4"], "what waits enters the turn that a crash cut off"


async def test_a_kill_in_the_middle_of_a_flood_leaves_nothing_unsaid(limpet: Limpet, telegram: TelegramApi) -> None:
    """Each message is answered, or counted among those that were left out."""
    holds = [True]

    def model(request: Recorded) -> Reply:
        return Reply("ok", wait=holds[0])

    async with ModelServer(model) as server:
        connect(
            limpet,
            telegram,
            server,
            top=f'owners = ["telegram:{ANN.id}"]\n[queue]\nmode = "collect"\nmost_waiting = 5\n',
        )
        async with limpet.hub() as hub:
            telegram.says("#0")
            await server.arrived(1)
            for number in range(1, 31):
                telegram.says(f"#{number} word")
            await telegram.wait_confirmed()
            await hub.kill()
        holds[0] = False
        async with limpet.hub():
            await telegram.wait_sent(2)
            await asyncio.sleep(0.5)
    last = str(server.requests[-1].messages[-1]["content"])
    assert len(telegram.sent) == 2
    assert "[25 messages of mine before this were left out" in last
    assert '"#21 word"; "#22 word"; "#23 word"; "#24 word"; "#25 word"]' in last
    assert [number for number in range(26, 31) if f"#{number} word" in last] == [26, 27, 28, 29, 30]
