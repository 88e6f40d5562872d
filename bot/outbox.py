"""The durable outbox: parts that are to be sent, in order within a chat, each marked before and after the call.

A part is ``pending``, then ``attempting`` while the platform is called, then ``sent``, ``failed`` (refused for good) or
``uncertain`` (it may have arrived: never sent again in this run). What a crash left at ``attempting`` is sent once more
with a marker, where the platform has no means to settle it. A part is sent by the process that stored it, or by the
one that took it over from a dead one. Knows no turn and no agent.
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

from adapters.adapter import Adapter
from adapters.errors import Absent, AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected
from adapters.message import Address, Part
from adapters.text import FormattedText
from bot.lanes import Lanes

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from bot.state import State

log = structlog.get_logger(__name__)

FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 60.0

REPEATED = "(This may reach you twice: I was restarted while sending it.)\n\n"


@functools.cache
def _parts() -> TypeAdapter[Part]:
    from pydantic import TypeAdapter

    return TypeAdapter(Part)


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    key: str
    channel: str
    account: str
    part: Part
    tries: int
    repeat: bool


class SqliteOutbox:
    """The outbox in the hub's database, and its senders: one at a time per chat."""

    def __init__(
        self,
        state: State,
        adapters: Mapping[tuple[str, str], Adapter],
        owner: str,
        *,
        clock: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._state = state
        self._adapters = adapters
        self._owner = owner
        self._clock = clock
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._lanes = Lanes(self._send_next, failed=_lane_failed)

    async def add(self, db: Any, turn: str, parts: Sequence[Part]) -> None:
        """Insert the parts of a turn inside the caller's transaction; a turn that is there already stays as it is."""
        for number, part in enumerate(parts):
            address = part.address
            await db.execute(
                "INSERT OR IGNORE INTO outbox (turn, part, lane, channel, account, body, owner, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    turn,
                    number,
                    lane(address),
                    address.channel,
                    address.account,
                    _parts().dump_json(part).decode(),
                    self._owner,
                    self._clock().isoformat(),
                ),
            )

    async def put(self, turn: str, parts: Sequence[Part]) -> None:
        """Store and begin to send parts that belong to no inbox row (a pairing code)."""
        async with self._state.transaction() as db:
            await self.add(db, turn, parts)
        self.wake(parts)

    def wake(self, parts: Sequence[Part]) -> None:
        """Parts of these chats were committed."""
        for address in {part.address for part in parts}:
            self._lanes.wake(lane(address))

    def arrived(self, address: Address) -> None:
        """Somebody can be reached there again: what waited for them is sent."""
        self._lanes.wake(lane(address))

    async def recover(self, is_alive: Callable[[str], bool]) -> int:
        """Take over what dead processes left to send for this hub's accounts; returns how many parts wait.

        What they were sending is sent once more, marked, and given up where that happened twice.
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
            "SELECT lane, count(*) FROM outbox WHERE state = 'pending' AND owner = ? GROUP BY lane", self._owner
        )
        for name, _ in waiting:
            self._lanes.wake(name)
        return sum(count for _, count in waiting)

    async def _take_over(self, db: Any, channel: str, account: str, owner: str) -> None:
        await db.execute(
            "UPDATE outbox SET repeat = repeat + 1,"
            " state = CASE WHEN repeat = 0 THEN 'pending' ELSE 'uncertain' END"
            " WHERE state = 'attempting' AND channel = ? AND account = ? AND owner = ?",
            (channel, account, owner),
        )
        await db.execute(
            "UPDATE outbox SET owner = ? WHERE state = 'pending' AND channel = ? AND account = ? AND owner = ?",
            (self._owner, channel, account, owner),
        )

    async def idle(self) -> None:
        """Wait until nothing is left to send."""
        await self._lanes.idle()

    async def close(self, grace: float) -> None:
        await self._lanes.close(grace)

    async def _send_next(self, name: str) -> bool:
        row = await self._next(name)
        if row is None:
            return False
        adapter = self._adapters.get((row.channel, row.account))
        if adapter is None:
            return False  # a channel that is not running here: the part waits for it
        await self._mark(row, "attempting")
        try:
            receipt = await adapter.send(_marked(row), row.key)
        except AdapterError as error:
            return await self._refused(row, adapter, error)
        await self._finish(row, "sent", message_id=receipt.message_id)
        return True

    async def _refused(self, row: _Row, adapter: Adapter, error: AdapterError) -> bool:
        """What to do after each class of error; False leaves the lane until it is woken again."""
        match error:
            case RateLimited(retry_after=seconds):
                await self._mark(row, "pending", str(error))
                await self._sleep(seconds)
                return True
            case Rejected(formatting=True) if row.part.text.spans:
                plain = replace(row.part, text=FormattedText(row.part.text.plain))
                await self._mark(row, "pending", str(error), part=plain)
                return True
            case Ambiguous():
                log.warning("send.uncertain", key=row.key, account=adapter.account, reason=str(error))
                await self._finish(row, "uncertain", error=str(error))
                return True
            case AuthFailed() | Absent():
                await self._mark(row, "pending", str(error))
                return False
            case _ if error.may_retry:
                await self._mark(row, "pending", str(error))
                await self._sleep(self._backoff(row.tries))
                return True
            case _:
                log.warning("send.failed", key=row.key, account=adapter.account, reason=str(error))
                await self._finish(row, "failed", error=str(error))
                return True

    def _backoff(self, tries: int) -> float:
        """Seconds: doubled each time, with a jitter of half so that many chats don't retry in step."""
        longest: float = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(tries, 10))
        return longest * (0.5 + self._rng.random() / 2)

    async def _next(self, name: str) -> _Row | None:
        row = await self._state.row(
            "SELECT id, turn, part, channel, account, body, tries, repeat FROM outbox"
            " WHERE lane = ? AND state = 'pending' AND owner = ? ORDER BY id LIMIT 1",
            name,
            self._owner,
        )
        if row is None:
            return None
        number, turn, part, channel, account, body, tries, repeat = row
        return _Row(number, f"{turn}/{part}", channel, account, _parts().validate_json(body), tries, bool(repeat))

    async def _mark(self, row: _Row, state: str, error: str | None = None, *, part: Part | None = None) -> None:
        body = _parts().dump_json(part or row.part).decode()
        async with self._state.transaction() as db:
            await db.execute(
                "UPDATE outbox SET state = ?, error = ?, body = ?, tries = tries + (? = 'attempting') WHERE id = ?",
                (state, error, body, state, row.id),
            )

    async def _finish(self, row: _Row, state: str, *, message_id: str | None = None, error: str | None = None) -> None:
        async with self._state.transaction() as db:
            await db.execute(
                "UPDATE outbox SET state = ?, message_id = ?, error = ?,"
                " body = CASE WHEN ? = 'failed' THEN body ELSE '' END WHERE id = ?",
                (state, message_id, error, state, row.id),
            )
            await db.execute(
                "UPDATE health SET last_out = ? WHERE ? = 'sent' AND channel = ? AND account = ?",
                (self._clock().isoformat(), state, row.channel, row.account),
            )


def lane(address: Address) -> str:
    """The key of a chat's (and thread's) order of sending."""
    return "\x1f".join((address.channel, address.account, address.space or "", address.chat, address.thread or ""))


def _marked(row: _Row) -> Part:
    if not row.repeat:
        return row.part
    shift = len(REPEATED)
    spans = tuple(replace(s, start=s.start + shift, end=s.end + shift) for s in row.part.text.spans)
    return replace(row.part, text=FormattedText(REPEATED + row.part.text.plain, spans))


def _lane_failed(name: str, error: Exception) -> None:
    log.error("outbox.lane_failed", lane=name, exc_info=error)
