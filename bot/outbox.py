"""The durable outbox: parts that are to be sent, in order within a chat, each marked before and after the call.

A part is ``pending``, then ``attempting`` while the platform is called, then ``sent``, ``failed`` (refused for good) or
``uncertain`` (it may have arrived: never sent again in this run, and the person is told so once). What a crash left at
``attempting`` is sent once more, and a part of its own ahead of it says so; where the platform can be asked whether a
part arrived, it is asked instead, and nothing is said or sent twice. A part is sent by the process that stored
it, or by the one that took it over from a dead one, to the id that its chat has by then. Knows no turn and no agent.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog
from structlog.contextvars import bound_contextvars

from adapters.adapter import Adapter, Settler
from adapters.errors import Absent, AdapterError, Ambiguous, AuthFailed, ChatMoved, RateLimited, Rejected
from adapters.message import Address, Part
from adapters.text import FormattedText
from bot.lanes import Failed, Lanes
from bot.previews import Previews, Unsettled, delivered, readdressed
from workspaces.database import sqlite

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from bot.outgoing import Outgoing
    from bot.people import People
    from bot.state import State

log = structlog.get_logger(__name__)

FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 60.0

REPEATED = "(You may have the next message already: I was restarted while sending it.)"
"""Said ahead of a part that a crash may have sent before."""

UNSURE = (
    "(The connection broke while I was sending the message before this one, so it may be missing. "
    "If it is, ask me again.)"
)
"""Said once a turn, where an adapter could not settle whether a part arrived."""

_OPEN = "state IN ('pending', 'attempting')"
_PENDING = f"{_OPEN} AND state = 'pending'"
"""In the words of the index of what is open, or SQLite would not use it and look at all that was ever sent."""

_UNSURE_PART = -1
"""Its number among the parts of its turn, of which it is thus the next to be sent. ``REPEATED`` has those below."""


@functools.cache
def _parts() -> TypeAdapter[Part]:
    from pydantic import TypeAdapter

    return TypeAdapter(Part)


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    turn: str
    number: int
    """Among the parts of its turn; negative for what the outbox says of itself."""
    channel: str
    account: str
    part: Part
    tries: int
    message_id: str | None
    """The message that shows it already, and is to be edited; None where it is to be sent."""
    since: datetime
    """When what it answers came, else when it was stored: nothing of it was sent before."""
    repeat: bool
    """It may have been sent before."""

    @property
    def key(self) -> str:
        return f"{self.turn}/{self.number}"


class SqliteOutbox:
    """The outbox in the hub's database, and its senders: one at a time per chat."""

    def __init__(
        self,
        state: State,
        adapters: Mapping[tuple[str, str], Adapter],
        owner: str,
        *,
        people: People,
        clock: Callable[[], datetime],
        outgoing: Outgoing | None = None,
        failed: Failed | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        """``outgoing`` holds the bytes of what is sent as a file, None where nothing is.

        ``failed`` is told when a part could not be taken up; None writes it into the log.
        """
        self.previews = Previews(state, adapters, people=people, clock=clock)
        self._state = state
        self._adapters = adapters
        self._owner = owner
        self._people = people
        self._outgoing = outgoing
        self._clock = clock
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._lanes = Lanes(self._send_next, failed=failed or _lane_failed)

    async def add(self, db: Any, turn: str, parts: Sequence[Part], *, repeat: bool = False) -> None:
        """Insert the parts of a turn inside the caller's transaction; a turn that is there already stays as it is.

        A part whose beginning was shown is edited in where it was, instead of being sent; it is looked for where a
        crash may have come between showing it and knowing that: on a turn that is one's ``repeat``.
        """
        shown = await self.previews.taken(db, turn, parts)
        for number, part in enumerate(parts):
            await self._insert(db, turn, number, part, shown.get(number), repeat=repeat)

    async def sent(self, address: Address, message_id: str) -> Address | None:
        """Where that message of a chat was said, with its thread; None for one that is none of ours."""
        chat = await self._lane(replace(address, thread=None))
        row = await self._state.row(
            "SELECT lane FROM outbox WHERE channel = ? AND account = ? AND message_id = ? AND substr(lane, 1, ?) = ?",
            address.channel,
            address.account,
            message_id,
            len(chat),
            chat,
        )
        return replace(address, thread=row[0][len(chat) :] or None) if row else None

    async def put(self, turn: str, parts: Sequence[Part]) -> None:
        """Store and begin to send parts that belong to no inbox row (a pairing code)."""
        async with self._state.transaction() as db:
            await self.add(db, turn, parts)
        await self._state.durable()
        await self.wake(parts)

    async def wake(self, parts: Sequence[Part]) -> None:
        """Parts of these chats were committed."""
        for address in {part.address for part in parts}:
            self._lanes.wake(await self._lane(address))
        await self.previews.take_back()

    def arrived(self, address: Address) -> None:
        """Somebody can be reached there again: what waited for them is sent."""
        self._lanes.wake(lane(address))

    async def recover(self, is_alive: Callable[[str], bool]) -> int:
        """Take over what dead processes left to send for this hub's accounts; returns how many parts wait.

        What they were sending is sent once more, and given up where that happened twice; either is said.
        """
        for channel, account in self._adapters:
            async with self._state.transaction() as db:
                rows = await db.execute_fetchall(
                    "SELECT DISTINCT owner FROM outbox"
                    " WHERE channel = ? AND account = ? AND state IN ('pending', 'attempting')",
                    (channel, account),
                )
                for (owner,) in rows:
                    if owner != self._owner and not is_alive(owner):
                        await self._take_over(db, channel, account, owner)
        waiting = await self._state.rows(
            f"SELECT lane, count(*) FROM outbox WHERE {_PENDING} AND owner = ? GROUP BY lane",  # noqa: S608 - a constant
            self._owner,
        )
        for name, _ in waiting:
            self._lanes.wake(name)
        if self._outgoing is not None:
            open_turns = await self._state.rows(f"SELECT DISTINCT turn FROM outbox WHERE {_OPEN}")  # noqa: S608
            unanswered = await self._state.rows("SELECT turn FROM inbox WHERE NOT done")
            await asyncio.to_thread(self._outgoing.sweep, [turn for (turn,) in (*open_turns, *unanswered)])
        return sum(count for _, count in waiting)

    async def _take_over(self, db: Any, channel: str, account: str, owner: str) -> None:
        theirs = (channel, account, owner)
        cut_off = await db.execute_fetchall(
            "SELECT id, turn, part, body, repeat, message_id FROM outbox WHERE state = 'attempting'"
            " AND channel = ? AND account = ? AND owner = ?",
            theirs,
        )
        for row, turn, number, body, repeat, message_id in cut_off:
            part = _readable(body)
            if part is None:
                await _give_up(db, row, turn)
                continue
            if message_id is not None:  # an edit may be made twice
                await db.execute("UPDATE outbox SET state = 'pending' WHERE id = ?", (row,))
            elif repeat and not isinstance(self._adapters[channel, account], Settler):
                await db.execute("UPDATE outbox SET state = 'uncertain', body = '' WHERE id = ?", (row,))
                await self._say_unsure(db, turn, number, part.address)
            else:
                await db.execute("UPDATE outbox SET state = 'pending', repeat = 1 WHERE id = ?", (row,))
                await self._say_repeated(db, turn, number, part)
        await db.execute(
            "UPDATE outbox SET owner = ? WHERE state = 'pending' AND channel = ? AND account = ? AND owner = ?",
            (self._owner, *theirs),
        )

    async def unsent(self, turn: str) -> int:
        """How many parts of a turn are still to be sent."""
        row = await self._state.row(
            "SELECT count(*) FROM outbox WHERE turn = ? AND state IN ('pending', 'attempting')", turn
        )
        return int(row[0]) if row else 0

    async def idle(self) -> None:
        """Wait until nothing is left to send."""
        await self._lanes.idle()

    async def close(self, grace: float) -> None:
        await self._lanes.close(grace)

    async def _insert(
        self, db: Any, turn: str, number: int, part: Part, message_id: str | None = None, *, repeat: bool = False
    ) -> None:
        address = part.address
        adapter = self._adapters.get((address.channel, address.account))
        await db.execute(
            "INSERT OR IGNORE INTO outbox"
            " (turn, part, lane, channel, account, body, owner, created_at, message_id, repeat)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                turn,
                number,
                await self._lane(address),
                address.channel,
                address.account,
                _parts().dump_json(part).decode(),
                self._owner,
                self._clock().isoformat(),
                message_id,
                repeat and message_id is None and isinstance(adapter, Settler),
            ),
        )

    async def _say_unsure(self, db: Any, turn: str, number: int, address: Address) -> None:
        """The person is told that a part may be missing: before what is left of the turn, and once."""
        if number >= 0:
            await self._insert(db, turn, _UNSURE_PART, Part(address, FormattedText(UNSURE)))

    async def _say_repeated(self, db: Any, turn: str, number: int, part: Part) -> None:
        """The person is told, right before it, that a part may reach them twice, where it may."""
        adapter = self._adapters[part.address.channel, part.address.account]
        if number >= 0 and not adapter.capabilities.idempotent and not isinstance(adapter, Settler):
            await self._insert(db, turn, _ahead_of(number), replace(part, text=FormattedText(REPEATED)))

    async def _lane(self, address: Address) -> str:
        """A chat keeps its lane when it moves: what is said there before and after stays in order."""
        return lane(await self._people.canonical(address))

    async def _send_next(self, name: str) -> bool:
        row = await self._next(name)
        if row is None:
            return False
        adapter = self._adapters.get((row.channel, row.account))
        if adapter is None:
            return False  # a channel that is not running here: the part waits for it
        if not await self._begin(row):
            return True  # it was never committed, or somebody else has it: look again
        with bound_contextvars(turn=row.turn):  # as the lines of the turn itself
            return await self._call(row, adapter)

    async def _call(self, row: _Row, adapter: Adapter) -> bool:
        try:
            if row.message_id is not None:
                await adapter.edit(row.part, row.message_id)
                message_id: str | None = row.message_id
            else:
                message_id = (await delivered(adapter, row.part, row.key, row.since if row.repeat else None)).message_id
        except Unsettled:
            await self._unsettled(row)
            return True
        except AdapterError as error:
            return await self._refused(row, adapter, error)
        await self._finish(row, "sent", message_id=message_id)
        log.info("part.sent", channel=row.channel, part=row.number)
        return True

    async def _begin(self, row: _Row) -> bool:
        """Mark the part durably before the call; False when it is not there to be sent any more."""
        async with self._state.transaction() as db:
            cursor = await db.execute(
                "UPDATE outbox SET state = 'attempting', tries = tries + 1 WHERE id = ? AND state = 'pending'",
                (row.id,),
            )
        try:
            await self._state.durable()
        except OSError as error:  # it was not sent, and nobody is to hear that it may have been
            await self._again(row, str(error))
            raise
        return cursor.rowcount == 1

    async def _written(self, write: Callable[[], Awaitable[None]]) -> None:
        """What became of a call has to be on disk before the lane goes on, however long a full disk lasts."""
        rest = FIRST_RETRY_SECONDS
        while True:
            try:
                return await write()
            except sqlite().OperationalError as error:
                log.error("outbox.not_written", reason=str(error))
                await self._sleep(rest)
                rest = min(2 * rest, LONGEST_RETRY_SECONDS)

    async def _refused(self, row: _Row, adapter: Adapter, error: AdapterError) -> bool:
        """What to do after each class of error; False leaves the lane until it is woken again."""
        match error:
            case ChatMoved(to_chat=to_chat) if await self._follow(row.part.address, to_chat):
                await self._again(row, str(error))
                return True
            case RateLimited(retry_after=seconds):
                await self._again(row, str(error))
                await self._sleep(seconds)
                return True
            case Rejected(formatting=True) if row.part.text.spans:
                plain = replace(row.part, text=FormattedText(row.part.text.plain))
                await self._again(row, str(error), part=plain)
                return True
            case Rejected() if row.message_id is not None:  # what showed its beginning is gone, or can't be edited
                await self._again(row, str(error), anew=True)
                return True
            case Ambiguous() if row.message_id is None and isinstance(adapter, Settler):
                await self._again(row, str(error), repeat=True)
                await self._sleep(self._backoff(row.tries))
                return True
            case Ambiguous() if row.message_id is None:
                log.warning("send.uncertain", key=row.key, account=adapter.account, reason=str(error))
                await self._finish(row, "uncertain", error=str(error))
                return True
            case AuthFailed() | Absent():
                await self._again(row, str(error))
                return False
            case _ if error.may_retry or row.message_id is not None:  # an edit that is made twice does no harm
                await self._again(row, str(error))
                await self._sleep(self._backoff(row.tries))
                return True
            case _:
                log.warning("send.failed", key=row.key, account=adapter.account, reason=str(error))
                await self._finish(row, "failed", error=str(error))
                return True

    async def _unsettled(self, row: _Row) -> None:
        """It may have been sent, and the platform won't tell: it is sent once more, which is said, and never again."""

        async def write() -> None:
            async with self._state.transaction() as db:
                ahead = (row.turn, _ahead_of(row.number))
                if await db.execute_fetchall("SELECT 1 FROM outbox WHERE turn = ? AND part = ?", ahead):
                    await db.execute("UPDATE outbox SET state = 'uncertain', body = '' WHERE id = ?", (row.id,))
                    await self._say_unsure(db, row.turn, row.number, row.part.address)
                    return
                await db.execute("UPDATE outbox SET state = 'pending', repeat = 0 WHERE id = ?", (row.id,))
                if row.number >= 0:
                    await self._insert(
                        db, *ahead, replace(row.part, text=FormattedText(REPEATED), files=(), buttons=())
                    )

        await self._written(write)

    async def _follow(self, address: Address, to_chat: str) -> bool:
        """Note that a chat moved; False where that leads nowhere, or back."""
        await self._written(lambda: self._people.move(address, to_chat))
        return await self._people.newest(address) != address

    def _backoff(self, tries: int) -> float:
        """Seconds: doubled each time, with a jitter of half so that many chats don't retry in step."""
        longest: float = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(tries, 10))
        return longest * (0.5 + self._rng.random() / 2)

    async def _next(self, name: str) -> _Row | None:
        since = "coalesce((SELECT received_at FROM inbox WHERE turn = outbox.turn), created_at)"
        columns = f"id, turn, part, channel, account, body, tries, message_id, {since}, repeat"
        waiting = f"SELECT {columns} FROM outbox WHERE {_PENDING}"  # noqa: S608 - constants
        row = await self._state.row(
            f"{waiting} AND lane = ? AND owner = ? AND part >= ? ORDER BY part >= 0, id LIMIT 1",
            name,
            self._owner,
            _UNSURE_PART,
        )
        if row is None:
            return None
        if row[6]:  # what was never tried has nothing to be said ahead of it
            row = await self._state.row(f"{waiting} AND turn = ? AND part = ?", row[1], _ahead_of(row[2])) or row
        row_id, turn, number, channel, account, body, tries, message_id, since, repeat = row
        part = _readable(body)
        if part is None:
            async with self._state.transaction() as db:
                await _give_up(db, row_id, turn)
            return await self._next(name)
        part = readdressed(part, await self._people.newest(part.address))
        stored = datetime.fromisoformat(since)
        return _Row(row_id, turn, number, channel, account, part, tries, message_id, stored, bool(repeat))

    async def _again(
        self, row: _Row, error: str, *, part: Part | None = None, anew: bool = False, repeat: bool = False
    ) -> None:
        """The part waits for its next try; ``anew``: as a message of its own, whatever showed it before.

        ``repeat``: this try may have sent it.
        """
        body = _parts().dump_json(part or row.part).decode()
        message_id = None if anew else row.message_id

        async def write() -> None:
            async with self._state.transaction() as db:
                await db.execute(
                    "UPDATE outbox SET state = 'pending', error = ?, body = ?, message_id = ?,"
                    " repeat = max(repeat, ?) WHERE id = ?",
                    (error, body, message_id, repeat, row.id),
                )

        await self._written(write)

    async def _finish(self, row: _Row, state: str, *, message_id: str | None = None, error: str | None = None) -> None:
        async def write() -> None:
            async with self._state.transaction() as db:
                await db.execute(
                    "UPDATE outbox SET state = ?, message_id = ?, error = ?,"
                    " body = CASE WHEN ? = 'failed' THEN body ELSE '' END WHERE id = ?",
                    (state, message_id, error, state, row.id),
                )
                if state == "uncertain":
                    await self._say_unsure(db, row.turn, row.number, row.part.address)
                await db.execute(
                    "UPDATE health SET last_out = ? WHERE ? = 'sent' AND channel = ? AND account = ?",
                    (self._clock().isoformat(), state, row.channel, row.account),
                )

        await self._written(write)
        if row.part.files and self._outgoing is not None and not await self.unsent(row.turn):
            await asyncio.to_thread(self._outgoing.drop, row.turn)


def _readable(body: str) -> Part | None:
    """The part in ``body``; None for one of a damaged disk, or of a version that wrote something else."""
    try:
        return _parts().validate_json(body)
    except ValueError:
        return None


async def _give_up(db: Any, row: int, turn: str) -> None:
    """A part that can't be read has failed, or all behind it would wait for ever."""
    log.error("part.unreadable", turn=turn)
    await db.execute("UPDATE outbox SET state = 'failed', error = 'it can not be read' WHERE id = ?", (row,))


def lane(address: Address) -> str:
    """The key of a chat's (and thread's) order of sending; ``address`` is canonical."""
    return "\x1f".join((address.channel, address.account, address.space or "", address.chat, address.thread or ""))


def _ahead_of(number: int) -> int:
    """The number of what is said right before the part of that number: below ``_UNSURE_PART``, each its own."""
    return _UNSURE_PART - 1 - number


async def _lane_failed(name: str, error: Exception) -> None:
    log.error("outbox.lane_failed", lane=name, exc_info=error)
