"""Slash commands and buttons: Discord hears within three seconds, and the answer takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from adapters.adapter import Accept, Menu, Offered
from adapters.discord import DiscordAdapter
from adapters.errors import Ambiguous, Rejected, Unreachable
from adapters.message import Address, Button, Message, Pressed, Receipt
from tests.adapters.discord.conftest import adapter_for, at, connected, direct, part
from tests.adapters.work import Naps, Received, running, until
from tests.fakes.discord_api import BOB, Channel, DiscordApi, Fault

MENU = [Offered("help", "what I answer to"), Offered("memory", "what I noted", "today | search WORDS")]


@asynccontextmanager
async def offering(api: DiscordApi, adapter: DiscordAdapter, accept: Accept) -> AsyncIterator[None]:
    """The adapter at work, with its commands registered."""
    adapter.offer(MENU)
    async with running(adapter, accept):
        await api.until(lambda: bool(api.commands))
        yield


def somewhere(api: DiscordApi, on_server: bool) -> tuple[Channel | None, Address]:
    """A channel of a server, or the direct chat (None), and its address."""
    garden = api.channel(api.guild()) if on_server else None
    return garden, at(garden) if garden else direct(api)


async def test_the_commands_are_registered_once_with_their_options(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    assert isinstance(adapter, Menu)
    adapter.offer(MENU)
    async with running(adapter, received.accept):
        await api.wait_called("PUT", "/commands")
        await connected(adapter)
        api.invalidate()
        await api.wait_login(2)
        api.says("hello")
        await until(lambda: received.texts == ["hello"])
    help_, memory = api.commands
    assert (help_["name"], help_["description"], help_.get("options")) == ("help", "what I answer to", None)
    (option,) = memory["options"]
    assert (option["name"], option["description"], option["required"]) == ("words", "today | search WORDS", False)
    assert len(api.called("PUT", "/commands")) == 1


async def test_the_table_of_the_hub_is_taken(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    from bot.commands import COMMANDS

    listed = [each for each in COMMANDS if each.is_listed]
    adapter.offer([Offered(each.name, each.summary, each.usage) for each in listed])
    async with running(adapter, received.accept):
        await api.until(lambda: bool(api.commands))
    assert [(one["name"], one["description"]) for one in api.commands] == [(each.name, each.summary) for each in listed]


async def test_commands_that_can_t_be_registered_stop_nothing(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, caplog: pytest.LogCaptureFixture
) -> None:
    adapter.offer([Offered("Not a name", "x")])
    async with running(adapter, received.accept):
        api.says("hello")
        await connected(adapter)
        api.says("again")
        await until(lambda: "again" in received.texts)
    assert "were not registered" in caplog.text


@pytest.mark.parametrize("on_server", [False, True])
async def test_a_command_is_answered_in_its_place(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, on_server: bool
) -> None:
    """On a server nobody else sees the answer."""
    garden, place = somewhere(api, on_server)
    async with offering(api, adapter, received.accept):
        begun = api.chooses("memory", "search the dog", channel=garden)
        await until(lambda: bool(received.events))
        (message,) = received.of(Message)
        assert (message.text, message.mentions_me, message.address) == ("/memory search the dog", True, place)
        await api.until(lambda: "acked" in begun)
        reply_to = message.id if on_server else None
        await adapter.send(part(place, "a dog", reply_to=reply_to), "turn-1/0")
        await adapter.send(part(place, "and a cat"), "turn-1/1")
        await adapter.send(part(place, "something else"), "turn-2/0")
    assert [sent.text for sent in api.sent] == ["a dog", "and a cat", "something else"]
    assert [sent.private for sent in api.sent] == [on_server, on_server, False]
    assert not any(sent.pings for sent in api.sent)
    methods = [call.method for call in api.calls if "/webhooks/" in call.path]
    assert methods[0] == "PATCH", "what was deferred is replaced"


async def test_discord_hears_in_time_although_storing_takes_long(api: DiscordApi, adapter: DiscordAdapter) -> None:
    offered, stored = asyncio.Event(), asyncio.Event()
    taken: list[object] = []

    async def accept(event: object) -> None:
        offered.set()
        await stored.wait()
        taken.append(event)

    async with offering(api, adapter, accept):
        begun = api.chooses("help")
        await api.until(lambda: "acked" in begun, seconds=3)
        await asyncio.wait_for(offered.wait(), 10)
        assert taken == [], "it is not stored yet"
        assert begun["acked"] == 5, "the answer is put off"
        stored.set()
        await until(lambda: len(taken) == 1)


async def test_an_answer_waits_for_discord(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    async with offering(api, adapter, received.accept):
        api.fail("POST", "/callback", Fault(delay=0.3))
        api.chooses("help")
        await until(lambda: bool(received.events))
        await adapter.send(part(direct(api), "help"), "turn-1/0")
    assert [call.path.rpartition("/")[2] for call in api.calls][-2:] == ["callback", "@original"]


@pytest.mark.parametrize("how", ["not told", "expired"])
async def test_where_discord_takes_no_answer_it_is_a_message(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, how: str
) -> None:
    garden = api.channel(api.guild())
    async with offering(api, adapter, received.accept):
        if how == "not told":
            api.fail("POST", "/callback", Fault(500))
        begun = api.chooses("help", channel=garden)
        await until(lambda: bool(received.events))
        if how == "expired":
            await api.until(lambda: "acked" in begun)
            begun["expired"] = True
        reply_to = received.of(Message)[0].id
        await adapter.send(part(at(garden), "help", reply_to=reply_to), "turn-1/0")
    (sent,) = api.sent
    assert (sent.text, sent.channel, sent.private) == ("help", garden.id, False)


@pytest.mark.parametrize("fault", [Fault(502), Fault(504, after=True), Fault(drop=True, after=True)])
@pytest.mark.parametrize("on_server", [True, False])
async def test_an_answer_that_is_sent_again_is_one(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, on_server: bool, fault: Fault
) -> None:
    """Whether it arrived or not: nothing goes on being shown as worked on, and nothing is shown twice."""
    garden, place = somewhere(api, on_server)
    async with offering(api, adapter, received.accept):
        begun = api.chooses("help", channel=garden)
        await until(lambda: bool(received.events))
        answer = part(place, "help", reply_to=received.of(Message)[0].id if on_server else None)
        api.fail("PATCH", "@original", fault)
        with pytest.raises(Unreachable):
            await adapter.send(answer, "turn-1/0")
        receipt = await adapter.send(answer, "turn-1/0")
        await adapter.send(part(place, "more"), "turn-1/1")
    assert [(sent.text, sent.private) for sent in api.sent] == [("help", on_server), ("more", on_server)]
    assert receipt.message_id == str(begun["original"])


@pytest.mark.parametrize("on_server", [True, False])
async def test_more_of_an_answer_is_sent_again_only_by_who_knows(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, on_server: bool
) -> None:
    """Discord tells no repetition of it; what one person sees is in no history, which then must not be believed."""
    garden, place = somewhere(api, on_server)
    async with offering(api, adapter, received.accept):
        began = datetime.now(UTC)
        api.chooses("help", channel=garden)
        await until(lambda: bool(received.events))
        await adapter.send(part(place, "help", reply_to=received.of(Message)[0].id if on_server else None), "turn-1/0")
        (token,) = api.interactions
        api.fail("POST", token, Fault(504, after=True))
        more = part(place, "more")
        with pytest.raises(Ambiguous):
            await adapter.send(more, "turn-1/1")
        if on_server:
            with pytest.raises(Rejected, match="only one person"):
                await adapter.settle(more, "turn-1/1", began)
        else:
            assert await adapter.settle(more, "turn-1/1", began) == Receipt(str(api.sent[-1].id))
    assert len(api.sent) == 2


async def test_an_answer_whose_time_ran_out_while_it_was_sent_again_may_have_arrived(
    api: DiscordApi, naps: Naps, received: Received
) -> None:
    now, seconds = datetime.now(UTC), 1000.0
    settings = adapter_for(api, naps)._settings
    adapter = DiscordAdapter("main", settings, sleep=naps, now=lambda: now, monotonic=lambda: seconds)
    garden = api.channel(api.guild())
    async with offering(api, adapter, received.accept):
        api.chooses("help", channel=garden)
        await until(lambda: bool(received.events))
        answer = part(at(garden), "help", reply_to=received.of(Message)[0].id)
        api.fail("PATCH", "@original", Fault(504, after=True))
        with pytest.raises(Unreachable):
            await adapter.send(answer, "turn-1/0")
        now, seconds = now + timedelta(minutes=15), seconds + 900
        with pytest.raises(Ambiguous):
            await adapter.send(answer, "turn-1/0")
    assert len(api.sent) == 1
    await adapter.close()


async def test_two_commands_have_two_answers(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    garden = api.channel(api.guild())
    async with offering(api, adapter, received.accept):
        first, second = api.chooses("help", channel=garden), api.chooses("help", user=BOB, channel=garden)
        await until(lambda: len(received.events) == 2)
        for number, message in reversed(list(enumerate(received.of(Message)))):
            await adapter.send(part(at(garden), f"answer {number}", reply_to=message.id), f"turn-{number}/0")
        await api.until(lambda: len(api.sent) == 2)
    texts = {sent.id: sent.text for sent in api.sent}
    assert (texts[first["original"]], texts[second["original"]]) == ("answer 0", "answer 1")


async def test_a_press_is_confirmed_and_says_its_words(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    garden = api.channel(api.guild())
    place: Address = at(garden)
    async with running(adapter, received.accept):
        await connected(adapter)
        await adapter.send(part(place, "May I?", buttons=((Button("Yes", "approve 1"),),)), "turn/0")
        begun = api.presses(api.sent[0], "Yes", user=BOB)
        await until(lambda: bool(received.of(Pressed)))
        await api.until(lambda: begun.get("acked") == 6)
    (pressed,) = received.of(Pressed)
    assert (pressed.data, pressed.sender.id, pressed.address) == ("approve 1", str(BOB.id), place)
    assert pressed.message_id == str(api.sent[0].id)
