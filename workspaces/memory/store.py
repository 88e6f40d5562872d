"""The index behind a thread of its own: opened at first use, opened again after damage, one hop a unit of work.

SQLite is synchronous and a connection is for one thread at a time; a unit of work is a plain function of the index,
which is faster than a hop for each statement and can't hold a transaction open across an ``await``. Knows no search.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from workspaces.memory.index import Index, IndexDamaged, move_aside, remove, reported

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Store:
    """``cutting`` and ``embedders`` as for ``Index.open``; ``clock`` gives aware times. Nothing is opened before the
    first ``run``."""

    def __init__(
        self,
        path: Path,
        *,
        cutting: str,
        embedders: Sequence[tuple[str, int | None]],
        clock: Callable[[], datetime],
    ) -> None:
        self.path = path
        self.cutting = cutting
        self.embedders = embedders
        self.clock = clock
        self._index: Index | None = None
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memory-index")

    async def run(self, work: Callable[Concatenate[Index, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """``work`` on the open index, in its thread. Raises IndexUnavailable; IndexDamaged calls for ``renew``."""
        return await self._in_thread(functools.partial(self._do, work, *args, **kwargs))

    async def renew(self) -> None:
        """Put the file aside; the next ``run`` starts an empty one."""
        await self._in_thread(self._put_aside)

    def beside(self) -> Store:
        """One for a new index that is to take the place of this one's."""
        path = self.path.with_name(f"{self.path.name}.new")
        return Store(path, cutting=self.cutting, embedders=self.embedders, clock=self.clock)

    async def take_over(self, beside: Store) -> None:
        """Become what ``beside`` holds, in one step. Raises IndexUnavailable."""
        made = await beside.run(lambda index: index)
        try:
            await self.run(Index.become, made)
        except IndexDamaged:  # nothing can be put into it
            await self.renew()
            await self.run(Index.become, made)

    async def discard(self) -> None:
        """Close, and remove the file."""
        await self._in_thread(self._remove)

    async def close(self) -> None:
        """Harmless twice."""
        if not self._closed:
            self._closed = True
            await self._in_thread(self._let_go)
            self._thread.shutdown()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _do(self, work: Callable[Concatenate[Index, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with reported():
            if self._index is not None and self._index.is_gone():
                self._let_go()  # another process moved it aside and began anew
            if self._index is None:
                self._index = self._opened()
            return work(self._index, *args, **kwargs)

    def _opened(self) -> Index:
        opened = functools.partial(Index.open, self.path, cutting=self.cutting, embedders=self.embedders)
        try:
            return opened(today=self.clock().date())
        except IndexDamaged as error:
            logger.warning("The memory index is built anew: %s", error)
            self._put_aside()
            return opened(today=self.clock().date())

    def _put_aside(self) -> None:
        with reported():
            self._let_go()
            move_aside(self.path)

    def _remove(self) -> None:
        with suppress(OSError):
            self._let_go()
            remove(self.path)

    def _let_go(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None
