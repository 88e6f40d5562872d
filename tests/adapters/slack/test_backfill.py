"""What was said while nobody listened."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from adapters.message import Inbound
from adapters.slack import SlackAdapter
from tests.adapters.slack.conftest import opened, part, place, settings_for
from tests.adapters.work import Clock, Naps, Received, running, until
from tests.fakes.slack_api import BOB, Fault, SlackApi


def ago(seconds: float) -> str:
    return f"{time.time() - seconds:.6f}"


async def caught_up(api: SlackApi, adapter: SlackAdapter, *, looks: bool = True) -> Received:
    """What a run hands on, and last a message that is said once all chats were asked for."""
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_linked(api.opened + 1)
        if looks:
            await api.wait_called("conversations.history", len(api.chats))
        api.says("and now")
        await until(lambda: "and now" in received.texts)
    return received


async def test_what_was_missed_is_looked_up(api: SlackApi, adapter: SlackAdapter) -> None:
    """G-DLV-10: in direct chats, channels and threads, oldest first in each; and nothing that was known long ago."""
    channel, secret = api.channel(), api.add_chat("C0SECRET", "group", "secret")
    api.message("long ago", ts=ago(7200))
    old = api.message(f"<@{api.me.id}> old question", chat=channel, ts=ago(7100))["ts"]
    api.message("old reply", chat=channel, thread=old, ts=ago(7000))
    api.message("first", ts=ago(60))
    api.message("second", ts=ago(50))
    api.message(f"<@{api.me.id}> in the channel", user=BOB, chat=channel, ts=ago(40))
    api.message("in the thread", chat=channel, thread=old, ts=ago(30))
    api.message(f"<@{api.me.id}> in secret", chat=secret, ts=ago(20))
    adapter.resume({"D0ANN0001": ago(3600), "C0ELSE": "command/U1/2"}, None)
    received = await caught_up(api, adapter)
    assert set(received.texts) == {"first", "second", "in the channel", "in the thread", "in secret", "and now"}
    assert received.texts.index("first") < received.texts.index("second")
    reply = next(message for message in received.messages if message.text == "in the thread")
    assert (reply.address.thread, reply.mentions_me) == (old, True)
    assert len(received.turns) == 6


async def test_when_slack_was_last_heard_is_enough(api: SlackApi, adapter: SlackAdapter) -> None:
    """Nothing was ever said to us: there is no newest message."""
    api.message("long ago", ts=ago(7200))
    api.message("missed", ts=ago(60))
    adapter.resume({}, datetime.now(UTC) - timedelta(hours=1))
    assert (await caught_up(api, adapter)).texts == ["missed", "and now"]


async def test_a_first_run_looks_nothing_up(api: SlackApi, adapter: SlackAdapter) -> None:
    api.message("before we came", ts=ago(60))
    adapter.resume({}, None)
    assert (await caught_up(api, adapter, looks=False)).texts == ["and now"]


async def test_it_is_bounded_in_age(api: SlackApi, naps: Naps, clock: Clock) -> None:
    api.message("yesterday", ts=ago(20 * 3600))
    api.message("just now", ts=ago(60))
    for hours, texts in ((1, ["just now", "and now"]), (0, ["and now"])):
        adapter = opened(api, naps, clock, backfill_hours=hours)
        adapter.resume({"D0ANN0001": ago(90_000)}, None)
        assert (await caught_up(api, adapter, looks=bool(hours))).texts == texts
        await adapter.close()
        api.direct.messages = [one for one in api.direct.messages if one["text"] != "and now"]
        api.calls.clear()


async def test_our_own_words_and_slacks_are_not_handed_on(api: SlackApi, adapter: SlackAdapter) -> None:
    await adapter.send(part("an answer"), "key")
    api.message("<@U0BOB0001> has joined", ts=ago(50), subtype="channel_join")
    adapter.resume({"D0ANN0001": ago(3600)}, None)
    assert (await caught_up(api, adapter)).texts == ["and now"]


async def test_a_gap_is_filled_within_a_run(api: SlackApi, adapter: SlackAdapter) -> None:
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_linked()
        api.says("before")
        await until(lambda: "before" in received.texts)
        await api.stop()
        api.says("meanwhile", told=False)
        await until(lambda: adapter.health.state == "retrying")
        await api.start()
        await until(lambda: "meanwhile" in received.texts)
        assert adapter.health.state == "connected"


async def test_what_was_heard_before_a_gap_is_not_handed_on_again(api: SlackApi, adapter: SlackAdapter) -> None:
    """It may have been said where nobody was answered, and is not to be answered when that changes."""
    received = Received()
    async with running(adapter, received.accept):
        api.says("before")
        await until(lambda: "before" in received.texts)
        await api.wait_acknowledged()
        await api.cut()
        await api.wait_called("conversations.history", 1)
        api.says("after")
        await until(lambda: "after" in received.texts)
    assert received.texts.count("before") == 1


async def test_slack_that_wants_it_slower_gets_it_slower(api: SlackApi, adapter: SlackAdapter, naps: Naps) -> None:
    api.message("missed", ts=ago(60))
    api.fail("users.conversations", Fault("ratelimited", 429, retry_after=11))
    api.fail("conversations.history", Fault("ratelimited", 429, retry_after=12))
    adapter.resume({"D0ANN0001": ago(3600)}, None)
    assert "missed" in (await caught_up(api, adapter)).texts
    assert {11, 12} <= set(naps.taken)


async def test_what_can_not_be_looked_up_now_is_looked_up_after_the_next_gap(
    api: SlackApi, adapter: SlackAdapter
) -> None:
    api.message("missed", ts=ago(60))
    api.fail("conversations.history", Fault(status=503))
    adapter.resume({"D0ANN0001": ago(3600)}, None)
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_called("conversations.history")
        api.says("and now")
        await until(lambda: "and now" in received.texts)
        assert "missed" not in received.texts
        await api.cut()
        await until(lambda: "missed" in received.texts)


async def test_a_chat_that_may_not_be_read_keeps_no_other_from_it(api: SlackApi, adapter: SlackAdapter) -> None:
    channel = api.channel()
    api.message(f"<@{api.me.id}> missed", chat=channel, ts=ago(60))
    api.fail("conversations.history", Fault("missing_scope", fields=(("needed", "im:history"),)))
    adapter.resume({"D0ANN0001": ago(3600)}, None)
    assert "missed" in (await caught_up(api, adapter)).texts


async def test_what_comes_meanwhile_comes_after(api: SlackApi, adapter: SlackAdapter) -> None:
    """What was said first in a chat is answered first, as far as Slack's patience reaches."""
    api.message("first", ts=ago(60))
    api.fail("conversations.history", Fault(delay=0.3))
    adapter.resume({"D0ANN0001": ago(3600)}, None)
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_linked()
        api.says("second")
        await until(lambda: "second" in received.texts)
    assert received.texts[0] == "first"


