"""What the hub does when nobody talks: once a day each agent goes through its notes (see ``agents.curation``).

Only agents that were talked to since the start: for another nothing has changed. The day of the last round is kept in a
small file beside the agent's index, so that a restart begins no second one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from agents.curation import curate
from bot.metering import keeper, refusal
from bot.roster import zone_of

if TYPE_CHECKING:
    from pathlib import Path

    from bot.home import Home
    from bot.roster import Roster
    from bot.settings import Settings

log = structlog.get_logger(__name__)

TICK_SECONDS = 600.0
IDLE = timedelta(minutes=30)
"""How long nobody has said anything to the agent."""


class Housekeeping:
    """``talked`` says which agents were talked to since the start, each with when it last was."""

    def __init__(
        self,
        settings: Settings,
        home: Home,
        roster: Roster,
        *,
        talked: Callable[[], Mapping[str, datetime]],
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._home = home
        self._roster = roster
        self._talked = talked
        self._clock = clock
        self._done: dict[str, datetime] = {}

    async def keep(self) -> None:
        """Look now and then until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Do what is due. Raises nothing: a fault is logged, and the next day is another try."""
        for name, last in list(self._talked().items()):
            if not self._settings.agent(name).curate or self._clock() - last < IDLE or self._done.get(name) == last:
                continue
            try:
                if await asyncio.create_task(self._curate(name)):  # it is kept open as long as this task runs
                    self._done[name] = last
            except Exception:
                log.exception("curation.failed", agent=name)
        await self._roster.close_idle()

    async def _curate(self, name: str) -> bool:
        """Whether there is nothing more to do until somebody talks to the agent again."""
        now, mark = self._clock(), self._home.curated(name)
        zone = zone_of(name, self._settings, self._home)()
        today = now.astimezone(zone).date().isoformat()
        if await asyncio.to_thread(_said, mark) == today:
            return False
        agent = await self._roster.get(name)
        model = keeper(agent)
        if model is None or not model.uses_tools:
            return True
        if await refusal(model):
            return False
        await asyncio.to_thread(mark.write_text, f"{today}\n", "utf-8")
        await curate(model, agent.memory, now, zone=zone)
        return True


def _said(mark: Path) -> str:
    try:
        return mark.read_text("utf-8").strip()
    except OSError:
        return ""
