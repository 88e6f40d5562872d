"""Does the same thing again and again and outlives every trouble but a wrong token.

After trouble comes a growing pause, one line in the log for each kind, and the reason in the health. Knows no platform,
and nothing of what is done.
"""

from __future__ import annotations

import logging
import time
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
"""Seconds; the pauses that python-telegram-bot's own polling makes."""

_CALM_ROUNDS = 2
"""So many rounds must pass before a rival counts as gone."""


@dataclass(frozen=True, slots=True)
class Times:
    """How time passes: ``random`` gives numbers in [0, 1), ``now`` is aware, ``monotonic`` gives seconds."""

    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    now: Callable[[], datetime]
    monotonic: Callable[[], float] = time.monotonic


class StoreError(Exception):
    """An event could not be stored, or not be read now: it is to come, or to be handed on, again."""


class Rounds:
    """The rounds of one account, which is called ``name`` ("slack/main"). ``report`` is given each new health.

    ``rival`` is the trouble that another program makes which does the same with the same token: it counts as gone when
    more than one round went well. None where there is no such thing.
    """

    def __init__(
        self,
        name: str,
        times: Times,
        report: Callable[[Health], None],
        *,
        rival: type[AdapterError] | None = None,
    ) -> None:
        self.name = name
        self.times = times
        self._report = report
        self._rival = rival
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
        """Whether the trouble was a rival."""
        return not self.is_calm and self._rival in self._logged

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
                await self.pause(1.0 if self.is_contested else 0.5)

    async def pause(self, least: float = 0.5) -> None:
        """After trouble; longer each time, until something goes well.

        It is ``least`` to ``least`` + 1 times as long: two programs that back off in step would collide for ever.
        """
        pause = self._pause * (least + self.times.random())
        self._pause = min(self._pause * _GROWTH, _LONGEST_PAUSE)
        await self.times.sleep(pause)

    def well(self, detail: str, *, has_all: bool) -> None:
        """The platform answers as it should; ``detail`` is what an operator sees while it does.

        ``has_all``: all that was said until now was handed on, so that nobody has to look it up after a restart.
        """
        self._rounds_to_calm = max(0, self._rounds_to_calm - 1)
        heard_at = self.times.now() if has_all else self._health.heard_at
        self._health = replace(self._health, heard_at=heard_at)
        if self.is_calm:
            if self._logged:
                log.info("%s: connected again", self.name)
                self._health = replace(self._health, reconnects=self._health.reconnects + self._was_well)
            self._was_well = True
            self._logged.clear()
            self._pause = _FIRST_PAUSE
            self._health = replace(self._health, state="connected", detail=detail)
        self._report(self._health)

    def failed(self, error: Exception) -> None:
        """Something went wrong that will be tried again."""
        is_rival = self._rival is not None and isinstance(error, self._rival)
        level = logging.DEBUG if type(error) in self._logged else logging.WARNING
        self._logged.add(type(error))
        self._rounds_to_calm = max(self._rounds_to_calm, _CALM_ROUNDS if is_rival else 1)
        log.log(level, "%s: %s", self.name, error, exc_info=error.__cause__)
        self._health = replace(self._health, state="retrying", detail=str(error))
        self._report(self._health)
