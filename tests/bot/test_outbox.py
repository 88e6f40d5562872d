"""The durable outbox: in order, once, and honest about what it can't know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pytest

from adapters.adapter import Capabilities
from adapters.errors import (
    Absent,
    AdapterError,
    Ambiguous,
    AuthFailed,
    ChatMoved,
    RateLimited,
    Rejected,
    Unreachable,
)
from adapters.message import Address, Part, Receipt
from adapters.text import FormattedText, Span
from bot.outbox import REPEATED, UNSURE, SqliteOutbox
from bot.state import State
from tests.bot.conftest import Clock, people_of
from tests.fakes.adapter import FakeAdapter

CHAT = Address("fake", "fake", "7", "direct")
OTHER = Address("fake", "fake", "8", "direct")


class Waits:
    """Stands in for sleep: notes how long was asked for and goes on at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


def parts(*texts: str, address: Address = CHAT) -> list[Part]:
    return [Part(address, FormattedText(text)) for text in texts]


def outbox_of(
    state: State,
    clock: Clock,
    adapter: FakeAdapter,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    owner: str = "me",
) -> SqliteOutbox:
    people = people_of(state, clock)
    return SqliteOutbox(state, {("fake", "fake"): adapter}, owner, people=people, clock=clock, sleep=sleep or Waits())


def nobody(owner: str) -> bool:
    """Every other process is dead."""
    return False


async def states(state: State) -> list[str]:
    return [row[0] for row in await state.rows("SELECT state FROM outbox ORDER BY id")]


async def test_parts_of_one_chat_arrive_in_order_whatever_the_delays(state: State, clock: Clock) -> None:
    """G-SPL-09: part n+1 is not started before part n was acknowledged."""
    adapter = FakeAdapter(delays=[0.05, 0.02, 0.001])
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", parts("1", "2", "3"))
    await outbox.idle()
    assert [s.text for s in adapter.sent] == ["1", "2", "3"]
    assert [s.key for s in adapter.sent] == ["t/0", "t/1", "t/2"]
    assert await states(state) == ["sent"] * 3


async def test_a_flood_wait_in_the_middle_loses_nothing(state: State, clock: Clock) -> None:
    """G-SPL-10: all four parts, once, in order; the wait is honoured."""
    adapter = FakeAdapter(faults=[None, None, RateLimited("429", 1.5)])
    waits = Waits()
    outbox = outbox_of(state, clock, adapter, waits)
    await outbox.put("t", parts("1", "2", "3", "4"))
    await outbox.idle()
    assert [s.text for s in adapter.sent] == ["1", "2", "3", "4"]
    assert waits.seconds == [1.5]


async def test_a_limited_chat_holds_up_no_other(state: State, clock: Clock) -> None:
    """G-DLV-20: chat D is served at once, chat C keeps its order."""
    release = asyncio.Event()

    async def sleep(_: float) -> None:
        await release.wait()

    adapter = FakeAdapter(faults=[RateLimited("429", 5)])
    outbox = outbox_of(state, clock, adapter, sleep)
    await outbox.put("c", parts("m1", "m2"))
    while not await state.row("SELECT 1 FROM outbox WHERE error = '429'"):
        await asyncio.sleep(0)
    await outbox.put("d", parts("m3", address=OTHER))
    await adapter.wait_sent(1)
    assert [s.text for s in adapter.sent] == ["m3"]
    release.set()
    await outbox.idle()
    assert [s.text for s in adapter.sent] == ["m3", "m1", "m2"]


@pytest.mark.parametrize(
    ("error", "sent", "ends"),
    [
        (Unreachable("connection refused"), ["1", "2"], ["sent", "sent"]),
        (Ambiguous("read timeout"), [UNSURE, "2"], ["uncertain", "sent", "sent"]),
        (Rejected("blocked by the user"), ["2"], ["failed", "sent"]),
    ],
)
async def test_each_class_of_error_decides_whether_it_is_sent_again(
    state: State, clock: Clock, error: AdapterError, sent: Sequence[str], ends: Sequence[str]
) -> None:
    """G-DLV-11: what may have arrived is not sent again, what never left is."""
    adapter = FakeAdapter(faults=[error])
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", parts("1", "2"))
    await outbox.idle()
    assert [s.text for s in adapter.sent] == sent
    assert await states(state) == ends


