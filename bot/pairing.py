"""Pairing: a stranger gets a code, the owner approves it in the terminal, and the stranger is known.

A code is eight characters without look-alikes, is good for an hour, and at most three wait per account. Approving
gives the level that was said, guest by default: nobody becomes an owner by asking.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from adapters.message import Message
from workspaces.scope import Level

if TYPE_CHECKING:
    from bot.people import People
    from bot.state import State

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Without I, L, O, 0 and 1. Eight of them are 39 bits: an hour is far too short to guess one."""

LENGTH = 8
LIFETIME = timedelta(hours=1)
MOST_WAITING = 3
MOST_TOLD = 3
"""How often one code is sent to its asker: a flood of messages is not answered with a flood."""


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """A code that waits for approval."""

    code: str
    channel: str
    account: str
    sender: str
    name: str
    expires_at: datetime


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


class Pairing:
    """The codes that wait, in the hub's database; usable beside a running hub."""

    def __init__(
        self, state: State, people: People, *, clock: Callable[[], datetime], code: Callable[[], str] = new_code
    ) -> None:
        self._state = state
        self._people = people
        self._clock = clock
        self._code = code

    async def ask(self, message: Message) -> str | None:
        """The code for the sender of ``message``; None when it was told often enough already."""
        address, sender = message.address, message.sender
        now = self._clock()
        async with self._state.transaction() as db:
            await _drop_expired(db, now)
            where = (address.channel, address.account, sender.id)
            rows = list(
                await db.execute_fetchall(
                    "UPDATE pairing SET told = told + 1 WHERE channel = ? AND account = ? AND sender = ?"
                    " RETURNING code, told",
                    where,
                )
            )
            if rows:
                code, told = rows[0]
                return str(code) if told <= MOST_TOLD else None
            await db.execute(
                "DELETE FROM pairing WHERE code IN (SELECT code FROM pairing WHERE channel = ? AND account = ?"
                " ORDER BY asked_at DESC LIMIT -1 OFFSET ?)",
                (address.channel, address.account, MOST_WAITING - 1),
            )
            code = self._code()
            await db.execute(
                "INSERT INTO pairing (code, channel, account, sender, name, asked_at, expires_at, told)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
                (code, *where, sender.name, now.isoformat(), (now + LIFETIME).isoformat()),
            )
            return code

    async def waiting(self) -> list[PairingRequest]:
        """The codes that can be approved now, oldest first."""
        rows = await self._state.rows(
            "SELECT code, channel, account, sender, name, expires_at FROM pairing WHERE expires_at > ?"
            " ORDER BY asked_at",
            self._clock().isoformat(),
        )
        return [
            PairingRequest(code, channel, account, sender, name, datetime.fromisoformat(expires_at))
            for code, channel, account, sender, name, expires_at in rows
        ]

    async def approve(self, code: str, level: Level) -> PairingRequest | None:
        """Give the asker of ``code`` this level; None when no such code waits. Case and blanks don't matter."""
        return await self._take(code, level)

    async def deny(self, code: str) -> PairingRequest | None:
        """Forget ``code``; None when no such code waits."""
        return await self._take(code, None)

    async def _take(self, code: str, level: Level | None) -> PairingRequest | None:
        wanted = "".join(code.split()).replace("-", "").upper()
        request = next((r for r in await self.waiting() if secrets.compare_digest(r.code, wanted)), None)
        if request is None:
            return None
        if level is not None:
            await self._people.give(request.channel, request.sender, level, request.name)
        async with self._state.transaction() as db:
            await db.execute("DELETE FROM pairing WHERE code = ?", (request.code,))
        return request


async def _drop_expired(db: Any, now: datetime) -> None:
    await db.execute("DELETE FROM pairing WHERE expires_at <= ?", (now.isoformat(),))
