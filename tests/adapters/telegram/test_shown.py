"""What is shown besides new messages: edits and how often, drafts, buttons, reactions."""

from __future__ import annotations

import pytest

from adapters.adapter import Drafter, Menu, Reactor
from adapters.errors import RateLimited, Rejected
from adapters.markdown import parse
from adapters.message import Address, Button, Part
from adapters.telegram import TelegramAdapter
from adapters.text import FormattedText
from tests.adapters.work import Clock
from tests.fakes.telegram_api import ANN, Fault, TelegramApi

ANN_CHAT = Address("telegram", "main", "7", "direct")
GROUP = Address("telegram", "main", "-1001", "group")
TOPIC = Address("telegram", "main", "-1001", "group", thread="12")


@pytest.fixture(autouse=True)
def _chats(api: TelegramApi) -> None:
    api.message(ANN, text="hello")
    api.group(topics=[12])


def part(markdown: str, address: Address = ANN_CHAT, *buttons: Button) -> Part:
    return Part(address, parse(markdown), buttons=(buttons,) if buttons else ())


async def sent(adapter: TelegramAdapter, part: Part) -> str:
    receipt = await adapter.send(part, "key")
    assert receipt.message_id
    return receipt.message_id


def test_it_can_what_the_hub_may_ask_for(adapter: TelegramAdapter) -> None:
    assert isinstance(adapter, Drafter)
    assert isinstance(adapter, Reactor)
    assert isinstance(adapter, Menu)
    assert dict(adapter.capabilities.edit_seconds) == {"direct": 1.0, "group": 3.0, "channel": 3.0}


# Edits --------------------------------------------------------------------------------------------------------------


async def test_an_edit_shows_the_new_text(api: TelegramApi, adapter: TelegramAdapter) -> None:
    message = await sent(adapter, part("one"))
    await adapter.edit(part("**two** 👋"), message)
    await adapter.edit(part("**two** 👋"), message)
    assert api.sent[0].texts == ["one", "two 👋"]
    assert api.sent[0].entities == [{"type": "bold", "offset": 0, "length": 3}]


async def test_a_message_that_is_gone_is_said_to_be(api: TelegramApi, adapter: TelegramAdapter) -> None:
    message = await sent(adapter, part("one"))
    theirs = str(api.says("mine"))
    api.delete(api.sent[0])
    for number in (message, theirs, "999"):
        with pytest.raises(Rejected) as caught:
            await adapter.edit(part("two"), number)
        assert caught.value.gone
        assert not caught.value.formatting


@pytest.mark.parametrize(
    ("description", "gone", "formatting"),
    [
        ("Bad Request: message to edit not found", True, False),
        ("Bad Request: message can't be edited", True, False),
        ("Bad Request: MESSAGE_ID_INVALID", True, False),
        ("Bad Request: MESSAGE_EDIT_TIME_EXPIRED", True, False),
        ("Bad Request: chat not found", False, False),
        ("Bad Request: can't parse entities: unexpected end", False, True),
        ("Forbidden: bot was kicked from the supergroup chat", False, False),
    ],
)
async def test_why_an_edit_was_refused(
    api: TelegramApi, adapter: TelegramAdapter, description: str, gone: bool, formatting: bool
) -> None:
    message = await sent(adapter, part("one"))
    api.fail("editMessageText", Fault(400, description))
    with pytest.raises(Rejected) as caught:
        await adapter.edit(part("two"), message)
    assert (caught.value.gone, caught.value.formatting) == (gone, formatting)
    assert description.partition(": ")[2] in str(caught.value)


async def test_only_an_edit_can_miss_its_message(api: TelegramApi, adapter: TelegramAdapter) -> None:
    api.fail("sendMessage", Fault(400, "Bad Request: MESSAGE_ID_INVALID"))
    with pytest.raises(Rejected) as caught:
        await adapter.send(part("one"), "key")
    assert not caught.value.gone