async def test_a_network_that_stays_away_is_tried_with_growing_waits(state: State, clock: Clock) -> None:
    adapter = FakeAdapter(faults=[Unreachable("down")] * 12)
    waits = Waits()
    outbox = outbox_of(state, clock, adapter, waits)
    await outbox.put("t", parts("1"))
    await outbox.idle()
    assert [s.text for s in adapter.sent] == ["1"]
    assert len(waits.seconds) == 12
    assert waits.seconds[0] <= 1.0
    assert 30 <= waits.seconds[-1] <= 60


async def test_refused_markup_goes_once_as_plain_text(state: State, clock: Clock) -> None:
    """G-FMT-07: the second send is the text without markup."""
    adapter = FakeAdapter(faults=[Rejected("can't parse entities", formatting=True)])
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", [Part(CHAT, FormattedText("Sure! Step 1 - done.", (Span("bold", 0, 4),)))])
    await outbox.idle()
    assert [(s.text, s.part.text.spans) for s in adapter.sent] == [("Sure! Step 1 - done.", ())]


async def test_markup_refused_twice_fails_instead_of_looping(state: State, clock: Clock) -> None:
    adapter = FakeAdapter(faults=[Rejected("no", formatting=True)] * 2)
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", [Part(CHAT, FormattedText("x", (Span("bold", 0, 1),)))])
    await outbox.idle()
    assert await states(state) == ["failed"]


async def test_a_revoked_token_keeps_the_parts_until_it_is_mended(state: State, clock: Clock) -> None:
    adapter = FakeAdapter(faults=[AuthFailed("401")])
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", parts("1"))
    await outbox.idle()
    assert await states(state) == ["pending"]
    assert await outbox.recover(nobody) == 1
    await outbox.idle()
    assert [s.text for s in adapter.sent] == ["1"]


async def crashed(state: State, part: int) -> None:
    """The process died while it sent this part, of whatever turns there are."""
    async with state.transaction() as db:
        await db.execute(
            "UPDATE outbox SET state = 'attempting', tries = tries + 1 WHERE state = 'pending' AND part = ?", (part,)
        )


async def test_a_crash_while_sending_sends_once_more_and_says_so_and_then_never_again(
    state: State, clock: Clock
) -> None:
    """The answer itself stays as it was: what is said of it is a part of its own."""
    adapter = FakeAdapter()
    outbox = outbox_of(state, clock, adapter)
    part = Part(CHAT, FormattedText("bold", (Span("bold", 0, 4),)), reply_to="17")
    async with state.transaction() as db:
        await outbox.add(db, "t", [part])
    before = await state.rows("SELECT body FROM outbox")
    await crashed(state, 0)
    after = outbox_of(state, clock, adapter, owner="after the crash")
    assert await after.recover(nobody) == 2
    await after.idle()
    assert [(s.text, s.part.reply_to, s.key) for s in adapter.sent] == [(REPEATED, "17", "t/-2"), ("bold", "17", "t/0")]
    assert adapter.sent[1].part == part
    async with state.transaction() as db:
        await db.execute("UPDATE outbox SET state = 'attempting', body = ? WHERE part = 0", before[0])
        await db.execute("UPDATE outbox SET message_id = NULL")
    again = outbox_of(state, clock, adapter, owner="after the next")
    await again.recover(nobody)
    await again.idle()
    assert [s.text for s in adapter.sent[2:]] == [UNSURE]
    assert await state.rows("SELECT part, state, body FROM outbox ORDER BY id") == [
        (0, "uncertain", ""),
        (-2, "sent", ""),
        (-1, "sent", ""),
    ]


