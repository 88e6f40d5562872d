"""Routing, scopes and session keys: pure functions of the message."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.message import Address, Message, Sender
from bot.router import Binding, Match, route
from bot.scope import scope_of
from bot.session_key import session_key
from workspaces.names import original, portable_name
from workspaces.scope import HOME, Level, Scope

GUILD = Address("discord", "work", "general", "group", space="guild", parent=None)
THREAD = replace(GUILD, chat="t1", parent="general", thread="t1")
BINDINGS = [
    Binding("everything", Match()),
    Binding("channel", Match(channel="discord")),
    Binding("account", Match(account="work")),
    Binding("space", Match(space="guild")),
    Binding("role", Match(space="guild", role="admin")),
    Binding("any-chat", Match(channel="discord", chat="*")),
    Binding("parent", Match(chat="general")),
    Binding("exact", Match(chat="t1")),
]


def said(address: Address, sender: Sender | None = None) -> Message:
    return Message("1", address, sender or Sender("7", roles=("admin",)), "hi", datetime(2026, 11, 30, tzinfo=UTC))


def test_the_most_exact_binding_wins_at_each_step() -> None:
    left = list(BINDINGS)
    won: list[str] = []
    while left:
        explanation = route(said(THREAD), THREAD, left, "none", Level.MEMBER, None)
        won.append(explanation.route.agent)
        left = [binding for binding in left if binding.agent != won[-1]]
    assert won == ["exact", "parent", "any-chat", "role", "space", "account", "channel", "everything"]
    assert route(said(THREAD), THREAD, [], "main", Level.MEMBER, None).route.agent == "main"


def test_a_binding_that_asks_more_than_the_message_has_loses_and_says_why() -> None:
    bindings = [Binding("a", Match(chat="general", sender="8")), Binding("b", Match(space="guild", role="mod"))]
    explanation = route(said(GUILD), GUILD, bindings, "main", Level.MEMBER, None)
    assert explanation.route.agent == "main"
    assert [(c.won, c.reason) for c in explanation.considered] == [
        (False, "sender is '7', not '8'"),
        (False, "the sender has no role 'mod'"),
    ]


def test_a_sender_is_known_by_every_id() -> None:
    """A phone number in the settings, and a hidden id in the message."""
    message = said(GUILD, Sender("100@lid", aliases=("+15550001",)))
    for wanted in ("100@lid", "+15550001"):
        binding = Binding("a", Match(channel="discord", sender=wanted))
        assert route(message, GUILD, [binding], "main", Level.MEMBER, None).route.agent == "a"


def test_a_chat_wildcard_is_no_direct_chat() -> None:
    direct = Address("discord", "work", "dm", "direct")
    assert (
        route(said(direct), direct, [Binding("any", Match(chat="*"))], "main", Level.OWNER, None).route.agent == "main"
    )


@pytest.mark.parametrize("named", ["-5", "-1005"])
def test_a_binding_names_a_chat_that_moved_by_either_id(named: str) -> None:
    """G-RTE-26: whoever wrote the settings may have copied the id before the chat moved, or after."""
    now = Address("telegram", "t", "-1005", "group")
    first = replace(now, chat="-5")
    garden = Binding("garden", Match(channel="telegram", chat=named))
    moved = route(said(now), first, [garden], "main", Level.GUEST, None)
    assert moved.route.agent == "garden"
    assert moved.route == route(said(first), first, [], "garden", Level.GUEST, None).route, "session and scope stay"
    other = replace(now, chat="-1006")
    assert route(said(other), other, [garden], "main", Level.GUEST, None).route.agent == "main"


def test_scopes_follow_the_audience() -> None:
    ann, bob = "7", "8"
    direct = Address("telegram", "t", "7", "direct")
    assert scope_of(direct, ann, Level.OWNER, None).area == HOME
    assert scope_of(Address("terminal", "terminal", "local", "direct"), ann, Level.OWNER, None).area == HOME
    guest = scope_of(direct, ann, Level.GUEST, None)
    assert guest.area.startswith("chats/")
    assert guest.area != scope_of(replace(direct, chat="8"), bob, Level.GUEST, None).area
    group = scope_of(GUILD, ann, Level.OWNER, None)
    assert group.area.startswith("chats/"), "an owner in a group is in the group's scope"
    assert scope_of(THREAD, bob, Level.GUEST, None).area == group.area, "a public thread has its parent's scope"
    private = scope_of(replace(THREAD, private=True), bob, Level.GUEST, None)
    assert private.area != group.area
    assert not private.may_read(group.folder + "MEMORY.md")


def test_a_direct_session_ends_when_level_or_link_changes() -> None:
    ann = "7"
    direct = Address("telegram", "t", "7", "direct")
    keys = {
        session_key("main", direct, ann, scope_of(direct, ann, level, identity), identity)
        for level in (Level.GUEST, Level.MEMBER, Level.OWNER)
        for identity in (None, "ann")
    }
    assert len(keys) == 6


def test_direct_messages_without_a_chat_id_are_told_apart_by_sender() -> None:
    """G-RTE-12: two people, no chat id, two sessions."""
    nowhere = Address("sms", "s", "", "direct")
    one, two = "1", "2"
    assert session_key("main", nowhere, one, scope_of(nowhere, one, Level.GUEST, None), None) != session_key(
        "main", nowhere, two, scope_of(nowhere, two, Level.GUEST, None), None
    )


def test_linked_accounts_share_one_session() -> None:
    there = Address("telegram", "t", "7", "direct")
    here = Address("discord", "d", "99", "direct")
    scope = Scope.home()
    assert session_key("main", there, "7", scope, "ann") == session_key("main", here, "99", scope, "ann")


COLLIDING = ["telegram:a_b", "telegram:a:b", "telegram/a:b", "telegram_a:b", "Telegram:a_b"]


def test_names_of_session_keys_never_collide(tmp_path: Path) -> None:
    """G-RTE-13: five keys, five files, on a file system that ignores case as well."""
    names = {portable_name(key) for key in COLLIDING}
    assert len({name.lower() for name in names}) == len(COLLIDING)
    assert [original(portable_name(key)) for key in COLLIDING] == COLLIDING
    for name in names:
        (tmp_path / name).write_text(name)
    assert len(list(tmp_path.iterdir())) == len(COLLIDING)


@pytest.mark.parametrize(
    "key", ["telegram:group:-1001/12", "slack:C1/1700000000.1", "../../etc/passwd", "..", ".", "", "/"]
)
def test_a_key_can_not_leave_its_folder(tmp_path: Path, key: str) -> None:
    """G-RTE-14: slashes and dots in an id stay inside the base directory."""
    path = tmp_path / f"{portable_name(key)}.jsonl"
    path.write_text("x")
    assert path.resolve().parent == tmp_path.resolve()
    assert original(portable_name(key)) == key


@pytest.mark.parametrize("key", ["CON", "con", "nul", "LPT1", "a:b*c?d<e>f|g", "dot.", "blank ", "x" * 1000])
def test_names_are_portable(key: str) -> None:
    """Windows forbids these characters and names, every file system names over 255 bytes."""
    name = portable_name(key)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_")
    assert name not in {"con", "nul", "lpt1"}
    assert 0 < len(name) <= 200


@given(st.text(max_size=200), st.text(max_size=200))
def test_two_texts_have_two_names(left: str, right: str) -> None:
    assert (portable_name(left) == portable_name(right)) == (left == right)
    short = portable_name(left)
    assert original(short) in (left, None)


@given(*[st.text(alphabet="ab/%:\x00é", max_size=4)] * 4)
def test_session_keys_are_collision_free(agent: str, chat: str, account: str, thread: str) -> None:
    """Two addresses have one key only when all their parts are equal, whatever separators the parts hold."""
    scope = Scope.chat("x", Level.GUEST)

    def key(agent: str, chat: str, account: str, thread: str) -> str:
        return session_key(agent, Address("c", account, chat, "group", thread=thread), "1", scope, None)

    mine = key(agent, chat, account, thread)
    assert mine != key(agent + "/", chat, account, thread)
    assert mine != key(agent, chat + "/", account, thread)
    assert mine != key(agent, chat, account, thread + "/")
    assert key("a", "b/c", account, thread) != key("a", "b", account + "/c", thread)
