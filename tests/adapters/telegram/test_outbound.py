"""What we send: limits, replies and threads, what each failure means, and files that are fetched.

What Markdown becomes is in tests/adapters/golden and test_properties, files that are sent in test_files.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.errors import AdapterError, Ambiguous, AuthFailed, ChatMoved, RateLimited, Rejected, Unreachable
from adapters.markdown import parse
from adapters.message import Address, Part
from adapters.telegram import TelegramAdapter, check_token
from adapters.telegram.entities import rendered
from adapters.text import FormattedText, Span
from tests.adapters.telegram.conftest import settings_for
from tests.fakes.telegram_api import ANN, TOKEN, Fault, TelegramApi

Json = dict[str, Any]
ANN_CHAT = Address("telegram", "main", "7", "direct")


@pytest.fixture(autouse=True)
def _ann_has_written(api: TelegramApi) -> None:
    api.message(ANN, text="hello")


def part(markdown: str, address: Address = ANN_CHAT, reply_to: str | None = None) -> Part:
    return Part(address, parse(markdown), reply_to)


def entity(kind: str, offset: int, length: int, **more: str) -> Json:
    return {"type": kind, "offset": offset, "length": length} | more


async def test_marks_inside_code_are_left_out(api: TelegramApi, adapter: TelegramAdapter) -> None:
    spans = (Span("pre", 0, 4, "py"), Span("bold", 1, 2), Span("link", 2, 3, "https://ex.test"))
    await adapter.send(Part(ANN_CHAT, FormattedText("code", spans)), "key")
    assert api.sent[0].entities == [entity("pre", 0, 4, language="py")]


def test_of_too_many_entities_links_stay() -> None:
    text = parse("*a* " * 120 + "[l](https://ex.test)")
    _, entities = rendered(text)
    assert len(entities) == 100
    assert entities[-1].url == "https://ex.test"
    assert [e.offset for e in entities] == sorted(e.offset for e in entities)


async def test_a_reply_in_a_topic(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """G-RTE-07"""
    forum = api.group(topics=[12])
    asked = api.message(ANN, forum, text="?")["message_id"]
    topic = Address("telegram", "main", str(forum.id), "group", thread="12")
    await adapter.send(part("here", topic, str(asked)), "1")
    general = Address("telegram", "main", str(forum.id), "group")
    await adapter.send(part("there", general, "4711"), "2")
    assert [(sent.thread, sent.reply_to) for sent in api.sent] == [(12, asked), (None, None)]
    with pytest.raises(Rejected, match="message thread not found"):
        await adapter.send(part("x", Address("telegram", "main", str(forum.id), "group", thread="99")), "3")


async def test_the_longest_message_and_one_more(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """G-SPL-01"""
    longest = FormattedText("🎩" * 2048)
    assert adapter.measure(longest) == adapter.capabilities.text_limit
    await adapter.send(Part(ANN_CHAT, longest), "1")
    with pytest.raises(Rejected, match="message is too long"):
        await adapter.send(Part(ANN_CHAT, FormattedText("🎩" * 2048 + "x")), "2")
    assert len(api.sent) == 1


async def test_a_blank_message_is_no_call(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """G-SPL-06"""
    with pytest.raises(Rejected, match="blank"):
        await adapter.send(Part(ANN_CHAT, FormattedText(" \n")), "1")
    assert not api.calls


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        (Fault(400, "Bad Request: chat not found"), Rejected, "chat not found"),
        (Fault(400, "Bad Request: chat not found"), Rejected, "somebody has to write to it"),
        (Fault(400, "Bad Request: TOPIC_CLOSED"), Rejected, "open the topic again"),
        (Fault(400, "Bad Request: not enough rights to send text messages to the chat"), Rejected, "permissions"),
        (Fault(403, "Forbidden: bot was blocked by the user"), Rejected, "once they unblock it"),
        (Fault(403, "Forbidden: bot was kicked from the supergroup chat"), Rejected, "add it to the chat again"),
        (Fault(400, "Bad Request: upgraded", migrate_to_chat_id=-1007), ChatMoved, "the chat is now -1007"),
        (Fault(404, "Not Found"), Rejected, "404"),
        (Fault(413, "Request Entity Too Large"), Rejected, "413"),
        (Fault(401, "Unauthorized"), AuthFailed, "BotFather"),
        (Fault(500, "Internal Server Error"), Unreachable, "500"),
        (Fault(502, body=b"<html>Bad Gateway</html>"), Unreachable, "502: Bad Gateway"),
        (Fault(504, body=b""), Ambiguous, "504"),
        (Fault(200, body=b"<html>log in</html>"), Ambiguous, "could not be read"),
        (Fault(200, body=b'{"ok":true,"result":{}}'), Ambiguous, "odd"),
        (Fault(400, "Bad Request: nope", as_http=200), Rejected, "nope"),
        (Fault(drop=True), Ambiguous, "no answer from 127.0.0.1"),
    ],
)
async def test_each_failure_is_what_it_means(
    api: TelegramApi, adapter: TelegramAdapter, fault: Fault, error: type[AdapterError], says: str
) -> None:
    """G-FMT-08: an ``ok: false`` in a 200 is a failure."""
    api.fail("sendMessage", fault)
    with pytest.raises(error, match=says) as caught:
        await adapter.send(part("x"), "key")
    assert getattr(caught.value, "formatting", False) is False
    assert len(api.called("sendMessage")) == 1
    await adapter.send(part("the next one works"), "key")


async def test_a_chat_that_moved_is_named(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """G-RTE-26"""
    old = api.group(-42)
    new = api.upgrade(old, -10042)
    with pytest.raises(ChatMoved) as caught:
        await adapter.send(part("x", Address("telegram", "main", "-42", "group")), "key")
    assert (caught.value.to_chat, api.sent) == (str(new.id), [])


@pytest.mark.parametrize(
    "description",
    [
        "Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 3",
        "Bad Request: entity URL 'x' is invalid: Wrong HTTP URL",
        "Bad Request: ENTITY_TEXT_INVALID",
    ],
)
async def test_refused_formatting_can_go_as_plain_text(
    api: TelegramApi, adapter: TelegramAdapter, description: str
) -> None:
    """G-FMT-07"""
    api.fail("sendMessage", Fault(400, description))
    with pytest.raises(Rejected) as caught:
        await adapter.send(part("**x**"), "key")
    assert caught.value.formatting


@pytest.mark.parametrize(
    "fault", [Fault(429, "Too Many Requests", retry_after=7), Fault(429, retry_after=7, as_http=200)]
)
async def test_a_flood_says_how_long_to_wait(api: TelegramApi, adapter: TelegramAdapter, fault: Fault) -> None:
    api.fail("sendMessage", fault)
    with pytest.raises(RateLimited) as caught:
        await adapter.send(part("x"), "key")
    assert (caught.value.retry_after, caught.value.may_retry) == (7, True)


async def test_a_lost_answer_is_ambiguous_and_no_connection_is_not(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """G-DLV-11"""
    api.fail("sendMessage", Fault(drop=True, after=True))
    with pytest.raises(Ambiguous) as lost:
        await adapter.send(part("x"), "key")
    assert [sent.text for sent in api.sent] == ["x"]
    await api.stop()
    with pytest.raises(Unreachable) as refused:
        await adapter.send(part("x"), "key")
    assert (lost.value.may_retry, refused.value.may_retry) == (False, True)


async def test_an_answer_that_is_too_late_is_ambiguous(api: TelegramApi) -> None:
    """G-DLV-11"""
    adapter = TelegramAdapter("main", settings_for(api, answer_seconds=0.1))
    api.fail("sendMessage", Fault(after=True, delay=30))
    with pytest.raises(Ambiguous, match="ReadTimeout"):
        await adapter.send(part("x"), "key")
    assert len(api.sent) == 1
    await adapter.close()


async def test_a_cancelled_send_leaves_the_adapter_usable(api: TelegramApi, adapter: TelegramAdapter) -> None:
    api.fail("sendMessage", Fault(delay=30))
    send = asyncio.create_task(adapter.send(part("x"), "key"))
    await api.wait_called("sendMessage")
    send.cancel()
    with pytest.raises(asyncio.CancelledError):
        await send
    await adapter.send(part("y"), "key")
    assert [sent.text for sent in api.sent] == ["y"]


async def test_a_file_comes_in_pieces_up_to_the_limit(api: TelegramApi, adapter: TelegramAdapter) -> None:
    data = bytes(range(256)) * 1000
    api.add_file("F", data)
    assert b"".join([piece async for piece in adapter.fetch("F", len(data))]) == data
    with pytest.raises(Rejected, match="larger than 1000 bytes"):
        [piece async for piece in adapter.fetch("F", 1000)]
    with pytest.raises(Rejected, match="wrong file_id"):
        [piece async for piece in adapter.fetch("gone", 1000)]
    api.add_file("huge", bytes((20 << 20) + 1))
    with pytest.raises(Rejected, match="files of up to 20 MB"):
        [piece async for piece in adapter.fetch("huge", 1 << 30)]


async def test_a_file_larger_than_it_was_said_to_be_is_refused(api: TelegramApi, adapter: TelegramAdapter) -> None:
    api.add_file("F", b"x" * 5000)
    api.fail("getFile", Fault(200, body=b'{"ok":true,"result":{"file_id":"F","file_unique_id":"u","file_path":"d/F"}}'))
    with pytest.raises(Rejected, match="larger than 1000 bytes"):
        [piece async for piece in adapter.fetch("F", 1000)]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b'{"ok":true,"result":{"file_id":"F","file_unique_id":"u","file_path":"d/gone"}}', Rejected),
        (b'{"ok":true,"result":{"file_id":"F","file_unique_id":"u"}}', Rejected),
    ],
)
async def test_a_file_that_is_not_there(
    api: TelegramApi, adapter: TelegramAdapter, answer: bytes, error: type[AdapterError]
) -> None:
    api.fail("getFile", Fault(200, body=answer))
    with pytest.raises(error):
        [piece async for piece in adapter.fetch("F", 1000)]


async def test_who_a_token_belongs_to(api: TelegramApi) -> None:
    identity = await check_token(settings_for(api))
    assert (identity.id, identity.username, identity.name) == ("123456789", "limpet_bot", "Limpet")
    assert identity.link == "https://t.me/limpet_bot"
    assert (identity.can_join_groups, identity.can_read_all_group_messages) == (True, False)


@pytest.mark.parametrize(
    ("token", "says"),
    [
        (TOKEN[:-3] + "abc", "401"),
        ("123456789:short-abc", "404"),
        ("no token at all-abc", "doesn't look like one"),
        ("123:abc", "too short to show"),
    ],
)
async def test_a_wrong_token_is_told_apart_by_its_end(api: TelegramApi, token: str, says: str) -> None:
    with pytest.raises(AuthFailed, match=says) as caught:
        await check_token(settings_for(api, token))
    assert token[4:] not in str(caught.value)
    assert "BotFather" in str(caught.value)
    assert len(token) < 12 or "ending in …abc" in str(caught.value)


async def test_no_network_is_not_a_wrong_token(api: TelegramApi) -> None:
    await api.stop()
    with pytest.raises(Unreachable, match=r"no answer from 127\.0\.0\.1"):
        await check_token(settings_for(api))