async def test_nothing_is_said_where_a_repetition_is_known_by_its_key(state: State, clock: Clock) -> None:
    """A console that has shown the part would be left with the word alone."""
    adapter = FakeAdapter(capabilities=Capabilities(text_limit=0, idempotent=True))
    outbox = outbox_of(state, clock, adapter)
    async with state.transaction() as db:
        await outbox.add(db, "t", parts("1"))
    await crashed(state, 0)
    after = outbox_of(state, clock, adapter, owner="after the crash")
    await after.recover(nobody)
    await after.idle()
    assert [(s.text, s.key) for s in adapter.sent] == [("1", "t/0")]


async def test_each_part_that_may_come_twice_is_spoken_of_right_before_it(state: State, clock: Clock) -> None:
    """Also where what others left to send in this chat goes first, and where a second crash cuts off another part."""
    adapter = FakeAdapter(faults=[None, None, None, Absent("the process dies here")])
    elder = outbox_of(state, clock, adapter, owner="elder")
    before = outbox_of(state, clock, adapter, owner="before")
    async with state.transaction() as db:
        await elder.add(db, "s", parts("0"))
        await before.add(db, "t", parts("1", "2", "3"))
        await db.execute("UPDATE outbox SET state = 'attempting', tries = 1 WHERE turn = 't' AND part = 0")
    after = outbox_of(state, clock, adapter, owner="after the crash")
    await after.recover(nobody)
    await after.idle()
    assert [s.text for s in adapter.sent] == ["0", REPEATED, "1"]
    await crashed(state, 1)
    again = outbox_of(state, clock, adapter, owner="after the next")
    await again.recover(nobody)
    await again.idle()
    assert [s.text for s in adapter.sent[3:]] == [REPEATED, "2", "3"]


@pytest.mark.parametrize("error", [Unreachable("down"), RateLimited("429", 1), Rejected("no", formatting=True)])
async def test_that_a_part_may_come_twice_is_said_once_however_often_it_is_tried(
    state: State, clock: Clock, error: AdapterError
) -> None:
    adapter = FakeAdapter(faults=[None, error])
    outbox = outbox_of(state, clock, adapter)
    async with state.transaction() as db:
        await outbox.add(db, "t", [Part(CHAT, FormattedText("x" * 4096, (Span("bold", 0, 1),)))])
    await crashed(state, 0)
    after = outbox_of(state, clock, adapter, owner="after the crash")
    await after.recover(nobody)
    await after.idle()
    assert [s.text for s in adapter.sent] == [REPEATED, "x" * 4096]


@pytest.mark.parametrize("again", [False, True])
async def test_a_crash_while_that_is_said_loses_no_part_and_claims_none_to_be_lost(
    state: State, clock: Clock, again: bool
) -> None:
    """What the outbox says of itself may be missing; the answer may not."""
    adapter = FakeAdapter(faults=[Absent("the process dies here")] * 2)
    outbox = outbox_of(state, clock, adapter)
    async with state.transaction() as db:
        await outbox.add(db, "t", parts("1"))
    await crashed(state, 0)
    for number in range(1 + again):
        after = outbox_of(state, clock, adapter, owner=f"after crash {number}")
        await after.recover(nobody)
        await after.idle()
        await crashed(state, -2)
    adapter.faults = []
    last = outbox_of(state, clock, adapter, owner="the last")
    await last.recover(nobody)
    await last.idle()
    assert [s.text for s in adapter.sent] == ([] if again else [REPEATED]) + ["1"]
    assert await states(state) == ["sent", "uncertain" if again else "sent"]


@pytest.mark.parametrize("error", [Ambiguous("read timeout"), Rejected("blocked")])
async def test_what_is_said_ahead_and_does_not_arrive_stands_in_no_ones_way(
    state: State, clock: Clock, error: AdapterError
) -> None:
    adapter = FakeAdapter(faults=[error])
    outbox = outbox_of(state, clock, adapter)
    async with state.transaction() as db:
        await outbox.add(db, "t", parts("1"))
    await crashed(state, 0)
    after = outbox_of(state, clock, adapter, owner="after the crash")
    await after.recover(nobody)
    await after.idle()
    assert [s.text for s in adapter.sent] == ["1"], "and no word that the part before it may be missing"


