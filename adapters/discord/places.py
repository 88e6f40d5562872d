"""Where something was said: what a channel id of Discord's means, and who and what its names stand for.

What the library knows of the servers is asked first, then Discord. A channel that nobody can tell of has no place: what
was said there is held, and never taken for something said elsewhere.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import discord

from adapters.message import Address, Kind
from adapters.text import sanitize

if TYPE_CHECKING:
    from discord.abc import GuildChannel, PrivateChannel
    from discord.threads import Thread

    from adapters.discord.client import Client

_DIRECT = (1, 3)
_PRIVATE_THREAD = 12
_THREADS = (10, 11, _PRIVATE_THREAD)
"""Discord's numbers for kinds of channels."""

_MOST = 1000
"""Channels that are remembered which the library doesn't know: direct ones, archived threads."""


@dataclass(frozen=True, slots=True)
class Place:
    """A channel or thread. ``space`` is the server, None in a direct chat; ``parent`` is set for a thread only.

    ``is_mine``: a thread that the bot takes part in.
    """

    chat: str
    kind: Kind
    space: str | None = None
    parent: str | None = None
    private: bool = False
    is_mine: bool = False
    name: str = ""

    def address(self, account: str) -> Address:
        thread = self.chat if self.parent is not None else None
        return Address("discord", account, self.chat, self.kind, self.space, self.parent, thread, self.private)


class Guide(Protocol):
    """What ids stand for, "" where nobody knows."""

    def role(self, space: str | None, role: str) -> str: ...

    def channel(self, channel: str) -> str: ...

    def my_roles(self, space: str | None) -> frozenset[str]:
        """The bot's own roles on a server."""


def place_of(channel: dict[str, Any]) -> Place:
    """From Discord's own form of a channel."""
    kind, space = channel["type"], channel.get("guild_id")
    if kind in _DIRECT or space is None:
        return Place(str(channel["id"]), "direct")
    return Place(
        str(channel["id"]),
        "channel",
        str(space),
        str(channel["parent_id"]) if kind in _THREADS else None,
        private=kind == _PRIVATE_THREAD,
        is_mine=kind in _THREADS and "member" in channel,
        name=sanitize(channel.get("name") or ""),
    )


class Places:
    """The places of one bot."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._session = client.session
        self._fetched: OrderedDict[str, Place] = OrderedDict()

    async def of(self, channel: str) -> Place:
        """Raises ``adapters.errors`` where Discord doesn't tell."""
        if known := self.known(channel):
            return known
        place = place_of(await self._client.channel(channel))
        self.remember(place)
        return place

    def known(self, channel: str) -> Place | None:
        """None for a channel that Discord would have to be asked about."""
        cached = self._session.get_channel(int(channel))
        return self._fetched.get(channel) if cached is None else _of_library(cached)

    def remember(self, place: Place) -> None:
        self._fetched[place.chat] = place
        while len(self._fetched) > _MOST:
            self._fetched.popitem(last=False)

    def unread(self) -> dict[str, str]:
        """By channel and open thread of the servers, the id of the newest message."""
        found: dict[str, str] = {}
        for guild in self._session.guilds:
            for channel in (*guild.channels, *guild.threads):
                last = getattr(channel, "last_message_id", None)
                if last is not None and not isinstance(channel, discord.ForumChannel):
                    found[str(channel.id)] = str(last)
        return found

    def role(self, space: str | None, role: str) -> str:
        guild = self._session.get_guild(int(space)) if space else None
        found = guild.get_role(int(role)) if guild else None
        return sanitize(found.name) if found else ""

    def channel(self, channel: str) -> str:
        found = self._session.get_channel(int(channel))
        return sanitize(getattr(found, "name", "") or "")

    def my_roles(self, space: str | None) -> frozenset[str]:
        guild = self._session.get_guild(int(space)) if space else None
        me = guild.me if guild else None
        return frozenset(str(role.id) for role in me.roles if not role.is_default()) if me else frozenset()


def _of_library(channel: GuildChannel | Thread | PrivateChannel) -> Place:
    guild = getattr(channel, "guild", None)
    kind = getattr(channel, "type", discord.ChannelType.private).value
    raw: dict[str, Any] = {"id": channel.id, "type": kind, "name": getattr(channel, "name", "")}
    raw |= {"guild_id": guild.id, "parent_id": getattr(channel, "parent_id", None)} if guild else {}
    if getattr(channel, "me", None) is not None:
        raw["member"] = True
    return place_of(raw)
