"""Pairing: a stranger gets a code, the owner approves it in the terminal, and the stranger is known.

A code is eight characters without look-alikes, is good for an hour, and at most three wait per account; none is pushed
out while it is fresh. Approving gives the level that was said, guest by default: nobody becomes an owner by asking.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from adapters.message import Address, Message
from agents.quoting import one_line
from workspaces.scope import Level

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from bot.people import People
    from bot.state import State

log = structlog.get_logger(__name__)

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Without I, L, O, 0 and 1. Eight of them are 39 bits: an hour is far too short to guess one."""

LENGTH = 8
LIFETIME = timedelta(hours=1)
MOST_WAITING = 3
FRESH = timedelta(minutes=10)
"""How long a code can't be pushed out: long enough to walk to the machine and approve it."""
REMEMBERED = timedelta(days=7)
"""How long it is known of strangers that they had a code. See docs/adr/0009."""
MOST_TOLD = 3
"""How often one code is sent to its asker: a flood of messages is not answered with a flood."""
BETWEEN_EXCUSES = timedelta(minutes=1)
"""At most so often does an account say that there is no code: an excuse keeps no state of its asker."""

_REFUSED = -1
"""Stands in the place of how often a code was told: an owner said no."""

ASK_TO_PAIR = (
    "Hello! I don't know you yet. Your pairing code is {code} (good for an hour).\n"
    "Ask the person who runs me to approve it: limpet pairing approve {code}"
)
NO_CODE_NOW = (
    "Hello! I don't know you yet, and too many people are asking to be let in just now. "
    "Please write again in a quarter of an hour."
)


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """A code that waits for approval. ``told`` is how often it was sent to its asker; ``address`` is where to, None for
    one that an earlier version gave out.
    """

    code: str
    channel: str
    account: str
    sender: str
    name: str
    expires_at: datetime
    told: int
    address: Address | None


_COLUMNS = "code, channel, account, sender, name, expires_at, told, address"


@functools.cache
def _addresses() -> TypeAdapter[Address]:
    from pydantic import TypeAdapter

    return TypeAdapter(Address)


def packed(address: Address) -> str:
    """``address`` as a database keeps it."""
    return _addresses().dump_json(address).decode()


def unpacked(text: str) -> Address:
    """What ``packed`` made ``text`` of."""
    return _addresses().validate_json(text)


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def spelled(code: str) -> str:
    """A code as it was given out, however a person types it."""
    return "".join(code.split()).replace("-", "").upper()