async def test_the_same_turn_is_put_once(state: State, clock: Clock) -> None:
    adapter = FakeAdapter()
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", parts("1"))
    await outbox.put("t", parts("another wording"))
    await outbox.idle()
    assert [s.text for s in adapter.sent] == ["1"]


async def test_what_was_sent_leaves_no_text_behind(state: State, clock: Clock) -> None:
    outbox = outbox_of(state, clock, FakeAdapter())
    await outbox.put("t", parts("my canary"))
    await outbox.idle()
    assert await state.rows("SELECT body, message_id FROM outbox") == [("", "sent-1")]


async def test_a_part_waits_for_a_console_without_a_timer(state: State, clock: Clock) -> None:
    adapter = FakeAdapter(faults=[Absent("nobody is connected")])
    waits = Waits()
    outbox = outbox_of(state, clock, adapter, waits)
    await outbox.put("t", parts("1"))
    await outbox.idle()
    assert (adapter.sent, waits.seconds, await states(state)) == ([], [], ["pending"])
    outbox.arrived(CHAT)
    await outbox.idle()
    assert [s.text for s in adapter.sent] == ["1"]


async def test_a_living_processes_parts_are_its_own(state: State, clock: Clock) -> None:
    theirs, adapter = FakeAdapter(faults=[Absent("nobody")]), FakeAdapter()
    living = outbox_of(state, clock, theirs, owner="living")
    await living.put("t", parts("theirs"))
    await living.idle()
    mine = outbox_of(state, clock, adapter, owner="mine")
    assert await mine.recover(lambda owner: owner == "living") == 0
    mine.arrived(CHAT)
    await mine.idle()
    assert adapter.sent == []
    assert await mine.recover(nobody) == 1
    await mine.idle()
    assert [s.text for s in adapter.sent] == ["theirs"]


async def test_a_part_that_was_never_committed_is_not_sent(state: State, clock: Clock) -> None:
    adapter = FakeAdapter()
    outbox = outbox_of(state, clock, adapter)

    async def roll_back() -> None:
        async with state.transaction() as db:
            await outbox.add(db, "t", parts("never"))
            await outbox.wake(parts("never"))
            await asyncio.sleep(0.05)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await roll_back()
    await outbox.idle()
    assert adapter.sent == []


