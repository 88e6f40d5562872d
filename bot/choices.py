"""What a person chose for one session, in the chat: how its messages queue, and which model answers there.

Kept in the state database, so that it survives a restart. Knows what is chosen by name only, not what it means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.state import State


@dataclass(frozen=True, slots=True)
class Choice:
    """None where nothing was chosen: as the settings have it."""

    queue: str | None = None
    model: str | None = None


class Choices:
    """The table ``choices`` of the hub's database."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def of(self, session: str) -> Choice:
        row = await self._state.row("SELECT queue, model FROM choices WHERE session = ?", session)
        return Choice(*row) if row is not None else Choice()

    async def queue(self, session: str, mode: str | None) -> None:
        """Choose how messages queue in ``session``; None takes the choice back. Durable on return."""
        await self._set("queue", session, mode)

    async def model(self, session: str, name: str | None) -> None:
        """Choose the model of ``session``; None takes the choice back. Durable on return."""
        await self._set("model", session, name)

    async def _set(self, column: str, session: str, value: str | None) -> None:
        async with self._state.transaction() as db:
            await db.execute(
                f"INSERT INTO choices (session, {column}) VALUES (?, ?)"  # noqa: S608 - a constant of this module
                f" ON CONFLICT (session) DO UPDATE SET {column} = excluded.{column}",
                (session, value),
            )
        await self._state.durable()
