"""From the library's own threads into the event loop, and back only once what was said is durable.

WhatsApp has its receipt before the library calls us, and brings nothing twice: what is not stored when the callback
returns may be lost. So the callback blocks its thread until then, and tries again for as long as storing fails; the
library holds back what comes after. Knows no event: it carries bytes and their kind.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as StillRunning

log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 15.0
_LOOK_SECONDS = 1.0
"""How often a waiting thread looks whether there still is a loop."""


class Bridge:
    """For one run of one client. ``take`` is run in ``loop``; ``report`` is told, in a thread, why it failed."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[int, bytes], Coroutine[None, None, None]],
        report: Callable[[Exception], None],
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        self._loop = loop
        self._take = take
        self._report = report
        self._first_pause = first_pause
        self._closing = threading.Lock()
        self._closed = threading.Event()
        self._waiting: set[Future[None]] = set()

    def execute(self, _: bytes, binary: int, size: int, kind: int) -> None:
        """The library's callback: stands in for ``client.event.execute``. Nothing is raised into its threads."""
        try:
            self._carry(kind, ctypes.string_at(binary, size))
        except Exception:  # a fault of ours must not take the process down
            log.exception("whatsapp: an event was lost")

    def close(self) -> None:
        """Let every waiting thread go, at once and for good. What it holds is lost unless it was stored by then."""
        with self._closing:
            self._closed.set()
            waiting = [*self._waiting]
        for future in waiting:
            future.cancel()

    def _carry(self, kind: int, data: bytes) -> None:
        pause = self._first_pause
        while not self._closed.is_set():
            try:
                self._wait(kind, data)
            except CancelledError:
                return
            except Exception as error:
                self._report(error)
                self._closed.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                return

    def _wait(self, kind: int, data: bytes) -> None:
        """Raises CancelledError where nobody is there any more, and what ``take`` raised."""
        with self._closing:
            if self._closed.is_set() or self._loop.is_closed():
                raise CancelledError
            future = asyncio.run_coroutine_threadsafe(self._take(kind, data), self._loop)
            self._waiting.add(future)
        try:
            while True:
                try:
                    return future.result(_LOOK_SECONDS)
                except StillRunning:
                    if future.done():
                        raise  # its own
                    if self._loop.is_closed():
                        raise CancelledError from None
        finally:
            with self._closing:
                self._waiting.discard(future)