@pytest.mark.parametrize("lost", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
async def test_a_person_hears_once_a_turn_that_something_may_be_missing(
    state: State, clock: Clock, lost: Sequence[int]
) -> None:
    """In the place of the first part that may be missing, and not again for those after it."""
    faults: list[AdapterError | None] = [Ambiguous("read timeout") if n in lost else None for n in range(3)]
    faults.insert(lost[0] + 1, None)  # the sentence itself
    adapter = FakeAdapter(faults=faults)
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", parts("0", "1", "2"))
    await outbox.put("another", parts("3"))
    await outbox.idle()
    expected = [str(n) for n in range(4) if n not in lost]
    expected.insert(lost[0], UNSURE)
    assert [s.text for s in adapter.sent] == expected


async def test_the_word_that_something_may_be_missing_is_kept_until_it_arrives(state: State, clock: Clock) -> None:
    """The network that lost a part is seldom back at once; and what may be missing of it is not spoken of again."""
    adapter = FakeAdapter(faults=[Ambiguous("read timeout"), Unreachable("down"), Unreachable("down")])
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", parts("1", "2"))
    await outbox.idle()
    assert [s.text for s in adapter.sent] == [UNSURE, "2"]
    adapter.faults = [Ambiguous("read timeout")] * 2
    await outbox.put("u", parts("3", "4"))
    await outbox.idle()
    assert [s.text for s in adapter.sent] == [UNSURE, "2", "4"]


OLD, NEW = (Address("fake", "fake", chat, "group") for chat in ("-5", "-1005"))


@dataclass
class Group(FakeAdapter):
    """A platform where the chat -5 became -1005 once ``moved``; it takes nothing for an id that is no more."""

    moved: bool = False

    async def send(self, part: Part, key: str) -> Receipt:
        if self.moved == (part.address.chat == OLD.chat):
            raise ChatMoved("upgraded", NEW.chat) if self.moved else Rejected("chat not found")
        return await super().send(part, key)

    @property
    def seen(self) -> list[tuple[str, str, str | None]]:
        return [(s.text, s.part.address.chat, s.part.reply_to) for s in self.sent]


@pytest.mark.parametrize("is_told", [True, False])
async def test_an_answer_follows_its_chat(state: State, clock: Clock, is_told: bool) -> None:
    """G-RTE-26: the group moved after the message was taken; we were told, or only learn it by sending."""
    adapter = Group(moved=True)
    outbox = outbox_of(state, clock, adapter)
    if is_told:
        await people_of(state, clock).move(OLD, NEW.chat)
    await outbox.put("t", [Part(OLD, FormattedText("1"), reply_to="17"), *parts("2", address=OLD)])
    await outbox.idle()
    assert adapter.seen == [("1", NEW.chat, None), ("2", NEW.chat, None)], "message 17 is another one over there"
    assert (await people_of(state, clock).canonical(NEW)) == OLD, "and it stays the same chat"


async def test_a_chat_that_moves_between_two_parts(state: State, clock: Clock) -> None:
    adapter = Group()
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", [Part(OLD, FormattedText("1"), reply_to="17")])
    await outbox.idle()
    adapter.moved = True
    await outbox.put("u", parts("2", address=OLD))
    await outbox.idle()
    await outbox.put("v", [Part(NEW, FormattedText("3"), reply_to="4")])
    await outbox.idle()
    assert adapter.seen == [("1", OLD.chat, "17"), ("2", NEW.chat, None), ("3", NEW.chat, "4")]


async def test_what_is_said_before_and_after_a_move_stays_in_order(state: State, clock: Clock) -> None:
    adapter = Group(moved=True, delays=[0.05])
    outbox = outbox_of(state, clock, adapter)
    await people_of(state, clock).move(OLD, NEW.chat)
    await outbox.put("t", parts("1", address=OLD))
    await outbox.put("u", parts("2", address=NEW))
    await outbox.idle()
    assert [text for text, *_ in adapter.seen] == ["1", "2"]


@pytest.mark.parametrize("state_then", ["pending", "attempting"])
async def test_a_chat_that_moved_while_we_were_down(state: State, clock: Clock, state_then: str) -> None:
    adapter = Group(moved=True)
    before = outbox_of(state, clock, adapter, owner="before")
    async with state.transaction() as db:
        await before.add(db, "t", parts("1", "2", address=OLD))
        await db.execute("UPDATE outbox SET state = ? WHERE part = 0", (state_then,))
    after = outbox_of(state, clock, adapter, owner="after the crash")
    await after.recover(nobody)
    await after.idle()
    marker = [(REPEATED, NEW.chat, None)] if state_then == "attempting" else []
    assert adapter.seen == [*marker, ("1", NEW.chat, None), ("2", NEW.chat, None)]


@pytest.mark.parametrize("to_chat", ["-5", "-1005", "-7"])
async def test_a_move_that_leads_in_circles_ends(state: State, clock: Clock, to_chat: str) -> None:
    """A server that says "moved" for ever must not keep the chat's lane for ever."""
    adapter = FakeAdapter(faults=[ChatMoved("upgraded", to_chat), *[ChatMoved("upgraded", "-5")] * 5])
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", parts("1", address=OLD))
    await outbox.idle()
    assert await states(state) == ["failed"]
    assert len(adapter.faults) >= 4
