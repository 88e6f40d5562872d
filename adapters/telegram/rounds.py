"""Does the same thing again and again and outlives every trouble but a wrong token.

After trouble comes a growing pause, one line in the log for each kind, and the reason in the health. Knows nothing of
what is done.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NoReturn

from adapters.adapter import Health
from adapters.errors import AdapterError, AuthFailed, RateLimited
from adapters.telegram.intake import StoreError
from adapters.telegram.refusals import Conflict

log = logging.getLogger(__name__)

_FIRST_PAUSE = 1.0
_GROWTH = 1.5
_LONGEST_PAUSE = 30.0
"""Seconds; the pauses that python-telegram-bot's own polling makes."""

_CALM_ROUNDS = 2
"""Where another program took the updates, this many rounds must pass before it counts as gone."""


@dataclass(frozen=True, slots=True)
class Times:
    """How time passes: ``random`` gives numbers in [0, 1), ``now`` is aware."""

    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    now: Callable[[], datetime]


class Rounds:
    """The rounds of one account. ``report`` is given each new health."""

    def __init__(self, account: str, times: Times, report: Callable[[Health], None]) -> None:
        self._account = account
        self._times = times
        self._report = report
        self._health = Health()
        self._was_well = False
        self._pause = _FIRST_PAUSE
        self._rounds_to_calm = 0
        self._logged: set[type[Exception]] = set()

    @property
    def is_calm(self) -> bool:
        """False from trouble on until enough went well."""
        return self._rounds_to_calm == 0

    @property
    def is_contested(self) -> bool:
        """Whether the trouble was another program with the same token."""
        return not self.is_calm and Conflict in self._logged

    async def keep(self, round_: Callable[[], Awaitable[None]]) -> NoReturn:
        """Do ``round_``, which says ``well`` of itself, until cancelled.

        Raises AuthFailed for a token that is wrong or was revoked.
        """
        while True:
            try:
                await round_()
            except AuthFailed:
                raise
            except RateLimited as error:
                self.failed(error)
                await self._times.sleep(max(error.retry_after, _FIRST_PAUSE))
            except Conflict as error:
                # Two programs that back off in step would collide for ever.
                self.failed(error, rounds_to_calm=_CALM_ROUNDS)
                await self._times.sleep(self._next_pause() * (1 + self._times.random()))
            except (AdapterError, StoreError) as error:
                self.failed(error)
                await self._times.sleep(self._next_pause())

    def well(self, detail: str) -> None:
        """Telegram answered as it should; ``detail`` is what an operator sees while it does."""
        self._rounds_to_calm = max(0, self._rounds_to_calm - 1)
        self._health = replace(self._health, heard_at=self._times.now())
        if self.is_calm:
            if self._logged:
                log.info("telegram/%s: connected again", self._account)
                self._health = replace(self._health, reconnects=self._health.reconnects + self._was_well)
            self._was_well = True
            self._logged.clear()
            self._pause = _FIRST_PAUSE
            self._health = replace(self._health, state="connected", detail=detail)
        self._report(self._health)

    def failed(self, error: Exception, *, rounds_to_calm: int = 1) -> None:
        """Something went wrong that will be tried again."""
        level = logging.DEBUG if type(error) in self._logged else logging.WARNING
        self._logged.add(type(error))
        self._rounds_to_calm = max(self._rounds_to_calm, rounds_to_calm)
        log.log(level, "telegram/%s: %s", self._account, error, exc_info=error.__cause__)
        self._health = replace(self._health, state="retrying", detail=str(error))
        self._report(self._health)

    def _next_pause(self) -> float:
        pause = self._pause
        self._pause = min(pause * _GROWTH, _LONGEST_PAUSE)
        return pause