class Pairing:
    """The codes that wait, in the hub's database; usable beside a running hub."""

    def __init__(
        self, state: State, people: People, *, clock: Callable[[], datetime], code: Callable[[], str] = new_code
    ) -> None:
        self._state = state
        self._people = people
        self._clock = clock
        self._code = code
        self._excused: dict[tuple[str, str], datetime] = {}

    async def ask(self, message: Message) -> str | None:
        """What to say to the stranger who wrote ``message``; None: nothing, for it was said often enough."""
        address, now = message.address, self._clock()
        async with self._state.transaction() as db:
            await db.execute("DELETE FROM pairing WHERE asked_at <= ?", ((now - REMEMBERED).isoformat(),))
            if _REFUSED in await _rows(db, message):  # an owner said no, and not long ago
                return None
            told = await _told_again(db, message, now)
            code = told[0] if told else await self._issued(db, message, now)
        if told:
            return ASK_TO_PAIR.format(code=code) if told[1] <= MOST_TOLD else None
        if code is not None:
            log.info(
                "pairing.asked",
                channel=address.channel,
                name=one_line(message.sender.name, 60),
                approve=f"limpet pairing approve {code}",
            )
            return ASK_TO_PAIR.format(code=code)
        account = (address.channel, address.account)
        if account in self._excused and now - self._excused[account] < BETWEEN_EXCUSES:
            return None
        self._excused[account] = now
        log.warning("pairing.full", account=address.account, see="limpet pairing list")
        return NO_CODE_NOW

    async def _issued(self, db: Any, message: Message, now: datetime) -> str | None:
        """A new code for the sender; None where three wait and none of them can be pushed out for this sender.

        Only a stranger who had no code lately pushes out another's, and only one that is no longer fresh.
        """
        account = (message.address.channel, message.address.account)
        sender = message.sender
        waiting = await db.execute_fetchall(
            "SELECT code, asked_at FROM pairing WHERE channel = ? AND account = ? AND expires_at > ? ORDER BY asked_at",
            (*account, now.isoformat()),
        )
        if len(waiting) >= MOST_WAITING:
            code, asked_at = waiting[0]
            if await _rows(db, message) or now - datetime.fromisoformat(asked_at) < FRESH:
                return None
            await _void(db, code, now)
        code = self._code()
        await db.execute(
            "INSERT OR REPLACE INTO pairing (code, channel, account, sender, name, asked_at, expires_at, address, told)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)",
            (
                code,
                *account,
                sender.id,
                sender.name,
                now.isoformat(),
                (now + LIFETIME).isoformat(),
                packed(message.address),
            ),
        )
        return code

    async def waiting(self) -> list[PairingRequest]:
        """The codes that can be approved now, oldest first."""
        rows = await self._state.rows(
            f"SELECT {_COLUMNS} FROM pairing WHERE expires_at > ? ORDER BY asked_at",  # noqa: S608 - a constant
            self._clock().isoformat(),
        )
        return [_request(row) for row in rows]

    async def of(self, message: Message) -> PairingRequest | None:
        """The code that waits for the sender of ``message``; None where none does."""
        asker, values = _asker(message)
        row = await self._state.row(
            f"SELECT {_COLUMNS} FROM pairing WHERE {asker} AND expires_at > ?",  # noqa: S608 - constants and "?" marks
            *values,
            self._clock().isoformat(),
        )
        return _request(row) if row else None

    async def approve(self, code: str, level: Level) -> PairingRequest | None:
        """Give the asker of ``code`` this level, and end their codes, in one transaction. Case and blanks don't matter.

        None, and nothing done, when no such code waits (any more).
        """
        async with self._state.transaction() as db:
            request = await self._with_code(db, code)
            if request is not None:
                await self._people.add(db, request.channel, request.sender, level, request.name)
                await db.execute(  # the other codes of this person with it: who is in waits no longer
                    "DELETE FROM pairing WHERE channel = ? AND sender = ?", (request.channel, request.sender)
                )
        await self._state.durable()
        return request

    async def deny(self, code: str, *, for_good: bool = False) -> PairingRequest | None:
        """End ``code``; None when no such code waits. ``for_good``: its asker gets no other one as long as it is
        remembered, and no word.
        """
        async with self._state.transaction() as db:
            request = await self._with_code(db, code)
            if request is not None:
                await _void(db, request.code, self._clock())
                if for_good:
                    await db.execute("UPDATE pairing SET told = ? WHERE code = ?", (_REFUSED, request.code))
        await self._state.durable()
        return request

    async def _with_code(self, db: Any, code: str) -> PairingRequest | None:
        rows = await db.execute_fetchall(
            f"SELECT {_COLUMNS} FROM pairing WHERE code = ? AND expires_at > ?",  # noqa: S608 - a constant
            (spelled(code), self._clock().isoformat()),
        )
        return next(map(_request, rows), None)


def _request(row: Sequence[Any]) -> PairingRequest:
    code, channel, account, sender, name, expires_at, told, address = row
    until = datetime.fromisoformat(expires_at)
    return PairingRequest(code, channel, account, sender, name, until, told, unpacked(address) if address else None)


def _asker(message: Message) -> tuple[str, tuple[str, ...]]:
    """What is true of the rows of its sender, by whichever of their ids they asked, and the values of that."""
    address, ids = message.address, message.sender.ids
    marks = ", ".join("?" * len(ids))
    return f"channel = ? AND account = ? AND sender IN ({marks})", (address.channel, address.account, *ids)


async def _rows(db: Any, message: Message) -> list[int]:
    """How often its sender was told of each code of theirs, or what is remembered of them instead."""
    asker, values = _asker(message)
    rows = await db.execute_fetchall(f"SELECT told FROM pairing WHERE {asker}", values)  # noqa: S608 - only "?" marks
    return [int(told) for (told,) in rows]


async def _told_again(db: Any, message: Message, now: datetime) -> tuple[str, int] | None:
    """The code that waits for this sender and how often it was told, this time included; None without one."""
    asker, values = _asker(message)
    rows = await db.execute_fetchall(
        f"UPDATE pairing SET told = told + 1 WHERE {asker} AND expires_at > ? RETURNING code, told",  # noqa: S608 - only "?" marks
        (*values, now.isoformat()),
    )
    return next(((str(code), int(told)) for code, told in rows), None)


async def _void(db: Any, code: str, now: datetime) -> None:
    """End a code. That its asker had one is remembered."""
    await db.execute("UPDATE pairing SET expires_at = ? WHERE code = ?", (now.isoformat(), code))
