"""Work that is ordered within a key and parallel between keys: turns by session, sends by chat.

Knows neither. A wake-up that comes while a lane is about to end is never lost: the check for it and the end of the
lane happen without an await between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0
"""How long a lane rests after a fault of its work: a full disk or a busy database passes, and nothing must be lost."""

Work: TypeAlias = Callable[[str], Awaitable[bool]]
"""Does the next piece of work of a key; False when there was none."""

Failed: TypeAlias = Callable[[str, Exception], Awaitable[None]]
"""Is told of a fault of the work of a key, which is then tried again. Raises nothing."""


async def _at_once(key: str) -> bool:  # noqa: ARG001 - the same for all
    return True


LEAST = 2
"""So many lanes work however late the loop is."""

LATE_SECONDS = 0.015
"""When one pass of the loop takes longer than this, nothing more is begun: what arrives has to be accepted soon."""


class Places:
    """Who may work now: ``limit`` at once, and fewer while their own work keeps the loop busy.

    Turns wait for models, and then sixteen of them are little to do. Where the models are quick, sixteen would share
    one processor, end no sooner, and hold up everything that arrives.
    """

    def __init__(self, limit: int | None, sleep: Callable[[float], Awaitable[None]]) -> None:
        """``limit`` None: whoever wants to."""
        self._free = asyncio.Semaphore(limit) if limit is not None else None
        self._entry = asyncio.Lock()
        self._sleep = sleep
        self._working = 0

    async def take(self) -> None:
        """Wait for a place, which is to be given back with ``leave``."""
        if self._free is None:
            return
        await self._free.acquire()
        try:
            async with self._entry:  # one after the other, so that each sees what the one before it began
                while self._working >= LEAST and (late := await _lateness()) > LATE_SECONDS:
                    await self._sleep(late)
                self._working += 1
        except BaseException:
            self._free.release()
            raise

    def leave(self) -> None:
        if self._free is not None:
            self._working -= 1
            self._free.release()


async def _lateness() -> float:
    """How long a pass of the loop takes, in seconds."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # what was ready in the first pass has run
    return loop.time() - begin


class Lanes:
    """At most one task per key, at most ``limit`` of them working at once (None: no limit).

    ``ready`` is waited for before each piece of work, and takes no place from others meanwhile; False: there is none.
    Whoever has waited longest for a place gets it, so that a lane with much to do gives way after each piece.
    """

    def __init__(
        self,
        work: Work,
        *,
        ready: Work = _at_once,
        limit: int | None = None,
        failed: Failed,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._work = work
        self._ready = ready
        self._failed = failed
        self._sleep = sleep
        self._places = Places(limit, sleep)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: set[str] = set()
        """Lanes that hold nothing: they can be cut off at any moment."""
        self._woken: set[str] = set()
        self._closed = False

    def wake(self, key: str) -> None:
        """There may be work for ``key``."""
        self._woken.add(key)
        if key not in self._tasks and not self._closed:
            self._tasks[key] = asyncio.create_task(self._run(key), name=f"lane {key}")

    @property
    def are_busy(self) -> bool:
        """Whether a lane has work, or may have."""
        return bool(self._tasks)

    def has(self, key: str) -> bool:
        """Whether the lane of ``key`` has work, or may have."""
        return key in self._tasks

    async def idle(self) -> None:
        """Wait until no lane has work."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def close(self, grace: float) -> None:
        """Begin nothing new, give what runs ``grace`` seconds, then cancel it; a lane that only waits ends at once."""
        self._closed = True
        for key in self._waiting:
            self._tasks[key].cancel()
        running = list(self._tasks.values())
        if running and grace > 0:
            await asyncio.wait(running, timeout=grace)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, key: str) -> None:
        rest = FIRST_RETRY_SECONDS
        try:
            while key in self._woken and not self._closed:
                self._woken.discard(key)
                try:
                    while not self._closed and await self._next(key):
                        rest = FIRST_RETRY_SECONDS
                except Exception as error:  # a fault in one lane must not stop the others, nor go unseen
                    self._woken.add(key)
                    await self._failed(key, error)
                    await self._rest(key, rest)
                    rest = min(2 * rest, LONGEST_RETRY_SECONDS)
        finally:
            del self._tasks[key]

    async def _rest(self, key: str, seconds: float) -> None:
        if not self._closed:
            with self._only_waiting(key):
                await self._sleep(seconds)

    async def _next(self, key: str) -> bool:
        with self._only_waiting(key):
            if not await self._ready(key):
                return False
            await self._places.take()
        try:
            return not self._closed and await self._work(key)
        finally:
            self._places.leave()

    @contextmanager
    def _only_waiting(self, key: str) -> Iterator[None]:
        self._waiting.add(key)
        try:
            yield
        finally:
            self._waiting.discard(key)
