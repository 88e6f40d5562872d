"""From the library's own threads into the event loop, and back only once what was said is durable.

WhatsApp has its receipt before the library calls us, and brings nothing twice: what is not stored when the callback
returns may be lost. So what is said is noted on the disk first, in the library's thread; then the callback blocks that
thread until the hub has stored it, and tries again for as long as that fails. The library holds back what comes after.
Knows no event: it carries bytes and their kind.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as StillRunning
from typing import Protocol

log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 15.0
_LOOK_SECONDS = 1.0
"""How often a waiting thread looks whether there still is a loop."""


class Journal(Protocol):
    """Where what is said is noted until it is stored; both may be called by any thread, and raise what they like."""

    def keep(self, kind: int, data: bytes) -> int: ...
    def done(self, number: int) -> None: ...


class Bridge:
    """For one run of one client. ``take`` is run in ``loop``; ``report`` is told, in a thread, why it failed.

    Events of the kinds in ``kept`` are noted in ``journal``, which a later run goes on from.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[int, bytes], Coroutine[None, None, None]],
        report: Callable[[Exception], None],
        first_pause: float = _FIRST_PAUSE,
        journal: Journal | None = None,
        kept: frozenset[int] = frozenset(),
    ) -> None:
        self._loop = loop
        self._take = take
        self._report = report
        self._first_pause = first_pause
        self.seen = 0
        """Events that were reported until now."""
        self._journal = journal
        self._kept = kept
        self._closing = threading.Lock()
        self._closed = threading.Event()
        self._waiting: set[Future[None]] = set()

    def execute(self, _: bytes, binary: int, size: int, kind: int) -> None:
        """The library's callback: stands in for ``client.event.execute``. Nothing is raised into its threads."""
        self.seen += 1
        try:
            data = ctypes.string_at(binary, size)
            number = self._note(kind, data)
            if self._carry(kind, data) and number is not None and self._journal is not None:
                self._journal.done(number)
        except Exception:  # a fault of ours must not take the process down
            log.exception("whatsapp: an event was lost, or will be handed on once more")

    def _note(self, kind: int, data: bytes) -> int | None:
        """What it is noted under; None where it is not: what the journal can't take may still be stored."""
        if self._journal is None or kind not in self._kept:
            return None
        try:
            return self._journal.keep(kind, data)
        except Exception as error:
            self._report(error)
            return None

    def close(self) -> None:
        """Let every waiting thread go, at once and for good. What comes from now on is noted, and goes no further."""
        with self._closing:
            self._closed.set()
            waiting = [*self._waiting]
        for future in waiting:
            future.cancel()

    def _carry(self, kind: int, data: bytes) -> bool:
        """Whether it was stored; False once this is closed."""
        pause = self._first_pause
        while not self._closed.is_set():
            try:
                self._wait(kind, data)
            except CancelledError:
                return False
            except Exception as error:
                self._report(error)
                self._closed.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                return True
        return False

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
