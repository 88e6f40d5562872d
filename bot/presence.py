"""What a person sees while they are waiting for an answer: that somebody is typing, and a sign on their message.

Best effort, and never there any more once the answer is. Knows no agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from adapters.adapter import Adapter, Reactor
from adapters.message import Message
from bot.queueing import is_press

TYPING_SECONDS = 4.5
"""Telegram and Discord show "typing" for about five seconds a call."""


@asynccontextmanager
async def present(adapter: Adapter, message: Message, sign: str) -> AsyncIterator[None]:
    """Show both while the block runs. ``sign`` is an emoji, "" for none."""

    async def keep() -> None:
        if reactor is not None:
            await reactor.react(message.address, message.id, sign)
        while adapter.capabilities.typing:
            await adapter.typing(message.address)
            await asyncio.sleep(TYPING_SECONDS)

    has_message = bool(sign) and not is_press(message)  # no platform knows the id of a press
    reactor = adapter if has_message and isinstance(adapter, Reactor) else None
    task = asyncio.create_task(keep())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if reactor is not None:
            await reactor.react(message.address, message.id, "")
