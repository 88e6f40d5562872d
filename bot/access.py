"""May this sender talk here? Decided before anything is stored or run, by ids alone.

One pure function over a channel's policy, what the adapter reported and the level the sender holds. Knows no database
and no model: an unknown sender costs neither a row nor a call, except for the pairing code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal, TypeAlias

from adapters.message import Message
from workspaces.scope import Level

DirectPolicy: TypeAlias = Literal["pairing", "allowlist", "open", "disabled"]


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may talk on one channel.

    ``allow`` holds sender ids ("*" counts only with ``direct`` = "open"); ``groups`` holds chat ids ("*" for every
    group). An empty set means nobody. ``mention`` is whether a group message must address us.
    """

    direct: DirectPolicy = "pairing"
    allow: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    mention: bool = True


class Decision(Enum):
    ALLOW = auto()
    PAIR = auto()
    """Not allowed yet: answer with a pairing code and nothing else."""
    OVERHEAR = auto()
    """Not said to us, where we may listen: something to know, and nothing to answer."""
    DENY = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason`` is one clause for the log and ``route explain``; ``level`` is set when it is ALLOW or OVERHEAR."""

    decision: Decision
    reason: str
    level: Level | None = None


def decide(message: Message, chat: str, policy: Policy, level: Level | None) -> Verdict:
    """The verdict on one message.

    ``chat`` is the canonical id of its chat and ``level`` what the sender holds, None for a stranger.
    """
    if message.sender.is_bot:
        return Verdict(Decision.DENY, "the sender is a bot")
    if message.address.kind == "direct":
        return _direct(message, policy, level)
    return _group(message, chat, policy, level)


def _direct(message: Message, policy: Policy, level: Level | None) -> Verdict:
    sender = message.sender
    if sender.is_shared:
        return Verdict(Decision.DENY, "the sender id is shared by several people")
    if message.address.channel == "terminal":
        return Verdict(Decision.ALLOW, "the terminal is the owner", Level.OWNER)
    listed = any(i in policy.allow for i in (sender.id, *sender.aliases) if i and i != "*")
    allowed = Verdict(Decision.ALLOW, "the sender is in the allowlist", level or Level.GUEST)
    if policy.direct == "disabled":
        return Verdict(Decision.DENY, "direct messages are disabled")
    if listed:
        return allowed
    if policy.direct == "open":
        if "*" in policy.allow:
            return Verdict(Decision.ALLOW, "direct messages are open", level or Level.GUEST)
        return Verdict(Decision.DENY, 'direct messages are open, but allow holds no "*"')
    if policy.direct == "allowlist":
        return Verdict(Decision.DENY, "the sender is not in the allowlist")
    if level is not None:
        return Verdict(Decision.ALLOW, f"the sender is known as {level.name.lower()}", level)
    return Verdict(Decision.PAIR, "the sender is unknown")


def _group(message: Message, chat: str, policy: Policy, level: Level | None) -> Verdict:
    listed = {message.address.chat, chat, message.address.parent} & policy.groups
    if not (listed or "*" in policy.groups):
        return Verdict(Decision.DENY, "the group is not in the list of groups")
    if message.sender.is_shared:
        return Verdict(Decision.DENY, "the sender id is shared by several people")
    if policy.mention and not message.mentions_me:
        return Verdict(Decision.OVERHEAR, "the message does not address us", level or Level.GUEST)
    return Verdict(Decision.ALLOW, "the group is allowed", level or Level.GUEST)
