"""From a message to the agent, session and scope that answer it. Pure, and able to say why.

Bindings are tried by how exactly they name the chat; the first that matches wins, in this order: exact chat, parent
chat of a thread, chat wildcard, space and role, space, account, channel, default; of two that are alike in this the one
that asks for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from adapters.message import Address, Message
from bot.agent_names import made_name
from bot.scope import Per, audience, scope_of
from bot.session_key import session_key
from workspaces.scope import Level, Scope


@dataclass(frozen=True, slots=True)
class Match:
    """What a binding asks of a message; None asks nothing. ``chat`` "*" is any chat that is not direct."""

    channel: str | None = None
    account: str | None = None
    space: str | None = None
    role: str | None = None
    chat: str | None = None
    thread: str | None = None
    sender: str | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """Messages that match go to ``agent``. ``origin`` says where it was written ("limpet.toml:12").

    With ``per``, ``agent`` is a template, and each chat or each sender has a workspace of its own made from it.
    """

    agent: str
    match: Match
    origin: str = ""
    per: Per | None = None

    @property
    def goes_to(self) -> str:
        """In words: "main", or "support, for each chat its own"."""
        return f"{self.agent}, for each {self.per} its own" if self.per else self.agent


@dataclass(frozen=True, slots=True)
class Route:
    """Who answers, in which thread of talk, for which audience."""

    agent: str
    session: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Considered:
    """One binding and what became of it: ``won``, or why it lost."""

    binding: Binding
    won: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The route and how each binding fared, in the order in which they were tried."""

    route: Route
    considered: tuple[Considered, ...]


_TIERS = ("exact chat", "parent chat", "any chat", "space and role", "space", "account", "channel", "everything")


def route(
    message: Message,
    address: Address,
    bindings: Sequence[Binding],
    default: str,
    level: Level,
    identity: str | None = None,
    peer: str | None = None,
) -> Explanation:
    """Route ``message``, whose canonical address is ``address``. ``default`` is the agent where no binding matches.

    ``identity`` is the configured name of the person, None without one; ``peer`` the first id they were known by, None
    for the one they have now.
    """
    peer = peer or message.sender.id
    tried = sorted(
        ((tier, binding) for binding in bindings for tier in _tiers(binding.match, address)),
        key=lambda pair: (pair[0], -_asked(pair[1].match)),
    )
    considered: list[Considered] = []
    winner: Binding | None = None
    for tier, binding in tried:
        reason = _mismatch(binding.match, message, address, parent=tier == 1)
        if reason is None and winner is None:
            winner = binding
            considered.append(Considered(binding, True, _TIERS[tier]))
        elif winner is not binding:
            considered.append(Considered(binding, False, reason or "a more exact binding won"))
    agent, per = (winner.agent, winner.per) if winner else (default, None)
    if per is not None:
        agent = made_name(agent, audience(address, peer, identity, per))
    scope = scope_of(address, peer, level, identity, per)
    session = session_key(agent, address, peer, scope, identity)
    return Explanation(Route(agent, session, scope), tuple(considered))


def _tiers(match: Match, address: Address) -> tuple[int, ...]:
    """The places in the order at which a binding is tried; an exact chat is tried against the parent as well."""
    if match.chat is not None and match.chat != "*":
        return (0, 1) if address.parent is not None and address.parent != address.chat else (0,)
    if match.chat == "*":
        return (2,)
    if match.space is not None:
        return (3,) if match.role is not None else (4,)
    if match.account is not None:
        return (5,)
    return (6,) if match.channel is not None else (7,)


def _asked(match: Match) -> int:
    """How many keys a binding asks for."""
    return sum(getattr(match, field.name) is not None for field in fields(match))


def _mismatch(match: Match, message: Message, address: Address, *, parent: bool) -> str | None:
    """Why the binding doesn't match; None when it does."""
    actual: dict[str, str | None] = {
        "channel": address.channel,
        "account": address.account,
        "space": address.space,
        "chat": address.parent if parent else address.chat,
        # A chat that moved is known by its first id and by its present one.
        "chat now": message.address.parent if parent else message.address.chat,
        "thread": address.thread,
        "sender": message.sender.id,
    }
    for field in fields(match):
        wanted = getattr(match, field.name)
        if wanted is None:
            continue
        if field.name == "role":
            if wanted not in message.sender.roles:
                return f"the sender has no role {wanted!r}"
        elif field.name == "chat" and wanted == "*":
            if address.kind == "direct":
                return "a direct chat"
        elif (field.name == "chat" and wanted == actual["chat now"]) or (
            field.name == "sender" and wanted in message.sender.ids
        ):
            continue
        elif actual[field.name] != wanted:
            return f"{field.name} is {actual[field.name]!r}, not {wanted!r}"
    return None
