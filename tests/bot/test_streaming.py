"""An answer shown while it is being written: what people see at each moment, and what is left in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.adapter import Capabilities
from adapters.errors import AdapterError, Ambiguous, RateLimited, Rejected, Unreachable
from adapters.message import Address, Part, Receipt
from bot.delivery import MOST_PARTS, parts_of
from bot.outbox import SqliteOutbox
from bot.state import State
from bot.streaming import FIRST_SECONDS, Stream
from tests.bot.conftest import Clock, people_of
from tests.fakes.adapter import FakeAdapter

CHAT = Address("fake", "fake", "7", "direct")
EDITS = Capabilities(text_limit=60, edits=True, edit_seconds={"direct": 2.0})
ANSWER = " ".join(f"Word number {n} of a long answer." for n in range(6))


@dataclass
class Time:
    """``asked`` are the seconds of each sleep; one ends when the test lets it."""

    asked: list[float] = field(default_factory=list)
    _ends: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    _asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self._asked.set()
        await self._ends.get()

    def end(self) -> None:
        """End the sleep that lasts, or the next one."""
        self._ends.put_nowait(None)

    async def goes_on(self) -> None:
        """End the sleep that lasts; returns when the next one begins."""
        async with asyncio.timeout(10):
            await self._asked.wait()
            self._asked.clear()
            self.end()
            await self._asked.wait()


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[State]:
    async with State.open(tmp_path / "state.sqlite") as opened:
        yield opened


@dataclass
class Scene:
    """A turn whose answer is being written, at a door."""

    adapter: FakeAdapter
    outbox: SqliteOutbox
    state: State
    time: Time
    stream: Stream

    async def says(self, *deltas: str) -> None:
        """The model says more, and it is looked at."""
        for delta in deltas:
            await self.stream.feed(delta)
        await self.time.goes_on()

    async def ends(self, answer: str) -> list[str]:
        """The answer is ``answer``; what the chat shows when it is delivered."""
        await self.stream.end()
        parts = parts_of(answer, CHAT, self.adapter)
        async with self.state.transaction() as db:
            await self.outbox.add(db, "t", parts)
        await self.outbox.wake(parts)
        await self.outbox.idle()
        return self.shown

    @property
    def shown(self) -> list[str]:
        return [part.text.plain for part in self.adapter.shown]


@asynccontextmanager
async def scene(state: State, adapter: FakeAdapter) -> AsyncIterator[Scene]:
    clock, time = Clock(), Time()

    async def no_pause(_: float) -> None:
        return

    people = people_of(state, clock)
    outbox = SqliteOutbox(state, {("fake", "fake"): adapter}, "me", people=people, clock=clock, sleep=no_pause)
    stream = Stream("t", CHAT, adapter, outbox.previews, sleep=time.sleep, monotonic=lambda: 0.0)
    try:
        yield Scene(adapter, outbox, state, time, stream)
    finally:
        await stream.end()


def pieces(text: str, size: int = 25) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


async def test_an_answer_grows_and_ends_as_it_would_have_been_sent(state: State) -> None:
    """The last edit gives what sending it whole would have given; every part is one message."""
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        said = ""
        for piece in pieces(ANSWER):
            said += piece
            await now.says(piece)
            whole = [part.text.plain for part in parts_of(said, CHAT, now.adapter)]
            assert now.shown == (whole if len(said) > 25 else now.shown)
        assert len(now.adapter.sent) > 2
        final = [part.text.plain for part in parts_of(ANSWER, CHAT, now.adapter)]
        assert await now.ends(ANSWER) == final
        assert len(now.adapter.sent) == len(final), "what was shown is edited, never sent again"


async def test_it_is_looked_at_no_more_often_than_the_platform_lets_it(state: State) -> None:
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        await now.says(*pieces(ANSWER[:50], 1))
        await now.says("more and more")
        assert now.time.asked == [FIRST_SECONDS, 2.0, 2.0]
        assert len(now.adapter.sent) + len(now.adapter.edits) <= 3


async def test_a_short_answer_comes_whole(state: State) -> None:
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        await now.says("Yes.")
        assert now.shown == []
        assert await now.ends("Yes.") == ["Yes."]
        assert now.adapter.edits == []


async def test_markup_that_is_still_open_is_mended_by_the_end(state: State) -> None:
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        await now.says("It is **very important to")
        assert now.shown == ["It is **very important to"]
        assert await now.ends("It is **very important to** know.") == ["It is very important to know."]


async def test_words_before_a_tool_give_way_to_the_answer(state: State) -> None:
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        await now.says("Let me look that up for you, one moment.")
        now.stream.begin()
        await now.says("The key is under the pot, as always.")
        assert now.shown == ["The key is under the pot, as always."]
        assert await now.ends("The key is under the pot, as always.") == ["The key is under the pot, as always."]


@pytest.mark.parametrize(
    "fault",
    [RateLimited("wait", 33.0), Unreachable("down"), Ambiguous("no answer"), Ambiguous("no answer either")],
)
async def test_a_last_edit_that_fails_is_made_again_and_never_sent_beside_it(state: State, fault: AdapterError) -> None:
    """G-DLV-12"""
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        await now.says("A beginning of what will be said")
        now.adapter.edit_faults = [fault]
        assert await now.ends("A beginning of what will be said, and its end.") == [
            "A beginning of what will be said, and its end."
        ]
        assert len(now.adapter.sent) == 1


async def test_only_the_missing_tail_is_sent_where_an_edit_fails_at_the_limit(state: State) -> None:
    """G-DLV-22"""
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        await now.says(ANSWER[:55])
        now.adapter.edit_faults = [RateLimited("wait", 5.0)]
        await now.says(ANSWER[55:])
        final = [part.text.plain for part in parts_of(ANSWER, CHAT, now.adapter)]
        assert await now.ends(ANSWER) == final
        assert len(now.adapter.sent) == len(final)


async def test_a_message_that_somebody_deleted_is_sent_anew(state: State) -> None:
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        await now.says("A beginning of what will be said")
        now.adapter.delete(now.adapter.sent[0].message_id)
        assert await now.ends("A beginning of what will be said, and its end.") == [
            "A beginning of what will be said, and its end."
        ]


@pytest.mark.parametrize("fault", [Rejected("no"), Unreachable("down"), Ambiguous("lost")])
async def test_what_can_not_be_shown_comes_whole(state: State, fault: AdapterError) -> None:
    async with scene(state, FakeAdapter(capabilities=EDITS, faults=[fault])) as now:
        await now.stream.feed("A beginning of what will be said")
        async with asyncio.timeout(10):
            while not now.time.asked:
                await asyncio.sleep(0)
            now.time.end()
            while now.adapter.faults:
                await asyncio.sleep(0)
        assert await now.ends("A beginning of what will be said, and its end.") == [
            "A beginning of what will be said, and its end."
        ]


async def test_after_a_crash_the_answer_goes_on_in_the_message_that_showed_it(state: State) -> None:
    """The id of the message was kept before the first edit."""
    adapter = FakeAdapter(capabilities=EDITS)
    async with scene(state, adapter) as before:
        await before.says("A beginning of what was to be said")
    async with scene(state, adapter) as after:
        assert await after.ends("Another answer, from the second try.") == ["Another answer, from the second try."]
        assert len(adapter.sent) == 1
    assert await state.rows("SELECT * FROM shown") == []


async def test_a_turn_that_begins_anew_is_shown_in_the_message_that_showed_it(state: State) -> None:
    """After a crash, or where its person interrupted it: half of an answer is never left beside the whole."""
    adapter = FakeAdapter(capabilities=EDITS)
    async with scene(state, adapter) as before:
        await before.says("A beginning of what was to be said")
    async with scene(state, adapter) as after:
        await after.says("Another beginning, from the second try")
        assert after.shown == ["Another beginning, from the second try"]
        assert await after.ends("Another beginning, and its end.") == ["Another beginning, and its end."]
    assert len(adapter.sent) == 1


async def test_what_was_shown_beyond_the_answer_is_taken_back(state: State) -> None:
    """A model that failed in the middle of a long answer, and said less on its second try."""
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        await now.says(*pieces(ANSWER))
        assert len(now.shown) > 2
        assert await now.ends("It was short in the end.") == ["It was short in the end."]


async def test_drafts_take_the_place_of_messages_where_there_are_some(state: State) -> None:
    adapter = FakeAdapter(capabilities=EDITS, draft_seconds=0.5)
    async with scene(state, adapter) as now:
        await now.says("A beginning of what will be said")
        await now.says(", and its end.")
        assert [part.text.plain for _, part in adapter.drafted] == [
            "A beginning of what will be said",
            "A beginning of what will be said, and its end.",
        ]
        assert now.shown == []
        assert now.time.asked == [FIRST_SECONDS, 0.5, 0.5]
        assert await now.ends("A beginning of what will be said, and its end.") == [
            "A beginning of what will be said, and its end."
        ]
        assert adapter.edits == []


async def test_a_long_answer_is_drafted_part_by_part(state: State) -> None:
    adapter = FakeAdapter(capabilities=EDITS, draft_seconds=0.5)
    async with scene(state, adapter) as now:
        await now.says(*pieces(ANSWER))
        parts = [part.text.plain for part in parts_of(ANSWER, CHAT, adapter)]
        assert now.shown == parts[:-1], "what is complete is there to stay"
        assert adapter.drafted[-1][1].text.plain == parts[-1]
        assert await now.ends(ANSWER) == parts


async def test_no_more_is_shown_than_will_be_sent(state: State) -> None:
    async with scene(state, FakeAdapter(capabilities=EDITS)) as now:
        await now.says("word " * 500)
        assert len(now.shown) == MOST_PARTS - 1


async def test_nothing_is_shown_where_the_platform_can_not(state: State) -> None:
    groups_only = Capabilities(text_limit=60, edits=True, edit_seconds={"group": 3.0})
    async with scene(state, FakeAdapter(capabilities=groups_only)) as now:
        assert now.stream.pause is None
        await now.stream.feed(ANSWER)
        await asyncio.sleep(0)
        assert (now.time.asked, now.shown) == ([], [])


class Whispering(FakeAdapter):
    """A platform that gives no message: what one person alone is shown can't be changed."""

    async def send(self, part: Part, key: str) -> Receipt:
        await super().send(part, key)
        return Receipt(None)


async def test_what_can_not_grow_is_shown_no_second_time(state: State) -> None:
    async with scene(state, Whispering(capabilities=EDITS)) as now:
        await now.stream.feed(ANSWER[:200])
        now.time.end()
        async with asyncio.timeout(10):
            while not now.adapter.sent:
                await asyncio.sleep(0)
        for piece in pieces(ANSWER[200:]):
            await now.stream.feed(piece)
            now.time.end()
            await asyncio.sleep(0.01)
        assert len(now.adapter.sent) == 1
