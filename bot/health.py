"""Is all well? What the settings alone show to be amiss, and the state of each channel, where other processes read it.

``limpet status`` shows both, beside a running hub or without one. Knows no command and asks no server.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
HEARD_SECONDS = 60.0
"""How exactly it is written when a platform was last heard: a poll every half minute is not worth a write."""

LEAST_ROOM = 16_000_000
"""Bytes: the journals of the databases grow to a few megabytes, and so does a day's log."""

STAND_IN = 'another embedder stands in for memory.embedder = "{name}"'


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
    return [*channels, *speechless(settings, home), *unembedded(settings, home), *deaf(settings, home)]


def speechless(settings: Settings, home: Home) -> list[Finding]:
    """The agents whose model can't answer, and why, as far as that can be told without asking a server."""
    from bot.models import named_for, obstacle

    found = []
    by_model: dict[tuple[str | None, bool], list[str]] = {}
    for agent in (*settings.agents, *settings.templates):
        names = named_for(agent, settings)
        for name in names:
            by_model.setdefault((name, len(names) == 1), []).append(agent)
    for (model, is_only), agents in by_model.items():
        if problem := obstacle(model, settings, home):
            who = f"agent {agents[0]}" if len(agents) == 1 else f"agents {', '.join(agents)}"
            what = "can't answer" if is_only else "can't ask one of its models"
            found.append(Finding(f"{who} {what}: {problem.message}", problem.mend or "see: limpet models list"))
    return found


def unembedded(settings: Settings, home: Home) -> list[Finding]:
    """That notes are not found by meaning as the settings want it, and why, as far as that can be told from here."""
    from bot.models import embedder_obstacle

    problem = embedder_obstacle(settings, home)
    if problem is None:
        return []
    name = settings.memory.embedder
    return [Finding(f"{problem.message}, so {STAND_IN.format(name=name)}", problem.mend or "see: limpet config check")]


def deaf(settings: Settings, home: Home) -> list[Finding]:
    """That voice notes are not understood as the settings want it, and why, as far as that can be told from here."""
    from bot.models import transcriber_obstacle

    problem = transcriber_obstacle(settings, home)
    if problem is None:
        return []
    return [Finding(f"voice notes can't be understood: {problem.message}", problem.mend or "see: limpet config check")]


def cramped(home: Home) -> list[Finding]:
    """That the disk of ``home`` can't take what comes next; quotas are not known beforehand."""
    from bot.refusals import NO_PLACE, disk_of

    disk = disk_of(home.root)
    room = disk.f_bavail * disk.f_frsize
    if disk.f_flag & os.ST_RDONLY:
        what, mend = "the file system is read-only", "mount it for writing"
    elif not disk.f_blocks:
        what, mend = NO_PLACE, "set LIMPET_HOME to a folder of your own"
    elif room < disk.f_frsize or (disk.f_files and not disk.f_favail):
        what, mend = "no room is left on the disk", "make room there"
    elif room < LEAST_ROOM:
        what, mend = f"only {room / 1_000_000:.1f} MB are left on the disk", "make room there"
    else:
        return []
    return [Finding(f"{home.root}: {what}", mend)]


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """What was last written of one channel; times are ISO 8601, None for never.

    ``heard_at`` is when the platform last answered, to the minute; ``reconnects`` are counted since the hub's start.
    """

    channel: str
    account: str
    state: str
    detail: str
    last_in: str | None
    last_out: str | None
    changed_at: str
    reconnects: int
    heard_at: str | None


MODEL = "model"
"""Stands for the channel in the rows of models, whose name is the account."""


class ModelHealth:
    """How each model did when it was last asked, by name: told by whoever asks them, and kept in memory only."""

    def __init__(self) -> None:
        self.by_name: dict[str, Health] = {}

    def answered(self, model: str) -> None:
        self.by_name[model] = Health("connected")

    def failed(self, model: str, why: str) -> None:
        """``why`` is one sentence for a person, with the mend."""
        self.by_name[model] = Health("failed", why)