async def test_a_blank_edit_is_no_call(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """G-SPL-06"""
    message = await sent(adapter, part("one"))
    with pytest.raises(Rejected, match="blank"):
        await adapter.edit(Part(ANN_CHAT, FormattedText(" \n")), message)
    assert not api.called("editMessageText")


# How often ----------------------------------------------------------------------------------------------------------


async def test_edits_leave_a_group_room_for_messages(api: TelegramApi, adapter: TelegramAdapter, clock: Clock) -> None:
    """Telegram takes twenty messages a minute in a group and counts edits as messages, in whatever topic."""
    messages = [await sent(adapter, part("one", TOPIC)), await sent(adapter, part("one", GROUP))]
    edits, waits = 0, []
    for second in range(60):
        for index, message in enumerate(messages):
            try:
                await adapter.edit(part(f"{second}", (TOPIC, GROUP)[index]), message)
                edits += 1
            except RateLimited as error:
                waits.append(error.retry_after)
        clock.seconds += 1
    assert 0 < min(waits) <= max(waits) <= 4
    assert 14 <= edits <= 17, "the messages themselves count too"
    assert len(api.called("editMessageText")) == edits, "what has to wait costs no call"
    for _ in range(3):
        await adapter.send(part("an answer"), "key")
    clock.seconds += 4
    await adapter.edit(part("another chat is free", ANN_CHAT), str(api.sent[-1].id))


async def test_messages_never_wait_for_edits(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """Whether a message may be sent is for Telegram to say."""
    for number in range(30):
        await adapter.send(part(f"{number}", GROUP), "key")
    assert len(api.sent) == 30
    with pytest.raises(RateLimited) as caught:
        await adapter.edit(part("edit", GROUP), str(api.sent[-1].id))
    assert caught.value.retry_after == 60, "that is how far back Telegram looks"


async def test_a_direct_chat_has_no_such_budget(api: TelegramApi, adapter: TelegramAdapter) -> None:
    message = await sent(adapter, part("one"))
    for number in range(30):
        await adapter.edit(part(f"{number}"), message)
    assert len(api.sent[0].texts) == 31


async def test_no_edit_goes_out_while_telegram_wants_us_to_wait(
    api: TelegramApi, adapter: TelegramAdapter, clock: Clock
) -> None:
    """G-DLV-12: no storm of refused calls, in whatever kind of chat, and whichever call it was that was refused."""
    message = await sent(adapter, part("one"))
    api.fail("editMessageText", Fault(429, retry_after=33))
    for _ in range(5):
        with pytest.raises(RateLimited) as caught:
            await adapter.edit(part("two"), message)
        assert caught.value.retry_after == 33
    await adapter.draft(part("three"), "turn")
    assert (len(api.called("editMessageText")), api.drafts) == (1, [])
    clock.seconds += 33
    await adapter.edit(part("two"), message)
    api.fail("sendMessage", Fault(429, retry_after=10))
    with pytest.raises(RateLimited):
        await adapter.send(part("four"), "key")
    with pytest.raises(RateLimited):
        await adapter.edit(part("five"), message)
    assert api.sent[0].texts == ["one", "two"]
    await adapter.send(part("four"), "key")


# Drafts -------------------------------------------------------------------------------------------------------------


async def test_a_draft_is_shown_as_it_grows(api: TelegramApi, adapter: TelegramAdapter) -> None:
    assert adapter.drafts(ANN_CHAT) == 0.5
    for turn, text in (("turn-1", "I"), ("turn-1", "I **am**"), ("turn-2", ""), ("turn-2", "x" * 4096)):
        await adapter.draft(part(text), turn)
    assert [(chat, text) for chat, _, text in api.drafts] == [(7, "I"), (7, "I am"), (7, ""), (7, "x" * 4096)]
    numbers = [number for _, number, _ in api.drafts]
    assert numbers[0] == numbers[1] != numbers[2] == numbers[3]
    assert all(0 < number < 1 << 31 for number in numbers)
    assert api.sent == []


async def test_a_draft_in_a_topic_of_a_private_chat(api: TelegramApi, adapter: TelegramAdapter) -> None:
    api._chats[7].topics.add(33)
    await adapter.draft(part("I", Address("telegram", "main", "7", "direct", thread="33")), "turn")
    assert api.called("sendMessageDraft")[0]["message_thread_id"] == "33"


@pytest.mark.parametrize("address", [GROUP, TOPIC, Address("telegram", "main", "-1009", "channel")])
async def test_drafts_are_for_private_chats(api: TelegramApi, adapter: TelegramAdapter, address: Address) -> None:
    assert adapter.drafts(address) is None
    await adapter.draft(part("I", address), "turn")
    assert not api.calls


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (Fault(429, retry_after=5), 5),
        (Fault(400, "Bad Request: TEXTDRAFT_PEER_INVALID"), 60),
        (Fault(400, "Bad Request: can't parse entities"), 0),
        (Fault(502, body=b"<html>"), 0),
        (Fault(drop=True), 0),
    ],
)
async def test_a_draft_that_fails_is_nobodys_trouble(
    api: TelegramApi, adapter: TelegramAdapter, clock: Clock, fault: Fault, seconds: int
) -> None:
    """``seconds``: how long the chat is left alone."""
    api.fail("sendMessageDraft", fault)
    await adapter.draft(part("one"), "turn")
    await adapter.draft(part("two"), "turn")
    assert [text for _, _, text in api.drafts] == ([] if seconds else ["two"])
    clock.seconds += seconds
    await adapter.draft(part("three"), "turn")
    assert api.drafts[-1][2] == "three"


