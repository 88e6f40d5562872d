"""The state of each channel, where other processes can read it: ``limpet status`` beside a running hub."""

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
    from bot.state import State

log = structlog.get_logger(__name__)

PERIOD_SECONDS = 1.0


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
