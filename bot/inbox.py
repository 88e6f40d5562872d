"""The durable inbox: what was accepted and not yet answered, deduplicated and in order within a session.

Narrow (put, claim, done), so that a distributed engine can take its place; this is the embedded one. Several processes
may use one file (a running hub, a terminal chat beside it): every row has an owner, and a process claims its own rows
only.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adapters.message import Address, Edited, Message, Part
from bot import overheard
from bot.joining import belonging, gap, merged

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from bot.outbox import SqliteOutbox
    from bot.state import State


@dataclass(frozen=True, slots=True)
class Item:
    """One accepted message. ``turn`` is stable across restarts; ``tries`` counts turns begun, this one included.

    ``message`` is the whole of what was sent as one; ``pieces`` are what it came in, when that is more than one.
    """

    turn: str
    session: str
    message: Message
    tries: int
    pieces: tuple[Item, ...] = ()


@functools.cache
def _messages() -> TypeAdapter[Message]:
    from pydantic import TypeAdapter

    return TypeAdapter(Message)


_ITEMS = "SELECT turn, session, event, tries, received_at FROM inbox WHERE"
_WAITING = "session = ? AND owner = ? AND joins IS NULL AND NOT done"


def _item(row: Sequence[Any]) -> Item:
    turn, session, event, tries, _ = row
    return Item(turn, session, _messages().validate_json(event), tries)


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
        address, now = message.address, self._clock().isoformat()
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
                    now,
                ),
            )
            await db.execute(
                "UPDATE health SET last_in = ? WHERE channel = ? AND account = ?",
                (now, address.channel, address.account),
            )
        await self._state.durable()
        return cursor.rowcount == 1

    async def due(self, session: str) -> float | None:
        """Seconds until what is to be claimed next has all that was sent as one with it, as far as can be told.

        None where there is nothing to claim.
        """
        row = await self._state.row(f"{_ITEMS} {_WAITING} ORDER BY id LIMIT 1", session, self._owner)
        if row is None:
            return None
        first = _item(row)
        if first.tries or not gap(first.message):
            return 0.0
        rows = await self._state.rows(f"{_ITEMS} {_WAITING} ORDER BY id", session, self._owner)
        messages = [_item(row).message for row in rows]
        last = [0, *(index + 1 for index in belonging(messages[0], messages[1:]))][-1]
        since = (self._clock() - datetime.fromisoformat(rows[last][-1])).total_seconds()
        return max(0.0, gap(messages[last]) - max(0.0, since))

    async def claim(self, session: str) -> Item | None:
        """The oldest unanswered message of a session, its ``tries`` raised; None when there is none.

        What was sent as one with it is claimed with it, and stays with it: what comes later is another message.
        """
        oldest = f"UPDATE inbox SET tries = tries + 1 WHERE id = (SELECT id FROM inbox WHERE {_WAITING} ORDER BY id"  # noqa: S608 - constants
        async with self._state.transaction() as db:
            rows = await db.execute_fetchall(
                f"{oldest} LIMIT 1) RETURNING turn, session, event, tries, received_at", (session, self._owner)
            )
            if not rows:
                return None
            item = _item(rows[0])
            return await self._whole(db, item) if gap(item.message) else item

    async def _whole(self, db: Any, first: Item) -> Item:
        """``first`` with the pieces that were sent as one with it."""
        if first.tries == 1:
            rows = await db.execute_fetchall(
                f"{_ITEMS} {_WAITING} AND turn <> ? ORDER BY id", (first.session, self._owner, first.turn)
            )
            later = list(map(_item, rows))
            for index in belonging(first.message, [item.message for item in later]):
                await db.execute("UPDATE inbox SET joins = ? WHERE turn = ?", (first.turn, later[index].turn))
        rest = await db.execute_fetchall(f"{_ITEMS} joins = ? AND NOT done ORDER BY id", (first.turn,))
        pieces = (first, *map(_item, rest))
        return replace(first, message=merged([piece.message for piece in pieces]), pieces=pieces)

    async def following(self, item: Item) -> list[Item]:
        """What waits in the session behind ``item``, oldest first."""
        rows = await self._state.rows(
            f"{_ITEMS} {_WAITING} AND id > (SELECT id FROM inbox WHERE turn = ?) ORDER BY id",  # noqa: S608 - constants
            item.session,
            self._owner,
            item.turn,
        )
        return list(map(_item, rows))

    async def done(self, item: Item, parts: Sequence[Part], joined: Sequence[Item] = (), heard: int = 0) -> bool:
        """In one transaction: the answer's parts are to be sent, and the message is answered, as are those ``joined``.

        What was overheard up to ``heard`` was known to the answer, and is forgotten. False, and nothing done, for a
        message that was answered or given up before.
        """
        async with self._state.transaction() as db:
            if not await self._close(db, item.turn):
                return False
            for one in (*item.pieces[1:], *joined):
                await self._close(db, one.turn)
            await self._outbox.add(db, item.turn, parts)
            if heard:
                await overheard.forget(db, item.session, heard)
            return True

    async def move(self, item: Item, session: str) -> bool:
        """It waits in another session from now on, as if no turn had been begun on it; False when it was done before.

        There it is in its place by when it came.
        """
        async with self._state.transaction() as db:
            cursor = await db.execute(
                "UPDATE inbox SET session = ?, tries = tries - 1 WHERE turn = ? AND NOT done", (session, item.turn)
            )
            await db.execute("UPDATE inbox SET session = ? WHERE joins = ? AND NOT done", (session, item.turn))
            return bool(cursor.rowcount)

    async def amend(self, edited: Edited) -> bool:
        """A message that no turn was begun on says something else now; False where that is too late, or not known."""
        return await self._replace(edited.address, edited.id, edited.text)

    async def retract(self, address: Address, message: str) -> bool:
        """A message that no turn was begun on is not to be answered; False where that is too late, or not known."""
        return await self._replace(address, message, None)

    async def _replace(self, address: Address, message: str, text: str | None) -> bool:
        async with self._state.transaction() as db:
            rows = await db.execute_fetchall(
                f"{_ITEMS} channel = ? AND account = ? AND chat = ? AND message = ?"
                " AND joins IS NULL AND NOT done AND NOT tries",
                (address.channel, address.account, address.chat, message),
            )
            for item in map(_item, rows):
                if text is None:
                    await self._close(db, item.turn)
                else:
                    event = _messages().dump_json(replace(item.message, text=text)).decode()
                    await db.execute("UPDATE inbox SET event = ? WHERE turn = ?", (event, item.turn))
        if rows:
            await self._state.durable()
        return bool(rows)

    async def give_up(self, session: str, sender: str | None) -> list[Item]:
        """End what ``sender`` (None: anyone) has waiting in a session, durably unanswered; returns it, oldest first."""
        async with self._state.transaction() as db:
            rows = await db.execute_fetchall(
                f"{_ITEMS} session = ? AND owner = ? AND NOT done ORDER BY id", (session, self._owner)
            )
            theirs = [item for item in map(_item, rows) if sender in (None, item.message.sender.id)]
            for item in theirs:
                await self._close(db, item.turn)
        await self._state.durable()
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
