"""What the golden pairs can't show: what is kept between events, what is logged, and events that are all wrong."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import Rejected
from adapters.message import Address, Button, Message, Moved, Pressed, Sender
from adapters.whatsapp import content
from adapters.whatsapp.choices import Choices
from adapters.whatsapp.echoes import Echoes
from adapters.whatsapp.identity import Identities, Jid
from adapters.whatsapp.inbound import Me, Reader
from adapters.whatsapp.library import load
from tests.fakes.whatsapp_events import ANN, BOT, GROUP, event, update

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ME = Me(frozenset({Jid(BOT["phone"], "s.whatsapp.net"), Jid(BOT["lid"], "lid")}), "Limpet", device=7)
SELF = f"{BOT['lid']}@lid"
MEDIA = {"mediaKey": "a2V5", "directPath": "/v/x.enc", "fileSHA256": "c2hh", "fileEncSHA256": "ZW5j", "fileLength": "9"}


def reader() -> Reader:
    return Reader("main", ME, Identities())


def read(own: Reader, message: dict[str, Any] | None, **about: Any) -> Any:
    events = own.events_of(event(update(message, **about)), NOW)
    return events[0] if events else None


def to_oneself(text: str, message: str) -> dict[str, Any]:
    return {
        "message": {"conversation": text},
        "id": message,
        "chat": SELF,
        "sender": SELF,
        "alt": f"{BOT['phone']}@s.whatsapp.net",
        "from_me": True,
    }


# The chat with oneself ------------------------------------------------------------------------------------------------


def test_an_echo_is_dropped_before_and_after_the_send_returned() -> None:
    """G-DLV-14: the person is heard once, and neither of the two echoes."""
    own = reader()
    with own.echoes.sending(SELF, "*answer*"):
        assert read(own, **to_oneself("hi", "3A1")).text == "hi"
        assert read(own, **to_oneself("*answer*", "3EB0R")) is None
        own.echoes.sent(SELF, "3EB0R")
    assert read(own, **to_oneself("*answer*", "3EB0R")) is None
    assert read(own, **to_oneself("*answer*", "3A2")).text == "**answer**"  # a person may say the same


def test_an_echo_counts_in_its_chat_only() -> None:
    echoes = Echoes()
    with echoes.sending("1@lid", "yes"):
        assert not echoes.is_ours("2@lid", "3A1", "yes")
    echoes.sent("1@lid", "3A1")
    assert not echoes.is_ours("2@lid", "3A1", "yes")
    assert not echoes.is_ours("1@lid", "3A2", "yes")  # nothing is being sent any more


def test_only_so_many_sent_messages_are_remembered() -> None:
    echoes = Echoes()
    for number in range(3000):
        echoes.sent("1@lid", str(number))
    assert not echoes.is_ours("1@lid", "0", "")
    assert echoes.is_ours("1@lid", "2999", "")


# Nothing said ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [None, {}, {"conversation": ""}, {"extendedTextMessage": {}}])
def test_an_empty_message_is_one_line_in_the_log(
    message: dict[str, Any] | None, caplog: pytest.LogCaptureFixture
) -> None:
    """G-RTE-22."""
    caplog.set_level(logging.INFO, "adapters.whatsapp.inbound")
    assert read(reader(), message) is None
    assert len(caplog.records) == 1


def test_a_key_before_the_text_takes_no_id_from_it(caplog: pytest.LogCaptureFixture) -> None:
    """The first message of a sender in a group comes twice under one id: without its text, and with it."""
    caplog.set_level(logging.INFO, "adapters.whatsapp.inbound")
    own = reader()
    assert read(own, {"senderKeyDistributionMessage": {"groupID": GROUP}}, chat=GROUP, id="3A1") is None
    assert read(own, {"conversation": "hi"}, chat=GROUP, id="3A1").text == "hi"
    assert not caplog.records


def test_the_number_is_known_when_it_is_not_said_again() -> None:
    """G-RTE-20: learned from an event in a group, used in a direct chat."""
    own = reader()
    read(own, {"conversation": "hi"}, chat=GROUP)
    assert read(own, {"conversation": "hi"}, alt="@").sender.aliases == (f"+{ANN['phone']}",)


def test_who_wrote_under_a_number_moves_once() -> None:
    own = reader()
    phone = f"{ANN['phone']}@s.whatsapp.net"
    assert read(own, {"conversation": "hi"}, chat=phone, sender=phone, alt="@").address.chat == f"+{ANN['phone']}"

    def kinds() -> list[str]:
        return [type(one).__name__ for one in own.events_of(event(update({"conversation": "hi"})), NOW)]

    assert kinds() == kinds() == ["Moved", "Message"], "it may not have been stored"
    own.identities.moved(f"+{ANN['phone']}")
    assert kinds() == ["Message"]


def test_the_chat_with_oneself_moves_as_well() -> None:
    """A link from before hidden ids gets its own later: the talk with oneself goes on."""
    phone = f"{BOT['phone']}@s.whatsapp.net"
    own = replace(reader(), me=replace(ME, jids=frozenset({Jid(BOT["phone"], "s.whatsapp.net")})))
    said: dict[str, Any] = {"message": {"conversation": "hi"}, "chat": phone, "sender": phone, "alt": "@"}
    said["from_me"] = True
    assert read(own, **said, id="3A1").address.chat == f"+{BOT['phone']}"
    later = replace(own, me=ME)
    moved, message = later.events_of(event(update(**said, id="3A2")), NOW)
    assert isinstance(moved, Moved)
    assert (moved.address.chat, moved.to_chat, message.address.chat) == (f"+{BOT['phone']}", SELF, SELF)


# Files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["imageMessage", "audioMessage", "videoMessage", "ptvMessage", "documentMessage", "stickerMessage"]
)
def test_a_file_is_found_again_by_its_ref_alone(kind: str) -> None:
    said = read(reader(), {kind: {**MEDIA, "mimetype": "x/y"}})
    found = content.file_of(said.attachments[0].ref, load().bodies.Message)
    assert (found.own.mediaKey, found.own.directPath, found.own.fileLength) == (b"key", "/v/x.enc", 9)
    assert (found.own.fileSHA256, found.own.fileEncSHA256) == (b"sha", b"enc")
    assert found.kind == ("videoMessage" if kind == "ptvMessage" else kind)  # the library fetches no other


@given(st.one_of(st.text(max_size=40), st.sampled_from(["", "AAAA", "CgJoaQ", "GgA", "!!", "é"])))
def test_what_is_no_ref_is_refused(ref: str) -> None:
    with pytest.raises(Rejected):
        content.file_of(ref, load().bodies.Message)


def test_wrappings_end() -> None:
    """One in another, without end: no more than a few are opened, and it is named as what can't be read."""
    message: dict[str, Any] = {"conversation": "deep"}
    for _ in range(30):
        message = {"ephemeralMessage": {"message": message}}
    assert "can't read" in read(reader(), message).text