async def test_a_server_without_drafts_is_asked_once(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """A Bot API server of one's own may be older than drafts: then answers are streamed by edits."""
    del api.methods["sendmessagedraft"]
    for _ in range(3):
        await adapter.draft(part("one"), "turn")
    assert len(api.called("sendMessageDraft")) == 1
    assert adapter.drafts(ANN_CHAT) is None


# Buttons ------------------------------------------------------------------------------------------------------------


async def test_buttons_stay_with_an_edit_that_has_them_and_go_with_one_that_has_none(
    api: TelegramApi, adapter: TelegramAdapter
) -> None:
    yes, no = Button("Yes", "yes"), Button("No", "é" * 32)
    message = await sent(adapter, part("Shall I?", ANN_CHAT, yes, no))
    assert api.sent[0].buttons == [[("Yes", "yes"), ("No", "é" * 32)]]
    await adapter.edit(part("Shall I really?", ANN_CHAT, yes), message)
    assert api.sent[0].buttons == [[("Yes", "yes")]]
    await adapter.edit(part("I did."), message)
    assert api.sent[0].buttons == []
    await adapter.edit(part("I did.", ANN_CHAT, no), message)
    assert api.sent[0].texts[-1] == "I did."
    assert api.sent[0].buttons == [[("No", "é" * 32)]]


@pytest.mark.parametrize("button", [Button("Yes", "é" * 32 + "x"), Button("Yes", ""), Button(" ", "yes")])
async def test_a_button_that_telegram_takes_no_call_is_made_for(
    api: TelegramApi, adapter: TelegramAdapter, button: Button
) -> None:
    with pytest.raises(Rejected, match="wants a label and 1 to 64 bytes"):
        await adapter.send(part("Shall I?", ANN_CHAT, button), "key")
    assert not api.calls


# Reactions and typing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("emoji", "shown"), [("👍", "👍"), ("❤️", "❤"), ("❤", "❤"), ("❤️‍🔥", "❤️‍🔥"), ("❤‍🔥", "❤️‍🔥"), ("🤷‍♂", "🤷‍♂️")]
)
async def test_a_reaction_is_put_and_taken_away(
    api: TelegramApi, adapter: TelegramAdapter, emoji: str, shown: str
) -> None:
    """With or without the character that asks for colour: Telegram takes each in one form only."""
    message = api.says("hello")
    await adapter.react(ANN_CHAT, str(message), emoji)
    assert api.reactions == {(7, message): shown}
    await adapter.react(ANN_CHAT, str(message), "")
    assert api.reactions == {(7, message): ""}


async def test_a_reaction_that_fails_is_nobodys_trouble(api: TelegramApi, adapter: TelegramAdapter) -> None:
    message = str(api.says("hello"))
    await adapter.react(ANN_CHAT, message, "🦫")
    assert not api.calls, "Telegram knows no beaver"
    await adapter.react(ANN_CHAT, "999", "👍")
    await api.stop()
    await adapter.react(ANN_CHAT, message, "👍")
    assert api.reactions == {}


async def test_typing_is_shown_and_never_fails(api: TelegramApi, adapter: TelegramAdapter) -> None:
    await adapter.typing(ANN_CHAT)
    assert api.actions == [(7, "typing")]
    await adapter.typing(Address("telegram", "main", "4711", "direct"))
    await api.stop()
    await adapter.typing(ANN_CHAT)