class HealthBoard:
    """Writes what the adapters report, and how the models did, when it changes."""

    def __init__(
        self,
        state: State,
        adapters: Sequence[Adapter],
        clock: Callable[[], datetime],
        models: ModelHealth | None = None,
    ) -> None:
        self._state = state
        self._adapters = adapters
        self._clock = clock
        self._models = models or ModelHealth()
        self._written: dict[tuple[str, str], Health] = {}
        self._is_stale = False

    async def keep(self) -> None:
        """Until cancelled."""
        await self._forget_models()
        while True:
            await self.refresh()
            await asyncio.sleep(PERIOD_SECONDS)

    async def refresh(self) -> None:
        """Write what changed, now. Never fails: on a full disk what is shown may be old, and the channels go on."""
        try:
            for adapter in self._adapters:
                await self._write(adapter.channel, adapter.account, adapter.health)
            for name, health in list(self._models.by_name.items()):
                await self._write(MODEL, name, health)
            self._is_stale = False
        except sqlite().OperationalError as error:
            if not self._is_stale:  # said once, as long as it lasts
                log.warning("health.not_written", reason=str(error))
            self._is_stale = True

    async def heard_at(self, channel: str, account: str) -> datetime | None:
        """When the platform last answered, in this run or one before, to the minute; None for never."""
        row = await self._state.row("SELECT heard_at FROM health WHERE channel = ? AND account = ?", channel, account)
        return datetime.fromisoformat(row[0]) if row and row[0] else None

    async def stopped(self) -> None:
        """The hub ends: the channels are not running, unless one failed and a person has to mend it."""
        with suppress(sqlite().OperationalError):
            for adapter in self._adapters:
                if adapter.health.state != "failed":
                    await self._write(adapter.channel, adapter.account, Health("stopped"))

    async def _forget_models(self) -> None:
        """What was said of them before the start says nothing of now."""
        with suppress(sqlite().OperationalError):
            async with self._state.transaction() as db:
                await db.execute("DELETE FROM health WHERE channel = ?", (MODEL,))

    async def _write(self, channel: str, account: str, health: Health) -> None:
        key = (channel, account)
        if (before := self._written.get(key)) is not None and _is_same(before, health):
            return
        async with self._state.transaction() as db:
            await db.execute(
                "INSERT INTO health (channel, account, state, detail, changed_at, reconnects, heard_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET state = excluded.state, detail = excluded.detail,"
                " changed_at = excluded.changed_at, reconnects = excluded.reconnects,"
                " heard_at = ifnull(excluded.heard_at, heard_at)",
                (
                    *key,
                    health.state,
                    health.detail,
                    self._clock().isoformat(),
                    health.reconnects,
                    health.heard_at.isoformat() if health.heard_at else None,
                ),
            )
        self._written[key] = health


def _is_same(before: Health, after: Health) -> bool:
    """Whether nothing is new but that the platform was heard again, less than a minute later."""
    if before.heard_at is None or after.heard_at is None:
        return before == after
    is_fresh = (after.heard_at - before.heard_at).total_seconds() < HEARD_SECONDS
    return is_fresh and replace(after, heard_at=before.heard_at) == before


async def read_health(state: State) -> list[ChannelHealth]:
    """What the board says of the channels, by channel and account."""
    rows = await state.rows(
        "SELECT channel, account, state, detail, last_in, last_out, changed_at, reconnects, heard_at FROM health"
        " WHERE channel <> ? ORDER BY channel, account",
        MODEL,
    )
    return [ChannelHealth(*row) for row in rows]


async def failing_models(state: State) -> list[tuple[str, str, str]]:
    """Of each model that failed when it was last asked, its name, why, and since when (ISO 8601)."""
    return await state.rows(
        "SELECT account, detail, changed_at FROM health WHERE channel = ? AND state = 'failed' ORDER BY account", MODEL
    )
