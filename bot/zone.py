"""The time zone of this machine, and the names of zones as the tz database has them ("Europe/Berlin")."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.spelling import closest

_LOCAL = Path("/etc/localtime")


def zone(name: str) -> ZoneInfo | None:
    """The zone called ``name``, None where the tz database has none of that name."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown; a path upwards; the name of a folder
        return None


def machine_zone(environ: Mapping[str, str] | None = None) -> ZoneInfo | None:
    """The zone this machine is set to: ``TZ``, else where /etc/localtime points; None where neither says a name."""
    environ = os.environ if environ is None else environ
    if named := zone(environ.get("TZ", "").removeprefix(":")):
        return named
    try:
        return _zone_at(os.readlink(_LOCAL))  # noqa: PTH115 - asked ten times a turn
    except OSError:  # a minimal container has none
        return None


@functools.lru_cache(maxsize=1)
def _zone_at(_target: str) -> ZoneInfo | None:
    """Where /etc/localtime leads in the end, while it points to the same place."""
    return zone(str(_LOCAL.resolve(strict=True)).partition("/zoneinfo/")[2])


def suggested(name: str) -> str | None:
    """The zone that ``name`` was probably meant to be: "europe/berlin", "Berlin", "Viena" and "new york" are found."""
    from zoneinfo import available_timezones

    wanted = name.strip().replace(" ", "_")
    known = sorted(available_timezones())
    city_of = {zone.rpartition("/")[2]: zone for zone in reversed(known)}
    return closest(wanted, known) or city_of.get(closest(wanted, city_of) or "")
