"""The groups that were allowed beside the settings: from a chat, by a button, or in the terminal.

By the first id that a chat had, so that a group which moves stays allowed. Decides nothing: that is ``access``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.state import State


@dataclass(frozen=True, slots=True)
class AllowedGroup:
    """``since`` is ISO 8601."""

    channel: str
    account: str
    chat: str
    since: str


class Groups:
    """The table, in the hub's database; usable beside a running hub."""

    def __init__(self, state: State, *, clock: Callable[[], datetime]) -> None:
        self._state = state
        self._clock = clock

    async def has(self, channel: str, account: str, *chats: str | None) -> bool:
        """Whether a chat that is known by one of these ids is allowed."""
        ids = [chat for chat in chats if chat is not None]
        marks = ", ".join("?" * len(ids))
        row = await self._state.row(
            f"SELECT 1 FROM chats WHERE channel = ? AND account = ? AND chat IN ({marks})",  # noqa: S608 - only "?" marks
            channel,
            account,
            *ids,
        )
        return row is not None

    async def allow(self, channel: str, account: str, chat: str) -> bool:
        """We answer there from now on, durably; False where we did before."""
        return await self._change(
            "INSERT OR IGNORE INTO chats (channel, account, chat, since) VALUES (?, ?, ?, ?)",
            channel,
            account,
            chat,
            self._clock().isoformat(),
        )

    async def forget(self, channel: str, account: str, chat: str) -> bool:
        """It is as the settings have it again, durably; False where it was."""
        return await self._change(
            "DELETE FROM chats WHERE channel = ? AND account = ? AND chat = ?", channel, account, chat
        )

    async def all(self) -> list[AllowedGroup]:
        """By channel, account and id."""
        rows = await self._state.rows("SELECT channel, account, chat, since FROM chats ORDER BY 1, 2, 3")
        return [AllowedGroup(*row) for row in rows]

    async def _change(self, statement: str, *values: str) -> bool:
        async with self._state.transaction() as db:
            cursor = await db.execute(statement, values)
        await self._state.durable()
        return bool(cursor.rowcount)
