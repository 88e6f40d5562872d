"""Where something was said: threads of every kind, direct chats, and what Discord doesn't tell."""

from __future__ import annotations

import pytest

from adapters.discord import DiscordAdapter
from adapters.message import Message, Reacted, Sender, Spoken
from tests.adapters.discord.conftest import adapter_for, connected
from tests.adapters.work import Naps, Received, running, until
from tests.fakes.discord_api import ANN, BOB, BOT, Channel, DiscordApi, Fault
from tests.fakes.discord_api.world import FORUM

NAMED = f"<@{BOT.id}> "


def hidden_thread(api: DiscordApi) -> tuple[Channel, Channel]:
    """A channel, and a thread in it that the bot was told nothing of."""
    garden = api.channel(api.guild())
    thread = api.thread(garden)
    thread.is_hidden = True
    return garden, thread


async def test_every_kind_of_place(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    guild = api.guild()
    garden, forum = api.channel(guild), api.channel(guild, "questions", FORUM)
    public, private, post = api.thread(garden), api.thread(garden, private=True), api.thread(forum, "Why?")
    async with running(adapter, received.accept):
        await connected(adapter)
        for place, name in ((garden, "in it"), (public, "thread"), (private, "private"), (post, "post")):
            api.says(name, channel=place)
        await until(lambda: len(received.texts) == 4)
    places = {message.text: message.address for message in received.of(Message)}
    space = str(guild.id)
    assert {address.space for address in places.values()} == {space}
    assert {address.kind for address in places.values()} == {"channel"}
    assert (places["in it"].parent, places["in it"].thread) == (None, None)
    for name, thread, parent in (("thread", public, garden), ("private", private, garden), ("post", post, forum)):
        address = places[name]
        assert (address.chat, address.thread, address.parent) == (str(thread.id), str(thread.id), str(parent.id))
        assert address.private is (name == "private")


async def test_a_thread_that_the_bot_knows_nothing_of_is_looked_up(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    garden, thread = hidden_thread(api)
    async with running(adapter, received.accept):
        await connected(adapter)
        api.fail("GET", f"/channels/{thread.id}", Fault(503), Fault(429, retry_after=2))
        api.says("held", channel=thread)
        api.says("behind it", channel=garden)
        await until(lambda: len(received.texts) == 2)
    assert received.texts == ["held", "behind it"]
    assert received.of(Message)[0].address.parent == str(garden.id)


@pytest.mark.parametrize("faults", [[Fault(404, "Unknown Channel", code=10003)], [Fault(503)] * 9])
async def test_what_has_no_place_is_never_taken_for_something_else(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, faults: list[Fault]
) -> None:
    """G-RTE-09: a thread whose parent is unknown is not the channel, and not a direct chat."""
    garden, thread = hidden_thread(api)
    async with running(adapter, received.accept):
        await connected(adapter)
        api.fail("GET", f"/channels/{thread.id}", *faults)
        api.says("in the thread", channel=thread)
        api.says("elsewhere", channel=garden)
        await until(lambda: "elsewhere" in received.texts)
    assert received.texts == ["elsewhere"]


async def test_a_channel_that_is_made_or_renamed_meanwhile_is_known(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    guild = api.guild()
    async with running(adapter, received.accept):
        await connected(adapter)
        roses = api.channel(guild, "roses")
        api.dispatch("CHANNEL_CREATE", roses.json())
        api.says(f"see <#{roses.id}>", channel=roses)
        await until(lambda: received.texts == ["see #roses"])
    assert not api.called("GET", f"/channels/{roses.id}")


async def test_a_role_of_ours_is_a_name_for_us(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    guild = api.guild()
    guild.roles |= {901: "helpers", 902: "gardeners"}
    guild.members[BOT.id] = [901]
    garden = api.channel(guild)
    async with running(adapter, received.accept):
        await connected(adapter)
        api.says("<@&901> who is free?", channel=garden)
        api.says("<@&902> who is free?", channel=garden)
        api.says(f"<@&{guild.id}> everyone", channel=garden)
        await until(lambda: len(received.texts) == 3)
    assert [(m.text, m.mentions_me) for m in received.of(Message)] == [
        ("who is free?", True),
        ("@gardeners who is free?", False),
        ("@@everyone everyone", False),
    ]


async def test_a_thread_begins_with_its_opening(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    """G-RTE-10: once, for the first who speaks to us there, be it our own words."""
    garden = api.channel(api.guild())
    opening = int(api.message("I watered the roses.", BOT, garden)["id"])
    thread = api.thread(garden, of=opening)
    async with running(adapter, received.accept):
        await connected(adapter)
        api.says("not to you", channel=thread)
        api.says(f"{NAMED}when?", channel=thread)
        api.says(f"{NAMED}and the lilies?", channel=thread)
        await until(lambda: len(received.texts) == 3)
    ours = Spoken(None, "I watered the roses.")
    assert [message.context for message in received.of(Message)] == [(), (ours,), ()]


async def test_what_opens_a_thread_is_handed_on_with_who_said_it(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    """Whoever calls us into a thread must not lend their level to a stranger's words: ids and roles go with them."""
    guild = api.guild()
    guild.members[BOB.id], guild.nicks[BOB.id] = [902], "Bobby"
    garden = api.channel(guild)
    by_bob = int(api.message("Forget the roses.", BOB, garden)["id"])
    by_hook = int(api.message("Build failed.", BOB, garden, webhook_id="77")["id"])
    threads = [api.thread(garden, of=opening) for opening in (by_bob, by_hook)]
    async with running(adapter, received.accept):
        await connected(adapter)
        said = api.says("a line", user=BOB, channel=threads[0])
        api.says(f"{NAMED}do as he says", channel=threads[0], reply_to=said)
        api.says(f"{NAMED}why?", channel=threads[1])
        await until(lambda: len(received.texts) == 3)
    _, asked, hooked = received.of(Message)
    bob = Sender(str(BOB.id), "Bobby", roles=("902",))
    assert (asked.sender.id, asked.context) == (str(ANN.id), (Spoken(bob, "Forget the roses."),))
    assert asked.quote is not None, "what it answers is quoted besides"
    assert asked.quote.text == "a line"
    ((shared, text),) = ((one.sender, one.text) for one in hooked.context)
    assert shared is not None
    assert (shared.is_shared, shared.roles, text) == (True, (), "Build failed.")


async def test_a_post_of_a_forum_begins_with_its_first_message(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    forum = api.channel(api.guild(), "questions", FORUM)
    post = api.thread(forum, "Why do the leaves fall?")
    async with running(adapter, received.accept):
        await connected(adapter)
        api.says("They are yellow.", channel=post, id=post.id)
        api.says(f"{NAMED}do you know?", channel=post)
        await until(lambda: len(received.texts) == 2)
    first, second = received.of(Message)
    assert first.text == "# Why do the leaves fall?\n\nThey are yellow."
    (opening,) = second.context
    assert opening.sender is not None
    assert (opening.sender.id, opening.sender.name, opening.text) == (str(ANN.id), "Ann", "They are yellow.")
    assert second.quote is None


async def test_a_thread_with_us_is_followed_by_setting(api: DiscordApi, naps: Naps, received: Received) -> None:
    adapter = adapter_for(api, naps, follow_threads=True)
    garden = api.channel(api.guild())
    ours, theirs = api.thread(garden), api.thread(garden, joined=False)
    async with running(adapter, received.accept):
        await connected(adapter)
        api.says("go on", channel=ours)
        api.says("without you", channel=theirs)
        await until(lambda: len(received.texts) == 2)
    assert [message.mentions_me for message in received.of(Message)] == [True, False]
    await adapter.close()


async def test_a_reaction_that_is_taken_back_has_the_name_that_put_it(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    """Discord names nobody then; the hub takes back what was kept under the name."""
    guild = api.guild()
    guild.nicks[ANN.id] = "Annie"
    garden = api.channel(guild)
    said = int(api.message("roses", BOT, garden)["id"])
    async with running(adapter, received.accept):
        await connected(adapter)
        api.says("hello", channel=garden)
        api.reacts(said, "👍")
        api.reacts(said, "👍", added=False)
        await until(lambda: len(received.of(Reacted)) == 2)
    assert [(event.emoji, event.sender.name) for event in received.of(Reacted)] == [("👍", "Annie"), ("", "Annie")]
