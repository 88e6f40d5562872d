"""Whether a message is said to us, over the life of a thread. What one event says stands in tests/adapters/golden."""

from __future__ import annotations

import pytest

from adapters.message import Message, Sender, Spoken
from adapters.slack import SlackAdapter
from tests.adapters.slack.conftest import opened, part, place
from tests.adapters.work import Clock, Naps, Received, running, until
from tests.fakes.slack_api import ANN, BOB, OTHER_BOT, Chat, Fault, SlackApi


async def heard(api: SlackApi, received: Received, text: str, chat: Chat, thread: str | None = None) -> Message:
    """Bob says something; what it was handed on as."""
    ts = api.says(text, user=BOB, chat=chat, thread=thread)
    await until(lambda: any(message.id == ts for message in received.messages))
    return next(message for message in received.messages if message.id == ts)


async def test_a_thread_is_followed_once_the_bot_takes_part(api: SlackApi, adapter: SlackAdapter) -> None:
    channel = api.channel()
    received = Received()
    async with running(adapter, received.accept):
        root = api.says("roses or tulips?", chat=channel)
        assert not (await heard(api, received, "roses", channel, root)).mentions_me
        called = await heard(api, received, f"<@{api.me.id}> you?", channel, root)
        assert called.mentions_me
        assert called.context == (Spoken(Sender(ANN.id, "Ann"), "roses or tulips?"),), "what was heard since is known"
        await adapter.send(part("Tulips.", called.address, reply_to=called.id), "key")
        again = await heard(api, received, "why?", channel, root)
        assert (again.mentions_me, again.context, again.address) == (True, (), called.address)
        assert not (await heard(api, received, "<@U0ANN0001> and you?", channel, root)).mentions_me
    assert len(api.called("conversations.replies")) == 1, "a thread is read once"


async def test_a_question_in_a_channel_goes_on_in_its_thread(api: SlackApi, adapter: SlackAdapter) -> None:
    """G-RTE-10: in one session, so that the bot knows what it was asked and said."""
    channel = api.channel()
    received = Received()
    async with running(adapter, received.accept):
        asked = await heard(api, received, f"<@{api.me.id}> why?", channel)
        await adapter.send(part("Because.", asked.address, reply_to=asked.id), "key")
        again = await heard(api, received, "really?", channel, asked.id)
    assert again.address == asked.address
    assert (again.mentions_me, again.context) == (True, ())
    assert api.called("conversations.replies") == []


async def test_a_restart_forgets_no_thread(api: SlackApi, adapter: SlackAdapter, naps: Naps, clock: Clock) -> None:
    channel = api.channel()
    received = Received()
    async with running(adapter, received.accept):
        asked = await heard(api, received, f"<@{api.me.id}> why?", channel)
        await adapter.send(part("Because.", asked.address, reply_to=asked.id), "key")
    later, anew = opened(api, naps, clock), Received()
    async with running(later, anew.accept):
        again = await heard(api, anew, "really?", channel, asked.id)
    await later.close()
    assert (again.mentions_me, again.context) == (True, ()), "we answered there, so the session knows it all"


async def test_what_was_not_stored_is_shown_with_the_next_try(api: SlackApi, adapter: SlackAdapter) -> None:
    channel = api.channel()
    received = Received(troubles=[OSError("disk full")])
    async with running(adapter, received.accept):
        root = api.message("roses or tulips?", chat=channel)["ts"]
        called = await heard(api, received, f"<@{api.me.id}> you?", channel, root)
    assert called.context


@pytest.mark.parametrize("fault", [Fault(status=503), Fault("ratelimited", 429, retry_after=1), Fault(drop=True)])
async def test_a_thread_that_can_not_be_read_now_is_waited_for(
    api: SlackApi, adapter: SlackAdapter, fault: Fault
) -> None:
    """G-RTE-09: a message is never taken for one of the channel, or as not said to us, for want of an answer."""
    channel = api.channel()
    received = Received()
    root = api.message("Time to water.", user=api.me, chat=channel)["ts"]
    api.fail("conversations.replies", fault, fault)
    async with running(adapter, received.accept):
        done = await heard(api, received, "done", channel, root)
    assert (done.mentions_me, done.address) == (True, place(channel, root))
    assert done.context == (Spoken(None, "Time to water."),)


async def test_a_thread_that_may_not_be_read_needs_a_mention(api: SlackApi, adapter: SlackAdapter) -> None:
    channel = api.channel()
    received = Received()
    root = api.message("Time to water.", user=api.me, chat=channel)["ts"]
    api.fail("conversations.replies", Fault("missing_scope", fields=(("needed", "channels:history"),)))
    async with running(adapter, received.accept):
        assert not (await heard(api, received, "done", channel, root)).mentions_me
        assert (await heard(api, received, f"<@{api.me.id}> done", channel, root)).mentions_me


