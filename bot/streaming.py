"""An answer shown while it is being written: as the platform's draft, or as a message that is edited as it grows.

What is shown are the very parts that the answer would have if it ended here, so that a long one goes on in the next
message where the whole would, and the last edit gives what sending it whole would have given. Best effort: what can't
be shown is not, and the answer comes whole. Knows no platform and no agent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import structlog

from adapters.adapter import Adapter, Drafter, Narrator
from adapters.errors import AdapterError, RateLimited
from adapters.message import Address, Part
from bot.delivery import MOST_PARTS, parts_of

log = structlog.get_logger(__name__)

FIRST_SECONDS = 1.0
"""How long an answer is waited for before any of it is shown: a short one comes whole, with one notification."""

AGAIN_SECONDS = 20.0
"""After this a draft is shown again, grown or not: platforms forget one after half a minute."""

FIRST_CHARACTERS = 24
"""Less than this is not worth a message that is edited."""


class Display(Protocol):
    """Where the pieces of an answer are shown."""

    def begin(self) -> None:
        """What comes now takes the place of what was shown."""

    async def feed(self, delta: str) -> None:
        """The next piece."""

    async def end(self) -> None:
        """No more comes."""


class Hidden:
    """Shows nothing."""

    def begin(self) -> None:
        return

    async def feed(self, delta: str) -> None:  # noqa: ARG002 - what it is told is not shown
        return

    async def end(self) -> None:
        return


class Narrated(Hidden):
    """Shows each piece at once, to whoever said ``message`` at ``address``."""

    def __init__(self, narrator: Narrator, address: Address, message: str) -> None:
        self._narrator = narrator
        self._address = address
        self._message = message

    async def feed(self, delta: str) -> None:
        await self._narrator.preview(self._address, self._message, delta)


class Shown(Protocol):
    """Where it is kept which message shows which part of a turn's answer."""

    async def show(self, turn: str, number: int, part: Part) -> str | None:
        """Send ``part`` as the beginning of the part of that number; the id of its message, durably kept.

        None where the platform gave none. Raises ``adapters.errors``.
        """


class Stream:
    """One answer on its way to one place. ``reply_to`` is the message that it answers, None for no reply."""

    def __init__(
        self,
        turn: str,
        address: Address,
        adapter: Adapter,
        shown: Shown,
        *,
        reply_to: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._turn = turn
        self._address = address
        self._adapter = adapter
        self._shown = shown
        self._reply_to = reply_to
        self._sleep = sleep
        self._monotonic = monotonic
        self._drafter = adapter if isinstance(adapter, Drafter) and adapter.drafts(address) is not None else None
        self._text = ""
        self._messages: list[tuple[str, Part]] = []
        """By number, the message that shows a part, and what it shows."""
        self._grown = asyncio.Event()
        self._calling = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def pause(self) -> float | None:
        """The shortest time in seconds between two looks at the answer; None where nothing can be shown."""
        if self._drafter is not None:
            return self._drafter.drafts(self._address)
        capabilities = self._adapter.capabilities
        return capabilities.edit_seconds.get(self._address.kind) if capabilities.edits else None

    def begin(self) -> None:
        self._text = ""

    async def feed(self, delta: str) -> None:
        self._text += delta
        self._grown.set()
        if self._task is None and self.pause is not None:
            self._task = asyncio.create_task(self._keep(self.pause), name=f"stream {self._turn}")

    async def end(self) -> None:
        """A call that is on its way is waited for, so that it can't overtake the answer itself."""
        if self._task is None:
            return
        async with self._calling:
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _keep(self, pause: float) -> None:
        await self._sleep(FIRST_SECONDS)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS if self._drafter is not None else None):
                    await self._grown.wait()
            self._grown.clear()
            began = self._monotonic()
            try:
                async with self._calling:
                    if not await asyncio.shield(self._show()):
                        return
            except RateLimited as error:
                self._grown.set()
                await self._sleep(error.retry_after)
            except AdapterError as error:
                log.info("stream.given_up", turn=self._turn, reason=str(error))
                return
            await self._sleep(max(0.0, pause - (self._monotonic() - began)))

    async def _show(self) -> bool:
        """False where nothing more can be shown: the platform gives no message that could grow."""
        if len(self._text) < FIRST_CHARACTERS:
            return True
        parts = parts_of(self._text, self._address, self._adapter, self._reply_to)[: MOST_PARTS - 1]
        for number, part in enumerate(parts):
            is_open = number == len(parts) - 1
            if is_open and self._drafter is not None:
                await self._drafter.draft(part, self._turn)
            elif number == len(self._messages):
                message = await self._shown.show(self._turn, number, part)
                if message is None:
                    return False
                self._messages.append((message, part))
            elif self._messages[number][1] != part:
                await self._adapter.edit(part, self._messages[number][0])
                self._messages[number] = (self._messages[number][0], part)
        return True
