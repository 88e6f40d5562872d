"""What is sent: to whom it may be, what a lost answer means, how fast, and what is only shown."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from adapters.errors import AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.markdown import parse
from adapters.message import Button, Part, Pressed
from adapters.whatsapp import WhatsAppAdapter
from adapters.whatsapp.refusals import of_send
from tests.adapters.whatsapp.conftest import IN_GROUP, Open, Wall, part, place
from tests.adapters.work import Clock, Naps, Received, running, until
from tests.fakes.whatsapp_events import ANN, BOB, BOT, GROUP
from tests.fakes.whatsapp_seam import Fault, Seam, ann

BUTTONS = ((Button("Yes", "approve 1"), Button("No", "deny 1")),)


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ("websocket not connected", Unreachable, "can't be reached"),
        ("failed to get device list: info query timed out", Unreachable, "can't be reached"),
        (
            "failed to send usync query: websocket disconnected before info query returned response",
            Unreachable,
            "usync",
        ),
        ("client is nil", Unreachable, "can't be reached"),
        ("timed out waiting for message send response", Ambiguous, "nobody knows"),
        ("websocket disconnected before message send returned response", Ambiguous, "nobody knows"),
        ("failed to send message node: write tcp: broken pipe", Ambiguous, "nobody knows"),
        ("context deadline exceeded", Ambiguous, "nobody knows"),
        ("something that no release said before", Ambiguous, "no release"),
        ("server returned error 429", RateLimited, "429"),
        ("failed to get device list: info query returned status 429: rate-overlimit", RateLimited, "no more messages"),
        ("server returned error 479", RateLimited, "479"),
        ("server returned error 503", Unreachable, "503"),
        ("server returned error 401", Rejected, "administrators"),
        ("server returned error 463", Rejected, "they have to write first"),
        ("server returned error 404", Rejected, "no such chat"),
        ("server returned error 400", Rejected, "refused"),
        ("failed to get group members: you're not participating in that group", Rejected, "add it there"),
        ("failed to get group members: that group does not exist", Rejected, "no such group"),
        ("can't send message to unknown server", Rejected, "no chat"),
        ("the store doesn't contain a device JID", AuthFailed, "limpet channels login whatsapp"),
        ("info query returned status 401: not-authorized", AuthFailed, "limpet channels login whatsapp"),
    ],
)
def test_the_words_of_the_library_are_an_error(said: str, error: type[AdapterError], words: str) -> None:
    """G-DLV-11: sending again is safe only where nothing of the message can have left."""
    found = of_send(said)
    assert type(found) is error
    assert words in str(found)


async def test_a_link_that_is_no_more_is_told_with_the_mend_for_this_account(
    seam: Seam, adapter: WhatsAppAdapter
) -> None:
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        seam.says("hello")
        await until(lambda: received.texts == ["hello"])
        seam.faults.append(Fault("the store doesn't contain a device JID"))
        with pytest.raises(AuthFailed, match=r"limpet channels login main$"):
            await adapter.send(part(), "key")


def test_an_error_names_nobody() -> None:
    assert "15550000002" not in str(of_send("no LID found for 15550000002@s.whatsapp.net from server"))


# To whom --------------------------------------------------------------------------------------------------------------


async def test_only_who_wrote_first_is_written_to(seam: Seam, adapter: WhatsAppAdapter, opened: Open) -> None:
    """Accounts are banned for writing to strangers; it holds after a restart, and for both ids of a person."""
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        seam.says("in a group", **IN_GROUP)
        await until(lambda: received.texts == ["in a group"])
        with pytest.raises(Rejected, match="ask them to write once, or set write_first"):
            await adapter.send(part(), "key")
        await adapter.send(part("in the group", place(GROUP)), "key")
        await adapter.send(part("to oneself", place(f"{BOT['lid']}@lid")), "key")
        seam.says("hello")
        await until(lambda: received.texts[-1] == "hello")
        await adapter.send(part("one"), "key")
    await adapter.close()
    again = opened()
    async with running(again, received.accept):
        await until(lambda: again.health.state == "connected")
        await again.send(part("two"), "key")
        await again.send(part("three", place(f"+{ANN['phone']}")), "key")
        with pytest.raises(Rejected, match="write_first"):
            await again.send(part("no", place(f"+{BOB['phone']}")), "key")
    assert [sent.text for sent in seam.sent] == ["in the group", "to oneself", "one", "two", "three"]
    await again.close()
    bold = opened(write_first=True)
    async with running(bold, received.accept):
        await until(lambda: bold.health.state == "connected")
        await bold.send(part("first", place(f"+{BOB['phone']}")), "key")
    assert seam.sent[-1].chat == f"{BOB['phone']}@s.whatsapp.net"


@pytest.mark.parametrize("chat", ["", "ann", "status@broadcast", "12@newsletter", "+12", "100000000000002"])
async def test_what_is_no_chat_is_refused(seam: Seam, opened: Open, chat: str) -> None:
    """G-RTE-12, G-RTE-21"""
    adapter = opened(write_first=True)
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        with pytest.raises(Rejected, match="is no chat of WhatsApp"):
            await adapter.send(part("x", place(chat or "nobody")), "key")
    assert seam.sent == []


# How ------------------------------------------------------------------------------------------------------------------


async def test_an_answer_quotes_what_it_answers(seam: Seam, adapter: WhatsAppAdapter) -> None:
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        direct = seam.says("is it?")
        grouped = seam.says("and here?", **IN_GROUP)
        await until(lambda: len(received.texts) == 2)
        await adapter.send(part("yes", reply_to=direct, question="is it?"), "1")
        await adapter.send(part("here too", place(GROUP), reply_to=grouped), "2")
        await adapter.send(part("whose?", place(GROUP), reply_to="3AUNKNOWN", question="what?"), "3")
    quotes = [sent.body.extendedTextMessage.contextInfo for sent in seam.sent]
    assert [(quote.stanzaID, quote.participant, quote.quotedMessage.conversation) for quote in quotes] == [
        (direct, ann(), "is it?"),
        (grouped, ann(), "and here?"),
        ("", "", ""),  # it would be shown as somebody else's
    ]


async def test_only_people_it_knows_are_called_and_only_in_groups(seam: Seam, adapter: WhatsAppAdapter) -> None:
    """G-FMT-13: nobody is called by what somebody made it say."""
    received = Received()
    text = f"@+{ANN['phone']} @+{BOB['phone']} @everyone"
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        seam.says("hello")
        await until(lambda: received.texts == ["hello"])
        await adapter.send(part(text), "1")
        with pytest.raises(Rejected, match="nobody wrote there"):  # whoever adds it to a group makes it write to nobody
            await adapter.send(part(text, place(GROUP)), "2")
        seam.reports_message({"conversation": "hello all"}, **IN_GROUP)
        await until(lambda: received.texts == ["hello", "hello all"])
        await adapter.send(part(text, place(GROUP)), "2")
    direct, grouped = (sent.body for sent in seam.sent)
    assert direct.conversation == text
    assert list(grouped.extendedTextMessage.contextInfo.mentionedJID) == [ann()]
    assert grouped.extendedTextMessage.text == f"@{ANN['lid']} @+{BOB['phone']} @everyone"


async def test_choices_are_known_after_a_restart(seam: Seam, adapter: WhatsAppAdapter, opened: Open) -> None:
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        seam.says("may I?")
        await until(lambda: received.texts == ["may I?"])
        asked = (await adapter.send(Part(place(), parse("Well?"), buttons=BUTTONS), "key")).message_id
    await adapter.close()
    again = opened()
    async with running(again, received.accept):
        seam.says("2.")
        await until(lambda: bool(received.of(Pressed)))
    (pressed,) = received.of(Pressed)
    assert (pressed.message_id, pressed.data) == (asked, "deny 1")
    await again.close()
    async with running(opened(), received.accept):
        seam.says("1")  # an answer to something else: what was asked has its answer
        await until(lambda: received.texts == ["may I?", "1"])


async def test_our_own_words_are_known_after_a_restart(seam: Seam, adapter: WhatsAppAdapter, opened: Open) -> None:
    """G-DLV-14: in the chat with oneself an echo may come late; only what the owner says there is heard."""
    own = f"{BOT['lid']}@lid"
    to_oneself = {
        "chat": own,
        "sender": f"{BOT['lid']}:0@lid",
        "alt": f"{BOT['phone']}@s.whatsapp.net",
        "from_me": True,
    }
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        seam.says("hi", **to_oneself)
        await until(lambda: received.texts == ["hi"])

        def comes_back(message: str) -> None:
            seam.says("answer", id=message, **to_oneself)
            seam.all_reported()

        seam.faults.append(Fault(meanwhile=comes_back))
        answer = (await adapter.send(part("answer", place(own)), "key")).message_id
    await adapter.close()
    again = opened()
    async with running(again, received.accept):
        seam.says("answer", id=answer, **to_oneself)
        seam.says("thanks", **to_oneself)
        await until(lambda: "thanks" in received.texts)
    assert list(dict.fromkeys(received.texts)) == ["hi", "thanks"]


async def test_it_writes_at_the_speed_of_a_person(seam: Seam, opened: Open, naps: Naps, clock: Clock) -> None:
    adapter = opened(write_first=True, messages_a_minute=3)
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        await adapter.send(part("x"), "0")
        await adapter.send(part("x" * 240), "1")
        await adapter.send(part("x" * 4000), "2")
        assert naps.taken == pytest.approx([0.8, 2.8, 6.0], abs=0.02)
        with pytest.raises(RateLimited) as caught:
            await adapter.send(part("too much"), "3")
        assert caught.value.retry_after == pytest.approx(60, abs=1)
        clock.seconds += 61
        await adapter.send(part("later"), "3")
    assert len(seam.sent) == 4


# Edits ----------------------------------------------------------------------------------------------------------------


async def test_nothing_is_changed_unless_that_is_set(seam: Seam, opened: Open) -> None:
    adapter = opened(write_first=True)
    assert not adapter.capabilities.edits
    assert adapter.capabilities.edit_seconds == {}
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        sent = await adapter.send(part("before"), "key")
        with pytest.raises(Rejected, match="stream_edits"):
            await adapter.edit(part("after"), sent.message_id or "")


async def test_a_message_is_changed_for_a_quarter_of_an_hour(seam: Seam, opened: Open, wall: Wall) -> None:
    """WhatsApp answers a later change as if it were one, and nobody sees it."""
    adapter = opened(write_first=True, stream_edits=True)
    assert adapter.capabilities.edit_seconds["direct"] >= 2
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        sent = (await adapter.send(part("before"), "key")).message_id or ""
        wall.ahead = timedelta(minutes=10)
        await adapter.edit(part("after"), sent)
        wall.ahead = timedelta(minutes=14, seconds=30)
        with pytest.raises(Rejected) as caught:
            await adapter.edit(part("too late"), sent)
        assert caught.value.gone
        with pytest.raises(Rejected) as caught:
            await adapter.edit(part("nobody's"), "3EB0UNKNOWN")
        assert caught.value.gone
    assert [(sent.text, sent.edits) for sent in seam.sent] == [("after", 1)]


async def test_a_change_takes_its_choices_away(seam: Seam, opened: Open) -> None:
    adapter = opened(write_first=True, stream_edits=True)
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        sent = (await adapter.send(part("Well?", buttons=BUTTONS), "key")).message_id or ""
        await adapter.edit(part("Done."), sent)
        seam.says("1")
        await until(lambda: received.texts == ["1"])
    assert received.of(Pressed) == []


# What is only shown ---------------------------------------------------------------------------------------------------


async def test_what_is_answered_is_marked_as_read_and_nothing_else(seam: Seam, adapter: WhatsAppAdapter) -> None:
    """A stranger's message stays unread, as it would be without us."""
    bob = {"chat": f"{BOB['lid']}@lid", "sender": f"{BOB['lid']}:1@lid", "alt": f"{BOB['phone']}@s.whatsapp.net"}
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        ids = (seam.says("one"), seam.says("two"))
        seam.says("a stranger", **bob)
        await until(lambda: len(received.texts) == 3)
        await adapter.typing(place())
        await adapter.send(part(), "key")
        await until(lambda: bool(seam.read))
    assert seam.read == [(ann(), ann(), ids)]
    assert seam.composed == [ann()]