BODIES = st.recursive(
    st.sampled_from(
        [
            *({"conversation": text} for text in ("", "hi", "*b*", "~~", "```", "@1555")),
            {"extendedTextMessage": {"text": "hi", "contextInfo": {"mentionedJID": ["", "x", SELF, "@lid"]}}},
            {"extendedTextMessage": {"contextInfo": {"stanzaID": "1", "participant": "?", "quotedMessage": {}}}},
            *({"imageMessage": own} for own in ({}, MEDIA, {**MEDIA, "viewOnce": True}, {"fileLength": str(2**63)})),
            *(
                {"protocolMessage": own}
                for own in ({}, {"type": "REVOKE"}, {"type": "MESSAGE_EDIT", "key": {"ID": "1"}})
            ),
            *({"reactionMessage": own} for own in ({}, {"key": {"ID": "1"}}, {"key": {"participant": "?"}})),
            *({"contactMessage": {"vcard": card}} for card in ("", "TEL", "TEL:", "TEL:\n:TEL")),
            {"locationMessage": {"degreesLatitude": "NaN", "degreesLongitude": "Infinity"}},
            {"messageContextInfo": {}},
        ]
    ),
    lambda inner: st.builds(
        lambda kind, one: {kind: {"message": one}},
        st.sampled_from(["ephemeralMessage", "viewOnceMessage", "editedMessage", "documentWithCaptionMessage"]),
        inner,
    ),
    max_leaves=3,
)


@settings(max_examples=200, deadline=None)
@given(BODIES, st.sampled_from([GROUP, SELF, "1@lid", "@lid", "1@x"]), st.booleans(), st.integers(-(2**63), 2**63 - 1))
def test_no_event_raises(message: dict[str, Any], chat: str, from_me: bool, at: int) -> None:
    for said in reader().events_of(event(update(message, chat=chat, from_me=from_me, at=at)), NOW):
        assert said.address.chat


# Numbers in place of buttons ------------------------------------------------------------------------------------------


