"""The durable outbox: in order, once, and honest about what it can't know."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from adapters.errors import Absent, AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.message import Address, Part
from adapters.text import FormattedText, Span
from bot.outbox import REPEATED, SqliteOutbox
from bot.state import State
from tests.bot.conftest import Clock
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
    state: State, clock: Clock, adapter: FakeAdapter, waits: Waits | None = None, owner: str = "me"
) -> SqliteOutbox:
    return SqliteOutbox(state, {("fake", "fake"): adapter}, owner, clock=clock, sleep=waits or Waits())


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
    outbox = SqliteOutbox(state, {("fake", "fake"): adapter}, "me", clock=clock, sleep=sleep)
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
        (Ambiguous("read timeout"), ["2"], ["uncertain", "sent"]),
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


async def test_a_crash_while_sending_sends_once_more_marked_and_then_never_again(state: State, clock: Clock) -> None:
    adapter = FakeAdapter()
    outbox = outbox_of(state, clock, adapter)
    async with state.transaction() as db:
        await outbox.add(db, "t", [Part(CHAT, FormattedText("bold", (Span("bold", 0, 4),)))])
        await db.execute("UPDATE outbox SET state = 'attempting'")
    after = outbox_of(state, clock, adapter, owner="after the crash")
    await after.recover(nobody)
    await after.idle()
    (sent,) = adapter.sent
    assert sent.text == REPEATED + "bold"
    (span,) = sent.part.text.spans
    assert sent.text[span.start : span.end] == "bold"
    async with state.transaction() as db:
        await db.execute("UPDATE outbox SET state = 'attempting'")
    again = outbox_of(state, clock, adapter, owner="after the next")
    await again.recover(nobody)
    await again.idle()
    assert len(adapter.sent) == 1
    assert await states(state) == ["uncertain"]


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


async def test_a_marker_that_makes_a_part_too_long_goes_ahead_of_it(state: State, clock: Clock) -> None:
    adapter = FakeAdapter()
    outbox = outbox_of(state, clock, adapter)
    async with state.transaction() as db:
        await outbox.add(db, "t", parts("x" * 4090))
        await db.execute("UPDATE outbox SET state = 'attempting'")
    after = outbox_of(state, clock, adapter, owner="after the crash")
    await after.recover(nobody)
    await after.idle()
    assert [s.text for s in adapter.sent] == [REPEATED.strip(), "x" * 4090]
    assert await states(state) == ["sent"]


async def test_a_part_that_was_never_committed_is_not_sent(state: State, clock: Clock) -> None:
    adapter = FakeAdapter()
    outbox = outbox_of(state, clock, adapter)

    async def roll_back() -> None:
        async with state.transaction() as db:
            await outbox.add(db, "t", parts("never"))
            outbox.wake(parts("never"))
            await asyncio.sleep(0.05)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await roll_back()
    await outbox.idle()
    assert adapter.sent == []
