"""How a channel fares: what an operator sees, and one line in the log for each kind of trouble. Knows no network."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Literal, TypeAlias

from adapters.adapter import Health

log = logging.getLogger(__name__)

Source: TypeAlias = Literal["connection", "store"]


class Pulse:
    """``now`` is aware; ``report`` is given each new health."""

    def __init__(self, account: str, now: Callable[[], datetime], report: Callable[[Health], None]) -> None:
        self._account = account
        self._now = now
        self._report = report
        self._health = Health()
        self._name = ""
        self.connections = 0
        """How often it came to be well."""
        self._troubles: dict[Source, str] = {}
        self._logged: set[type[Exception]] = set()

    def heard(self) -> None:
        """Discord was heard, and all that it said so far is stored."""
        self._tell(replace(self._health, heard_at=self._now()))

    def connected(self, name: str) -> None:
        """``name`` is what an operator sees while all is well."""
        self._name = name
        was_lost = self._troubles.pop("connection", None) is not None and self.connections > 0
        self.connections += 1
        if was_lost:
            log.info("discord/%s: connected again", self._account)
            self._health = replace(self._health, reconnects=self._health.reconnects + 1)
        self._settle()

    def stored(self) -> None:
        if self._troubles.pop("store", None) is not None:
            self._settle()

    def failed(self, source: Source, error: Exception) -> None:
        """Something went wrong that will be tried again."""
        level = logging.DEBUG if type(error) in self._logged else logging.WARNING
        self._logged.add(type(error))
        log.log(level, "discord/%s: %s", self._account, error, exc_info=error.__cause__)
        self._troubles[source] = str(error)
        self._settle()

    def lost(self) -> None:
        """The connection ended, as it does now and then; it is being made again."""
        self._troubles.setdefault("connection", "the connection to Discord was lost: it is made again")
        self._settle()

    def _settle(self) -> None:
        if self._troubles:
            self._tell(replace(self._health, state="retrying", detail=next(iter(self._troubles.values()))))
        elif self.connections:
            self._logged.clear()
            self._tell(replace(self._health, state="connected", detail=self._name))

    def _tell(self, health: Health) -> None:
        self._health = health
        self._report(health)
