"""May this sender talk here? Decided before anything is stored or run, by ids alone.

One pure function over a channel's policy, what the adapter reported and the level the sender holds. Knows no database
and no model: an unknown sender costs neither a row nor a call, except for the pairing code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal, TypeAlias

from adapters.message import Message
from workspaces.scope import Level

DirectPolicy: TypeAlias = Literal["pairing", "allowlist", "open", "disabled"]


Joining: TypeAlias = Literal["say", "leave", "quiet"]
"""What is done in a group that we were added to and may not answer in."""


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """What holds in one group and its threads. None is as for the whole channel: ``allow`` None lets anyone speak."""

    mention: bool | None = None
    allow: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may talk on one channel.

    ``allow`` holds sender ids ("*" counts only with ``direct`` = "open"); ``groups`` holds chat ids ("*" for every
    group). An empty set means nobody. ``blocked`` are senders who are not heard anywhere. ``mention`` is whether a
    group message must address us; ``chats`` says it otherwise for some, by chat id.
    """

    direct: DirectPolicy = "pairing"
    allow: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    blocked: frozenset[str] = frozenset()
    mention: bool = True
    chats: Mapping[str, ChatPolicy] = field(default_factory=dict)
    joining: Joining = "say"

    def of(self, *chats: str | None) -> ChatPolicy:
        """What holds in a chat that is known by these ids, the nearest first."""
        return next((self.chats[chat] for chat in chats if chat is not None and chat in self.chats), ChatPolicy())


ALLOW_COMMAND = "/allow"
"""With this an owner lets us answer in a group, from inside it."""


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


@dataclass(frozen=True, slots=True)
class Known:
    """What the tables have of a message: the ``level`` of its sender, None for a stranger, whether that sender was
    blocked, and whether its chat was allowed beside the settings.
    """

    level: Level | None = None
    is_blocked: bool = False
    is_allowed: bool = False


def closed_to(channel: str, sender: str, policies: Mapping[str, Policy]) -> str:
    """Why a level would not let ``sender`` write directly, with the mend; "" where it would.

    ``policies`` are those of the channel, by the name of their section.
    """
    if any(sender in policy.blocked for policy in policies.values()):
        return f"{channel}:{sender} is blocked. That is so by the settings: change it there."
    if not policies or any(its.direct in ("pairing", "open") or sender in its.allow for its in policies.values()):
        return ""
    where = " or ".join(f"channels.{account}.allow" for account in policies)
    return f"Only who is in the settings may write directly there: add {sender!r} to {where}."


def decide(message: Message, chat: str, policy: Policy, known: Known) -> Verdict:
    """The verdict on one message. ``chat`` is the canonical id of its chat."""
    if message.sender.is_bot:
        return Verdict(Decision.DENY, "the sender is a bot")
    if known.is_blocked or policy.blocked & {message.sender.id, *message.sender.aliases}:
        return Verdict(Decision.DENY, "the sender is blocked")
    if message.address.kind == "direct":
        return _direct(message, policy, known.level)
    return _group(message, chat, policy, known)


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


def _group(message: Message, chat: str, policy: Policy, known: Known) -> Verdict:
    address, level = message.address, known.level
    listed = {address.chat, chat, address.parent, "*"} & policy.groups
    if not (listed or known.is_allowed):
        says_it = message.text.strip() == ALLOW_COMMAND and message.forwarded_from is None and not message.attachments
        if level is Level.OWNER and says_it:
            return Verdict(Decision.ALLOW, "the owner allows the group", level)
        return Verdict(Decision.DENY, "the group is not in the list of groups")
    if message.sender.is_shared:
        return Verdict(Decision.DENY, "the sender id is shared by several people")
    own = policy.of(address.chat, chat, address.parent)
    is_among = own.allow is None or level is Level.OWNER or own.allow & {message.sender.id, *message.sender.aliases}
    if not is_among:
        return Verdict(Decision.DENY, "the sender is not among those who are answered in this group")
    needs_mention = policy.mention if own.mention is None else own.mention
    if needs_mention and not message.mentions_me:
        return Verdict(Decision.OVERHEAR, "the message does not address us", level or Level.GUEST)
    return Verdict(Decision.ALLOW, "the group is allowed", level or Level.GUEST)
