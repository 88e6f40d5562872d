"""How much may be said in a minute, and what is said of it: once, without a model, and with nothing stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.message import Address, Message, Sender
from bot import limits as limits_module
from bot.home import Home
from bot.limits import MOST_KEPT, MOST_STOPS, Limits
from bot.metering import NOT_TODAY
from bot.state import State
from tests.bot.conftest import OPEN, Clock, Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import ModelServer, Reply

GROUP = f'{OPEN}groups = ["-5"]\n'


def said(clock: Clock, sender: str = "7", chat: str = "7", text: str = "hi", **fields: object) -> Message:
    message = Message("1", Address("telegram", "main", chat, "direct"), Sender(sender), text, clock())
    return replace(message, **fields)  # type: ignore[arg-type]  # fields of a message


def refusals(limits: Limits, messages: list[Message]) -> list[str | None]:
    return [limits.refusal(message) for message in messages]


def test_a_senders_messages_are_counted_over_all_their_chats(clock: Clock) -> None:
    limits = Limits(3, 99, clock)
    told = refusals(limits, [said(clock, chat=str(number)) for number in range(6)])
    assert told[:3] == [None] * 3
    assert told[3:] == [limits_module.TOO_MANY.format(seconds=60), "", ""]
    assert limits.refusal(said(clock, sender="8")) is None


def test_a_chats_messages_are_counted_whoever_sends_them(clock: Clock) -> None:
    limits = Limits(99, 3, clock)
    told = refusals(limits, [said(clock, sender=str(number)) for number in range(5)])
    assert told == [None, None, None, limits_module.TOO_MANY.format(seconds=60), ""]
    assert limits.refusal(said(clock, sender="0", chat="8")) is None, "what was refused counts for nobody"


def test_each_window_says_it_once(clock: Clock) -> None:
    limits = Limits(1, 99, clock)
    for _ in range(3):
        assert limits.refusal(said(clock)) is None
        clock.move(seconds=20)
        assert limits.refusal(said(clock)) == limits_module.TOO_MANY.format(seconds=40)
        assert limits.refusal(said(clock)) == ""
        clock.move(seconds=39)
        assert limits.refusal(said(clock)) == ""
        clock.move(seconds=1)


def test_the_terminal_and_a_stop_have_no_limit(clock: Clock) -> None:
    limits = Limits(1, 1, clock)
    terminal = said(clock, address=Address("terminal", "terminal", "local", "direct"))
    assert refusals(limits, [terminal] * 5) == [None] * 5
    stop = said(clock, text="/stop")
    assert refusals(limits, [said(clock), stop, stop, stop]) == [None] * 4
    flood = refusals(limits, [stop] * 100)
    assert flood.count(None) == MOST_STOPS - 3
    assert flood.count("") == 100 - (MOST_STOPS - 3) - 1, "a flood of it is answered once"
    assert limits.refusal(said(clock, text="/help")), "another command has one"


def test_what_was_said_while_we_were_down_is_spread_over_that_time(clock: Clock) -> None:
    """All of it comes in at once, and nobody said too much."""
    limits = Limits(3, 3, clock)
    backlog = [said(clock, sent_at=clock() - timedelta(seconds=30 * number)) for number in range(40, 0, -1)]
    assert refusals(limits, backlog) == [None] * 40
    clock.move(hours=1)
    flood = [said(clock, sent_at=clock() - timedelta(minutes=30)) for _ in range(40)]
    assert refusals(limits, flood).count(None) == 3


def test_a_time_in_the_future_or_the_past_lifts_no_limit(clock: Clock) -> None:
    limits = Limits(3, 3, clock)
    clock.move(seconds=30)
    ahead = [said(clock, sent_at=clock() + timedelta(hours=number)) for number in range(20)]
    back = [said(clock, sent_at=clock() - timedelta(seconds=number)) for number in range(20)]
    assert refusals(limits, [*ahead, *back]).count(None) == 3
    older = [said(clock, sent_at=clock() - timedelta(minutes=number)) for number in range(1, 300)]
    assert refusals(limits, older).count(None) == 60 * 3 - 3, "so many may have waited, and no more"


def test_what_waited_while_the_program_was_down_is_read_in_whatever_order_it_comes(clock: Clock) -> None:
    """A backlog is read chat by chat: one message a minute in two chats is no flood."""
    limits = Limits(3, 3, clock)
    backlog = [
        said(clock, chat=chat, sent_at=clock() - timedelta(minutes=number)) for chat in "ab" for number in range(80)
    ]
    assert set(refusals(limits, backlog)) == {None}


def test_nothing_is_kept_of_those_who_are_gone(clock: Clock) -> None:
    limits = Limits(3, 3, clock)
    for number in range(3 * MOST_KEPT):
        limits.refusal(said(clock, sender=str(number), chat=str(number)))
    assert len(limits) <= MOST_KEPT + 2
    clock.move(seconds=61)
    limits.refusal(said(clock))
    assert len(limits) == 3


async def test_a_flood_costs_no_model_and_no_room(serve: Serve, door: FakeAdapter, home: Home) -> None:
    top = "[limits]\nper_sender = 3\n"
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, top=top) as hub:
        for number in range(10):
            await door.says(door.message(f"word {number}"))
            await hub.idle()
        await door.says(door.message("/stop"))
        await hub.idle()
        async with State.open(home.database) as state:
            assert await state.row("SELECT count(*) FROM inbox") == (4,)
    assert len(server.requests) == 3
    assert [sent.text.partition(":")[0] for sent in door.sent[3:]] == [
        "Too many messages at once",
        "Nothing is running.",
    ]


async def test_a_group_hears_it_once_and_strangers_are_not_counted(serve: Serve, door: FakeAdapter) -> None:
    """Access comes first: who may not talk uses up nobody's minute, and is told nothing."""
    group = {"chat": "-5", "kind": "group"}
    top = "[limits]\nper_sender = 2\nper_chat = 4\n"
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, GROUP, top=top) as hub:
        for _ in range(9):
            await door.says(door.message("not to you", sender="1", **group))  # type: ignore[arg-type]  # plain keywords
            await door.says(door.message("not here", sender="1", chat="-6", kind="group", mentions_me=True))
        for number in range(12):
            await door.says(door.message("hi", sender=str(number // 3), mentions_me=True, **group))  # type: ignore[arg-type]
        await hub.idle()
    texts = [sent.text for sent in door.sent]
    assert len([text for text in texts if text.startswith("Too many")]) == 2, "the first sender, then the chat"
    assert {sent.part.address.chat for sent in door.sent} == {"-5"}
    assert sum(text == "ok" for text in texts) <= 4


@pytest.mark.parametrize("where", ["a guest", "a group", "the owner"])
async def test_that_the_budget_is_spent_is_said_once_a_day_to_others(
    serve: Serve, door: FakeAdapter, where: str, home: Home
) -> None:
    top, models = 'owners = ["telegram:1"]\n[budget]\ndaily_usd = 0.001\n', "price_input = 100\nprice_output = 100"
    group = {"chat": "-5", "kind": "group", "mentions_me": True}
    place = {"a guest": {"sender": "2"}, "the owner": {"sender": "1"}, "a group": {"sender": "1", **group}}[where]
    async with ModelServer(lambda _: Reply("ok")) as server:
        for _ in range(2):
            async with serve(server, GROUP, top=top, models=models) as hub:
                for text in ("one", "two", "three"):
                    await door.says(door.message(text, **place))  # type: ignore[arg-type]  # plain keywords
                    await hub.idle()
            if where != "the owner":
                assert [sent.text for sent in door.sent] == ["ok", NOT_TODAY], "also after a restart"
        assert len(server.requests) == 1
        if where == "the owner":
            assert len(door.sent) == 6
            assert all("budget" in sent.text for sent in door.sent[1:])
            return
        async with State.open(home.database) as state, state.transaction() as db:
            await db.execute("UPDATE refused SET day = '2026-01-01'")
        async with serve(server, GROUP, top=top, models=models) as hub:
            await door.says(door.message("and today?", **place))  # type: ignore[arg-type]
            await hub.idle()
    assert [sent.text for sent in door.sent] == ["ok", NOT_TODAY, NOT_TODAY], "another day is another word"