async def test_read_receipts_can_be_switched_off(seam: Seam, opened: Open) -> None:
    adapter = opened(read_receipts=False)
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        seam.says("one")
        await until(lambda: len(received.texts) == 1)
        await adapter.send(part(), "key")
        await asyncio.sleep(0.02)
    assert seam.read == []


async def test_signs_are_put_on_what_was_said(seam: Seam, adapter: WhatsAppAdapter) -> None:
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        direct, grouped = seam.says("one"), seam.says("two", **IN_GROUP)
        await until(lambda: len(received.texts) == 2)
        await adapter.react(place(), direct, "👀")
        await adapter.react(place(GROUP), grouped, "👀")
        await adapter.react(place(GROUP), "3AUNKNOWN", "👀")  # nobody knows whose it is
        await adapter.react(place(), direct, "")
    assert seam.reactions == [(direct, "👀"), (grouped, "👀"), (direct, "")]


async def test_a_sign_takes_the_place_of_no_answer(seam: Seam, opened: Open) -> None:
    """It counts as a message of the pace, and is left out where it would have to wait."""
    adapter = opened(messages_a_minute=2)
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        said = seam.says("one")
        await until(lambda: received.texts == ["one"])
        await adapter.react(place(), said, "👀")
        await adapter.send(part(), "key")
        await adapter.react(place(), said, "🎉")
        await adapter.react(place(), said, "")
    assert seam.reactions == [(said, "👀"), (said, "")]


async def test_an_own_message_is_taken_back_and_a_group_left(seam: Seam, opened: Open) -> None:
    adapter = opened(write_first=True)
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        sent = (await adapter.send(part("wrong"), "key")).message_id or ""
        await adapter.erase(place(), "3ASOMEBODYS")
        assert [one.text for one in seam.sent] == ["wrong"]
        await adapter.erase(place(), sent)
        assert seam.sent == []
        await adapter.leave(place())
        await adapter.leave(place(GROUP))
    assert seam.left == [GROUP]
