"""Each call of a model is asked of the budget and booked, whoever makes it and however it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adapters.message import Part
from agents.agent import Question
from agents.events import Delta, Event
from bot.commands.conversation import BEGUN_ANEW
from bot.home import Home
from bot.housekeeping import IDLE
from bot.metering import NOT_TODAY
from bot.outcome import NOT_NOW
from bot.state import State
from bot.turns import STOPPED
from bot.usage import Used, used_since
from tests.agents.sessions import SUMMARY, is_flush, is_summary
from tests.bot.conftest import OPEN, Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply
from workspaces.scope import Scope

OWNED = 'owners = ["telegram:1"]\n'
BUDGET = "[budget]\ndaily_usd = 0.001\n"
DEAR = "price_input = 100\nprice_output = 100\n"
"""A call of 10 and 5 tokens costs $0.0015: more than there is for the day."""

SPENT = "The budget of $0.0010 for today is used up"
DOWN = Reply(status=503, body={"error": {"message": "Overloaded"}})

Booked = Callable[[int], Awaitable[list[Used]]]


@dataclass
class Door(FakeAdapter):
    """``words`` is how many words of an answer it was shown while it was written."""

    draft_seconds: float | None = 0.0
    words: int = 0
    _more: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def draft(self, part: Part, turn: str) -> None:
        async with self._more:
            self.words = len(part.text.plain.split())
            self._more.notify_all()

    async def hears(self, words: int) -> None:
        async with self._more, asyncio.timeout(10):
            await self._more.wait_for(lambda: self.words >= words)


@pytest.fixture
def door() -> Door:
    return Door("telegram", "telegram")


@pytest.fixture
def booked(home: Home) -> Booked:
    """The rows of the ledger, once they are of so many calls."""

    async def read(calls: int) -> list[Used]:
        async with State.open(home.database) as state, asyncio.timeout(10):
            rows = await used_since(state, date.min)
            while sum(row.calls for row in rows) < calls:
                await asyncio.sleep(0.01)
                rows = await used_since(state, date.min)
        return rows

    return read


def chain(server: ModelServer, *order: str) -> str:
    """Settings in which the agent has these of the models "free" and "dear"."""
    names = ", ".join(f'"{name}"' for name in order)
    return f"[agents.main]\nmodel = [{names}]\n" + "".join(
        f'[models.{name}]\nmodel = "openai/{name}"\nbase_url = "{server.url}"\n{prices}'
        for name, prices in (("free", "price_input = 0\nprice_output = 0\n"), ("dear", DEAR))
    )


def entries(home: Home) -> list[dict[str, Any]]:
    """What the transcript of the only session holds."""
    (transcript,) = home.sessions("main").glob("*.jsonl")
    lines = [json.loads(line) for line in transcript.read_text("utf-8").splitlines()]
    return [line for line in lines if "kind" in line]


def by_model(**replies: Reply) -> Callable[[Recorded], Reply]:
    return lambda request: replies[request.body["model"]]


def asked(server: ModelServer) -> list[str]:
    return [request.body["model"] for request in server.requests]


@pytest.mark.parametrize("words", [0, 150])
async def test_a_call_that_was_stopped_is_booked(serve: Serve, door: Door, booked: Booked, words: int) -> None:
    """Who stops each answer before its end would have it for nothing."""
    held = Reply("word " * 200, stall_after=words + 1) if words else Reply("never", wait=True)
    async with ModelServer(lambda _: held) as server, serve(server, top=OWNED + BUDGET, models=DEAR):
        await door.says(door.message("tell me everything", sender="9"))
        await server.arrived(1)
        await door.hears(words)
        await door.says(door.message("/stop", sender="9"))
        assert (await door.wait_sent(1))[0].text == STOPPED
        (row,) = await booked(1)
        await door.says(door.message("and again", sender="9"))
        assert (await door.wait_sent(2))[1].text == NOT_TODAY
    assert len(server.requests) == 1
    sent = len(server.requests[0].data)
    assert sent / 8 < row.input < sent / 2
    assert words <= row.output <= words * 2
    assert row.cost == pytest.approx((row.input + row.output) / 10_000)


@pytest.mark.parametrize("order", [("dear",), ("dear", "free")])
@pytest.mark.parametrize("where", ["handing on", "waiting"])
async def test_a_turn_that_ends_early_has_booked_its_call_when_it_ends(
    serve: Serve, door: Door, home: Home, where: str, order: tuple[str, ...]
) -> None:
    """And not a few ticks later, when its generators are collected: each layer closes the one below it."""
    async with (
        ModelServer(lambda _: Reply("word " * 200, stall_after=50)) as server,
        serve(server, top=chain(server, *order)) as hub,
        State.open(home.database) as ledger,
    ):
        agent = await hub.roster.get("main")
        events = agent.answer(Question("t1", "s", Scope.home(), "tell me everything", datetime.now(UTC)))
        said = ""
        while len(said.split()) < 40:
            event = await anext(events)
            said += event.text if isinstance(event, Delta) else ""
        if where == "waiting":
            task = asyncio.create_task(_all(events))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        else:
            await events.aclose()
        (row,) = await used_since(ledger, date.min)
    assert (row.model, row.calls) == ("openai/dear", 1)
    assert 40 <= row.output <= 100


async def _all(events: AsyncIterator[Event]) -> None:
    async for _ in events:
        pass


async def test_what_broke_off_is_booked_each_time(serve: Serve, door: Door, booked: Booked) -> None:
    async with ModelServer(lambda _: Reply("word " * 200, cut_after=50)) as server, serve(server, models=DEAR):
        await door.says(door.message("tell me everything"))
        await server.arrived(3)
        await door.wait_sent(1)
        (row,) = await booked(3)
    assert row.calls == 3
    assert row.output >= 3 * 49
    assert row.cost is not None


async def test_what_was_never_answered_costs_nothing(serve: Serve, door: Door, booked: Booked) -> None:
    refused = Reply(status=400, body={"error": {"message": "no"}})
    async with ModelServer(lambda _: refused) as server, serve(server, models=DEAR):
        await door.says(door.message("hello"))
        await door.wait_sent(1)
        assert await booked(0) == []


async def test_a_server_that_does_not_count_is_booked_by_an_estimate(serve: Serve, door: Door, booked: Booked) -> None:
    async with ModelServer(lambda _: Reply("word " * 40, usage=None)) as server, serve(server, models=DEAR):
        await door.says(door.message("hello"))
        await door.wait_sent(1)
        (row,) = await booked(1)
    assert row.input > len(server.requests[0].data) / 8
    assert row.output >= 40


@pytest.mark.parametrize("order", [("free", "dear"), ("dear", "free")])
async def test_of_several_the_one_that_costs_nothing_goes_on(
    serve: Serve, door: Door, booked: Booked, order: tuple[str, str]
) -> None:
    script = by_model(free=DOWN if order[0] == "free" else Reply("for nothing"), dear=Reply("for money"))
    async with ModelServer(script) as server, serve(server, top=OWNED + BUDGET + chain(server, *order)):
        for number in range(1, 4):
            await door.says(door.message("what is up?", sender="1"))
            await door.wait_sent(number)
        rows = await booked(1)
    assert [(row.model, row.calls) for row in rows if row.cost] == [("openai/dear", 1)], "a free one allows no paid one"
    assert asked(server).count("dear") == 1
    assert door.sent[0].text == "for money"
    if order[0] == "dear":
        assert [sent.text for sent in door.sent[1:]] == ["for nothing"] * 2
    else:
        assert SPENT in door.sent[1].text, "why the other one could not stand in"


async def test_a_turn_of_many_steps_ends_in_the_middle(serve: Serve, door: Door, booked: Booked) -> None:
    def script(request: Recorded) -> Reply:
        number = len(server.requests)
        return Reply(calls=[Call("list", f'{{"path": "{"" if number % 2 else "memory"}"}}', f"c{number}")])

    budget = BUDGET.replace("0.001", "0.004")
    async with ModelServer(script) as server, serve(server, top=OWNED + budget, models=DEAR):
        await door.says(door.message("look everywhere", sender="1"))
        await door.wait_sent(1)
        (row,) = await booked(3)
    assert row.calls == len(server.requests) == 3
    assert "The budget of $0.0040 for today is used up" in door.sent[0].text


@pytest.mark.parametrize(
    ("sender", "chat", "told"),
    [("1", "1", SPENT), ("9", "9", NOT_TODAY), ("1", "-5", NOT_TODAY), ("9", "-5", NOT_TODAY)],
)
async def test_what_it_came_to_is_for_the_owner_alone(
    serve: Serve, door: Door, sender: str, chat: str, told: str
) -> None:
    async with (
        ModelServer(lambda _: Reply("ok")) as server,
        serve(server, f'{OPEN}groups = ["-5"]\n', top=OWNED + BUDGET, models=DEAR),
    ):
        kind = {"chat": chat, "kind": "group" if chat == "-5" else "direct", "mentions_me": True}
        for number in (1, 2):
            await door.says(door.message("what is up?", sender=sender, **kind))  # type: ignore[arg-type]  # plain keywords
            await door.wait_sent(number)
    assert door.sent[1].text.startswith(told)
    assert ("$" in door.sent[1].text) is (told == SPENT)


async def test_a_guest_reads_no_figures_in_the_middle_of_a_turn_either(serve: Serve, door: Door) -> None:
    script = [Reply(calls=[Call("list")]), Reply("never")]
    async with ModelServer(script) as server, serve(server, top=OWNED + BUDGET, models=DEAR):
        await door.says(door.message("look", sender="9"))
        assert (await door.wait_sent(1))[0].text == NOT_NOW
    assert len(server.requests) == 1


def wordy(request: Recorded) -> Reply:
    """Long answers, so that there is something to sum up; a flush keeps nothing."""
    return Reply("NO_REPLY") if is_flush(request) else Reply(SUMMARY if is_summary(request) else "fine " * 300)


@pytest.mark.parametrize(("sender", "told"), [("1", SPENT), ("9", "/compact is not for a guest here.")])
async def test_compact_asks_the_budget_and_is_for_no_guest(serve: Serve, door: Door, sender: str, told: str) -> None:
    async with ModelServer(wordy) as server, serve(server, top=OWNED + BUDGET, models=DEAR) as hub:
        await door.says(door.message("one " * 800, sender=sender))
        await door.wait_sent(1)
        await hub.idle()
        before = len(server.requests)
        for number in range(2, 5):
            await door.says(door.message("/compact", sender=sender))
            assert (await door.wait_sent(number))[-1].text.startswith(told)
    assert len(server.requests) == before


@pytest.mark.parametrize("chat", ["1", "-5"])
async def test_why_a_summary_failed_is_read_by_the_owner_alone(serve: Serve, door: Door, chat: str) -> None:
    def script(request: Recorded) -> Reply:
        return Reply(status=401, body={"error": {"message": "no key"}}) if is_summary(request) else wordy(request)

    kind = {"chat": chat, "kind": "group" if chat == "-5" else "direct", "mentions_me": True}
    async with (
        ModelServer(script) as server,
        serve(server, f'{OPEN}groups = ["-5"]\n', top=OWNED, models=f"{DEAR}context = 16000\n") as hub,
    ):
        for number in range(1, 4):
            await door.says(door.message("one " * 800, sender="1", **kind))  # type: ignore[arg-type]  # plain keywords
            await door.wait_sent(number)
        await hub.idle()
        await door.says(door.message("/compact", sender="1", **kind))  # type: ignore[arg-type]
        said = (await door.wait_sent(4))[3].text
    assert said.startswith("I could not sum up our older messages, and they stay as they are for now")
    assert ("127.0.0.1" in said) is (chat == "1")


async def test_compact_is_booked(serve: Serve, door: Door, booked: Booked) -> None:
    """By a member in a direct chat it still is what it was."""
    async with ModelServer(wordy) as server, serve(server, top=OWNED, models=f"{DEAR}context = 8000\n") as hub:
        for number in range(1, 4):
            await door.says(door.message("one " * 800, sender="1"))
            await door.wait_sent(number)
        await hub.idle()
        before = len(server.requests)
        await door.says(door.message("/compact", sender="1"))
        await door.wait_sent(4)
        (row,) = await booked(len(server.requests))
    assert len(server.requests) > before
    assert row.calls == len(server.requests)


@pytest.mark.parametrize("budget", ["", BUDGET])
async def test_after_the_last_turn_of_the_day_nothing_is_tried_in_vain(
    serve: Serve, door: Door, home: Home, budget: str
) -> None:
    """A flush that is due waits; one that failed would count as one."""

    def script(request: Recorded) -> Reply:
        return Reply("NO_REPLY") if is_flush(request) else Reply("ok", usage=(4_900, 5, 0))

    top, models = OWNED + budget, f"{DEAR}context = 8000\n"
    async with ModelServer(script) as server, serve(server, top=top, models=models) as hub:
        await door.says(door.message("my dog is called Biscuit", sender="1"))
        await door.wait_sent(1)
        await hub.idle()
    assert [is_flush(request) for request in server.requests] == ([False] if budget else [False, True])
    assert ("flushed" in [mark["kind"] for mark in entries(home)]) is not bool(budget)


async def test_new_is_done_without_a_call(serve: Serve, door: Door, home: Home) -> None:
    """What was said is marked, to be looked at when there is money again."""
    async with ModelServer(wordy) as server, serve(server, top=OWNED + BUDGET, models=DEAR) as hub:
        await door.says(door.message("my dog is called Biscuit", sender="9"))
        await door.wait_sent(1)
        await hub.idle()
        before = len(server.requests)
        await door.says(door.message("/new", sender="9"))
        assert (await door.wait_sent(2))[1].text == BEGUN_ANEW
    assert len(server.requests) == before
    flushed, reset = entries(home)[-2:]
    assert flushed["body"]["outcome"] == "failed"
    assert reset["body"] == {"why": "new"}


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_the_agents_own_model_stands_in_for_a_small_one_that_is_refused(
    serve: Serve, door: Door, home: Home, status: int
) -> None:
    """That neither the key nor the account of the small one is good is no failure of the flush or the summary."""
    refused = Reply(status=status, body={"error": {"message": "no"}})

    def script(request: Recorded) -> Reply:
        return refused if request.body["model"] == "dear" else wordy(request)

    async with ModelServer(script) as server:
        top = OWNED + chain(server, "free").replace("price_input = 0\n", "price_input = 0\ncontext = 8000\n")
        async with serve(server, top=top, models='small = "dear"\n') as hub:
            for number in range(1, 8):
                await door.says(door.message("one " * 800, sender="1"))
                await door.wait_sent(number)
                await hub.idle()
    assert asked(server).count("dear") == 1, "it rests after that"
    marks = [entry for entry in entries(home) if entry["kind"] in ("flushed", "compacted", "refused")]
    assert {mark["kind"] for mark in marks} == {"flushed", "compacted"}
    assert not any(mark["body"].get("outcome") == "failed" or mark["body"].get("trimmed") for mark in marks)


async def test_the_paid_model_of_silent_turns_is_not_asked_on_the_account_of_a_free_one(
    serve: Serve, door: Door, booked: Booked, home: Home
) -> None:
    """Neither after a turn nor at night: the free one does what is to be done."""

    def script(request: Recorded) -> Reply:
        return wordy(request) if request.body["model"] == "free" else Reply("NO_REPLY")

    async with ModelServer(script) as server:
        top = OWNED + BUDGET + chain(server, "free").replace("price_input = 0\n", "price_input = 0\ncontext = 8000\n")
        async with serve(server, top=top, models='small = "dear"\n') as hub:
            for number in range(1, 8):
                await door.says(door.message("one " * 800, sender="1"))
                await door.wait_sent(number)
                await hub.idle()
            assert asked(server).count("dear") == 1, "the first one is over the budget"
            keeping = hub._housekeeping
            clock = keeping._clock
            keeping._clock = lambda: clock() + IDLE + timedelta(minutes=1)
            agent = await hub.roster.get("main")
            await agent.memory.append("Ada likes tea", scope=Scope.home())
            await keeping.look()
            rows = await booked(1)
    assert asked(server).count("dear") == 1
    assert [(row.model, row.calls) for row in rows if row.cost] == [("openai/dear", 1)]
    assert {entry["kind"] for entry in entries(home)} >= {"flushed", "compacted"}
    assert home.curated("main").exists()
