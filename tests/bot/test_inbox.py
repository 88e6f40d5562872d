"""The durable inbox: deduplicated, in order, owned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from adapters.message import Address, Attachment, Message, Part, Quote, Sender
from adapters.text import FormattedText
from bot.inbox import SqliteInbox
from bot.outbox import SqliteOutbox
from bot.state import State
from tests.bot.conftest import Clock, people_of

CHAT = Address("telegram", "telegram", "7", "direct")


def said(message_id: str, text: str = "hi", address: Address = CHAT) -> Message:
    return Message(message_id, address, Sender("7", "Ann"), text, datetime(2026, 11, 30, tzinfo=UTC))


def inbox_of(state: State, clock: Clock, owner: str = "me") -> SqliteInbox:
    return SqliteInbox(state, SqliteOutbox(state, {}, owner, people=people_of(state, clock), clock=clock), owner, clock)


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
    assert await inbox.give_up("old", None) == [item]
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
