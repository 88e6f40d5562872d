"""Who people are: their levels, the accounts that are one person, and chats that changed their id.

Ids decide, never names. Levels come from the configuration (``owners``) or from a pairing that was approved. Knows no
agent and decides nothing: that is ``access``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adapters.message import Address, Sender
from workspaces.scope import Level

if TYPE_CHECKING:
    from bot.state import State


_BLOCKED = 0
"""Stands in the place of a level."""


@dataclass(frozen=True, slots=True)
class Person:
    """One known sender id. ``level`` is what was given to it, None for one that is blocked; ``since`` is ISO 8601."""

    channel: str
    sender: str
    level: Level | None
    name: str
    since: str


@dataclass(frozen=True, slots=True)
class Standing:
    """The highest level that any id of a sender holds, None for a stranger; and whether one of them is blocked."""

    level: Level | None = None
    is_blocked: bool = False


class People:
    """The table of known people, with the configured owners and identities laid over it."""

    def __init__(
        self,
        state: State,
        *,
        owners: Sequence[str],
        identities: Mapping[str, Sequence[str]],
        levels: Mapping[str, Level] | None = None,
        clock: Callable[[], datetime],
    ) -> None:
        """``identities`` are the accounts of each person, and ``levels`` what the person holds at least, by name."""
        self._state = state
        self._levels = levels or {}
        self._owners = frozenset(owners)
        self._identity = {account: name for name, accounts in identities.items() for account in accounts}
        self._clock = clock
        self._moves: Moves | None = None

    async def level(self, address: Address, sender: Sender) -> Level | None:
        """The highest level that any id of ``sender`` holds; None for a stranger, and for one who is blocked."""
        return (await self.standing(address, sender)).level

    async def standing(self, address: Address, sender: Sender) -> Standing:
        """What ``sender`` is to us.

        The terminal is the owner's own: whoever reads its socket can read the files as well. A shared id holds nothing,
        and an owner of the settings is blocked by nothing.
        """
        if address.channel == "terminal":
            return Standing(Level.OWNER)
        if sender.is_shared:
            return Standing()
        ids = (sender.id, *sender.aliases)
        if any(f"{address.channel}:{i}" in self._owners for i in ids):
            return Standing(Level.OWNER)
        marks = ", ".join("?" * len(ids))
        row = await self._state.row(
            f"SELECT max(level), min(level) FROM people WHERE channel = ? AND sender IN ({marks})",  # noqa: S608 - only "?" marks
            address.channel,
            *ids,
        )
        highest, lowest = row or (None, None)
        if lowest == _BLOCKED:
            return Standing(is_blocked=True)
        linked = self._levels.get(self.identity(address, sender) or "")
        held = [level for level in (linked, highest and Level(highest)) if level is not None]
        return Standing(max(held, default=None))

    def identity(self, address: Address, sender: Sender) -> str | None:
        """The name under which the configuration links this account with others; None when it doesn't."""
        for own in (sender.id, *sender.aliases):
            if name := self._identity.get(f"{address.channel}:{own}"):
                return name
        return None

    async def give(self, channel: str, sender: str, level: Level, name: str) -> None:
        """Set the level of one sender id durably, whatever it was."""
        async with self._state.transaction() as db:
            await self.add(db, channel, sender, level, name)
        await self._state.durable()

    async def add(self, db: Any, channel: str, sender: str, level: Level, name: str) -> None:
        """The same inside the caller's transaction."""
        await db.execute(
            "INSERT INTO people (channel, sender, level, name, since) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET level = excluded.level, name = excluded.name, since = excluded.since",
            (channel, sender, int(level), name, self._clock().isoformat()),
        )

    async def block(self, channel: str, sender: str, name: str) -> None:
        """The id is not heard any more, wherever it speaks, durably, until it is given a level or taken away."""
        async with self._state.transaction() as db:
            await db.execute(
                "INSERT INTO people (channel, sender, level, name, since) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET level = excluded.level, since = excluded.since",
                (channel, sender, _BLOCKED, name, self._clock().isoformat()),
            )
            await db.execute("DELETE FROM pairing WHERE channel = ? AND sender = ?", (channel, sender))
        await self._state.durable()

    async def take_away(self, channel: str, sender: str) -> bool:
        """The id is a stranger's from its next message on, durably; False when it was not known."""
        async with self._state.transaction() as db:
            cursor = await db.execute("DELETE FROM people WHERE channel = ? AND sender = ?", (channel, sender))
        await self._state.durable()
        return bool(cursor.rowcount)

    async def all(self) -> list[Person]:
        """Everyone who was given a level or was blocked, by channel and id."""
        rows = await self._state.rows("SELECT channel, sender, level, name, since FROM people ORDER BY channel, sender")
        return [
            Person(channel, sender, Level(level) if level else None, name, since)
            for channel, sender, level, name, since in rows
        ]

    async def move(self, address: Address, to_chat: str) -> None:
        """The chat has a new id on its platform; here it keeps the first one it had, durably.

        An id that the chat had before is never its new one: what is told late, or again, changes nothing. A person gets
        another id once only: who has their number after them is somebody else.
        """
        moves = await self._known_moves()
        first = moves.first(address, address.chat)
        if to_chat == first or (address.kind == "direct" and moves.newest(address, first) != first):
            return
        async with self._state.transaction() as db:
            cursor = await db.execute(
                "INSERT OR IGNORE INTO moved (channel, account, chat, first_chat) VALUES (?, ?, ?, ?)",
                (address.channel, address.account, to_chat, first),
            )
        if cursor.rowcount:
            moves.add(address.channel, address.account, to_chat, first)
        await self._state.durable()

    async def canonical(self, address: Address) -> Address:
        """The address under the first id its chat had, by which sessions, scopes and allowlists know it."""
        return _at(address, (await self._known_moves()).first(address, address.chat))

    async def first_id(self, address: Address, sender: Sender) -> str:
        """The first id that a person was known by: by it their session and their memory go on.

        It gives no right: an id that is no longer theirs may be another's by now.
        """
        return (await self._known_moves()).first(address, sender.id)

    async def newest(self, address: Address) -> Address:
        """The address under the id that its chat has now: where the platform takes messages for it."""
        moves = await self._known_moves()
        return _at(address, moves.newest(address, moves.first(address, address.chat)))

    async def _known_moves(self) -> Moves:
        """Read once: they are few, asked for ten times a turn, and written by nobody but the process that has the
        account."""
        if self._moves is None:
            rows = await self._state.rows("SELECT channel, account, chat, first_chat FROM moved ORDER BY rowid")
            self._moves = Moves(rows)
        return self._moves


class Moves:
    """The table of chats that have had several ids."""

    def __init__(self, rows: Iterable[Sequence[str]] = ()) -> None:
        """``rows`` as for ``add``, the oldest move first."""
        self._first: dict[tuple[str, str, str], str] = {}
        self._newest: dict[tuple[str, str, str], str] = {}
        for row in rows:
            self.add(*row)

    def add(self, channel: str, account: str, chat: str, first: str) -> None:
        """``chat`` is the newest id of the chat whose first one was ``first``."""
        self._first[channel, account, chat] = first
        self._newest[channel, account, first] = chat

    def first(self, address: Address, chat: str) -> str:
        """The first id of what is ``chat`` on the account of ``address``."""
        return self._first.get((address.channel, address.account, chat), chat)

    def newest(self, address: Address, first: str) -> str:
        """The id that it has now."""
        return self._newest.get((address.channel, address.account, first), first)


def _at(address: Address, chat: str) -> Address:
    return address if address.chat == chat else replace(address, chat=chat)
