"""Where owners are reached: the chats in which they last wrote directly, kept, with the level they have now.

Knows no reason to tell them anything: that is for whoever calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

from adapters.adapter import Adapter
from adapters.message import Address, Button, Part, Sender
from adapters.text import FormattedText
from bot.pairing import packed, unpacked
from workspaces.scope import Level

if TYPE_CHECKING:
    from bot.outbox import SqliteOutbox
    from bot.people import People
    from bot.state import State

log = structlog.get_logger(__name__)

MOST_BYTES = 64
"""What a button can say (``adapters.message.Button``)."""


class Owners:
    """Over one hub's tables and doors."""

    def __init__(
        self, state: State, adapters: Mapping[tuple[str, str], Adapter], people: People, outbox: SqliteOutbox
    ) -> None:
        self._state = state
        self._adapters = adapters
        self._people = people
        self._outbox = outbox
        self._doors: dict[tuple[str, str, str], Address] = {}

    async def wrote(self, address: Address, sender: Sender) -> None:
        """An owner wrote directly: there they can be told something."""
        known = (address.channel, address.account, sender.id)
        if address.channel == "terminal" or self._doors.get(known) == address:
            return
        key = (address.channel, address.account, await self._owning(address, sender))
        async with self._state.transaction() as db:
            await db.execute(
                "INSERT OR REPLACE INTO owner_doors (channel, account, sender, address) VALUES (?, ?, ?, ?)",
                (*key, packed(address)),
            )
        self._doors[known] = address

    async def _owning(self, address: Address, sender: Sender) -> str:
        """Of the ids of an owner the one that makes them one: it has to be enough by itself later."""
        for one in (sender.id, *sender.aliases):
            if (await self._people.standing(address, Sender(one))).level is Level.OWNER:
                return one
        return sender.id

    async def tell(
        self, turn: str, words: str, answers: tuple[Button, ...] = (), *, but: tuple[str, str] | None = None
    ) -> bool:
        """Say it to each who ever wrote directly and is an owner still, but not by the account ``but``.

        ``answers`` are buttons, or commands to be read where there are none. ``turn`` is the same for a repetition.
        Whether there was anybody.
        """
        fit = all(len(button.data.encode()) <= MOST_BYTES for button in answers)
        listed = "\n".join(f"{button.label}: {button.data}" for button in answers)
        parts = []
        for address, sender in await self._reached():
            if (address.channel, address.account) == but:
                continue
            has_buttons = fit and self._adapters[address.channel, address.account].capabilities.buttons
            text = words if has_buttons or not answers else f"{words}\n\n{listed}"
            rows = tuple((button,) for button in answers) if has_buttons else ()
            parts.append(Part(address, FormattedText(text), buttons=rows))
            log.debug("owner.told", channel=address.channel, sender=sender)
        if parts:
            await self._outbox.put(turn, parts)
        return bool(parts)

    async def _reached(self) -> list[tuple[Address, str]]:
        found = []
        for sender, written in await self._state.rows("SELECT sender, address FROM owner_doors ORDER BY rowid"):
            address = unpacked(written)
            if (address.channel, address.account) not in self._adapters:
                continue
            if (await self._people.standing(address, Sender(sender))).level is Level.OWNER:
                found.append((address, sender))
        return found
