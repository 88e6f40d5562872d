"""Keeps the index saying what the files say: compares, fills in vectors, follows changes, makes it anew beside itself.

Words come first, vectors when they are made, a better embedder's in the background: whoever searches waits for the
first, a moment for the second and never for the third. A damaged index is moved aside and made from the files. Knows no
search and no writing.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from workspaces.memory.embedder import EmbedderError
from workspaces.memory.index import Index, IndexDamaged, IndexUnavailable
from workspaces.memory.reconcile import Progress, carry, fill, reconcile
from workspaces.memory.results import SyncReport

if TYPE_CHECKING:
    from workspaces.memory.encoder import Encoder
    from workspaces.memory.settings import MemorySettings
    from workspaces.memory.sources import Sources
    from workspaces.memory.store import Store

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOOKS = 0.2
"""Seconds between two looks whether another process has made its new index."""

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
        self._was_made = False

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
        async with self._making, _alone(self._store.path.parent):
            return await self._rebuild(progress)

    async def _rebuild(self, progress: Progress | None = None) -> int:
        self._rests_until = self._clock() + PAUSE
        beside = self._store.beside()
        try:
            await beside.discard()  # what a process left that was killed
            await reconcile(self._sources, beside, self._settings, progress)
            made = 0
            for encoder in self._encoders:
                await carry(beside, self._store, encoder.identity[0])
                with suppress(EmbedderError):  # kept by the encoder, and said with every search
                    made += await fill(beside, encoder)
            await self._store.take_over(beside)
            self._was_made = True
        finally:
            await beside.discard()
            await beside.close()
        self.touch()
        return made

    async def _renewed(self) -> int:
        """Make it anew because it is cut otherwise, unless another process is at it."""
        async with self._making:
            with suppress(BlockingIOError):
                async with _alone(self._store.path.parent, wait=False):
                    return await self._rebuild()
        return 0

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
            if patience is not None and self._watched and not self._stale:
                return SyncReport()  # somebody else compared while this one waited
            self._stale = False
            try:
                report, self.unread = await reconcile(self._sources, self._store, self._settings, progress)
                await self._store.run(Index.attend, self._store.embedders)
                current = await self._store.run(Index.is_current)
                serving = await self._store.run(Index.serving)
            except BaseException:
                self._stale = True
                raise
            self.last = self._clock()
        tasks = [] if current or not self._may_rebuild() else [self._start(self._renewed())]
        if serving:
            fills = {encoder.identity[0]: self._start(self._fill(encoder)) for encoder in self._to_fill(patience)}
            tasks += [task for name, task in fills.items() if patience is None or name == serving.embedder]
        if not tasks:
            return report
        done, _ = await asyncio.wait(tasks, timeout=patience)
        return replace(report, embedded=sum(task.result() for task in done if not task.exception()))

    def _may_rebuild(self) -> bool:
        """Not while one is running, not soon after one that failed, and not when it was made by us and then by another
        with other settings: each would read every file again and again."""
        rests = self._rests_until is not None and self._clock() < self._rests_until
        return not (self._making.locked() or rests or self._was_made)

    def _start(self, work: Awaitable[int]) -> asyncio.Task[int]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[int]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.warning("The memory index could not be completed: %s", error)

    def _to_fill(self, patience: float | None) -> list[Encoder]:
        """All for who waits for all; a search leaves those alone that are at work already."""
        return [one for one in self._encoders if patience is None or not self._filling[one.identity[0]].locked()]

    async def _fill(self, encoder: Encoder) -> int:
        async with self._filling[encoder.identity[0]]:
            try:
                return await fill(self._store, encoder)
            except EmbedderError as error:
                if not encoder.trouble:  # else it is kept there, and said with every search
                    logger.warning("Vectors could not be stored: %s", error)
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


@asynccontextmanager
async def _alone(folder: Path, *, wait: bool = True) -> AsyncIterator[None]:
    """While inside, no other process makes an index in ``folder`` anew. Raises BlockingIOError if one does now, unless
    it is to ``wait``. The lock is the folder's own: it leaves no file, and goes with the process."""
    descriptor = await asyncio.to_thread(_opened, folder)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not wait:
                    raise
                await asyncio.sleep(LOOKS)
        yield
    finally:
        os.close(descriptor)


def _opened(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(folder, os.O_RDONLY)
