"""What can't be read or answered is set aside, holds nothing up, and is shown in ``limpet doctor``."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from bot.home import Home
from bot.outbox import REPEATED
from bot.turns import TIRED
from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.telegram_api import ANN, Fault, TelegramApi
from tests.flows.conftest import Limpet, connect

OWNER = f'owners = ["telegram:{ANN.id}"]'


def spoil(limpet: Limpet, table: str, column: str, text: str, which: str) -> None:
    """What is in that column of those rows is ``text``."""
    with closing(sqlite3.connect(Home(limpet.home).database)) as database:
        rows = f"SELECT rowid FROM {table} WHERE {which}"
        changed = database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid IN ({rows})", (text,)).rowcount
        database.commit()
    assert changed, "there was nothing to spoil"


async def set_aside(limpet: Limpet) -> list[str]:
    problems = (await limpet("doctor", "--json")).json["problems"]
    return [problem["what"] for problem in problems if "set aside" in problem["what"]]


async def test_a_message_that_can_not_be_read_holds_nothing_up(limpet: Limpet, telegram: TelegramApi) -> None:
    """Its row was written by another version, or on a bad disk. What comes behind it in its session is answered."""
    replies = iter([Reply("never", wait=True)])
    async with ModelServer(lambda _: next(replies, Reply("Here."))) as server:
        connect(limpet, telegram, server, top=OWNER)
        async with limpet.hub() as hub:
            for text in ("poison", "more of it", "torn"):
                telegram.says(text)
            await server.arrived(1)
            await telegram.wait_confirmed()
            await hub.kill()
        for text in ('{"id": 1}', "", '{"torn'):
            spoil(limpet, "inbox", "event", text, "event LIKE '%\"text\"%' LIMIT 1")
        async with limpet.hub() as hub:
            await hub.until("message.unreadable")
            telegram.says("and now?")
            (sent,) = await telegram.wait_sent(1)
            assert sent.text == "Here."
            assert len(await set_aside(limpet)) == 3
            await hub.stop()


async def test_a_part_that_can_not_be_read_is_no_crash_loop(limpet: Limpet, telegram: TelegramApi) -> None:
    """It was being sent when the power went: the next start looks at it before anything else."""
    async with ModelServer(lambda _: Reply("Here.")) as server:
        connect(limpet, telegram, server, top=OWNER)
        async with limpet.hub() as hub:
            telegram.fail("sendMessage", Fault(delay=60))
            telegram.says("one")
            await telegram.wait_called("sendMessage", 1)
            await hub.kill()
        spoil(limpet, "outbox", "body", '{"address": 1}', "state = 'attempting'")
        async with limpet.hub() as hub:
            await hub.until("part.unreadable")
            telegram.says("two")
            sent = await telegram.wait_sent(1)
            assert sent[-1].text == "Here."
            status = await limpet("status")
            assert "1 message of the last day not delivered" in status.out
            await hub.stop()
        assert REPEATED not in [message.text for message in telegram.sent]


async def test_a_message_on_which_three_turns_died_is_answered_with_an_apology(
    limpet: Limpet, telegram: TelegramApi
) -> None:
    """G-OPS-11: what kills the process each time is not begun a fourth time."""

    def answer(request: Recorded) -> Reply:
        return Reply("never", wait=True) if "poison" in request.messages[-1]["content"] else Reply("Fine.")

    async with ModelServer(answer) as server:
        connect(limpet, telegram, server, top=OWNER)
        telegram.says("poison")
        for tries in range(1, 4):
            async with limpet.hub() as hub:
                await server.arrived(tries)
                await hub.kill()
        async with limpet.hub() as hub:
            (sent,) = await telegram.wait_sent(1)
            assert sent.text == TIRED
            telegram.says("something else")
            assert (await telegram.wait_sent(2))[-1].text == "Fine."
            assert await set_aside(limpet)
            await hub.stop()
        assert len(server.requests) == 4
