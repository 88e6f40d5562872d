"""A lock for many that are quick: all who wait go on in one pass of the event loop.

``asyncio.Lock`` hands itself on once a pass. Where something holds it for long once, a line forms, and it stays as long
as more arrive than there are passes: each then waits for all the others, though nobody holds the lock any more.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turnstile:
    """In the order of arrival. Whoever has it and waits for nothing gives it back before anybody else runs."""

    def __init__(self) -> None:
        self._is_held = False
        self._line: deque[asyncio.Event] = deque()

    def locked(self) -> bool:
        return self._is_held

    async def acquire(self) -> None:
        if self._is_held or self._line:
            await self._turn()
        self._is_held = True

    async def _turn(self) -> None:
        """Wait until it is free and all who came before have had it."""
        woken = asyncio.Event()
        self._line.append(woken)
        try:
            await woken.wait()
            while self._is_held:  # by one of those before, who waits for something
                woken.clear()
                await woken.wait()
        except asyncio.CancelledError:
            self._line.remove(woken)
            if not self._is_held:
                self._wake()
            raise
        self._line.remove(woken)

    def release(self) -> None:
        self._is_held = False
        self._wake()

    def _wake(self) -> None:
        for woken in self._line:
            woken.set()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.release()
