"""A workspace for each chat or each sender, made from a template with the first message."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.message import Address, Message, Sender
from bot.agent_names import template_of
from bot.home import Home
from bot.router import Binding, Match, Route, route
from bot.scope import Per
from tests.bot.conftest import OPEN, Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply
from workspaces.names import original, portable_name
from workspaces.scope import Level

GROUP = Address("slack", "team", "C1", "channel", space="T1")
DIRECT = Address("slack", "team", "D1", "direct")


def led(address: Address, per: Per, sender: str = "7", identity: str | None = None) -> Route:
    message = Message("1", address, Sender(sender), "hi", datetime(2026, 11, 30, tzinfo=UTC))
    binding = Binding("support", Match(channel=address.channel), per=per)
    return route(message, address, [binding], "main", Level.GUEST, identity).route


def test_each_chat_has_its_own_and_its_public_threads_have_the_same() -> None:
    public = replace(GROUP, chat="t1", parent="C1", thread="t1")
    topic = replace(GROUP, thread="7.0")
    private = replace(public, private=True)
    agents = {led(address, "chat").agent for address in (GROUP, public, topic)}
    assert agents == {"support/slack/team/chat/T1/C1"}
    assert led(private, "chat").agent not in agents, "a private thread has other readers"
    assert led(replace(GROUP, chat="C2"), "chat").agent not in agents
    assert all(led(address, "chat").scope.is_home for address in (GROUP, public, topic, private, DIRECT))
    assert len({led(address, "chat").session for address in (GROUP, public, topic, private)}) == 4


def test_each_sender_has_their_own_and_a_group_never_reads_what_is_said_to_it_directly() -> None:
    ann, bob = led(DIRECT, "sender", "ann"), led(DIRECT, "sender", "bob")
    assert ann.agent != bob.agent
    assert ann.scope.is_home
    among = led(GROUP, "sender", "ann")
    assert among.agent == ann.agent
    assert not among.scope.is_home, "the others in the group are no readers of the direct chat's notes"
    assert (
        led(DIRECT, "sender", "ann", "annie").agent
        == led(replace(GROUP, channel="discord"), "sender", "a", "annie").agent
    )


IDS = st.text(st.sampled_from("aA/%_:.-@ é\\"), min_size=1, max_size=4)


@given(st.sets(st.tuples(IDS, IDS), min_size=2, max_size=6))
def test_two_chats_never_share_a_workspace(places: set[tuple[str, str]]) -> None:
    """G-RTE-13, G-RTE-14: whatever the ids are made of, also where a file system ignores case."""
    agents = {led(replace(GROUP, space=space, chat=chat), "chat").agent for space, chat in places}
    assert len(agents) == len(places)
    folders = {portable_name(agent) for agent in agents}
    assert len({folder.casefold() for folder in folders}) == len(places)
    assert {original(folder) for folder in folders} == agents
    assert {template_of(agent) for agent in agents} == {"support"}


def echo(request: Recorded) -> Reply:
    return Reply("re: " + request.messages[-1]["content"].rpartition("] ")[2])


TEMPLATE = """
[templates.support]
[[bindings]]
template = "support"
channel = "telegram"
per = "{per}"
"""


@pytest.mark.parametrize("per", ["chat", "sender"])
async def test_a_workspace_is_made_with_the_first_message_and_holds_only_its_memory(
    serve: Serve, door: FakeAdapter, home: Home, per: str
) -> None:
    def noting(request: Recorded) -> Reply:
        asked = request.messages[-1]
        if asked["role"] == "user" and "Note" in asked["content"]:
            return Reply(calls=[Call("memory_append", '{"text": "The locker is marker-ann."}')])
        return Reply("done")

    async with ModelServer(noting) as server, serve(server, OPEN + TEMPLATE.format(per=per)):
        await door.says(door.message("Note that my locker is marker-ann.", sender="1"))
        await door.wait_sent(1)
        asked = len(server.requests)
        await door.says(door.message("what do you know of a locker?", sender="2"))
        await door.wait_sent(2)
        first, second = home.made_agents()
        for agent in (first, second):
            assert {path.name for path in home.workspace(agent).iterdir()} == {"MEMORY.md", "memory"}
        assert "marker-ann" not in str([request.messages for request in server.requests[asked:]])
        theirs = [home.workspace(first), home.workspace(second)]
        kept = [any("marker-ann" in path.read_text("utf-8") for path in folder.rglob("*.md")) for folder in theirs]
        assert sorted(kept) == [False, True]
        assert not (home.workspaces / "main").exists() or "marker-ann" not in "".join(
            path.read_text("utf-8") for path in (home.workspaces / "main").rglob("*.md")
        )


async def test_a_better_template_reaches_everyone_who_has_no_file_of_their_own(
    serve: Serve, door: FakeAdapter, home: Home
) -> None:
    async with ModelServer(echo) as server, serve(server, OPEN + TEMPLATE.format(per="sender")):
        for number, sender in enumerate(("1", "2"), 1):
            await door.says(door.message("hello", sender=sender))
            await door.wait_sent(number)
        own, others = (home.workspace(agent) for agent in home.made_agents())
        (home.templates / "support" / "SOUL.md").write_text("# Soul\nYou are the template's new soul.\n", "utf-8")
        (own / "SOUL.md").write_text("# Soul\nYou are a soul of its own.\n", "utf-8")
        assert not (others / "SOUL.md").exists()
        for number, sender in enumerate(("1", "2"), 3):
            await door.says(door.message("and now?", sender=sender))
            await door.wait_sent(number)
    prefixes = [str(request.messages[0]["content"]) for request in server.requests[2:]]
    assert "a soul of its own" in prefixes[0]
    assert "new soul" not in prefixes[0]
    assert "the template's new soul" in prefixes[1]


async def test_whoever_talks_to_a_made_agent_is_not_interviewed_and_reads_nothing_of_the_owner(
    serve: Serve, door: FakeAdapter, home: Home
) -> None:
    home.root.mkdir(exist_ok=True)
    extra = home.root.parent / "owners-notes"
    extra.mkdir()
    (extra / "bank.md").write_text("The owner's bank code is marker-bank.\n", "utf-8")
    settings = OPEN + TEMPLATE.format(per="sender") + f'\n[memory]\nextra = ["{extra}/*.md"]\n'
    async with ModelServer(echo) as server, serve(server, settings):
        await door.says(door.message("what is the owner's bank code?", sender="1"))
        (answer,) = await door.wait_sent(1)
    assert answer.text == "re: what is the owner's bank code?"
    assert "marker-bank" not in str(server.requests[0].messages)


def test_that_all_pairs_of_places_differ() -> None:
    places = [
        GROUP,
        DIRECT,
        replace(GROUP, account="home"),
        replace(GROUP, channel="discord"),
        replace(GROUP, space=None),
    ]
    for one, other in combinations(places, 2):
        assert led(one, "chat").agent != led(other, "chat").agent