async def test_a_thread_is_answered_where_it_was_asked(api: SlackApi, adapter: SlackAdapter) -> None:
    """G-RTE-08"""
    channel = api.channel()
    question = api.message(f"<@{api.me.id}> why?", chat=channel, ts=ago(60))["ts"]
    adapter.resume({"D0ANN0001": ago(3600)}, None)
    received = await caught_up(api, adapter)
    message = next(message for message in received.messages if message.text == "why?")
    await adapter.send(part("Because.", message.address, reply_to=message.id), "key")
    assert (api.sent[0].chat, api.sent[0].thread) == (channel.id, question)
    assert message.address == place(channel, question)


async def test_what_was_not_looked_up_before_a_crash_is_looked_up_after_it(
    api: SlackApi, naps: Naps, clock: Clock
) -> None:
    """G-DLV-10: a message that is taken meanwhile, in another chat, is no proof that nothing was missed before it."""
    api.message("missed", ts=ago(1800))
    last = datetime.now(UTC) - timedelta(hours=1)
    stuck = asyncio.Event()

    async def sleep(seconds: float) -> None:
        if seconds == 30:
            await stuck.wait()
        await asyncio.sleep(0)

    crashed = SlackAdapter("main", settings_for(api), sleep=sleep, random=lambda: 0.5, ping_seconds=0.1)
    crashed.resume({"D0ANN0001": ago(3600)}, last)
    api.fail("users.conversations", Fault("ratelimited", 429, retry_after=30))
    first = Received()
    async with running(crashed, first.accept):
        await api.wait_called("users.conversations")
        live = api.says("live", chat=api.channel())
        await until(lambda: "live" in first.texts, 10)
        await asyncio.sleep(0.5)  # some pings go to and fro
        assert crashed.health.heard_at is None, "the time that is stored stays as it was"
    await crashed.close()
    later, second = opened(api, naps, clock), Received()
    later.resume({"D0ANN0001": ago(3600), "C0GARDEN": live}, last)
    async with running(later, second.accept):
        await until(lambda: "missed" in second.texts)
        await until(lambda: later.health.heard_at is not None)
    await later.close()


async def test_a_chat_where_something_was_said_says_nothing_of_the_others(api: SlackApi, adapter: SlackAdapter) -> None:
    """When Slack was last heard is not known: it is looked for from the chat on that was silent for longest."""
    api.message("missed", ts=ago(1800))
    adapter.resume({"D0ANN0001": ago(3600), "C0GARDEN": ago(60)}, None)
    assert "missed" in (await caught_up(api, adapter)).texts


async def test_what_is_not_stored_yet_is_not_heard(api: SlackApi, adapter: SlackAdapter) -> None:
    """What waits for the disk would be lost with a crash, if the time went on."""
    received = Received()
    stuck = asyncio.Event()

    async def accept(event: Inbound) -> None:
        await stuck.wait()
        await received.accept(event)

    async with running(adapter, accept):
        await until(lambda: adapter.health.heard_at is not None)
        api.says("slow")
        await api.wait_called("users.info")
        await asyncio.sleep(0.2)
        before = adapter.health.heard_at
        await asyncio.sleep(0.5)  # some pings go to and fro
        assert adapter.health.heard_at == before
        stuck.set()
        await until(lambda: adapter.health.heard_at != before)
    assert received.texts == ["slow"]


async def test_a_connection_that_can_not_be_renewed_leaves_a_gap(api: SlackApi, adapter: SlackAdapter) -> None:
    """Slack keeps what comes while it is renewed, and not for as long as an outage lasts."""
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.heard_at is not None)
        api.fail("apps.connections.open", Fault(status=503))
        api.message("meanwhile")
        await api.disconnect()
        await until(lambda: "meanwhile" in received.texts)
    assert received.texts == ["meanwhile"]
    assert api.opened == 2
    assert api.called("conversations.history"), "what nobody was told of is read from the history"
