"""Receives: asks Telegram for updates, hands each on, and forgets it only when it is stored.

The offset of the next request is what acknowledges, so it moves past an update only after ``accept`` returned. Every
trouble but a wrong token is outlived, with a growing pause, one line in the log and the reason in the health.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from telegram import Update

from adapters.adapter import Accept, Health
from adapters.errors import AdapterError, AuthFailed, RateLimited, Unreachable
from adapters.telegram.inbound import event_of
from adapters.telegram.refusals import Conflict

if TYPE_CHECKING:
    from adapters.message import Inbound
    from adapters.telegram.client import Client
    from adapters.telegram.settings import BotIdentity

log = logging.getLogger(__name__)

_FIRST_PAUSE = 1.0
_GROWTH = 1.5
_LONGEST_PAUSE = 30.0
"""Seconds; the pauses that python-telegram-bot's own polling makes."""


_CONTESTED_SECONDS = 10
_CALM_POLLS = 2
"""Where another program took the updates, this many polls of that length must pass before it counts as gone."""


class _StoreError(Exception):
    """``accept`` raised: the update has to be handed on again."""


class Poller:
    """Reads one bot's updates until cancelled. ``random`` gives numbers in [0, 1)."""

    def __init__(
        self,
        client: Client,
        account: str,
        accept: Accept,
        *,
        menu: Sequence[tuple[str, str]],
        poll_seconds: int,
        report: Callable[[Health], None],
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        self._client = client
        self._account = account
        self._accept = accept
        self._menu = menu
        self._poll_seconds = poll_seconds
        self._report = report
        self._sleep = sleep
        self._random = random
        self._me: BotIdentity | None = None
        self._offset: int | None = None
        self._pause = _FIRST_PAUSE
        self._polls_to_calm = 0
        self._logged: set[type[Exception]] = set()

    async def run(self) -> NoReturn:
        """Raises AuthFailed for a token that is wrong or was revoked; nothing else ends it."""
        while True:
            try:
                await self._round()
            except AuthFailed:
                raise
            except RateLimited as error:
                await self._wait(error, max(error.retry_after, _FIRST_PAUSE))
            except Conflict as error:
                if error.webhook:
                    await self._remove_webhook()
                # Two programs that back off in step would collide for ever.
                await self._wait(error, self._next_pause() * (1 + self._random()), polls_to_calm=_CALM_POLLS)
            except (AdapterError, _StoreError) as error:
                await self._wait(error, self._next_pause())
            else:
                self._calmed()

    async def _round(self) -> None:
        if self._me is None:
            self._me = await self._client.identity()
            self._calmed()
            await self._show_menu()
        before = self._offset
        updates = await self._client.updates(before, self._patience())
        for update in updates:
            await self._hand_on(update)
        if updates and self._offset == before:
            raise Unreachable("Telegram sent updates without a number: is the server a Bot API server?")

    async def _show_menu(self) -> None:
        """A menu that can't be shown is no reason not to answer."""
        if not self._menu:
            return
        try:
            await self._client.show_commands(self._menu)
        except AdapterError as error:
            log.warning("telegram/%s: the menu of commands was not set: %s", self._account, error)

    def _patience(self) -> int:
        """How long the next poll may stay open: after trouble an answer at once shows soonest that it is over."""
        if self._polls_to_calm == 0:
            return self._poll_seconds
        return min(self._poll_seconds, _CONTESTED_SECONDS) if Conflict in self._logged else 0

    async def _hand_on(self, raw: Any) -> None:
        number = raw.get("update_id") if isinstance(raw, dict) else None
        if not isinstance(number, int):
            log.warning("telegram/%s: skipped an update without a number", self._account)
            return
        event = self._read(raw, number)
        if event is not None:
            try:
                await self._accept(event)
            except Exception as error:
                raise _StoreError(
                    f"a message could not be stored ({type(error).__name__}): it will be read again"
                ) from error
        self._offset = number + 1

    def _read(self, raw: Any, number: int) -> Inbound | None:
        """The event of one update; one that can't be read must not hold up those behind it."""
        assert self._me is not None
        try:
            return event_of(Update.de_json(raw), self._me, self._account)
        except Exception as error:
            log.warning("telegram/%s: skipped update %d, it can't be read: %r", self._account, number, error)
            return None

    async def _remove_webhook(self) -> None:
        try:
            await self._client.remove_webhook()
        except AuthFailed:
            raise
        except AdapterError as error:
            log.debug("telegram/%s: the webhook is still there: %s", self._account, error)

    async def _wait(self, error: Exception, seconds: float, *, polls_to_calm: int = 1) -> None:
        level = logging.DEBUG if type(error) in self._logged else logging.WARNING
        self._logged.add(type(error))
        self._polls_to_calm = max(self._polls_to_calm, polls_to_calm)
        log.log(level, "telegram/%s: %s", self._account, error, exc_info=error.__cause__)
        self._report(Health("retrying", str(error)))
        await self._sleep(seconds)

    def _next_pause(self) -> float:
        pause = self._pause
        self._pause = min(pause * _GROWTH, _LONGEST_PAUSE)
        return pause

    def _calmed(self) -> None:
        """A round went well."""
        self._polls_to_calm = max(0, self._polls_to_calm - 1)
        if self._polls_to_calm:
            return
        if self._logged:
            log.info("telegram/%s: connected again", self._account)
        self._logged.clear()
        self._pause = _FIRST_PAUSE
        self._report(Health("connected", f"@{self._me.username}" if self._me else ""))
