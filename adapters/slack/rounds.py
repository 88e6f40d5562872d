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

log = logging.getLogger(__name__)

_FIRST_PAUSE = 1.0
_GROWTH = 1.5
_LONGEST_PAUSE = 30.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Times:
    """How time passes: ``random`` gives numbers in [0, 1), ``now`` is aware."""

    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    now: Callable[[], datetime]


class StoreError(Exception):
    """An event could not be stored, or not be read now: Slack is to bring it again."""


class Rounds:
    """The rounds of one account. ``report`` is given each new health."""

    def __init__(self, account: str, times: Times, report: Callable[[Health], None]) -> None:
        self.account = account
        self.times = times
        self._report = report
        self._health = Health()
        self._was_well = False
        self._pause = _FIRST_PAUSE
        self._logged: set[type[Exception]] = set()

    async def keep(self, round_: Callable[[], Awaitable[None]]) -> NoReturn:
        """Do ``round_``, which says ``well`` of itself, until cancelled. Raises AuthFailed for a wrong token."""
        while True:
            try:
                await round_()
            except AuthFailed:
                raise
            except RateLimited as error:
                self.failed(error)
                await self.times.sleep(max(error.retry_after, _FIRST_PAUSE))
            except (AdapterError, StoreError) as error:
                self.failed(error)
                await self.pause()

    async def pause(self) -> None:
        """After trouble; longer each time, until something goes well."""
        pause = self._pause * (0.5 + self.times.random() / 2)
        self._pause = min(self._pause * _GROWTH, _LONGEST_PAUSE)
        await self.times.sleep(pause)

    def well(self, detail: str, *, has_all: bool = False) -> None:
        """Slack answers as it should; ``detail`` is what an operator sees while it does.

        ``has_all``: all that was said until now was handed on, so that nobody has to look it up after a restart.
        """
        if self._logged:
            log.info("slack/%s: connected again", self.account)
            self._health = replace(self._health, reconnects=self._health.reconnects + self._was_well)
        self._was_well = True
        self._logged.clear()
        self._pause = _FIRST_PAUSE
        heard_at = self.times.now() if has_all else self._health.heard_at
        self._health = replace(self._health, state="connected", detail=detail, heard_at=heard_at)
        self._report(self._health)

    def failed(self, error: Exception) -> None:
        """Something went wrong that will be tried again."""
        level = logging.DEBUG if type(error) in self._logged else logging.WARNING
        self._logged.add(type(error))
        log.log(level, "slack/%s: %s", self.account, error, exc_info=error.__cause__)
        self._health = replace(self._health, state="retrying", detail=str(error))
        self._report(self._health)
