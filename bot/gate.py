"""Who may talk and where it leads: access and routing over the settings and the table of people.

Decided anew for each message, from ids. Knows no inbox and stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from adapters.message import Address, Message
from bot.access import Decision, Known, Policy, Verdict, decide
from bot.groups import Groups
from bot.people import People
from bot.router import Explanation, Route, route

if TYPE_CHECKING:
    from bot.config import Settings
    from bot.state import State


class Gate:
    """Over one hub's settings."""

    def __init__(self, settings: Settings, people: People, groups: Groups) -> None:
        self.people = people
        self.groups = groups
        self._settings = settings
        self._policies: Mapping[tuple[str, str], Policy] = settings.policies()

    @classmethod
    def of(cls, settings: Settings, state: State, clock: Callable[[], datetime]) -> Gate:
        """The gate of these settings, over the tables in ``state``."""
        people = People(
            state,
            owners=settings.owners,
            identities=settings.accounts(),
            levels=settings.identity_levels(),
            clock=clock,
        )
        return cls(settings, people, Groups(state, clock=clock))

    def knows(self, agent: str) -> bool:
        return agent in self._settings.agents

    async def judge(self, message: Message) -> Verdict:
        """The verdict on one message, decided anew from ids."""
        address = await self.people.canonical(message.address)
        standing = await self.people.standing(address, message.sender)
        is_allowed = address.kind != "direct" and await self._is_allowed(message.address, address.chat)
        known = Known(standing.level, standing.is_blocked, is_allowed)
        return decide(message, address.chat, self.policy(address), known)

    def policy(self, address: Address) -> Policy:
        """Who may talk on the channel of ``address``."""
        return self._policies.get((address.channel, address.account), Policy())

    async def answers_in(self, address: Address) -> bool:
        """Whether anybody at all is answered in a chat that is not direct."""
        first = (await self.people.canonical(address)).chat
        listed = {address.chat, first, address.parent, "*"} & self.policy(address).groups
        return bool(listed) or await self._is_allowed(address, first)

    async def _is_allowed(self, address: Address, first: str) -> bool:
        return await self.groups.has(address.channel, address.account, address.chat, first, address.parent)

    async def explain(self, message: Message, verdict: Verdict) -> Explanation:
        """Where an allowed message goes, and why."""
        assert verdict.level is not None, "only an allowed message is routed"
        address = await self.people.canonical(message.address)
        identity = self.people.identity(address, message.sender)
        bindings, default = self._settings.routes(), self._settings.default_agent
        if address.channel == "terminal" and address.space is not None and self.knows(address.space):
            bindings, default = (), address.space  # limpet chat --agent NAME: what is said wins over what is bound
        peer = await self.people.first_id(address, message.sender)
        return route(message, address, bindings, default, verdict.level, identity, peer)

    async def admit(self, message: Message) -> Route | None:
        """The route of a message, None when its sender may not talk."""
        verdict = await self.judge(message)
        if verdict.decision is not Decision.ALLOW:
            return None
        return (await self.explain(message, verdict)).route
