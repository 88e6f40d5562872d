"""What Telegram reports, as the neutral events that the hub sees: the real library parses what a real server sends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.message import Address, Attachment, Edited, Inbound, Membership, Message, Moved, Quote, Sender
from tests.adapters.telegram.conftest import Receive
from tests.fakes.telegram_api import ANN, BOB, Chat, TelegramApi, User

Json = dict[str, Any]
AT = 1_796_000_000
RIGHTS = {
    "is_anonymous": False,
    "can_be_edited": True,
    **{
        f"can_{what}": True
        for what in (
            *("manage_chat", "manage_video_chats", "manage_topics", "restrict_members", "promote_members"),
            *("change_info", "invite_users", "pin_messages", "edit_tag", "react_to_messages", "add_web_page_previews"),
            *("delete_messages", "post_stories", "edit_stories", "delete_stories", "send_messages", "send_audios"),
            *("send_documents", "send_photos", "send_videos", "send_video_notes", "send_voice_notes", "send_polls"),
            "send_other_messages",
        )
    },
}
"""Every right a member may have: the library wants each named."""

WHEN = datetime.fromtimestamp(AT, UTC)
PHOTO = [
    {"file_id": "small", "file_unique_id": "s", "width": 90, "height": 90, "file_size": 10},
    {"file_id": "large", "file_unique_id": "l", "width": 900, "height": 900, "file_size": 1000},
]


def only(events: list[Inbound]) -> Message:
    (event,) = events
    assert isinstance(event, Message)
    return event


async def test_a_direct_message(api: TelegramApi, receive: Receive) -> None:
    number = api.says("hello", date=AT)
    assert only(await receive()) == Message(
        id=str(number),
        address=Address("telegram", "main", "7", "direct"),
        sender=Sender("7", "Ann"),
        text="hello",
        sent_at=WHEN,
    )


@pytest.mark.parametrize(
    ("text", "entities", "mentioned", "shown"),
    [
        ("👋 @limpet_bot", [("mention", 3, 11)], True, "👋"),
        ("@Limpet_Bot: what is it?", [("mention", 0, 11)], True, "what is it?"),
        ("hey @limpet_bot what", [("mention", 4, 11)], True, "hey what"),
        ("@limpet_bot hi", [("bold", 0, 11), ("mention", 0, 11)], True, "hi"),
        ("/new@limpet_bot now", [("bot_command", 0, 15)], True, "/new now"),
        ("hi", [("mention", 0, 100)], False, "hi"),
        ("hi", [("mention", -1, 2)], False, "hi"),
        ("👋hi", [("mention", 1, 2)], False, "👋hi"),
        ("foo@limpet_bot.example", [("email", 0, 22)], False, "foo@limpet_bot.example"),
        ("@limpet_botx hi", [("mention", 0, 12)], False, "@limpet_botx hi"),
        ("use @limpet_bot", [("code", 4, 11)], False, "use `@limpet_bot`"),
        ("say @limpet_bot", [], False, "say @limpet_bot"),
    ],
)
async def test_only_entities_mention_us(
    api: TelegramApi, receive: Receive, text: str, entities: list[tuple[str, int, int]], mentioned: bool, shown: str
) -> None:
    """G-RTE-01, G-RTE-02, G-RTE-03"""
    marks = [{"type": kind, "offset": offset, "length": length} for kind, offset, length in entities]
    api.says(text, chat=api.group(), entities=marks)
    message = only(await receive())
    assert (message.mentions_me, message.text) == (mentioned, shown)


async def test_a_mention_by_name_of_a_bot_without_one(api: TelegramApi, receive: Receive) -> None:
    mark = {"type": "text_mention", "offset": 0, "length": 6, "user": api.me.json()}
    api.says("Limpet hi", chat=api.group(), entities=[mark])
    message = only(await receive())
    assert (message.mentions_me, message.text) == (True, "hi")


async def test_forwarded_words_mention_nobody(api: TelegramApi, receive: Receive) -> None:
    """G-RTE-02"""
    origin = {"type": "user", "date": AT, "sender_user": BOB.json()}
    api.says("@limpet_bot obey", chat=api.group(), forward_origin=origin)
    message = only(await receive())
    assert (message.mentions_me, message.text, message.forwarded_from) == (False, "@limpet_bot obey", "Bob")


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ({"type": "hidden_user", "sender_user_name": "Someone"}, "Someone"),
        ({"type": "chat", "sender_chat": {"id": -5, "type": "group", "title": "Club"}}, "Club"),
        ({"type": "channel", "message_id": 1, "chat": {"id": -6, "type": "channel", "title": "News"}}, "News"),
    ],
)
async def test_forwards_name_their_origin(api: TelegramApi, receive: Receive, origin: Json, name: str) -> None:
    api.says("old words", forward_origin=origin | {"date": AT})
    assert only(await receive()).forwarded_from == name


async def test_a_command_for_another_bot_is_ignored(api: TelegramApi, receive: Receive) -> None:
    """G-RTE-06"""
    group = api.group()
    api.says("/new@otherbot", chat=group)
    api.says("/new@limpet_bot", chat=group)
    api.says("/new", chat=group)
    assert [(e.text, e.mentions_me) for e in await receive() if isinstance(e, Message)] == [
        ("/new", True),
        ("/new", False),
    ]


async def test_a_reply_to_us_is_meant_for_us(api: TelegramApi, receive: Receive) -> None:
    """G-RTE-05"""
    group = api.group()
    ours = api.message(api.me, group, text="Shall I?")["message_id"]
    api.says("yes", chat=group, reply_to=ours)
    photo = api.message(ANN, group, photo=PHOTO)
    photo["reply_to_message"] = api.message(api.me, group, text="Show me")
    api.push(message=photo)
    first, second = await receive()
    assert isinstance(first, Message)
    assert isinstance(second, Message)
    assert (first.mentions_me, first.reply_to, first.quote) == (True, str(ours), None)
    assert (second.mentions_me, second.text) == (True, "")


async def test_a_reply_to_us_that_calls_another_bot_is_not(api: TelegramApi, receive: Receive) -> None:
    """G-RTE-04"""
    group = api.group()
    ours = api.message(api.me, group, text="Done.")["message_id"]
    api.says("@otherbot take this", chat=group, reply_to=ours)
    api.says("@limpet_bot and @otherbot", chat=group, reply_to=ours)
    assert [e.mentions_me for e in await receive() if isinstance(e, Message)] == [False, True]


async def test_a_reply_brings_what_it_answers(api: TelegramApi, receive: Receive) -> None:
    group = api.group()
    theirs = api.says("The door is *blue* and the gate is red", user=BOB, chat=group)
    api.says("is it?", chat=group, reply_to=theirs)
    api.says("this?", chat=group, reply_to=theirs, quote={"text": "the gate is red", "position": 20})
    elsewhere = {"origin": {"type": "hidden_user", "sender_user_name": "Eve", "date": AT}}
    api.says("that?", chat=group, quote={"text": "from far", "position": 0}, external_reply=elsewhere)
    _, whole, part, far = await receive()
    assert isinstance(whole, Message)
    assert isinstance(part, Message)
    assert isinstance(far, Message)
    assert whole.quote == Quote("The door is *blue* and the gate is red", "Bob")
    assert part.quote == Quote("the gate is red", "Bob")
    assert far.quote == Quote("from far", "Eve")
    assert (whole.reply_to, whole.mentions_me) == (str(theirs), False)


async def test_topics(api: TelegramApi, receive: Receive) -> None:
    """G-RTE-07"""
    forum = api.group(topics=[12])
    root = api.message(api.me, forum, forum_topic_created={"name": "Plants", "icon_color": 7322096})
    api.says("in a topic", chat=forum, topic=12, reply_to_message=root)
    api.says("general", chat=forum, topic=1)
    api.says("a reply in general", chat=forum, message_thread_id=557)
    events = [event for event in await receive() if isinstance(event, Message)]
    assert [event.address.thread for event in events] == ["12", None, None]
    assert {event.address.chat for event in events} == {"-1001"}
    assert (events[0].reply_to, events[0].mentions_me) == (None, False)


async def test_shared_senders(api: TelegramApi, receive: Receive) -> None:
    group = api.group()
    stand_in = User(1087968824, "Group", "GroupAnonymousBot", is_bot=True)
    api.says("from an anonymous admin", user=stand_in, chat=group, sender_chat=group.json())
    channel = Chat(-1009, "channel", "News")
    post = api.message(ANN, channel, text="a post", sender_chat=channel.json())
    del post["from"]
    api.push(channel_post=post)
    api.says("from a bot", user=User(99, "Other", "otherbot", is_bot=True), chat=group)
    admin, posted, bot = [event for event in await receive() if isinstance(event, Message)]
    assert admin.sender == Sender("-1001", "Garden", is_shared=True)
    assert posted.sender == Sender("-1009", "News", is_shared=True)
    assert posted.address == Address("telegram", "main", "-1009", "channel")
    assert bot.sender == Sender("99", "Other", is_bot=True)


@pytest.mark.parametrize(
    ("fields", "attachment"),
    [
        ({"photo": PHOTO}, Attachment("image", "large", "", 1000, "image/jpeg")),
        (
            {"voice": {"file_id": "v", "file_unique_id": "v", "duration": 1, "mime_type": "audio/ogg", "file_size": 9}},
            Attachment("voice", "v", "", 9, "audio/ogg"),
        ),
        (
            {"document": {"file_id": "d", "file_unique_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf"}},
            Attachment("document", "d", "a.pdf", None, "application/pdf"),
        ),
        (
            {
                "animation": {"file_id": "g", "file_unique_id": "g", "width": 1, "height": 1, "duration": 1},
                "document": {"file_id": "g", "file_unique_id": "g"},
            },
            Attachment("video", "g"),
        ),
        (
            {"audio": {"file_id": "m", "file_unique_id": "m", "duration": 1, "file_name": "song.mp3"}},
            Attachment("audio", "m", "song.mp3"),
        ),
        (
            {"video_note": {"file_id": "n", "file_unique_id": "n", "length": 1, "duration": 1}},
            Attachment("video", "n", media_type="video/mp4"),
        ),
        (
            {
                "sticker": {
                    "file_id": "s",
                    "file_unique_id": "s",
                    "type": "regular",
                    "width": 1,
                    "height": 1,
                    "is_animated": False,
                    "is_video": False,
                }
            },
            Attachment("sticker", "s"),
        ),
    ],
)
async def test_attachments(api: TelegramApi, receive: Receive, fields: Json, attachment: Attachment) -> None:
    message = api.message(ANN, caption="look @limpet_bot", **fields)
    message["caption_entities"] = [{"type": "mention", "offset": 5, "length": 11}]
    api.push(message=message)
    event = only(await receive())
    assert event.attachments == (attachment,)
    assert (event.text, event.mentions_me) == ("look", True)


@pytest.mark.parametrize(
    ("text", "entities", "markdown"),
    [
        ("a b", [("bold", 0, 1, {}), ("italic", 2, 1, {})], "**a** _b_"),
        ("🎩 x", [("strikethrough", 3, 1, {})], "🎩 ~~x~~"),
        ("bold all", [("bold", 0, 8, {}), ("italic", 5, 3, {})], "**bold _all_**"),
        ("x y", [("bold", 0, 2, {})], "**x** y"),
        ("run ls", [("code", 4, 2, {})], "run `ls`"),
        ("a`b", [("code", 0, 3, {})], "``a`b``"),
        ("x = 1", [("pre", 0, 5, {"language": "python"})], "```python\nx = 1\n```"),
        ("see: x = 1 ok", [("pre", 5, 5, {})], "see: \n```\nx = 1\n```\n ok"),
        ("here", [("text_link", 0, 4, {"url": "https://ex.test/a_b"})], "[here](https://ex.test/a_b)"),
        ("one\ntwo\nend", [("blockquote", 0, 7, {}), ("bold", 4, 3, {})], "> one\n> **two**\nend"),
        ("secret", [("spoiler", 0, 6, {})], "secret"),
        ("abcdef", [("bold", 0, 4, {}), ("italic", 2, 4, {})], "**abcd**ef"),
        ("snake_case *raw*", [], "snake_case *raw*"),
    ],
)
async def test_formatting_is_read_as_markdown(
    api: TelegramApi, receive: Receive, text: str, entities: list[tuple[str, int, int, Json]], markdown: str
) -> None:
    marks = [{"type": kind, "offset": offset, "length": length} | more for kind, offset, length, more in entities]
    api.says(text, entities=marks)
    assert only(await receive()).text == markdown


async def test_an_edit(api: TelegramApi, receive: Receive) -> None:
    edited = api.message(ANN, text="@limpet_bot new words", date=AT - 60, edit_date=AT)
    edited["entities"] = [{"type": "mention", "offset": 0, "length": 11}]
    api.push(edited_message=edited)
    moving = api.message(ANN, location={"latitude": 1.0, "longitude": 2.0}, edit_date=AT)
    api.push(edited_message=moving)
    address = Address("telegram", "main", "7", "direct")
    assert await receive() == [Edited(str(edited["message_id"]), address, Sender("7", "Ann"), "new words", WHEN)]


async def test_a_group_that_becomes_a_supergroup(api: TelegramApi, receive: Receive) -> None:
    """G-RTE-26: both chats tell of it, and neither message is one to answer."""
    old, new = Chat(-42, "group", "Garden"), Chat(-10042, "supergroup", "Garden")
    api.push(message=api.message(ANN, old, migrate_to_chat_id=-10042, date=AT))
    api.push(message=api.message(ANN, new, migrate_from_chat_id=-42, date=AT))
    assert await receive() == [Moved(Address("telegram", "main", "-42", "group"), "-10042", WHEN)] * 2


@pytest.mark.parametrize(
    ("old", "new", "present"),
    [
        ({"status": "left"}, {"status": "member"}, True),
        ({"status": "member"}, {"status": "kicked", "until_date": 0}, False),
        ({"status": "administrator"}, {"status": "member"}, None),
        ({"status": "left"}, {"status": "restricted", "is_member": True, "until_date": 0}, True),
        ({"status": "member"}, {"status": "restricted", "is_member": False, "until_date": 0}, False),
    ],
)
async def test_membership(api: TelegramApi, receive: Receive, old: Json, new: Json, present: bool | None) -> None:
    change = {
        "chat": api.group().json(),
        "from": ANN.json(),
        "date": AT,
        "old_chat_member": RIGHTS | old | {"user": api.me.json()},
        "new_chat_member": RIGHTS | new | {"user": api.me.json()},
    }
    api.push(my_chat_member=change)
    events = await receive()
    address = Address("telegram", "main", "-1001", "group")
    expected = [] if present is None else [Membership(address, Sender("7", "Ann"), present, WHEN)]
    assert events == expected


async def test_service_messages_say_nothing(
    api: TelegramApi, receive: Receive, caplog: pytest.LogCaptureFixture
) -> None:
    api.push(message=api.message(ANN, api.group(), new_chat_members=[BOB.json()]))
    api.push(message=api.message(ANN, api.group(), new_chat_title="Plants"))
    api.push(something_of_next_year={"id": "1"})
    assert await receive() == []
    assert not caplog.records


async def test_what_is_typed_is_cleaned(api: TelegramApi, receive: Receive) -> None:
    """G-SPL-03"""
    api.says("ok \ud83c end\x07", user=User(7, "A\ud83cnn"))
    message = only(await receive())
    assert (message.text, message.sender.name) == ("ok \ufffd end", "A\ufffdnn")
