"""The memory of one workspace: the public face, and the order in which things are done.

A search first makes the index say what the files say, so a note saved by any editor is found by the next search.
Whatever happens to the index, a search answers: by words where there are no vectors, by reading the Markdown where
there is no index, and says so. Knows no model, no agent and no chat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TypeVar

from workspaces import files, paths
from workspaces.memory import notes, query, ranking, redaction, retrieval
from workspaces.memory.embedder import Embedder, EmbedderError
from workspaces.memory.encoder import Encoder
from workspaces.memory.history import History
from workspaces.memory.index import Index, IndexDamaged, IndexUnavailable
from workspaces.memory.reconcile import Progress, fill, reconcile
from workspaces.memory.results import Excerpt, Hit, MemoryStatus, Mode, SearchResult, SyncReport, Undone, Written
from workspaces.memory.settings import MemorySettings
from workspaces.memory.static_embedder import StaticEmbedder
from workspaces.memory.store import Store
from workspaces.scope import Scope

logger = logging.getLogger(__name__)

T = TypeVar("T")

LONGEST_EXCERPT = 20_000
"""Characters that ``get`` gives at most: the cap of a bootstrap file."""

MOST_WAITS = 10
"""Times the debounce that a folder which is never quiet is left alone."""

PATIENCE = 1.0
"""Seconds that a search waits for the vectors of what is new; what has none yet is found by its words."""

STILL_FILLING = "The newest notes are found by words only: their vectors are still being made."

NO_VECTORS = "Search by meaning is off: this Python's SQLite can't load sqlite-vec. Install it: pip install pysqlite3"


class Memory:
    """Use ``async with Memory.open(...) as memory``. Safe to use from many tasks, and beside other processes."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        encoder: Encoder | None,
        settings: MemorySettings,
        history: History,
        clock: Callable[[], datetime],
        zone: Callable[[], tzinfo | None],
    ) -> None:
        """Private: use ``Memory.open``."""
        self._folder = folder
        self._store = store
        self._encoder = encoder
        self._settings = settings
        self._history = history
        self._clock = clock
        self._zone = zone
        self._syncing = asyncio.Lock()
        self._filling = asyncio.Lock()
        self._fills: set[asyncio.Task[int]] = set()
        self._touched = asyncio.Event()
        self._stale = True
        self._watched = False
        self._unread: tuple[str, ...] = ()
        self._last_sync: datetime | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        folder: Path,
        index: Path,
        *,
        embedder: Embedder | None = None,
        settings: MemorySettings | None = None,
        history: Path | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        zone: Callable[[], tzinfo | None] = lambda: None,
    ) -> AsyncIterator[Memory]:
        """The memory of ``folder``, with its index in the file ``index``; neither has to be there yet.

        ``embedder`` None takes the one that ``settings`` names. ``history`` is where the engine keeps what it
        overwrites, None for the folder ``history`` beside the index. ``clock`` gives aware times; ``zone`` is where
        days begin and end, asked each time, None for the machine's. Never raises for the state of files or index.
        """
        chosen = settings or MemorySettings()
        if embedder is None and chosen.embedder == "static":
            embedder = StaticEmbedder()
        encoder = Encoder(embedder, clock) if embedder else None
        cutting = f"{chosen.chunk_tokens}/{chosen.chunk_overlap}/{chosen.unit_tokens}"
        store = Store(index, cutting=cutting, embedder=encoder.identity if encoder else None)
        past = History(history or index.parent / "history")
        memory = cls(folder, store, encoder, chosen, past, clock, zone)
        try:
            yield memory
        finally:
            for task in memory._fills:
                task.cancel()
            await asyncio.gather(*memory._fills, return_exceptions=True)
            await store.close()

    async def search(
        self,
        question: str,
        *,
        scope: Scope,
        limit: int | None = None,
        alone: bool = False,
        now: datetime | None = None,
    ) -> SearchResult:
        """What the scope's notes say about ``question``, which is anything a person types.

        ``limit`` None takes the setting's. ``alone``: each find is one note, without those beside it that fit as well.
        ``now`` is what notes age by, None for the clock's.
        """
        terms = query.terms(question)
        mode: Mode
        try:
            await self._refresh()
            scored, passages = await self._healed(
                lambda: retrieval.indexed(self._store, self._encoder, question, terms, scope.read, self._settings)
            )
            mode, warnings = await self._state()
        except IndexUnavailable as error:
            mode, warnings = "scan", (f"The index can't be used, the files were read one by one instead: {error}.",)
            scored, passages = await asyncio.to_thread(
                retrieval.scanned, self._folder, terms, scope.read, self._settings
            )
        today = None if query.names_a_day(question) else (now or self._clock()).astimezone(self._zone()).date()
        most = self._settings.limit if limit is None else limit
        hits = ranking.hits(scored, passages, today, most, self._settings, alone=alone)
        return SearchResult(hits, mode, warnings)

    async def latest(self, *, scope: Scope, limit: int = 10) -> tuple[Hit, ...]:
        """The newest notes that the scope can read, newest first; their score says nothing."""
        try:
            await self._refresh()
            found = await self._healed(lambda: self._store.run(Index.latest, scope.read, limit))
        except IndexUnavailable:
            found = await asyncio.to_thread(retrieval.scanned_latest, self._folder, scope.read, limit, self._settings)
        return tuple(ranking.as_hit([passage], self._settings.max_characters) for passage in found)

    async def get(self, path: str, *, scope: Scope, start: int = 1, lines: int = 120) -> Excerpt:
        """Up to ``lines`` lines of a file from line ``start``; a file that isn't there gives an empty excerpt.

        Raises OutOfReach for a path that the scope can't read, whether or not there is such a file.
        """
        real = paths.resolve(self._folder, path, scope)
        return await asyncio.to_thread(_excerpt, real, path, max(start, 1), max(lines, 0))

    async def append(self, text: str, *, scope: Scope) -> Written:
        """Add a bullet to the scope's note of today. Secrets in it are withheld; the old text is kept first.

        Raises EmptyNote, and OSError when it could not be written.
        """
        now = self._clock().astimezone(self._zone())
        clean, withheld = redaction.redacted(notes.sanitized(text))
        note, start = notes.bullet(clean, now), notes.heading(f"{now:%Y-%m-%d}")
        relative = f"{scope.notes}{now:%Y-%m-%d}.md"
        path = paths.resolve(self._folder, relative, scope, write=True)

        def write() -> tuple[int, int]:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return notes.append(path, start, note, lambda: self._history.record(now, scope.area, relative, note, start))

        first, last = await asyncio.to_thread(write)
        self._change()
        return Written(relative, first, last, clean.strip(), withheld)

    async def undo(self, *, scope: Scope) -> Undone | None:
        """Take back the last write in this scope; None when there is none. What a person edited since stays.

        A second call goes on to the write before. Raises OutOfReach where the file has become a link out of the
        scope, and OSError when it could not be written.
        """
        undone = await asyncio.to_thread(self._undo, scope)
        self._change()
        return undone

    async def sync(self, progress: Progress | None = None) -> SyncReport:
        """Compare the files with the index and bring it up to date, vectors included.

        ``progress`` is called in the loop with the changed files done and in all. Without a usable index nothing is
        done, and ``status`` says so.
        """
        try:
            return await self._healed(lambda: self._sync(progress, None))
        except IndexUnavailable as error:
            logger.warning("The memory index can't be used: %s", error)
            return SyncReport()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """While inside, changes on disk are taken up in the background, and a search need not look for them."""
        from workspaces.memory.watcher import watched

        with watched(self._folder, self._change) as works:
            if not works:
                logger.warning("%s can't be watched; each search compares the files instead", self._folder)
            self._change()
            self._watched = works
            follower = asyncio.create_task(self._follow())
            try:
                yield
            finally:
                self._watched = False
                follower.cancel()
                with suppress(asyncio.CancelledError):
                    await follower

    async def status(self) -> MemoryStatus:
        """What there is, and what is amiss."""
        try:
            counts = await self._healed(lambda: self._store.run(Index.counts))
            mode, warnings = await self._state()
            warnings += (*self._unread, *await self._store.run(Index.flaws))
        except IndexUnavailable as error:
            counts, mode, warnings = (0, 0, 0), "scan", (f"The index can't be used: {error}.",)
        embedder = self._encoder.identity[0] if self._encoder else "none"
        size = await asyncio.to_thread(_size, self._store.path)
        return MemoryStatus(*counts, mode, embedder, self._store.path, size, warnings, self._last_sync)

    async def _refresh(self) -> None:
        if self._stale or not self._watched:
            await self._healed(lambda: self._sync(None, PATIENCE))

    async def _sync(self, progress: Progress | None, patience: float | None) -> SyncReport:
        """Words first, then vectors, for which ``patience`` is waited, in seconds; None waits for all of them."""
        async with self._syncing:
            self._stale = False
            try:
                report, self._unread = await reconcile(self._folder, self._store, self._settings, progress)
                takes_vectors = await self._store.run(Index.takes_vectors)
            except BaseException:
                self._stale = True
                raise
            self._last_sync = self._clock()
        if self._encoder is None or not takes_vectors:
            return report
        task = asyncio.create_task(self._fill(self._encoder))
        self._fills.add(task)
        task.add_done_callback(self._filled)
        done, _ = await asyncio.wait({task}, timeout=patience)
        return replace(report, embedded=task.result()) if done else report

    async def _fill(self, encoder: Encoder) -> int:
        async with self._filling:
            with suppress(EmbedderError):  # kept by the encoder, and said by ``_state``
                return await fill(self._store, encoder)
        return 0

    def _filled(self, task: asyncio.Task[int]) -> None:
        self._fills.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.warning("Vectors could not be stored: %s", error)

    def _change(self) -> None:
        """A file may have changed: the next search compares, and so does the follower when all is quiet."""
        self._stale = True
        self._touched.set()

    async def _follow(self) -> None:
        """Compare when the files have been quiet for a moment, and every few minutes in case an event was lost."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._touched.wait(), self._settings.reconcile_seconds)
            for _ in range(MOST_WAITS):
                if not self._touched.is_set():
                    break
                self._touched.clear()
                await asyncio.sleep(self._settings.debounce_seconds)
            try:
                await self.sync()
            except Exception:  # whatever it was, the next change is followed again
                logger.exception("Changes in %s could not be taken up", self._folder)

    async def _healed(self, work: Callable[[], Awaitable[T]]) -> T:
        """``work``, once more on a new index where the old one turns out to be damaged."""
        try:
            return await work()
        except IndexDamaged as error:
            logger.warning("The memory index is damaged and is made anew: %s", error)
            await self._store.renew()
            await self._sync(None, PATIENCE)
            return await work()

    async def _state(self) -> tuple[Mode, tuple[str, ...]]:
        """How a search is made now, and why not better."""
        if self._encoder is None:
            return "keyword", ()
        if not await self._store.run(Index.takes_vectors):
            return "keyword", (NO_VECTORS,)
        if self._encoder.trouble:
            return "keyword", (f"Search by meaning is off: {self._encoder.trouble}.",)
        return "hybrid", (STILL_FILLING,) if await self._store.run(Index.is_filling) else ()

    def _undo(self, scope: Scope) -> Undone | None:
        write = self._history.last(scope.area)
        if write is None:
            return None
        path = paths.resolve(self._folder, write.path, scope, write=True)
        done = notes.take_back(path, write.start, write.text, lambda old: self._history.keep(write, old))
        self._history.settle(write, self._clock(), taken_back=done)
        return Undone(write.path, write.text, edited=not done)


def _excerpt(real: Path, path: str, start: int, lines: int) -> Excerpt:
    try:
        read = files.decode(real.read_bytes())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return Excerpt(path, 0, 0, 0, "", "There is no such file (yet).")
    except OSError as error:
        return Excerpt(path, 0, 0, 0, "", f"The file can't be read: {error.strerror}.")
    every = read.text.removesuffix("\n").split("\n") if read.text else []
    chosen = every[start - 1 : start - 1 + lines]
    text = "\n".join(chosen)
    notes_ = [f"It was read as well as it could be: {read.flaw}."] if read.flaw else []
    if len(text) > LONGEST_EXCERPT:
        text = text[:LONGEST_EXCERPT]
        notes_.append(f"Cut after {LONGEST_EXCERPT:,} characters.")
    end = start + text.count("\n") if chosen else start - 1
    return Excerpt(path, start, end, len(every), text, " ".join(notes_))


def _size(path: Path) -> int:
    """Bytes of a database and its journals."""
    parts = (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm"))
    return sum(part.stat().st_size for part in parts if part.is_file())
