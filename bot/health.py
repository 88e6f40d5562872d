"""Is all well? What the settings alone show to be amiss, and the state of each channel, where other processes read it.

``limpet status`` shows both, beside a running hub or without one. Knows no command and asks no server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from adapters.adapter import Adapter, Health
from workspaces.database import sqlite

if TYPE_CHECKING:
    from bot.home import Home
    from bot.settings import Settings
    from bot.state import State

log = structlog.get_logger(__name__)

PERIOD_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not well. ``mend`` is one command or one clause."""

    what: str
    mend: str


def amiss(settings: Settings, home: Home) -> list[Finding]:
    """What keeps a channel from starting or an agent from answering, as this process's environment has it."""
    channels = [
        Finding(f"{name} can't start: {problem.message}", problem.mend or "see: limpet config check")
        for name, problem in settings.degraded.items()
    ]
    return [*channels, *speechless(settings, home)]


def speechless(settings: Settings, home: Home) -> list[Finding]:
    """The agents whose model can't answer, and why, as far as that can be told without asking a server."""
    from bot.models import obstacle

    found = []
    by_model: dict[str | None, list[str]] = {}
    for agent, own in settings.agents.items():
        by_model.setdefault(own.model, []).append(agent)
    for model, agents in by_model.items():
        if problem := obstacle(model, settings, home):
            who = f"agent {agents[0]}" if len(agents) == 1 else f"agents {', '.join(agents)}"
            found.append(Finding(f"{who} can't answer: {problem.message}", problem.mend or "see: limpet models list"))
    return found


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """What was last written of one channel; times are ISO 8601, None for never."""

    channel: str
    account: str
    state: str
    detail: str
    last_in: str | None
    last_out: str | None
    changed_at: str


class HealthBoard:
    """Writes what the adapters report, when it changes."""

    def __init__(self, state: State, adapters: Sequence[Adapter], clock: Callable[[], datetime]) -> None:
        self._state = state
        self._adapters = adapters
        self._clock = clock
        self._written: dict[tuple[str, str], Health] = {}

    async def keep(self) -> None:
        """Until cancelled."""
        while True:
            try:
                for adapter in self._adapters:
                    await self._write(adapter, adapter.health)
            except sqlite().OperationalError as error:  # a full disk: what is shown may be old, the channels go on
                log.warning("health.not_written", reason=str(error))
            await asyncio.sleep(PERIOD_SECONDS)

    async def stopped(self) -> None:
        """The hub ends: the channels are not running, unless one failed and a person has to mend it."""
        with suppress(sqlite().OperationalError):
            for adapter in self._adapters:
                if adapter.health.state != "failed":
                    await self._write(adapter, Health("stopped"))

    async def _write(self, adapter: Adapter, health: Health) -> None:
        key = (adapter.channel, adapter.account)
        if self._written.get(key) == health:
            return
        async with self._state.transaction() as db:
            await db.execute(
                "INSERT INTO health (channel, account, state, detail, changed_at) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET state = excluded.state, detail = excluded.detail,"
                " changed_at = excluded.changed_at",
                (*key, health.state, health.detail, self._clock().isoformat()),
            )
        self._written[key] = health


async def read_health(state: State) -> list[ChannelHealth]:
    """The board, by channel and account."""
    rows = await state.rows(
        "SELECT channel, account, state, detail, last_in, last_out, changed_at FROM health ORDER BY channel, account"
    )
    return [ChannelHealth(*row) for row in rows]
