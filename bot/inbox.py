"""The durable inbox: what was accepted and not yet answered, deduplicated and in order within a session.

Narrow (put, claim, done), so that a distributed engine can take its place; this is the embedded one. Several processes
may use one file (a running hub, a terminal chat beside it): every row has an owner, and a process claims its own rows
only.
"""

from __future__ import annotations

import functools
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog

from adapters.message import Address, Edited, Message, Part, Sender
from bot import overheard
from bot.joining import ONE_BY_ONE, belonging, gap, is_same_place, merged, wholes
from bot.queueing import PRESS, Queue

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from bot.outbox import SqliteOutbox
    from bot.state import State


log = structlog.get_logger(__name__)

MOST_TRIES = 3
"""Turns begun on one message; the next only apologises."""

LONGEST_WORDS = 60
"""Characters that are kept of a message that was left out."""


@dataclass(frozen=True, slots=True)
class Item:
    """One accepted message. ``turn`` is stable across restarts; ``tries`` counts turns begun, this one included.

    ``is_begun``: a turn was begun on it before, so that the transcript of its session may have it. ``message`` is the
    whole of what was sent as one, and ``further`` are the wholes that are answered with it, in order; ``pieces`` are
    what all that came in, this first one included, when that is more than one.
    """

    turn: str
    session: str
    message: Message
    tries: int
    is_begun: bool = False
    pieces: tuple[Item, ...] = ()
    further: tuple[Item, ...] = ()

    @property
    def newest(self) -> Message:
        """What an answer shows that it answers."""
        return (self, *self.further)[-1].message


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Messages that were dropped since too many waited. ``last`` is to be given back to ``done``, 0 for none.

    ``own`` are the beginnings of what the asked sender said at the asked place, ``others`` of everybody else's.
    """

    last: int = 0
    own: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetAside:
    """A message that was given up after ``MOST_TRIES`` turns on it failed; ``received_at`` is ISO 8601, aware."""

    turn: str
    channel: str
    account: str
    chat: str
    session: str
    received_at: str


@functools.cache
def _messages() -> TypeAdapter[Message]:
    from pydantic import TypeAdapter

    return TypeAdapter(Message)


_COLUMNS = "turn, session, event, tries, begun, received_at"
_ITEMS = f"SELECT {_COLUMNS} FROM inbox WHERE"  # noqa: S608 - constants
_WAITING = "session = ? AND owner = ? AND joins IS NULL AND NOT done"


def _item(row: Sequence[Any]) -> Item:
    turn, session, event, tries, begun, _ = row
    return Item(turn, session, _messages().validate_json(event), tries, bool(begun))


def _items(rows: Iterable[Sequence[Any]]) -> list[Item]:
    """Those that can be read; another is set aside when its turn has come (``SqliteInbox.due``)."""
    found = []
    for row in rows:
        with suppress(ValueError):
            found.append(_item(row))
    return found


async def _one_by_one(address: Address, session: str) -> Queue:  # noqa: ARG001 - the same everywhere
    return ONE_BY_ONE


async def set_aside(state: State, since: datetime) -> list[SetAside]:
    """What ``since`` then ended in an apology, after three tries that failed; the newest first."""
    rows = await state.rows(
        "SELECT turn, channel, account, chat, session, received_at FROM inbox"
        " WHERE tries > 3 AND done AND received_at >= ? ORDER BY id DESC",
        since.isoformat(),
    )
    return [SetAside(*row) for row in rows]


class SqliteInbox:
    """The inbox in the hub's database; ``owner`` names this process.

    ``queue`` says how the messages of a session queue that came from an address.
    """

    def __init__(
        self,
        state: State,
        outbox: SqliteOutbox,
        owner: str,
        clock: Callable[[], datetime],
        new_turn: Callable[[], str] = lambda: f"turn-{secrets.token_hex(8)}",
        queue: Callable[[Address, str], Awaitable[Queue]] = _one_by_one,
    ) -> None:
        self._state = state
        self._outbox = outbox
        self._owner = owner
        self._clock = clock
        self._new_turn = new_turn
        self._queue = queue

    async def put(self, message: Message, session: str) -> bool:
        """Store ``message`` durably; False when it was stored before (a replay is a no-op)."""
        address, now, turn = message.address, self._clock().isoformat(), self._new_turn()
        async with self._state.transaction() as db:
            cursor = await db.execute(
                "INSERT OR IGNORE INTO inbox"
                " (turn, channel, account, chat, message, session, event, owner, received_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    turn,
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
        if is_new := cursor.rowcount == 1:
            log.info("message.accepted", turn=turn, channel=address.channel, account=address.account)
        return is_new

    async def crowd_out(self, session: str, most: int) -> list[Item]:
        """Drop what waits in ``session`` beyond ``most`` messages: the oldest of whoever has the most waiting there.

        Durable on return, and kept for ``left_out``. Returns them as they came, each of their pieces.
        """
        waiting = f"{_WAITING} AND NOT begun"
        count = await self._state.row(f"SELECT count(*) FROM inbox WHERE {waiting}", session, self._owner)  # noqa: S608
        if count is None or count[0] <= most:
            return []
        dropped: list[Item] = []
        async with self._state.transaction() as db:
            rows = await db.execute_fetchall(f"{_ITEMS} {waiting} ORDER BY id", (session, self._owner))
            items = _items(rows)
            left = wholes([item.message for item in items])
            while len(left) > most:
                crowd = Counter(items[whole[0]].message.sender.id for whole in left)
                worst = next(w for w in left if crowd[items[w[0]].message.sender.id] == max(crowd.values()))
                left.remove(worst)
                dropped += [items[index] for index in worst]
                await self._drop(db, [items[index] for index in worst])
        if dropped:
            await self._state.durable()
        return dropped

    async def _drop(self, db: Any, pieces: Sequence[Item]) -> None:
        for item in pieces:
            await self._close(db, item.turn)
        whole = merged([item.message for item in pieces])
        said = " ".join([*(f"[{file.kind}]" for file in whole.attachments), whole.text])
        words = replace(whole, text=said[: LONGEST_WORDS + 1], attachments=(), quote=None)
        event = _messages().dump_json(words).decode()
        await db.execute("UPDATE inbox SET dropped = 1, event = ? WHERE turn = ?", (event, pieces[0].turn))

    async def left_out(self, item: Item, after: int = 0) -> LeftOut:
        """What was dropped in the session of ``item``, later than ``after``, and no answer knows of yet."""
        rows = await self._state.rows(
            "SELECT id, event FROM inbox WHERE session = ? AND dropped AND id > ? ORDER BY id", item.session, after
        )
        own: list[str] = []
        others: list[str] = []
        for _, event in rows:
            message = _messages().validate_json(event)
            if is_same_place(message, item.message) and message.forwarded_from is None:
                own.append(message.text)
            else:
                others.append(f"{message.sender.name or message.sender.id}: {message.text}")
        return LeftOut(rows[-1][0] if rows else 0, tuple(own), tuple(others))

    async def due(self, session: str) -> float | None:
        """Seconds until what is to be claimed next has all that is answered as one with it, as far as can be told.

        None where there is nothing to claim.
        """
        row = await self._state.row(f"{_ITEMS} {_WAITING} ORDER BY id LIMIT 1", session, self._owner)
        if row is None:
            return None
        try:
            first = _item(row)
        except ValueError as error:  # of a damaged disk, or a version that wrote something else
            await self._set_aside(row[0], str(error))
            return await self.due(session)
        queue = await self._queue(first.message.address, session)
        if first.is_begun or not gap(first.message, queue):
            return 0.0
        rows = await self._state.rows(f"{_ITEMS} {_WAITING} ORDER BY id", session, self._owner)
        waiting = [(item.message, row[-1]) for row in rows for item in _items([row])]
        messages = [message for message, _ in waiting]
        last = [0, *(index + 1 for index in belonging(messages[0], messages[1:], queue))][-1]
        since = (self._clock() - datetime.fromisoformat(waiting[last][1])).total_seconds()
        return max(0.0, gap(messages[last], queue) - max(0.0, since))

    async def _set_aside(self, turn: str, why: str) -> None:
        """Give up a message that can't be read, as one on which too many turns failed. Its row stays, for a look."""
        log.error("message.unreadable", turn=turn, reason=why)
        async with self._state.transaction() as db:
            await db.execute("UPDATE inbox SET done = 1, tries = ? WHERE turn = ? AND NOT done", (MOST_TRIES + 1, turn))

    async def claim(self, session: str) -> Item | None:
        """The oldest unanswered message of a session, its ``tries`` raised; None when there is none.

        What is answered as one with it is claimed with it, and stays with it: what comes later is another message.
        """
        every = "SELECT count(*) FROM inbox AS every WHERE every.session = inbox.session AND NOT every.done"
        oldest = f"SELECT {_COLUMNS}, ({every}) FROM inbox WHERE {_WAITING} ORDER BY id LIMIT 1"  # noqa: S608 - constants
        async with self._state.transaction() as db:
            rows = await db.execute_fetchall(oldest, (session, self._owner))
            if not rows:
                return None
            *columns, waiting = rows[0]
            item = _item(columns)
            item = replace(item, tries=item.tries + 1)
            await db.execute("UPDATE inbox SET tries = tries + 1, begun = 1 WHERE turn = ?", (item.turn,))
            if waiting == 1:  # as nearly always
                return item
            if not item.is_begun:
                queue = await self._queue(item.message.address, session)
                if gap(item.message, queue) or queue.mode == "collect":
                    await self._gather(db, item, queue)
            rest = await db.execute_fetchall(f"{_ITEMS} joins = ? AND NOT done ORDER BY id", (item.turn,))
            return _whole([item, *_items(rest)])

    async def _gather(self, db: Any, first: Item, queue: Queue) -> None:
        """Note what else waits that is answered as one with ``first``, on which no turn was begun before."""
        rows = await db.execute_fetchall(
            f"{_ITEMS} {_WAITING} AND turn <> ? ORDER BY id", (first.session, self._owner, first.turn)
        )
        later = _items(rows)
        for index in belonging(first.message, [item.message for item in later], queue):
            await db.execute("UPDATE inbox SET joins = ? WHERE turn = ?", (first.turn, later[index].turn))

    async def enter(self, item: Item) -> None:
        """``item`` entered a turn that is running: as one that a turn was begun on, it can't be dropped or changed."""
        async with self._state.transaction() as db:
            await db.execute("UPDATE inbox SET begun = 1 WHERE turn = ?", (item.turn,))

    async def put_back(self, item: Item) -> None:
        """A turn on it was cut off, which is no fault of it: the try doesn't count."""
        async with self._state.transaction() as db:
            await db.execute("UPDATE inbox SET tries = tries - 1 WHERE turn = ? AND NOT done", (item.turn,))

    async def following(self, item: Item) -> list[Item]:
        """What waits in the session behind ``item``, oldest first."""
        rows = await self._state.rows(
            f"{_ITEMS} {_WAITING} AND id > (SELECT id FROM inbox WHERE turn = ?) ORDER BY id",  # noqa: S608 - constants
            item.session,
            self._owner,
            item.turn,
        )
        return _items(rows)

    async def done(
        self, item: Item, parts: Sequence[Part], joined: Sequence[Item] = (), heard: int = 0, left_out: int = 0
    ) -> bool:
        """In one transaction: the answer's parts are to be sent, and the message is answered, as are those ``joined``.

        What was overheard up to ``heard``, and left out up to ``left_out``, was known to the answer, and is forgotten.
        False, and nothing done, for a message that was answered or given up before.
        """
        async with self._state.transaction() as db:
            if not await self._close(db, item.turn):
                return False
            for one in (*item.pieces[1:], *joined):
                await self._close(db, one.turn)
            await self._outbox.add(db, item.turn, parts, repeat=item.tries > 1)
            if heard:
                await overheard.forget(db, item.session, heard)
            if left_out:
                await db.execute(
                    "UPDATE inbox SET dropped = 0, event = '' WHERE session = ? AND dropped AND id <= ?",
                    (item.session, left_out),
                )
            return True

    async def move(self, item: Item, session: str) -> bool:
        """It waits in another session from now on, as if no turn had been begun on it; False when it was done before.

        There it is in its place by when it came.
        """
        async with self._state.transaction() as db:
            cursor = await db.execute(
                "UPDATE inbox SET session = ?, tries = tries - 1, begun = 0 WHERE turn = ? AND NOT done",
                (session, item.turn),
            )
            await db.execute("UPDATE inbox SET session = ? WHERE joins = ? AND NOT done", (session, item.turn))
            if item.message.address.kind == "direct":  # all that was dropped there was said by the same person
                await db.execute("UPDATE inbox SET session = ? WHERE session = ? AND dropped", (session, item.session))
            return bool(cursor.rowcount)

    async def amend(self, edited: Edited) -> bool:
        """A message that no turn was begun on says something else now; False where that is too late, or not known."""
        return await self._replace(edited.address, edited.id, edited.text, edited.sender)

    async def retract(self, address: Address, message: str, by: Sender | None = None) -> bool:
        """A message that no turn was begun on is not to be answered; False where that is too late, or not known.

        ``by`` is who says so, and only the message's own sender may; None for the platform itself.
        """
        return await self._replace(address, message, None, by)

    async def _replace(self, address: Address, message: str, text: str | None, by: Sender | None) -> bool:
        async with self._state.transaction() as db:
            rows = await db.execute_fetchall(
                f"{_ITEMS} channel = ? AND account = ? AND chat = ? AND message = ?"
                " AND joins IS NULL AND NOT done AND NOT begun",
                (address.channel, address.account, address.chat, message),
            )
            found = [item for item in _items(rows) if by is None or by.is_person_of(item.message.sender)]
            if text is None:
                await db.execute(
                    "UPDATE inbox SET dropped = 0, event = ''"
                    " WHERE channel = ? AND account = ? AND chat = ? AND message = ? AND dropped",
                    (address.channel, address.account, address.chat, message),
                )
            for item in found:
                if text is None:
                    await self._close(db, item.turn)
                else:
                    event = _messages().dump_json(replace(item.message, text=text)).decode()
                    await db.execute("UPDATE inbox SET event = ? WHERE turn = ?", (event, item.turn))
        if found:
            await self._state.durable()
        return bool(found)

    async def give_up(self, session: str, sender: str | None, before: str | None = None) -> list[Item]:
        """End what ``sender`` (None: anyone) has waiting in a session, durably unanswered; returns it, oldest first.

        ``before`` is a turn: what was said after its message stays. None ends it all.
        """
        earlier = "" if before is None else "AND id < (SELECT id FROM inbox WHERE turn = ?) "
        values = (session, self._owner) if before is None else (session, self._owner, before)
        async with self._state.transaction() as db:
            rows = await db.execute_fetchall(
                f"{_ITEMS} session = ? AND owner = ? AND NOT done {earlier}ORDER BY id", values
            )
            theirs = [item for item in _items(rows) if sender in (None, item.message.sender.id)]
            for item in theirs:
                await self._close(db, item.turn)
            await self._forget(db, session, sender)
        await self._state.durable()
        return theirs

    async def _forget(self, db: Any, session: str, sender: str | None) -> None:
        """What was dropped of ``sender`` is spoken of no more."""
        rows = await db.execute_fetchall(f"{_ITEMS} session = ? AND dropped", (session,))
        for item in map(_item, rows):
            if sender in (None, item.message.sender.id):
                await db.execute("UPDATE inbox SET dropped = 0, event = '' WHERE turn = ?", (item.turn,))

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

    async def newest(self, channel: str, account: str) -> dict[str, str]:
        """By chat, the id of the message that was accepted last there, answered or not; presses of buttons are none."""
        rows = await self._state.rows(
            "SELECT chat, message, max(id) FROM inbox WHERE channel = ? AND account = ?"
            " AND substr(message, 1, ?) <> ? GROUP BY chat",
            channel,
            account,
            len(PRESS),
            PRESS,
        )
        return {chat: message for chat, message, _ in rows}

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


def _whole(pieces: Sequence[Item]) -> Item:
    """The first of ``pieces`` with all that it is answered with."""
    first, *others = pieces
    if not others:
        return first
    messages = [piece.message for piece in pieces]
    items = [
        replace(pieces[whole[0]], message=merged([messages[index] for index in whole])) for whole in wholes(messages)
    ]
    return replace(items[0], pieces=tuple(pieces), further=tuple(items[1:]))