async def test_what_is_shown_of_a_thread_is_bounded(api: SlackApi, adapter: SlackAdapter) -> None:
    """Its first message, which says what it is about, and the newest."""
    channel = api.channel()
    received = Received()
    root = api.message("What to plant?", chat=channel)["ts"]
    for number in range(450):
        api.message(f"{number}: " + "x" * (2000 if number == 449 else 5), user=BOB, chat=channel, thread=root)
    async with running(adapter, received.accept):
        called = await heard(api, received, f"<@{api.me.id}> you?", channel, root)
    first, *_, last = called.context
    assert first.sender is not None
    assert last.sender is not None
    assert (first.sender.name, first.text) == ("Ann", "What to plant?")
    assert (last.sender.name, last.text[:3], len(last.text)) == ("Bob", "449", 501)
    assert len(called.context) == 20
    assert sum(len(spoken.text) for spoken in called.context) < 6000


async def test_what_others_said_above_is_handed_on_with_who_said_it(api: SlackApi, adapter: SlackAdapter) -> None:
    """The hub decides who may be heard, so each message is its sender's, and no quotation of nobody's."""
    channel = api.channel()
    received = Received()
    api.message("the code word is swordfish", user=BOB, chat=channel)
    api.message("Deployed.", user=OTHER_BOT, chat=channel)
    async with running(adapter, received.accept):
        called = await heard(api, received, f"<@{api.me.id}> what is up?", channel)
    assert called.quote is None
    heard_of = [(spoken.sender.id, spoken.sender.is_bot, spoken.text) for spoken in called.context if spoken.sender]
    assert heard_of == [
        (BOB.id, False, "the code word is swordfish"),
        (OTHER_BOT.id, True, "Deployed."),
    ]


@pytest.mark.parametrize("code", ["thread_not_found", "missing_scope", "channel_not_found", "access_denied"])
async def test_a_message_whose_thread_slack_will_not_tell_holds_up_nothing(
    api: SlackApi, adapter: SlackAdapter, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    """A refusal is final: asking again would keep all that comes after waiting for ever."""
    channel = api.channel()
    received = Received()
    api.fail("conversations.replies", Fault(code), times=50)
    async with running(adapter, received.accept):
        api.says("about that", user=BOB, chat=channel, parent_user_id=ANN.id)
        api.says("anybody there?")
        await until(lambda: "anybody there?" in received.texts)
    assert received.texts == ["about that", "anybody there?"]
    assert not received.messages[0].mentions_me
    assert len(api.called("conversations.replies")) == 1
    assert "without its thread" in caplog.text


async def test_an_answer_that_names_no_thread_is_one(api: SlackApi, adapter: SlackAdapter) -> None:
    received = Received()
    async with running(adapter, received.accept):
        api.says("about that", chat=api.channel(), parent_user_id=BOB.id)
        await until(lambda: bool(received.texts))
    (message,) = received.messages
    assert (message.text, message.address.thread, message.mentions_me) == ("about that", None, False)
    assert len(api.called("conversations.replies")) == 1, "Slack was asked for its thread"


async def test_who_mentions_hundreds_keeps_nobody_waiting(api: SlackApi, adapter: SlackAdapter) -> None:
    """A name that is not asked for stays an id: in the message, and in all that is shown above it."""
    channel = api.channel()
    received = Received()
    many = " ".join([f"<@U{number:09}>" for number in range(300)] + [f"<#C{number:09}>" for number in range(300)])
    for _ in range(5):
        api.message(many.replace("<@U0", "<@U5"), user=BOB, chat=channel)
    async with running(adapter, received.accept):
        called = await heard(api, received, f"<@{api.me.id}> {many}", channel)
    assert "@U000000299" in called.text
    assert "@U500000299"[:6] in called.context[0].text
    assert len(api.called("users.info")) + len(api.called("conversations.info")) < 100, "it is told of twice"


async def test_a_message_is_addressed_alike_whatever_else_happens(api: SlackApi, adapter: SlackAdapter) -> None:
    """G-RTE-11, G-RTE-12: a direct chat, a group chat, channels and threads are all apart."""
    channel, mpim = api.channel(), api.add_chat("G0ANNBOB", "mpim")
    received = Received()
    async with running(adapter, received.accept):
        root = api.says("hi", chat=channel)
        for chat, thread in ((channel, None), (channel, root), (mpim, None), (api.direct, None), (api.direct, None)):
            await heard(api, received, "hello", chat, thread)
    found = [message.address for message in received.messages[1:]]
    assert len(set(found)) == 4
    assert [address.kind for address in found] == ["channel", "channel", "group", "direct", "direct"]
    assert {address.space for address in found} == {"T0GARDEN1"}
