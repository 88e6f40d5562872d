"""The memory for scripts that don't use asyncio: the same calls, each of which waits for its result.

with BlockingMemory.open(folder, index) as memory:
    result = memory.search("name of my dog")

A loop of its own runs in a thread; any thread may call. The scope is home's unless it is given. Knows no search.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from workspaces.memory.engine import Memory
from workspaces.memory.reconcile import Progress
from workspaces.memory.results import (
    Change,
    Changed,
    Excerpt,
    Listed,
    MemoryStatus,
    SearchResult,
    SyncReport,
    Undone,
    Written,
)
from workspaces.scope import Scope

T = TypeVar("T")

HOME = Scope.home()


class BlockingMemory:
    """Use ``with BlockingMemory.open(...) as memory``. Each method is ``Memory``'s of the same name."""

    def __init__(self, memory: Memory, loop: asyncio.AbstractEventLoop) -> None:
        """Private: use ``BlockingMemory.open``."""
        self._memory = memory
        self._loop = loop

    @classmethod
    @contextmanager
    def open(cls, folder: Path, index: Path, **options: Any) -> Iterator[BlockingMemory]:
        """``options`` are those of ``Memory.open``. Not for use inside a running loop, which would stand still."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="memory-loop", daemon=True)
        thread.start()
        opened = Memory.open(folder, index, **options)
        try:
            memory = _waited(loop, opened.__aenter__())
            try:
                yield cls(memory, loop)
            finally:
                _waited(loop, opened.__aexit__(None, None, None))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def search(
        self, question: str, *, scope: Scope = HOME, limit: int | None = None, now: datetime | None = None
    ) -> SearchResult:
        return self._wait(self._memory.search(question, scope=scope, limit=limit, now=now))

    def get(self, path: str, *, scope: Scope = HOME, start: int = 1, lines: int = 120) -> Excerpt:
        return self._wait(self._memory.get(path, scope=scope, start=start, lines=lines))

    def list(self, *, scope: Scope = HOME) -> tuple[Listed, ...]:
        return self._wait(self._memory.list(scope=scope))

    def append(self, text: str, *, scope: Scope = HOME, by: str | None = None) -> Written:
        return self._wait(self._memory.append(text, scope=scope, by=by))

    def add(self, path: str, text: str, *, scope: Scope = HOME, by: str | None = None) -> Written:
        return self._wait(self._memory.add(path, text, scope=scope, by=by))

    def update(self, path: str, old: str, new: str, *, scope: Scope = HOME, by: str | None = None) -> Changed:
        return self._wait(self._memory.update(path, old, new, scope=scope, by=by))

    def delete(self, path: str, text: str, *, scope: Scope = HOME, by: str | None = None) -> Changed:
        return self._wait(self._memory.delete(path, text, scope=scope, by=by))

    def undo(self, *, scope: Scope = HOME, by: str | None = None) -> Undone | None:
        return self._wait(self._memory.undo(scope=scope, by=by))

    def changes(self, *, scope: Scope = HOME, limit: int = 20) -> tuple[Change, ...]:
        return self._wait(self._memory.changes(scope=scope, limit=limit))

    def sync(self, progress: Progress | None = None) -> SyncReport:
        return self._wait(self._memory.sync(progress))

    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        return self._wait(self._memory.rebuild(progress))

    def status(self) -> MemoryStatus:
        return self._wait(self._memory.status())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return _waited(self._loop, work)


def _waited(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(work, loop).result()
