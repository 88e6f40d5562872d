"""When a session begins anew by itself: after a time of silence, or with a new day. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo
from typing import Literal


@dataclass(frozen=True, slots=True)
class Resets:
    """``idle`` is how long nobody has to say anything, ``daily`` when a day begins for this; None for never."""

    idle: timedelta | None = None
    daily: time | None = None

    def due(self, last: datetime, now: datetime, zone: tzinfo) -> Literal["idle", "daily"] | None:
        """Whether what is said ``now`` begins anew, after something was said at ``last``; both aware."""
        if self.idle is not None and now - last >= self.idle:
            return "idle"
        if self.daily is not None and self._day(last, zone, self.daily) < self._day(now, zone, self.daily):
            return "daily"
        return None

    def _day(self, moment: datetime, zone: tzinfo, begins: time) -> int:
        local = moment.astimezone(zone)
        return local.toordinal() - (local.time() < begins)
