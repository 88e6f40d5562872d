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

if TYPE_CHECKING:
    from pathlib import Path

    from agents.agent import Agent
    from bot.home import Home
    from bot.settings import Settings

log = structlog.get_logger(__name__)

TICK_SECONDS = 600.0
IDLE = timedelta(minutes=30)
"""How long nobody has said anything to the agent."""


class Housekeeping:
    """``agents`` are those that are open, by name; ``last_turn`` says when each was last talked to, None for never."""

    def __init__(
        self,
        settings: Settings,
        home: Home,
        agents: Mapping[str, Agent],
        *,
        last_turn: Callable[[str], datetime | None],
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._home = home
        self._agents = agents
        self._last_turn = last_turn
        self._clock = clock

    async def keep(self) -> None:
        """Look now and then until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Do what is due. Raises nothing: a fault is logged, and the next day is another try."""
        for name, agent in list(self._agents.items()):
            last = self._last_turn(name)
            if not self._settings.agent(name).curate or last is None or self._clock() - last < IDLE:
                continue
            try:
                await self._curate(agent)
            except Exception:
                log.exception("curation.failed", agent=name)

    async def _curate(self, agent: Agent) -> None:
        now, zone, mark = self._clock(), agent.zone(), self._home.curated(agent.name)
        today = now.astimezone(zone).date().isoformat()
        if await asyncio.to_thread(_said, mark) == today:
            return
        model = keeper(agent)
        if model is None or not model.uses_tools or await refusal(model):
            return
        await asyncio.to_thread(mark.write_text, f"{today}\n", "utf-8")
        await curate(model, agent.memory, now, zone=zone)


def _said(mark: Path) -> str:
    try:
        return mark.read_text("utf-8").strip()
    except OSError:
        return ""
