"""Keeps the index saying what the files say: compares, fills in vectors, follows changes, makes it anew beside itself.

Words come first, vectors when they are made, a better embedder's in the background: whoever searches waits for the
first, a moment for the second and never for the third. A damaged index is moved aside and made from the files. Knows no
search and no writing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from workspaces.memory.embedder import EmbedderError
from workspaces.memory.index import Index, IndexDamaged, IndexUnavailable
from workspaces.memory.reconcile import Progress, fill, reconcile
from workspaces.memory.results import SyncReport
from workspaces.memory.store import Store

if TYPE_CHECKING:
    from workspaces.memory.encoder import Encoder
    from workspaces.memory.settings import MemorySettings
    from workspaces.memory.sources import Sources

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_WAITS = 10
"""Times the debounce that a folder which is never quiet is left alone."""

PAUSE = timedelta(seconds=60)
"""How long an index that could not be made anew is left as it is."""

PATIENCE = 1.0
"""Seconds that a search waits for the vectors of what is new; what has none yet is found by its words."""


class Syncing:
    """``encoders``: what stands in first, the preferred one last. ``unread`` has a sentence for each file that could
    not be read, ``last`` is None before the first comparison, ``repairs`` counts damaged indexes made anew."""

    def __init__(
        self,
        sources: Sources,
        store: Store,
        encoders: Sequence[Encoder],
        settings: MemorySettings,
        clock: Callable[[], datetime],
    ) -> None:
        self.unread: tuple[str, ...] = ()
        self.last: datetime | None = None
        self.repairs = 0
        self._sources = sources
        self._store = store
        self._encoders = encoders
        self._settings = settings
        self._clock = clock
        self._comparing = asyncio.Lock()
        self._making = asyncio.Lock()
        self._filling = {encoder.identity[0]: asyncio.Lock() for encoder in encoders}
        self._tasks: set[asyncio.Task[int]] = set()
        self._touched = asyncio.Event()
        self._stale = True
        self._watched = False
        self._rests_until: datetime | None = None

    def touch(self) -> None:
        """A file may have changed: the next search compares, and so does the follower when all is quiet."""
        self._stale = True
        self._touched.set()

    async def refresh(self) -> None:
        """What a search waits for. Raises IndexUnavailable."""
        if self._stale or not self._watched:
            await self.healed(lambda: self._sync(None, PATIENCE))

    async def sync(self, progress: Progress | None = None) -> SyncReport:
        """Bring all up to date, vectors included. Raises IndexUnavailable."""
        return await self.healed(lambda: self._sync(progress, None))

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Make the index anew beside itself and put it in its place; how many texts were embedded.

        Vectors of unchanged texts are taken along. Meanwhile the old one serves. Raises IndexUnavailable.
        """
        async with self._making:
            self._rests_until = self._clock() + PAUSE
            path = self._store.path
            beside = Store(
                path.with_name(f"{path.name}.new"), cutting=self._store.cutting, embedders=self._store.embedders
            )
            try:
                await beside.discard()
                await reconcile(self._sources, beside, self._settings, progress)
                made = 0
                for encoder in self._encoders:
                    with suppress(EmbedderError):  # kept by the encoder, and said with every search
                        made += await fill(beside, encoder, self._store)
                await self._store.take_over(beside)
                self._rests_until = None
            finally:
                await beside.discard()
                await beside.close()
        self.touch()
        return made

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """While inside, changes on disk are taken up in the background, and a search need not look for them."""
        from workspaces.memory.watcher import watched

        with watched(self._sources, self.touch) as works:
            if not works:
                logger.warning("%s can't be watched; each search compares the files instead", self._sources.root)
            self.touch()
            self._watched = works
            follower = asyncio.create_task(self._follow())
            try:
                yield
            finally:
                self._watched = False
                follower.cancel()
                with suppress(asyncio.CancelledError):
                    await follower

    async def healed(self, work: Callable[[], Awaitable[T]]) -> T:
        """``work``, once more on a new index where the old one turns out to be damaged."""
        try:
            return await work()
        except IndexDamaged as error:
            logger.warning("The memory index is damaged and is made anew: %s", error)
            self.repairs += 1
            await self._store.renew()
            await self._sync(None, PATIENCE)
            return await work()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._store.close()
        for encoder in self._encoders:
            encoder.close()

    async def _sync(self, progress: Progress | None, patience: float | None) -> SyncReport:
        """Words first, then vectors, for which ``patience`` is waited, in seconds; None waits for all of them."""
        async with self._comparing:
            self._stale = False
            try:
                report, self.unread = await reconcile(self._sources, self._store, self._settings, progress)
                current = await self._store.run(Index.is_current)
                serving = await self._store.run(Index.serving)
            except BaseException:
                self._stale = True
                raise
            self.last = self._clock()
        tasks = [] if current or not self._may_rebuild() else [self._start(self.rebuild())]
        if serving:
            fills = {encoder.identity[0]: self._start(self._fill(encoder)) for encoder in self._encoders}
            tasks += fills.values() if patience is None else [fills[serving.embedder]]
        if not tasks:
            return report
        done, _ = await asyncio.wait(tasks, timeout=patience)
        return replace(report, embedded=sum(task.result() for task in done if not task.exception()))

    def _may_rebuild(self) -> bool:
        """Not while one is running, and not soon after one that failed: it would read every file again and again."""
        return not self._making.locked() and (self._rests_until is None or self._clock() >= self._rests_until)

    def _start(self, work: Awaitable[int]) -> asyncio.Task[int]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[int]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.warning("The memory index could not be completed: %s", error)

    async def _fill(self, encoder: Encoder) -> int:
        async with self._filling[encoder.identity[0]]:
            with suppress(EmbedderError):  # kept by the encoder, and said with every search
                return await fill(self._store, encoder)
        return 0

    async def _follow(self) -> None:
        """Compare when the files have been quiet for a moment, and every few minutes in case an event was lost."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.reconcile_seconds):  # wait_for may swallow a cancellation
                    await self._touched.wait()
            for _ in range(MOST_WAITS):
                if not self._touched.is_set():
                    break
                self._touched.clear()
                await asyncio.sleep(self._settings.debounce_seconds)
            try:
                await self.sync()
            except IndexUnavailable as error:
                logger.warning("The memory index can't be used: %s", error)
            except Exception:  # whatever it was, the next change is followed again
                logger.exception("Changes in %s could not be taken up", self._sources.root)
