"""May this sender talk here? By ids alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from adapters.message import Address, Message, Sender
from bot.access import Decision, Known, Policy, decide
from workspaces.scope import Level

ALLOW, PAIR, DENY = Decision.ALLOW, Decision.PAIR, Decision.DENY


def said(sender: Sender, *, kind: str = "direct", chat: str = "c", mentions_me: bool = False) -> Message:
    address = Address("telegram", "telegram", chat, "direct" if kind == "direct" else "group")
    return Message("1", address, sender, "hi", datetime(2026, 11, 30, tzinfo=UTC), mentions_me=mentions_me)


def verdict(message: Message, policy: Policy, level: Level | None = None) -> tuple[Decision, Level | None]:
    result = decide(message, message.address.chat, policy, Known(level))
    assert result.reason
    return result.decision, result.level


ANN = Sender("7", "Ann")


@pytest.mark.parametrize(
    ("direct", "allow", "level", "expected"),
    [
        ("pairing", [], None, (PAIR, None)),
        ("pairing", [], Level.GUEST, (ALLOW, Level.GUEST)),
        ("pairing", ["7"], None, (ALLOW, Level.GUEST)),
        ("pairing", ["*"], None, (PAIR, None)),
        ("allowlist", ["7"], None, (ALLOW, Level.GUEST)),
        ("allowlist", ["7"], Level.OWNER, (ALLOW, Level.OWNER)),
        ("allowlist", ["8"], None, (DENY, None)),
        ("open", ["*"], None, (ALLOW, Level.GUEST)),
        ("open", [], None, (DENY, None)),
        ("disabled", ["7", "*"], Level.OWNER, (DENY, None)),
    ],
)
def test_direct_messages(
    direct: str, allow: list[str], level: Level | None, expected: tuple[Decision, Level | None]
) -> None:
    policy = Policy(direct=direct, allow=frozenset(allow))  # type: ignore[arg-type]  # the table holds plain strings
    assert verdict(said(ANN), policy, level) == expected


def test_a_pairing_of_old_opens_no_allowlist() -> None:
    """G-RTE-15: an id that was once paired is not in the list."""
    policy = Policy(direct="allowlist", allow=frozenset({"+15550001234"}))
    assert verdict(said(Sender("+15550009999")), policy, Level.GUEST) == (DENY, None)


def test_pairing_in_a_direct_chat_opens_no_group() -> None:
    """G-RTE-16: paired, but the group is not in the list."""
    message = said(ANN, kind="group", chat="-100", mentions_me=True)
    assert verdict(message, Policy(groups=frozenset({"-200"})), Level.GUEST) == (DENY, None)
    assert verdict(message, Policy(groups=frozenset({"-100"})), Level.GUEST) == (ALLOW, Level.GUEST)


@pytest.mark.parametrize("sender", ["evil|12345", "12345|evil", " 12345", "12345 ", "012345", "１２３４５"])
def test_an_id_is_the_whole_id(sender: str) -> None:
    """G-RTE-17: a composite or look-alike id passes no list."""
    policy = Policy(direct="allowlist", allow=frozenset({"12345"}))
    assert verdict(said(Sender(sender)), policy) == (DENY, None)


@pytest.mark.parametrize("allow", [[], [""]])
@pytest.mark.parametrize("direct", ["allowlist", "open"])
def test_an_empty_list_means_nobody(direct: str, allow: list[str]) -> None:
    """G-RTE-18: missing or empty never means everyone, not for an empty id either."""
    policy = Policy(direct=direct, allow=frozenset(allow))  # type: ignore[arg-type]  # the table holds plain strings
    assert verdict(said(ANN), policy) == (DENY, None)
    assert verdict(said(Sender("")), policy) == (DENY, None)
    group = said(ANN, kind="group", chat="", mentions_me=True)
    assert verdict(group, Policy(groups=frozenset(allow) - {""})) == (DENY, None)


def test_names_decide_nothing() -> None:
    """G-RTE-19: a display name or a user name that moved to another id is no key."""
    policy = Policy(direct="allowlist", allow=frozenset({"alice"}))
    assert verdict(said(Sender("666", name="alice")), policy) == (DENY, None)


def test_an_alias_is_the_same_person() -> None:
    policy = Policy(direct="allowlist", allow=frozenset({"+15550001234"}))
    assert verdict(said(Sender("1@lid", aliases=("+15550001234",))), policy) == (ALLOW, Level.GUEST)


def test_bots_and_shared_ids_are_not_people() -> None:
    everyone = Policy(direct="open", allow=frozenset({"*"}), groups=frozenset({"*"}), mention=False)
    assert verdict(said(replace(ANN, is_bot=True)), everyone, Level.OWNER) == (DENY, None)
    assert verdict(said(replace(ANN, is_shared=True)), everyone, Level.OWNER) == (DENY, None)
    assert verdict(said(replace(ANN, is_shared=True), kind="group"), everyone, Level.OWNER) == (DENY, None)


def test_a_group_message_must_address_us_unless_the_gate_is_off() -> None:
    listed = Policy(groups=frozenset({"-100"}))
    assert verdict(said(ANN, kind="group", chat="-100"), listed) == (Decision.OVERHEAR, Level.GUEST)
    assert verdict(said(ANN, kind="group", chat="-100", mentions_me=True), listed) == (ALLOW, Level.GUEST)
    assert verdict(said(ANN, kind="group", chat="-200"), listed) == (DENY, None), "nothing is heard where none may talk"
    assert verdict(said(replace(ANN, is_bot=True), kind="group", chat="-100"), listed) == (DENY, None)
    assert verdict(said(replace(ANN, is_shared=True), kind="group", chat="-100"), listed) == (DENY, None)
    assert verdict(said(ANN, kind="group", chat="-100"), replace(listed, mention=False)) == (ALLOW, Level.GUEST)
