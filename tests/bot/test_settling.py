"""Platforms that can be asked whether a part arrived, and those where what was missed has to be read up."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import pytest
from pydantic import TypeAdapter

from adapters.adapter import Health
from adapters.errors import AdapterError, Ambiguous, Rejected, Unreachable
from adapters.message import Address, Part, Receipt
from bot.health import HealthBoard
from bot.outbox import REPEATED, UNSURE
from bot.queueing import PRESS
from bot.state import State
from tests.bot.conftest import Clock
from tests.bot.test_inbox import claimed, inbox_of, said
from tests.bot.test_outbox import CHAT, Waits, nobody, outbox_of, parts, states
from tests.fakes.adapter import FakeAdapter

PART = TypeAdapter(Part)


@dataclass
class AskedAdapter(FakeAdapter):
    """A door that knows what arrived: ``arrived`` are message ids by key, and ``asked`` the questions."""

    arrived: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, datetime]] = field(default_factory=list)
    ask_faults: list[AdapterError] = field(default_factory=list)

    async def settle(self, part: Part, key: str, since: datetime) -> Receipt | None:
        self.asked.append((key, since))
        if self.ask_faults:
            raise self.ask_faults.pop(0)
        return Receipt(self.arrived[key]) if key in self.arrived else None


async def cut_off(state: State, clock: Clock, adapter: AskedAdapter) -> None:
    """A process that died while it was sending."""
    dead = outbox_of(state, clock, adapter, owner="dead")
    async with state.transaction() as db:
        await dead.add(db, "t", parts("one"))
        await db.execute("UPDATE outbox SET state = 'attempting'")


@pytest.mark.parametrize("arrived", [True, False])
async def test_what_a_crash_may_have_sent_is_asked_for(state: State, clock: Clock, arrived: bool) -> None:
    """Nobody is told that they may see it twice, because they don't."""
    adapter = AskedAdapter(arrived={"t/0": "77"} if arrived else {})
    began = clock()
    await cut_off(state, clock, adapter)
    outbox = outbox_of(state, clock, adapter)
    assert await outbox.recover(nobody) == 1
    await outbox.idle()
    assert adapter.asked == [("t/0", began)]
    assert [sent.text for sent in adapter.sent] == ([] if arrived else ["one"])
    assert REPEATED not in [sent.text for sent in adapter.sent]
    row = await state.row("SELECT state, message_id FROM outbox")
    assert row == ("sent", "77" if arrived else adapter.sent[0].message_id)


async def test_a_second_crash_is_no_reason_to_give_it_up(state: State, clock: Clock) -> None:
    adapter = AskedAdapter()
    await cut_off(state, clock, adapter)
    for number in range(3):
        await outbox_of(state, clock, adapter, owner=f"hub{number}").recover(nobody)
        async with state.transaction() as db:
            await db.execute("UPDATE outbox SET state = 'attempting', owner = 'dead'")
    outbox = outbox_of(state, clock, adapter)
    await outbox.recover(nobody)
    await outbox.idle()
    assert await states(state) == ["sent"]
    assert [sent.text for sent in adapter.sent][-1:] == ["one"]


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_lost_answer_is_settled(state: State, clock: Clock, arrived: bool) -> None:
    """G-DLV-11: and what waits behind it keeps its place."""
    adapter = AskedAdapter(faults=[Ambiguous("no answer")], arrived={"t/0": "77"} if arrived else {})
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", parts("one", "two"))
    await outbox.idle()
    assert [sent.text for sent in adapter.sent] == (["two"] if arrived else ["one", "two"])
    assert await states(state) == ["sent", "sent"]


async def test_as_long_as_that_can_t_be_asked_it_is_not_sent(state: State, clock: Clock) -> None:
    adapter = AskedAdapter(ask_faults=[Unreachable("away")] * 3, arrived={"t/0": "77"})
    await cut_off(state, clock, adapter)
    waits = Waits()
    outbox = outbox_of(state, clock, adapter, waits)
    await outbox.recover(nobody)
    await outbox.idle()
    assert (adapter.sent, await states(state), len(waits.seconds)) == ([], ["sent"], 3)


async def test_a_part_that_is_sent_for_the_first_time_is_not_asked_for(state: State, clock: Clock) -> None:
    adapter = AskedAdapter(faults=[Unreachable("away")])
    outbox = outbox_of(state, clock, adapter)
    await outbox.put("t", parts("one"))
    await outbox.idle()
    assert (adapter.asked, [sent.text for sent in adapter.sent]) == ([], ["one"])


async def test_the_newest_message_of_each_chat(state: State, clock: Clock) -> None:
    """Answered or not; a pressed button has an id of its own that no platform knows."""
    inbox = inbox_of(state, clock)
    garden = Address("telegram", "telegram", "8", "group")
    elsewhere = Address("telegram", "work", "9", "group")
    for message in (said("1"), said("2"), said(f"{PRESS}3"), said("30", address=garden), said("4", address=elsewhere)):
        await inbox.put(message, "s")
    item = await claimed(inbox)
    await inbox.done(item, [])
    assert await inbox.newest("telegram", "telegram") == {CHAT.chat: "2", "8": "30"}
    assert await inbox.newest("telegram", "nobody") == {}


async def test_when_a_platform_was_heard_survives_a_restart(state: State, clock: Clock) -> None:
    adapter = FakeAdapter()
    board = HealthBoard(state, [adapter], clock)
    assert await board.heard_at("fake", "fake") is None
    adapter.health = Health("connected", heard_at=clock())
    await board.refresh()
    await board.stopped()
    again = HealthBoard(state, [FakeAdapter()], clock)
    await again.refresh()
    assert await again.heard_at("fake", "fake") == clock()


async def test_where_the_platform_refuses_to_tell_it_is_sent_once_more_and_that_is_said(
    state: State, clock: Clock
) -> None:
    """A missing right to read the history must lose no answer; and a third copy is never sent."""
    adapter = AskedAdapter(ask_faults=[Rejected("no right to read here")] * 2)
    await cut_off(state, clock, adapter)
    outbox = outbox_of(state, clock, adapter)
    await outbox.recover(nobody)
    await outbox.idle()
    assert [sent.text for sent in adapter.sent] == [REPEATED, "one"]
    async with state.transaction() as db:  # it dies again, before the answer to its call is known
        await db.execute(
            "UPDATE outbox SET state = 'attempting', owner = 'dead', message_id = NULL, body = ? WHERE part = 0",
            (PART.dump_json(parts("one")[0]).decode(),),
        )
    after = outbox_of(state, clock, adapter, owner="after")
    await after.recover(nobody)
    await after.idle()
    assert [sent.text for sent in adapter.sent] == [REPEATED, "one", UNSURE]


async def test_an_answer_is_not_shown_where_it_can_not_be_told_whether_it_is_already(
    state: State, clock: Clock
) -> None:
    """Growing beside a fragment from before the crash it would be there twice; it comes whole, with a word ahead."""
    adapter = AskedAdapter(ask_faults=[Rejected("no right to read here")])
    inbox = inbox_of(state, clock, "hub")
    await inbox.put(said("1", "s"), "s")
    item = await claimed(inbox, "s")
    async with state.transaction() as db:
        await db.execute("UPDATE inbox SET tries = 2")
    assert await outbox_of(state, clock, adapter).previews.show(item.turn, 0, parts("one")[0]) is None
    assert adapter.sent == []
