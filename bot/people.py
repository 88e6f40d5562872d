"""Who people are: their levels, the accounts that are one person, and chats that changed their id.

Ids decide, never names. Levels come from the configuration (``owners``) or from a pairing that was approved. Knows no
agent and decides nothing: that is ``access``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adapters.message import Address, Sender
from workspaces.scope import Level

if TYPE_CHECKING:
    from bot.state import State


@dataclass(frozen=True, slots=True)
class Person:
    """One known sender id. ``level`` is what was given to it; ``since`` is when, ISO 8601."""

    channel: str
    sender: str
    level: Level
    name: str
    since: str


class People:
    """The table of known people, with the configured owners and identities laid over it."""

    def __init__(
        self,
        state: State,
        *,
        owners: Sequence[str],
        identities: Mapping[str, Sequence[str]],
        clock: Callable[[], datetime],
    ) -> None:
        self._state = state
        self._owners = frozenset(owners)
        self._identity = {account: name for name, accounts in identities.items() for account in accounts}
        self._clock = clock

    async def level(self, address: Address, sender: Sender) -> Level | None:
        """The highest level that any id of ``sender`` holds; None for a stranger.

        The terminal is the owner's own: whoever reads its socket can read the files as well. A shared id holds none.
        """
        if address.channel == "terminal":
            return Level.OWNER
        if sender.is_shared:
            return None
        ids = (sender.id, *sender.aliases)
        if any(f"{address.channel}:{i}" in self._owners for i in ids):
            return Level.OWNER
        marks = ", ".join("?" * len(ids))
        row = await self._state.row(
            f"SELECT max(level) FROM people WHERE channel = ? AND sender IN ({marks})",  # noqa: S608 - only "?" marks
            address.channel,
            *ids,
        )
        return Level(row[0]) if row and row[0] is not None else None

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

    async def take_away(self, channel: str, sender: str) -> bool:
        """The id is a stranger's from its next message on, durably; False when it was not known."""
        async with self._state.transaction() as db:
            cursor = await db.execute("DELETE FROM people WHERE channel = ? AND sender = ?", (channel, sender))
        await self._state.durable()
        return bool(cursor.rowcount)

    async def all(self) -> list[Person]:
        """Everyone who was given a level, by channel and id."""
        rows = await self._state.rows("SELECT channel, sender, level, name, since FROM people ORDER BY channel, sender")
        return [Person(channel, sender, Level(level), name, since) for channel, sender, level, name, since in rows]

    async def move(self, address: Address, to_chat: str) -> None:
        """The chat has a new id on its platform; here it keeps the first one it had, durably.

        An id that the chat had before is never its new one: what is told late, or again, changes nothing.
        """
        first = (await self.canonical(address)).chat
        if to_chat == first:
            return
        async with self._state.transaction() as db:
            await db.execute(
                "INSERT OR IGNORE INTO moved (channel, account, chat, first_chat) VALUES (?, ?, ?, ?)",
                (address.channel, address.account, to_chat, first),
            )
        await self._state.durable()

    async def canonical(self, address: Address) -> Address:
        """The address under the first id its chat had, by which sessions, scopes and allowlists know it."""
        row = await self._state.row(
            "SELECT first_chat FROM moved WHERE channel = ? AND account = ? AND chat = ?",
            address.channel,
            address.account,
            address.chat,
        )
        return replace(address, chat=row[0]) if row else address

    async def newest(self, address: Address) -> Address:
        """The address under the id that its chat has now: where the platform takes messages for it."""
        first = await self.canonical(address)
        row = await self._state.row(
            "SELECT chat FROM moved WHERE channel = ? AND account = ? AND first_chat = ? ORDER BY rowid DESC LIMIT 1",
            address.channel,
            address.account,
            first.chat,
        )
        return replace(address, chat=row[0]) if row else first
