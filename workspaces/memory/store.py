"""The index behind a thread of its own: opened at first use, opened again after damage, one hop a unit of work.

SQLite is synchronous and a connection is for one thread at a time; a unit of work is a plain function of the index,
which is faster than a hop for each statement and can't hold a transaction open across an ``await``. Knows no search.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from workspaces.memory.index import Index, IndexDamaged, move_aside, reported

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Store:
    """``cutting`` and ``embedder`` as for ``Index.open``. Nothing is opened before the first ``run``."""

    def __init__(self, path: Path, *, cutting: str, embedder: tuple[str, int] | None) -> None:
        self.path = path
        self._cutting = cutting
        self._embedder = embedder
        self._index: Index | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memory-index")

    async def run(self, work: Callable[Concatenate[Index, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """``work`` on the open index, in its thread. Raises IndexUnavailable; IndexDamaged calls for ``renew``."""
        call = functools.partial(self._do, work, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def renew(self) -> None:
        """Put the file aside; the next ``run`` starts an empty one."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._put_aside)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._let_go)
        self._thread.shutdown()

    def _do(self, work: Callable[Concatenate[Index, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with reported():
            if self._index is None:
                self._index = self._opened()
            return work(self._index, *args, **kwargs)

    def _opened(self) -> Index:
        try:
            return Index.open(self.path, cutting=self._cutting, embedder=self._embedder)
        except IndexDamaged as error:
            logger.info("The memory index is built anew: %s", error)
            self._put_aside()
            return Index.open(self.path, cutting=self._cutting, embedder=self._embedder)

    def _put_aside(self) -> None:
        with reported():
            self._let_go()
            move_aside(self.path)

    def _let_go(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None
