"""What Telegram reports, through the real library and real polls; what each kind means is in tests/adapters/golden."""

from __future__ import annotations

from typing import Any

import pytest
import telegram

from adapters.message import Address, Message, Moved, Pressed, Reacted, Sender
from adapters.telegram import TelegramAdapter, content
from tests.adapters.telegram.conftest import Receive
from tests.adapters.work import Received, running
from tests.fakes.telegram_api import ANN, BOB, Sent, TelegramApi, User

Json = dict[str, Any]

CONTENT = {
    *("text", "entities", "caption", "caption_entities", "animation", "audio", "checklist", "contact", "dice"),
    *("document", "game", "giveaway", "giveaway_winners", "invoice", "live_photo", "location", "paid_media"),
    *("passport_data", "photo", "poll", "sticker", "story", "venue", "video", "video_note", "voice", "web_app_data"),
}
"""What a person sends; each has its pair in tests/adapters/golden."""

SERVICE = {
    *("boost_added", "channel_chat_created", "chat_background_set", "chat_owner_changed", "chat_owner_left"),
    *("chat_shared", "checklist_tasks_added", "checklist_tasks_done", "connected_website", "delete_chat_photo"),
    *("direct_message_price_changed", "forum_topic_closed", "forum_topic_created", "forum_topic_edited"),
    *("forum_topic_reopened", "general_forum_topic_hidden", "general_forum_topic_unhidden", "gift"),
    *("gift_upgrade_sent", "giveaway_completed", "giveaway_created", "group_chat_created", "left_chat_member"),
    *("managed_bot_created", "message_auto_delete_timer_changed", "migrate_from_chat_id", "migrate_to_chat_id"),
    *("new_chat_members", "new_chat_photo", "new_chat_title", "paid_message_price_changed", "pinned_message"),
    *("poll_option_added", "poll_option_deleted", "proximity_alert_triggered", "refunded_payment"),
    *("successful_payment", "suggested_post_approval_failed", "suggested_post_approved", "suggested_post_declined"),
    *("suggested_post_paid", "suggested_post_refunded", "supergroup_chat_created", "unique_gift", "users_shared"),
    *("video_chat_ended", "video_chat_participants_invited", "video_chat_scheduled", "video_chat_started"),
    "write_access_allowed",
}
"""What Telegram says of itself."""


def test_every_field_that_the_library_knows_is_one_of_three_kinds() -> None:
    """A new version of the library brings new fields, and somebody has to decide what they are."""
    fields = {name for name in telegram.Message.__slots__ if not name.startswith("_")}
    assert fields - content.ABOUT - CONTENT - SERVICE == set()
    assert content.ABOUT & CONTENT == content.ABOUT & SERVICE == CONTENT & SERVICE == set()


@pytest.mark.parametrize(
    ("text", "cut"),
    [("a" * 3899, False), ("a" * 3900, True), ("a" * 4096, True), ("👋" * 1950, True), ("👋" * 1949, False)],
)
async def test_a_text_that_may_go_on(api: TelegramApi, receive: Receive, text: str, cut: bool) -> None:
    """G-SPL-11: clients cut near 4,096 UTF-16 units, not at it."""
    api.says(text)
    (message,) = await receive()
    assert isinstance(message, Message)
    assert (message.is_cut, len(message.text)) == (cut, len(text))


async def test_a_caption_never_goes_on(api: TelegramApi, receive: Receive) -> None:
    """G-SPL-11"""
    photo = [{"file_id": "p", "file_unique_id": "p", "width": 1, "height": 1}]
    api.push(message=api.message(ANN, photo=photo, caption="x" * 4000))
    (message,) = await receive()
    assert isinstance(message, Message)
    assert not message.is_cut


async def test_what_the_library_cant_read_is_named(
    api: TelegramApi, receive: Receive, caplog: pytest.LogCaptureFixture
) -> None:
    """A field that is missing, or of another type than the library wants, takes no message away."""
    api.push(message=api.message(ANN, poll={"id": "1", "question": "Lunch?"}, has_protected_content=True))
    api.push(channel_post=api.message(ANN, dice="six"))
    events = await receive()
    assert [event.text for event in events if isinstance(event, Message)] == [
        "[something this program can't read: poll]",
        "[something this program can't read: dice]",
    ]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


