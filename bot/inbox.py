"""The durable inbox: what was accepted and not yet answered, deduplicated and in order within a session.

Narrow (put, claim, done), so that a distributed engine can take its place; this is the embedded one. Several processes
may use one file (a running hub, a terminal chat beside it): every row has an owner, and a process claims its own rows
only.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adapters.message import Message, Part

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from bot.outbox import SqliteOutbox
    from bot.state import State


@dataclass(frozen=True, slots=True)
class Item:
    """One accepted message. ``turn`` is stable across restarts; ``tries`` counts turns begun, this one included."""

    turn: str
    session: str
    message: Message
    tries: int


@functools.cache
def _messages() -> TypeAdapter[Message]:
    from pydantic import TypeAdapter

    return TypeAdapter(Message)


class SqliteInbox:
    """The inbox in the hub's database; ``owner`` names this process."""

    def __init__(
        self,
        state: State,
        outbox: SqliteOutbox,
        owner: str,
        clock: Callable[[], datetime],
        new_turn: Callable[[], str] = lambda: f"turn-{secrets.token_hex(8)}",
    ) -> None:
        self._state = state
        self._outbox = outbox
        self._owner = owner
        self._clock = clock
        self._new_turn = new_turn

    async def put(self, message: Message, session: str) -> bool:
        """Store ``message`` durably; False when it was stored before (a replay is a no-op)."""
        address = message.address
        async with self._state.transaction() as db:
            cursor = await db.execute(
                "INSERT OR IGNORE INTO inbox"
                " (turn, channel, account, chat, message, session, event, owner, received_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self._new_turn(),
                    address.channel,
                    address.account,
                    address.chat,
                    message.id,
                    session,
                    _messages().dump_json(message).decode(),
                    self._owner,
                    self._now(),
                ),
            )
            await db.execute(
                "UPDATE health SET last_in = ? WHERE channel = ? AND account = ?",
                (self._now(), address.channel, address.account),
            )
            return cursor.rowcount == 1

    async def waits(self, session: str) -> bool:
        """Whether there is something to claim in a session."""
        sql = "SELECT 1 FROM inbox WHERE session = ? AND NOT done AND owner = ? LIMIT 1"
        return await self._state.row(sql, session, self._owner) is not None

    async def claim(self, session: str) -> Item | None:
        """The oldest unanswered message of a session, its ``tries`` raised durably; None when there is none."""
        async with self._state.transaction() as db:
            rows = await db.execute_fetchall(
                "UPDATE inbox SET tries = tries + 1 WHERE id ="
                " (SELECT id FROM inbox WHERE session = ? AND NOT done AND owner = ? ORDER BY id LIMIT 1)"
                " RETURNING turn, session, event, tries",
                (session, self._owner),
            )
        for turn, of_session, event, tries in rows:
            return Item(turn, of_session, _messages().validate_json(event), tries)
        return None

    async def following(self, item: Item) -> list[Item]:
        """What waits in the session behind ``item``, oldest first."""
        rows = await self._state.rows(
            "SELECT turn, session, event, tries FROM inbox WHERE session = ? AND NOT done AND owner = ?"
            " AND id > (SELECT id FROM inbox WHERE turn = ?) ORDER BY id",
            item.session,
            self._owner,
            item.turn,
        )
        return [Item(turn, of, _messages().validate_json(event), tries) for turn, of, event, tries in rows]

    async def done(self, item: Item, parts: Sequence[Part], joined: Sequence[Item] = ()) -> bool:
        """In one transaction: the answer's parts are to be sent, and the message is answered, as are those ``joined``.

        False, and nothing done, for one that was answered or given up before.
        """
        async with self._state.transaction() as db:
            if not await self._close(db, item.turn):
                return False
            for one in joined:
                await self._close(db, one.turn)
            await self._outbox.add(db, item.turn, parts)
            return True

    async def move(self, item: Item, session: str) -> bool:
        """It waits in another session from now on, as if no turn had been begun on it; False when it was done before.

        There it is in its place by when it came.
        """
        async with self._state.transaction() as db:
            cursor = await db.execute(
                "UPDATE inbox SET session = ?, tries = tries - 1 WHERE turn = ? AND NOT done", (session, item.turn)
            )
            return bool(cursor.rowcount)

    async def give_up(self, session: str, sender: str | None) -> list[Item]:
        """End what ``sender`` (None: anyone) has waiting in a session, unanswered; returns it, oldest first."""
        async with self._state.transaction() as db:
            rows = await db.execute_fetchall(
                "SELECT turn, session, event, tries FROM inbox WHERE session = ? AND NOT done AND owner = ?"
                " ORDER BY id",
                (session, self._owner),
            )
            waiting = [Item(turn, of, _messages().validate_json(event), tries) for turn, of, event, tries in rows]
            theirs = [item for item in waiting if sender in (None, item.message.sender.id)]
            for item in theirs:
                await self._close(db, item.turn)
            return theirs

    async def _close(self, db: Any, turn: str) -> bool:
        """False when it was done before. The text goes: the transcript is the only copy of what was said."""
        cursor = await db.execute("UPDATE inbox SET done = 1, event = '' WHERE turn = ? AND NOT done", (turn,))
        return bool(cursor.rowcount)

    async def turn_of(self, message: Message) -> tuple[str, bool] | None:
        """The turn of a message that was accepted before and whether it has ended; None for one that was not."""
        address = message.address
        row = await self._state.row(
            "SELECT turn, done FROM inbox WHERE channel = ? AND account = ? AND chat = ? AND message = ?",
            address.channel,
            address.account,
            address.chat,
            message.id,
        )
        return (row[0], bool(row[1])) if row else None

    async def adopt(self, channels: Iterable[tuple[str, str]], is_alive: Callable[[str], bool]) -> list[str]:
        """Take over what dead processes left unanswered on these (channel, account) pairs.

        Returns the sessions that wait for this process, oldest first.
        """
        async with self._state.transaction() as db:
            for channel, account in channels:
                rows = await db.execute_fetchall(
                    "SELECT DISTINCT owner FROM inbox WHERE channel = ? AND account = ? AND NOT done",
                    (channel, account),
                )
                for (owner,) in rows:
                    if owner != self._owner and not is_alive(owner):
                        await db.execute(
                            "UPDATE inbox SET owner = ? WHERE channel = ? AND account = ? AND NOT done AND owner = ?",
                            (self._owner, channel, account, owner),
                        )
        waiting = await self._state.rows(
            "SELECT session FROM inbox WHERE NOT done AND owner = ? GROUP BY session ORDER BY min(id)", self._owner
        )
        return [session for (session,) in waiting]

    def _now(self) -> str:
        return self._clock().isoformat()
