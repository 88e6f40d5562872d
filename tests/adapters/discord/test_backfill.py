"""What was said while nobody ran: read up from where the hub says that an earlier run ended, once and in order."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.adapter import Backfiller
from adapters.discord import DiscordAdapter
from adapters.message import Message
from tests.adapters.discord.conftest import adapter_for, connected
from tests.adapters.work import Naps, Received, running, until
from tests.fakes.discord_api import ANN, BOB, BOT, Channel, DiscordApi, Fault

HOUR = 3600.0


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


async def read_up(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> list[str]:
    """All that is handed on before what is said now."""
    async with running(adapter, received.accept):
        await connected(adapter)
        api.says("now")
        await until(lambda: "now" in received.texts)
    assert received.texts[-1] == "now"
    return received.texts[:-1]


def old(api: DiscordApi, text: str, seconds: float, channel: Channel | None = None, **fields: Any) -> str:
    """Said some time ago, while no bot listened."""
    return str(api.message(text, channel=channel, id=api.new_id(time.time() - seconds), **fields)["id"])


async def test_each_chat_goes_on_after_its_newest_message(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    assert isinstance(adapter, Backfiller)
    garden = api.channel(api.guild())
    thread = api.thread(garden)
    newest = {}
    for place, name in ((api.dm, "direct"), (garden, "garden"), (thread, "thread")):
        newest[str(place.id)] = old(api, f"{name} known", 90, place)
        old(api, f"{name} missed 1", 60, place)
        old(api, f"{name} missed 2", 30, place)
    adapter.resume(newest, ago(10))
    texts = await read_up(api, adapter, received)
    missed = [f"{name} missed {number}" for name in ("direct", "garden", "thread") for number in (1, 2)]
    assert sorted(texts) == missed
    for name in ("direct", "garden", "thread"):
        assert [text for text in texts if text.startswith(name)] == [f"{name} missed 1", f"{name} missed 2"]
    first = next(message for message in received.of(Message) if message.text == "thread missed 1")
    assert (first.address.chat, first.address.parent) == (str(thread.id), str(garden.id))


async def test_a_channel_where_nothing_was_said_to_us_goes_on_from_when_discord_was_heard(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    garden = api.channel(api.guild())
    old(api, "long ago", HOUR, garden)
    old(api, "missed", 60, garden)
    adapter.resume({}, ago(1800))
    assert await read_up(api, adapter, received) == ["missed"]


async def test_the_first_run_reads_nothing_up(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    old(api, "before we were here", 60, api.channel(api.guild()))
    adapter.resume({}, None)
    assert await read_up(api, adapter, received) == []
    assert not api.called("GET", "/messages")


async def test_it_is_bounded_in_age(api: DiscordApi, naps: Naps, received: Received) -> None:
    adapter = adapter_for(api, naps, backfill_hours=1)
    known = old(api, "known", 10 * HOUR)
    old(api, "too old", 2 * HOUR)
    old(api, "missed", 60)
    garden = api.channel(api.guild())
    old(api, "too old there", 2 * HOUR, garden)
    old(api, "missed there", 60, garden)
    adapter.resume({str(api.dm.id): known}, ago(10 * HOUR))
    assert sorted(await read_up(api, adapter, received)) == ["missed", "missed there"]
    await adapter.close()


async def test_it_is_bounded_in_number_and_the_newest_count(api: DiscordApi, naps: Naps, received: Received) -> None:
    adapter = adapter_for(api, naps, backfill_messages=3)
    known = old(api, "known", 100)
    for number in range(9):
        old(api, f"missed {number}", 90 - number)
    adapter.resume({str(api.dm.id): known}, None)
    async with running(adapter, received.accept):
        await until(lambda: len(received.texts) == 3)
        api.says("now")
        await until(lambda: "now" in received.texts)
    assert received.texts == ["missed 6", "missed 7", "missed 8", "now"]
    await adapter.close()


async def test_none_is_read_up_where_that_is_switched_off(api: DiscordApi, naps: Naps, received: Received) -> None:
    adapter = adapter_for(api, naps, backfill_messages=0)
    known = old(api, "known", 100)
    old(api, "missed", 60)
    adapter.resume({str(api.dm.id): known}, None)
    assert await read_up(api, adapter, received) == []
    await adapter.close()


async def test_senders_have_their_names_and_roles(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    """History tells neither; without them a message would be routed otherwise than when it is heard."""
    guild = api.guild()
    guild.roles[901], guild.members[ANN.id], guild.nicks[ANN.id] = "gardeners", [901], "Annie"
    garden = api.channel(guild)
    old(api, "missed", 60, garden, author=ANN.json())
    old(api, "missed too", 50, garden, author=ANN.json())
    old(api, "has left", 40, garden, author={**BOB.json(), "id": "999"})
    adapter.resume({}, ago(HOUR))
    await read_up(api, adapter, received)
    senders = [message.sender for message in received.of(Message)]
    assert [(who.name, who.roles) for who in senders[:3]] == [("Annie", ("901",)), ("Annie", ("901",)), ("Bob", ())]
    assert len(api.called("GET", f"/members/{ANN.id}")) == 1


async def test_our_own_words_are_not_read_up(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    known = old(api, "known", 100)
    old(api, "we said", 60, author=BOT.json())
    adapter.resume({str(api.dm.id): known}, None)
    assert await read_up(api, adapter, received) == []


async def test_a_chat_that_can_t_be_read_keeps_none_of_the_others(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    guild = api.guild()
    hidden, garden = api.channel(guild, "hidden"), api.channel(guild, "garden")
    newest = {"1": "1", str(hidden.id): old(api, "a", 90, hidden), str(garden.id): old(api, "b", 90, garden)}
    old(api, "unseen", 60, hidden)
    old(api, "missed", 60, garden)
    api.fail("GET", f"/channels/{hidden.id}/messages", Fault(403, "Missing Access", code=50001))
    adapter.resume(newest, None)
    assert await read_up(api, adapter, received) == ["missed"]


@pytest.mark.parametrize("fault", [Fault(503), Fault(429, retry_after=2), Fault(drop=True)])
async def test_a_passing_trouble_is_outlived(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, fault: Fault
) -> None:
    known = old(api, "known", 100)
    old(api, "missed", 60)
    api.fail("GET", f"/channels/{api.dm.id}/messages", fault)
    adapter.resume({str(api.dm.id): known}, None)
    assert await read_up(api, adapter, received) == ["missed"]


async def test_what_comes_live_while_it_is_read_up_comes_once_and_in_order(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    """G-DLV-10"""
    known = old(api, "known", 100)
    old(api, "missed", 60)
    api.fail("GET", f"/channels/{api.dm.id}/messages", Fault(delay=0.3))
    adapter.resume({str(api.dm.id): known}, None)
    async with running(adapter, received.accept):
        await connected(adapter)
        for number in range(20):
            api.says(f"live {number}")
        await until(lambda: "live 19" in received.texts)
    assert received.texts == ["missed", *(f"live {number}" for number in range(20))]
