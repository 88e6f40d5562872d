"""The durable inbox: deduplicated, in order, owned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.message import Address, Attachment, Edited, Message, Part, Quote, Sender
from adapters.text import FormattedText
from bot.inbox import MOST_TRIES, Item, LeftOut, SqliteInbox, set_aside
from bot.joining import ONE_BY_ONE
from bot.outbox import SqliteOutbox
from bot.queueing import Queue
from bot.state import State
from tests.bot.conftest import Clock, people_of

CHAT = Address("telegram", "telegram", "7", "direct")


def said(message_id: str, text: str = "hi", address: Address = CHAT) -> Message:
    return Message(message_id, address, Sender("7", "Ann"), text, datetime(2026, 11, 30, tzinfo=UTC))


def inbox_of(state: State, clock: Clock, owner: str = "me", queue: Queue = ONE_BY_ONE) -> SqliteInbox:
    async def queued(address: Address, session: str) -> Queue:
        return queue

    outbox = SqliteOutbox(state, {}, owner, people=people_of(state, clock), clock=clock)
    return SqliteInbox(state, outbox, owner, clock, queue=queued)


async def claimed(inbox: SqliteInbox, session: str = "s") -> Item:
    item = await inbox.claim(session)
    assert item is not None
    return item


async def test_a_message_survives_as_it_was(state: State, clock: Clock) -> None:
    inbox = inbox_of(state, clock)
    message = Message(
        "1",
        Address("telegram", "work", "-100", "group", parent="-100", thread="5", private=True),
        Sender("7", "Ann 🎩", aliases=("8",), roles=("admin",)),
        "text \u2028 with\nlines",
        datetime(2026, 11, 30, 23, 59, 59, 123456, tzinfo=UTC),
        attachments=(Attachment("image", "ref", "a.png", 3, "image/png"),),
        quote=Quote("quoted", "Bob"),
        reply_to="0",
        forwarded_from="Carl",
        mentions_me=True,
    )
    assert await inbox.put(message, "s") is True
    item = await inbox.claim("s")
    assert item is not None
    assert item.message == message


async def test_a_replay_is_a_no_op_before_and_after_the_answer(state: State, clock: Clock) -> None:
    """G-DLV-08: what was answered is known after a restart; G-DLV-06: answered once in total."""
    inbox = inbox_of(state, clock)
    assert await inbox.put(said("7"), "s") is True
    assert await inbox.put(said("8"), "s") is True
    assert await inbox.put(said("8"), "s") is False
    for expected in ("7", "8"):
        item = await inbox.claim("s")
        assert item is not None
        assert item.message.id == expected
        await inbox.done(item, ())
    again = inbox_of(state, clock, owner="after a restart")
    assert await again.put(said("7"), "s") is False
    assert await again.adopt([("telegram", "telegram")], lambda owner: False) == []
    assert await again.claim("s") is None


async def test_the_same_id_in_another_chat_is_another_message(state: State, clock: Clock) -> None:
    inbox = inbox_of(state, clock)
    assert await inbox.put(said("1"), "s")
    assert await inbox.put(said("1", address=Address("telegram", "telegram", "8", "direct")), "t")
    assert await inbox.put(said("1", address=Address("telegram", "other", "7", "direct")), "u")


async def test_claims_count_tries_and_keep_the_order(state: State, clock: Clock) -> None:
    inbox = inbox_of(state, clock)
    for number in range(3):
        await inbox.put(said(str(number)), "s")
    first = await inbox.claim("s")
    again = await inbox.claim("s")
    assert first is not None
    assert again is not None
    assert (first.message.id, first.tries) == ("0", 1)
    assert (again.message.id, again.turn, again.tries) == ("0", first.turn, 2)


async def test_a_dead_processes_messages_are_adopted_and_a_live_ones_are_not_touched(
    state: State, clock: Clock
) -> None:
    dead, live, mine = (inbox_of(state, clock, owner) for owner in ("dead", "live", "mine"))
    await dead.put(said("1"), "s")
    await live.put(said("2"), "t")
    await dead.put(said("3", address=Address("telegram", "another", "7", "direct")), "u")
    assert await mine.claim("s") is None
    assert await mine.adopt([("telegram", "telegram")], lambda owner: owner == "live") == ["s"]
    item = await mine.claim("s")
    assert item is not None
    assert item.message.id == "1"
    assert await mine.claim("t") is None
    assert await mine.claim("u") is None, "an account that does not run here"


async def test_a_message_that_moves_waits_there_by_when_it_came(state: State, clock: Clock) -> None:
    """As if no turn had been begun on it, and durably: whoever takes over finds it there."""
    dead, inbox = inbox_of(state, clock, "dead"), inbox_of(state, clock, "mine")
    for number, session in enumerate(["old", "new", "old"]):
        await dead.put(said(str(number)), session)
    for _ in range(2):
        item = await dead.claim("old")
        assert item is not None
        assert await dead.move(item, "new") is True
    assert await dead.claim("old") is None
    assert await inbox.adopt([("telegram", "telegram")], lambda owner: False) == ["new"]
    for expected in ("0", "1", "2"):
        item = await inbox.claim("new")
        assert item is not None
        assert (item.message.id, item.tries, item.session) == (expected, 1, "new")
        assert await inbox.done(item, ()) is True


async def test_what_has_ended_moves_nowhere(state: State, clock: Clock) -> None:
    inbox = inbox_of(state, clock)
    await inbox.put(said("1"), "old")
    item = await inbox.claim("old")
    assert item is not None
    assert [one.turn for one in await inbox.give_up("old", None)] == [item.turn]
    assert await inbox.move(item, "new") is False
    assert await inbox.claim("new") is None


async def test_what_was_given_up_is_answered_no_more(state: State, clock: Clock) -> None:
    """Also where a turn on it had begun: whoever ends it first has the last word."""
    inbox = inbox_of(state, clock)
    for number, sender in enumerate(["7", "8", "7"]):
        await inbox.put(replace(said(str(number)), sender=Sender(sender)), "s")
    item = await inbox.claim("s")
    assert item is not None
    assert [given_up.message.id for given_up in await inbox.give_up("s", "7")] == ["0", "2"]
    assert await inbox.give_up("s", "7") == []
    assert await inbox.done(item, [Part(CHAT, FormattedText("too late"))]) is False
    assert await state.rows("SELECT * FROM outbox") == []
    left = await inbox.claim("s")
    assert left is not None
    assert left.message.sender.id == "8"
    assert await inbox.done(left, ()) is True
    assert await inbox.give_up("s", None) == []
    assert await state.rows("SELECT DISTINCT event FROM inbox") == [("",)]


async def test_an_answered_message_leaves_no_text_behind(state: State, clock: Clock, tmp_path: Path) -> None:
    """The transcript is the only copy of what was said."""
    inbox = inbox_of(state, clock)
    await inbox.put(said("1", "my canary"), "s")
    item = await inbox.claim("s")
    assert item is not None
    await inbox.done(item, [Part(CHAT, FormattedText("ok"))])
    rows = await state.rows("SELECT event FROM inbox")
    assert rows == [("",)]
    assert await state.rows("SELECT turn, part, state FROM outbox") == [(item.turn, 0, "pending")]


COLLECTS = Queue("collect", most=3)


async def test_what_is_collected_stays_together_through_a_crash(state: State, clock: Clock) -> None:
    """What comes after the turn began is not in it: the transcript has the question as it was."""
    dead = inbox_of(state, clock, "dead", COLLECTS)
    for number in range(3):
        await dead.put(said(str(number), f"word {number}"), "s")
    item = await claimed(dead)
    assert [one.message.text for one in (item, *item.further)] == ["word 0", "word 1", "word 2"]
    inbox = inbox_of(state, clock, "mine", COLLECTS)
    assert await inbox.adopt([("telegram", "telegram")], lambda owner: False) == ["s"]
    await inbox.put(said("3", "later"), "s")
    again = await claimed(inbox)
    assert (again.turn, again.further, again.tries) == (item.turn, item.further, 2)
    assert await inbox.done(again, ())
    assert (await claimed(inbox)).message.text == "later"


async def test_a_turn_that_was_cut_off_stays_begun(state: State, clock: Clock) -> None:
    """It gathers nothing more, since its transcript has the question; and no try is used up."""
    inbox = inbox_of(state, clock, queue=COLLECTS)
    await inbox.put(said("0"), "s")
    for _ in range(9):
        item = await claimed(inbox)
        await inbox.put_back(item)
        await inbox.put(said("later"), "s")
    again = await claimed(inbox)
    assert again.further == ()
    assert again.tries == 1


async def test_what_is_left_out_is_known_to_the_next_answer_also_after_a_crash(state: State, clock: Clock) -> None:
    dead = inbox_of(state, clock, "dead", COLLECTS)
    for number in range(5):
        await dead.put(said(str(number), f"word {number}"), "s")
    assert [item.message.id for item in await dead.crowd_out("s", 3)] == ["0", "1"]
    assert await dead.put(said("0"), "s") is False, "a replay is a no-op all the same"
    inbox = inbox_of(state, clock, "mine", COLLECTS)
    await inbox.adopt([("telegram", "telegram")], lambda owner: False)
    item = await claimed(inbox)
    left_out = await inbox.left_out(item)
    assert (left_out.own, left_out.others) == (("word 0", "word 1"), ())
    assert await inbox.left_out(item, left_out.last) == LeftOut()
    assert await inbox.done(item, (), left_out=left_out.last)
    assert await inbox.left_out(item) == LeftOut()
    assert await state.rows("SELECT DISTINCT event FROM inbox WHERE done") == [("",)]


async def test_what_a_turn_was_begun_on_is_never_left_out(state: State, clock: Clock) -> None:
    inbox = inbox_of(state, clock)
    for number in range(5):
        await inbox.put(said(str(number)), "s")
    item = await claimed(inbox)
    for one in (await inbox.following(item))[:2]:
        await inbox.enter(one)
    assert [left.message.id for left in await inbox.crowd_out("s", 1)] == ["3"]
    assert [one.message.id for one in await inbox.following(item)] == ["1", "2", "4"]


async def test_whoever_says_stop_hears_no_more_of_what_was_left_out(state: State, clock: Clock) -> None:
    inbox = inbox_of(state, clock)
    for number, sender in enumerate(["7", "7", "8", "8"]):
        await inbox.put(replace(said(str(number), sender), sender=Sender(sender)), "s")
    assert len(await inbox.crowd_out("s", 2)) == 2
    await inbox.give_up("s", "7")
    left_out = await inbox.left_out(await claimed(inbox))
    assert (left_out.own, left_out.others) == (("8",), ())


async def test_what_was_taken_back_is_not_named_among_what_was_left_out(state: State, clock: Clock) -> None:
    inbox = inbox_of(state, clock)
    for number in range(3):
        await inbox.put(said(str(number), "my canary"), "s")
    await inbox.crowd_out("s", 2)
    await inbox.retract(CHAT, "0")
    assert await inbox.left_out(await claimed(inbox)) == LeftOut()
    assert await state.row("SELECT event FROM inbox WHERE message = '0'") == ("",)


async def test_whoever_moves_takes_along_what_was_left_out(state: State, clock: Clock) -> None:
    inbox = inbox_of(state, clock)
    for number in range(3):
        await inbox.put(said(str(number)), "old")
    await inbox.crowd_out("old", 2)
    await inbox.move(await claimed(inbox, "old"), "new")
    assert len((await inbox.left_out(await claimed(inbox, "new"))).own) == 1


async def test_what_failed_three_times_is_known_afterwards(state: State, clock: Clock) -> None:
    inbox = inbox_of(state, clock)
    for number in range(2):
        await inbox.put(said(str(number)), "s")
    for _ in range(MOST_TRIES + 1):
        item = await claimed(inbox)
    assert await set_aside(state, clock()) == [], "it was not answered yet"
    await inbox.done(item, ())
    await inbox.done(await claimed(inbox), ())
    (found,) = await set_aside(state, clock())
    assert (found.turn, found.channel, found.chat, found.session) == (item.turn, "telegram", "7", "s")
    assert found.received_at == clock().isoformat()
    clock.move(days=1)
    assert await set_aside(state, clock()) == []


@pytest.mark.parametrize(
    ("by", "may"), [(Sender("7"), True), (Sender("9", aliases=("7",)), True), (Sender("8"), False), (None, True)]
)
async def test_only_who_said_it_changes_it_or_takes_it_back(
    state: State, clock: Clock, by: Sender | None, may: bool
) -> None:
    """Where people send their changes themselves (WhatsApp), anybody in a group can name the owner's message in one."""
    inbox = inbox_of(state, clock)
    await inbox.put(said("1", "what is for dinner?"), "s")
    if by is not None:
        assert await inbox.amend(Edited("1", CHAT, by, "/allow telegram:8", clock())) is may
    assert await inbox.retract(CHAT, "1", by) is may
    assert (await inbox.claim("s") is None) is may
    if not may:
        assert await state.row("SELECT event LIKE '%dinner%' FROM inbox") == (1,)
