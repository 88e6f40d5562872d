"""The messages that show an answer while it is still being written: by turn and part, so that no restart forgets one.

What is shown here becomes the answer by an edit (``outbox``). Also how a part is sent that may be there already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adapters.adapter import Adapter, Eraser, Settler
from adapters.errors import Rejected
from adapters.message import Address, Part, Receipt

if TYPE_CHECKING:
    from bot.people import People
    from bot.state import State


class Previews:
    """Over the hub's database and its doors."""

    def __init__(
        self,
        state: State,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        people: People,
        clock: Callable[[], datetime],
    ) -> None:
        self._state = state
        self._adapters = adapters
        self._people = people
        self._clock = clock
        self._surplus: list[tuple[Address, str]] = []

    async def show(self, turn: str, number: int, part: Part) -> str | None:
        """Send ``part`` as what there is so far of a part of that number; the id of its message, which is kept.

        Where a turn begins anew that showed it before, that message changes into it. None where the platform gave none,
        or won't tell whether it shows it already. Raises ``adapters.errors``: nothing is tried again.
        """
        address = await self._people.newest(part.address)
        adapter = self._adapters[address.channel, address.account]
        shown = await self._state.row("SELECT message_id FROM shown WHERE turn = ? AND part = ?", turn, number)
        if shown is not None:
            await adapter.edit(readdressed(part, address), shown[0])
            return str(shown[0])
        begun = await self._state.row("SELECT received_at FROM inbox WHERE turn = ? AND tries > 1", turn)
        since = datetime.fromisoformat(begun[0]) if begun else None
        try:
            receipt = await delivered(adapter, readdressed(part, address), f"{turn}/{number}", since)
        except Unsettled:
            return None
        if receipt.message_id is not None:
            async with self._state.transaction() as db:
                await db.execute(
                    "INSERT INTO shown (turn, part, message_id, at) VALUES (?, ?, ?, ?)",
                    (turn, number, receipt.message_id, self._clock().isoformat()),
                )
        return receipt.message_id

    async def taken(self, db: Any, turn: str, parts: Sequence[Part]) -> dict[int, str]:
        """The messages that show the ``parts`` of an answer, by number, inside the caller's transaction.

        They are the outbox's from now on. What was shown beyond them is for ``take_back``.
        """
        rows = await db.execute_fetchall("DELETE FROM shown WHERE turn = ? RETURNING part, message_id", (turn,))
        if parts:
            self._surplus += [(parts[0].address, message) for number, message in rows if number >= len(parts)]
        return dict(rows)

    async def take_back(self) -> None:
        """Delete what was shown of answers beyond their ends, where the platform lets us: no crash makes up for it."""
        while self._surplus:
            address, message = self._surplus.pop()
            address = await self._people.newest(address)
            adapter = self._adapters[address.channel, address.account]  # it showed it
            if isinstance(adapter, Eraser):
                await adapter.erase(address, message)


class Unsettled(Exception):
    """The platform refuses to say whether a part arrived."""


async def delivered(adapter: Adapter, part: Part, key: str, since: datetime | None) -> Receipt:
    """The receipt of a part; one that may have been sent at ``since`` or later is looked for, where that can be done.

    What is found may be the beginning of it, that was shown while it grew. Raises Unsettled where nobody can tell.
    """
    if since is not None and isinstance(adapter, Settler):
        try:
            receipt = await adapter.settle(part, key, since)
        except Rejected as error:
            raise Unsettled from error
        if receipt is not None:
            if receipt.message_id is not None and adapter.capabilities.edits and not part.files:
                await adapter.edit(part, receipt.message_id)
            return receipt
    return await adapter.send(part, key)


def readdressed(part: Part, address: Address) -> Part:
    """A message that it replies to has another id, or none, in the chat that this one became."""
    return part if part.address == address else replace(part, address=address, reply_to=None)
