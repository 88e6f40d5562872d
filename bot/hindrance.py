"""What the machine refuses in the middle of the work (a full disk, a folder without rights): told, and waited out.

A message that was accepted stays in the inbox and an answer in the outbox; whoever waits for it at a console hears why
nothing comes, what mends it, and that nothing is lost. Knows no turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

from adapters.adapter import Adapter, Narrator
from bot.errors import NotPermitted, Unavailable
from bot.refusals import refusal

if TYPE_CHECKING:
    from bot.errors import BotError
    from bot.home import Home

log = structlog.get_logger(__name__)

KEPT = "Your message is kept, and is answered once that is mended."


class Hindrance:
    """The refusals that the lanes of one hub meet."""

    def __init__(self, home: Home, adapters: Mapping[tuple[str, str], Adapter]) -> None:
        self._home = home
        self._adapters = adapters

    def of(self, error: Exception) -> BotError | None:
        """``error`` as what a person is told; None where it is no refusal that room or rights would end."""
        told = refusal(error, self._home)
        return told if isinstance(told, Unavailable | NotPermitted) else None

    async def lane_failed(self, lane: str, error: Exception) -> None:
        """One line in the log, and a word to the consoles that wait; a fault of ours leaves its traceback instead."""
        told = self.of(error)
        if told is None:
            log.error("lane.failed", lane=lane, exc_info=error)
            return
        log.error("lane.hindered", lane=lane, reason=told.message, mend=told.mend)
        for adapter in self._adapters.values():
            if isinstance(adapter, Narrator):
                await adapter.hindered(f"{told}. {KEPT}", told.exit_code)
