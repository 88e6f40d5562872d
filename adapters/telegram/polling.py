"""Receives by asking: Telegram's updates are asked for, each is handed on, and it is forgotten only when it is stored.

The offset of the next request is what acknowledges, so it moves past an update only after that was taken in.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NoReturn

from adapters.errors import AdapterError, AuthFailed, Unreachable
from adapters.telegram.refusals import Conflict

if TYPE_CHECKING:
    from adapters.rounds import Rounds
    from adapters.telegram.client import Client
    from adapters.telegram.intake import Intake

log = logging.getLogger(__name__)

_CONTESTED_SECONDS = 10
"""A poll's length where another program took the updates: short enough to see soon that it is gone."""


class Poller:
    """Reads one bot's updates until cancelled. ``begin`` asks who we are."""

    def __init__(
        self, client: Client, rounds: Rounds, poll_seconds: int, begin: Callable[[], Awaitable[Intake]]
    ) -> None:
        self._client = client
        self._rounds = rounds
        self._poll_seconds = poll_seconds
        self._begin = begin
        self._intake: Intake | None = None
        self._offset: int | None = None

    async def run(self) -> NoReturn:
        """Raises AuthFailed for a token that is wrong or was revoked; nothing else ends it."""
        await self._rounds.keep(self._round)

    async def _round(self) -> None:
        if self._intake is None:
            self._intake = await self._begin()
            self._rounds.well(self._intake.name, has_all=True)
        before = self._offset
        updates = await self._updates()
        for update in updates:
            number = await self._intake.take(update)
            self._offset = self._offset if number is None else number + 1
        if updates and self._offset == before:
            raise Unreachable("Telegram sent updates without a number: is the server a Bot API server?")
        self._rounds.well(self._intake.name, has_all=True)

    async def _updates(self) -> list[Any]:
        try:
            return await self._client.updates(self._offset, self._patience())
        except Conflict as error:
            if error.webhook:
                await self._remove_webhook()
            raise

    def _patience(self) -> int:
        """How long the next poll may stay open: after trouble an answer at once shows soonest that it is over."""
        if self._rounds.is_calm:
            return self._poll_seconds
        return min(self._poll_seconds, _CONTESTED_SECONDS) if self._rounds.is_contested else 0

    async def _remove_webhook(self) -> None:
        try:
            await self._client.remove_webhook()
        except AuthFailed:
            raise
        except AdapterError as error:
            log.debug("the webhook is still there: %s", error)