async def test_service_messages_say_nothing(
    api: TelegramApi, receive: Receive, caplog: pytest.LogCaptureFixture
) -> None:
    """G-RTE-22: neither does a message without anything in it. Each is one line for whoever looks closely."""
    caplog.set_level("DEBUG", "adapters")
    group = api.group()
    for fields in ({"new_chat_members": [BOB.json()]}, {"new_chat_title": "Plants"}, {}):
        api.push(message=api.message(ANN, group, **fields))
    api.push(something_of_next_year={"id": "1"})
    assert await receive() == []
    assert [record.levelname for record in caplog.records if "says nothing" in record.message] == ["DEBUG"] * 4


async def test_a_group_that_becomes_a_supergroup(api: TelegramApi, receive: Receive) -> None:
    """G-RTE-26: both chats tell of it, and neither message is one to answer."""
    api.upgrade(api.group(-42), -10042)
    events = await receive()
    assert [(type(event), event.address.chat) for event in events] == [(Moved, "-42")] * 2


async def test_what_is_typed_is_cleaned(api: TelegramApi, receive: Receive) -> None:
    """G-SPL-03: over the wire a character comes as its two halves."""
    api.says("ok \ud83c\udfa9 \ud83c end\x07", user=User(7, "A\ud83cnn"))
    (message,) = await receive()
    assert isinstance(message, Message)
    assert (message.text, message.sender.name) == ("ok 🎩 \ufffd end", "A\ufffdnn")


async def test_reactions_come_because_they_are_asked_for(api: TelegramApi, receive: Receive) -> None:
    number = api.says("hello")
    api.react(number, "👍")
    api.react(number, "", was="👍")
    _, put, taken = await receive()
    assert isinstance(put, Reacted)
    assert isinstance(taken, Reacted)
    assert (put.id, put.address, put.sender) == (
        str(number),
        Address("telegram", "main", "7", "direct"),
        Sender("7", "Ann"),
    )
    assert (put.emoji, taken.emoji) == ("👍", "")


def with_buttons(api: TelegramApi) -> Sent:
    """A message of ours with a button, as if it had been sent."""
    message = api.message(api.me, api.group(), text="Shall I?")
    sent = Sent(message["message_id"], -1001, ["Shall I?"], [], buttons=[[("Yes", "yes")]])
    api.sent.append(sent)
    return sent


async def test_a_pressed_button_is_stored_and_then_confirmed(api: TelegramApi, adapter: TelegramAdapter) -> None:
    query = api.press(with_buttons(api), "Yes")
    waiting: list[set[str]] = []

    async def accept(event: object) -> None:
        assert isinstance(event, Pressed)
        assert (event.id, event.data, event.message_id) == (query, "yes", str(api.sent[0].id))
        waiting.append(set(api.presses))

    async with running(adapter, accept):
        await api.wait_confirmed()
    assert waiting == [{query}]
    assert api.presses == set()


async def test_a_button_that_could_not_be_stored_still_waits(api: TelegramApi, adapter: TelegramAdapter) -> None:
    query = api.press(with_buttons(api), "Yes")
    received = Received(troubles=[OSError("disk full")])
    async with running(adapter, received.accept):
        await api.wait_confirmed()
    assert [event.id for event in received.events if isinstance(event, Pressed)] == [query]
    assert len(api.called("answerCallbackQuery")) == 1


async def test_a_button_pressed_too_long_ago_holds_up_nothing(
    api: TelegramApi, adapter: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    api.press(with_buttons(api), "Yes")
    api.presses.clear()
    api.push(callback_query={"id": "9", "from": ANN.json(), "chat_instance": "1", "game_short_name": "chess"})
    api.says("hello")
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_confirmed()
    assert received.texts == ["hello"]
    assert [call["callback_query_id"] for call in api.called("answerCallbackQuery")] == ["1", "9"]
    assert not caplog.records