DIRECT = Address("whatsapp", "main", "1@lid", "direct")
BUTTONS = ((Button("Yes, do it", "/yes 1"), Button("No", "/no 1")),)
ANSWER = Message("3A1", DIRECT, Sender("1@lid"), "1", NOW)


def offered() -> Choices:
    choices = Choices()
    choices.offer(DIRECT.chat, "3EB0", BUTTONS, NOW - timedelta(minutes=5))
    return choices


@pytest.mark.parametrize("text", ["1", " 1 ", "1.", "1)", "(1)", "#1", "1️⃣", "１", "yes, do it", "Yes, do it!"])
def test_a_number_or_the_words_press_a_button(text: str) -> None:
    pressed = offered().read(replace(ANSWER, text=text))
    assert isinstance(pressed, Pressed)
    assert (pressed.id, pressed.message_id, pressed.data) == ("3A1", "3EB0", "/yes 1")


@pytest.mark.parametrize("text", ["", "3", "0", "12", "1 apple", "11", "yes", "one", "1, 2"])
def test_anything_else_is_said(text: str) -> None:
    said = replace(ANSWER, text=text)
    assert offered().read(said) is said


def test_a_number_answers_once_but_the_same_message_always_does() -> None:
    """A replay of the answer is the same event; the next number answers something else."""
    choices = offered()
    first, again = choices.read(ANSWER), choices.read(ANSWER)
    assert isinstance(first, Pressed)
    assert first == again
    assert isinstance(choices.read(replace(ANSWER, id="3A2")), Message)


def test_who_quotes_the_choices_answers_them_whenever() -> None:
    choices = offered()
    choices.offer(DIRECT.chat, "3EB1", ((Button("Later", "/later"),),), NOW)
    late = replace(ANSWER, sent_at=NOW + timedelta(days=3))
    assert isinstance(choices.read(late), Message)
    pressed = choices.read(replace(late, reply_to="3EB0"))
    assert isinstance(pressed, Pressed)
    assert pressed.data == "/yes 1"


@pytest.mark.parametrize(
    "changed",
    [
        {"reply_to": "3A0"},
        {"forwarded_from": "another chat"},
        {"address": replace(DIRECT, chat="2@lid")},
        {"sent_at": NOW + timedelta(days=2)},
    ],
)
def test_a_number_that_answers_something_else_presses_nothing(changed: dict[str, Any]) -> None:
    assert isinstance(offered().read(replace(ANSWER, **changed)), Message)


def test_in_a_group_a_number_alone_presses_nothing() -> None:
    choices = Choices()
    choices.offer(GROUP, "3EB0", BUTTONS, NOW)
    said = replace(ANSWER, address=Address("whatsapp", "main", GROUP, "group"))
    assert isinstance(choices.read(said), Message)
    assert isinstance(choices.read(replace(said, mentions_me=True)), Pressed)
    assert isinstance(choices.read(replace(said, id="3A2", reply_to="3EB0")), Pressed)


def test_choices_that_were_taken_away_are_gone() -> None:
    choices = offered()
    choices.offer(DIRECT.chat, "3EB0", (), NOW)
    assert isinstance(choices.read(ANSWER), Message)
    assert isinstance(choices.read(replace(ANSWER, reply_to="3EB0")), Message)


def test_only_so_many_choices_are_remembered() -> None:
    choices = offered()
    for number in range(600):
        choices.offer(f"{number}@g.us", "3EB0", BUTTONS, NOW)
    assert isinstance(choices.read(ANSWER), Message)


def test_the_reader_presses() -> None:
    own = reader()
    own.choices.offer(f"{ANN['lid']}@lid", "3EB0", BUTTONS, NOW)
    assert read(own, {"conversation": "2"}).data == "/no 1"


def test_what_a_stranger_calls_a_mention_makes_nothing_longer() -> None:
    """A mention is the sender's own text: it names a person, or it is none."""
    named = {"mentionedJID": [f"12345@{'x' * 10_000}", "12345@g.us"]}
    own = {"extendedTextMessage": {"text": "@12345 " * 1000, "contextInfo": named}}
    assert len(read(reader(), own).text) <= 7000


def test_where_a_file_is_fetched_from_is_not_the_senders_to_say() -> None:
    """An address in the message could lead into the network of whoever runs this."""
    own = {"imageMessage": {**MEDIA, "URL": "http://127.0.0.1:1/secret"}}
    (attachment,) = read(reader(), own).attachments
    kept = content.file_of(attachment.ref, load().bodies.Message).own
    assert (kept.URL, kept.directPath) == ("", "/v/x.enc")
