"""The memory of one workspace: the public face, and the order in which things are done.

A search first makes the index say what the files say, so a note saved by any editor is found by the next search.
Whatever happens to the index, a search answers: by words where there are no vectors, by reading the Markdown where
there is no index, and says so. Knows no model, no agent and no chat.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import ParamSpec, TypeVar

from workspaces import files
from workspaces.confined import Confined
from workspaces.installation import install_package
from workspaces.memory import documents, query, ranking, retrieval
from workspaces.memory.embedder import Embedder
from workspaces.memory.embedders import STATIC, embedded
from workspaces.memory.encoder import Encoder
from workspaces.memory.history import History
from workspaces.memory.index import Counts, Index, IndexUnavailable
from workspaces.memory.reconcile import Progress
from workspaces.memory.results import (
    Change,
    Changed,
    Excerpt,
    Hit,
    Listed,
    MemoryStatus,
    Mode,
    SearchResult,
    SyncReport,
    Undone,
    Written,
)
from workspaces.memory.settings import MemorySettings
from workspaces.memory.sources import WORKSPACE, Sources
from workspaces.memory.store import Store
from workspaces.memory.syncing import Syncing
from workspaces.memory.writing import Writing
from workspaces.scope import Scope

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

LONGEST_EXCERPT = 20_000
"""Characters that ``get`` gives at most: the cap of a bootstrap file."""

NEEDED = 6
"""Pieces whose text is read for each hit: some are handed out together, some say the same, some are too old. With ten
recall is no better, also where the notes of a year are searched on the day after its last."""

STILL_FILLING = "The newest notes are found by words only: their vectors are still being made."

NO_VECTORS = "Search by meaning is off: this Python's SQLite can't load sqlite-vec. Install one that can: `{command}`."

UNREADABLE = "The index can't be used, the files were read one by one instead: {}."


class Memory:
    """Use ``async with Memory.open(...) as memory``. Safe to use from many tasks, and beside other processes."""

    def __init__(
        self,
        sources: Sources,
        store: Store,
        encoders: Sequence[Encoder],
        writing: Writing,
        settings: MemorySettings,
        clock: Callable[[], datetime],
        zone: Callable[[], tzinfo | None],
    ) -> None:
        """Private: use ``Memory.open``."""
        self._folder = sources.root
        self._sources = sources
        self._store = store
        self._encoders = {encoder.identity[0]: encoder for encoder in encoders}
        self._syncing = Syncing(sources, store, encoders, settings, clock)
        self._settings = settings
        self._writing = writing
        self._clock = clock
        self._zone = zone

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        folder: Path,
        index: Path,
        *,
        patterns: Sequence[str] = WORKSPACE,
        apart: Sequence[Path] = (),
        embedder: Embedder | None = None,
        stand_in: Embedder | None = None,
        settings: MemorySettings | None = None,
        history: Path | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        zone: Callable[[], tzinfo | None] = lambda: None,
    ) -> AsyncIterator[Memory]:
        """The memory of ``folder``, with its index in the file ``index``; neither has to be there yet.

        ``patterns`` say which files are memory, see ``Sources``; those of ``settings`` (``extra``) come to them, are
        read only, and never reach into the folders ``apart``. ``embedder`` None takes the one that ``settings`` names;
        ``stand_in`` serves until a slow one has a vector for every note. ``history`` is where the engine keeps what it
        overwrites, None for the folder ``history`` beside the index. ``clock`` gives aware times; ``zone`` is where
        days begin and end, asked each time, None for the machine's.

        Never raises for the state of files or index; ValueError for a pattern that is none, and for a server's embedder
        in ``settings`` that is not passed in.
        """
        chosen = settings or MemorySettings()
        encoders = [Encoder(each, clock) for each in _embedders(embedder, stand_in, chosen)]
        cutting = f"{chosen.chunk_tokens}/{chosen.chunk_overlap}/{chosen.unit_tokens}"
        store = Store(index, cutting=cutting, embedders=[encoder.identity for encoder in encoders], clock=clock)
        past = History(history or index.parent / "history")
        sources = Sources(folder, (*patterns, *chosen.extra), apart)
        writing = Writing(Sources(folder, patterns), past, clock, zone)
        memory = cls(sources, store, encoders, writing, chosen, clock, zone)
        try:
            yield memory
        finally:
            await memory.close()

    async def close(self) -> None:
        """End what runs in the background and close the index; done at the end of the block, and harmless twice."""
        await self._syncing.close()

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
        most = self._settings.limit if limit is None else limit
        today = None if query.names_a_day(question) else (now or self._clock()).astimezone(self._zone()).date()
        sought = retrieval.Sought(
            question,
            query.terms(question),
            scope.read,
            max(NEEDED * most, ranking.TOGETHER),
            functools.partial(ranking.hits, today=today, limit=most, settings=self._settings, alone=alone),
            self._settings,
            alone,
        )
        mode: Mode
        try:
            await self._syncing.refresh()
            found = await self._syncing.healed(lambda: retrieval.indexed(self._store, self._encoders, sought))
            mode, warnings = self._state(found.embedder, found.takes_vectors, found.is_filling)
        except IndexUnavailable as error:
            mode, warnings = "scan", (UNREADABLE.format(error),)
            found = await asyncio.to_thread(retrieval.scanned, self._sources, sought)
        return SearchResult(found.hits, mode, warnings)

    async def latest(self, *, scope: Scope, limit: int = 10) -> tuple[Hit, ...]:
        """The newest notes that the scope can read, newest first; their score says nothing."""
        longest = self._settings.max_characters
        try:
            await self._syncing.refresh()
            return await self._syncing.healed(lambda: retrieval.latest(self._store, scope.read, limit, longest))
        except IndexUnavailable:
            return await asyncio.to_thread(retrieval.scanned_latest, self._sources, scope.read, limit, self._settings)

    async def get(self, path: str, *, scope: Scope, start: int = 1, lines: int = 120) -> Excerpt:
        """Up to ``lines`` lines of a file from line ``start``; a file that isn't there gives an empty excerpt.

        Raises OutOfReach for a path that the scope can't read, whether or not there is such a file.
        """
        return await asyncio.to_thread(self._excerpt, path, scope, max(start, 1), max(lines, 0))

    async def append(self, text: str, *, scope: Scope, by: str | None = None) -> Written:
        """Add a bullet to the scope's note of today. Secrets in it are withheld; the old text is kept first.

        Here as in the other writes ``by`` is who writes, for ``changes``; what has been written is found by the next
        search, and what could not be was not begun. Raises WriteRefused, and OSError when it could not be written.
        """
        return await self._written(self._writing.append, text, scope, by)

    async def add(self, path: str, text: str, *, scope: Scope, by: str | None = None) -> Written:
        """Add bullets at the end of a file, "memory/people/ada.md"; a new one gets a heading from its name.

        Raises as ``append``, and OutOfReach for a path that the scope can't write.
        """
        return await self._written(self._writing.add, path, text, scope, by)

    async def update(self, path: str, old: str, new: str, *, scope: Scope, by: str | None = None) -> Changed:
        """Put ``new`` in the one place of a file where ``old`` stands. Raises as ``add``; NotOnePlace has the lines."""
        return await self._written(self._writing.update, path, old, new, scope, by)

    async def delete(self, path: str, text: str, *, scope: Scope, by: str | None = None) -> Changed:
        """Take out the one line or bullet that ``text`` names. Raises as ``update``."""
        return await self._written(self._writing.delete, path, text, scope, by)

    async def undo(self, *, scope: Scope, by: str | None = None) -> Undone | None:
        """Take back the last write in this scope; None when there is none. What a person edited since stays.

        A second call goes on to the write before, unless both are ``by`` the same: then it is the first, asked again
        after a crash, and has the same outcome. Raises OutOfReach where the file has become a link out of the scope,
        and OSError when it could not be written.
        """
        return await self._written(self._writing.undo, scope, by)

    async def changes(self, *, scope: Scope, limit: int = 20) -> tuple[Change, ...]:
        """The last writes in this scope, newest first, as far back as the history goes."""
        return await asyncio.to_thread(self._writing.changes, scope, limit)

    async def list(self, *, scope: Scope) -> tuple[Listed, ...]:
        """The files that the scope can read, by path."""
        found = await asyncio.to_thread(self._sources.found)
        return tuple(
            Listed(path, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC), documents.day_of(path))
            for path, stat in sorted(found.files.items())
            if scope.may_read(path)
        )

    async def sync(self, progress: Progress | None = None) -> SyncReport:
        """Compare the files with the index and bring it up to date, vectors included.

        ``progress`` is called in the loop with the changed files done and in all. Without a usable index nothing is
        done, and ``status`` says so.
        """
        try:
            return await self._syncing.sync(progress)
        except IndexUnavailable as error:
            logger.warning("The memory index can't be used: %s", error)
            return SyncReport()

    async def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Make the index anew from the files, beside the old one, which serves until the new one takes its place.

        Raises IndexUnavailable when the disk doesn't let it.
        """
        embedded = await self._syncing.rebuild(progress)
        return replace(await self._syncing.sync(), embedded=embedded)

    def watch(self) -> AbstractAsyncContextManager[None]:
        """While inside, changes on disk are taken up in the background, and a search need not look for them."""
        return self._syncing.watch()

    async def status(self) -> MemoryStatus:
        """What there is, and what is amiss."""
        serving: str | None = None
        try:
            counts = await self._syncing.healed(lambda: self._store.run(Index.counts))
            serving = counts.embedder
            mode, warnings = self._state(serving, counts.takes_vectors, counts.waiting > 0)
            warnings += (*self._syncing.unread, *await self._store.run(Index.flaws))
        except IndexUnavailable as error:
            counts, mode, warnings = Counts(), "scan", (f"The index can't be used: {error}.",)
        size = await asyncio.to_thread(_size, self._store.path)
        return MemoryStatus(
            *(counts.files, counts.chunks, counts.units, counts.embedded, counts.waiting),
            mode=mode,
            embedder=serving or next(reversed(self._encoders), "none"),
            index_path=self._store.path,
            index_bytes=size,
            warnings=warnings,
            last_sync=self._syncing.last,
            repairs=self._syncing.repairs,
        )

    def _state(self, serving: str | None, takes_vectors: bool, is_filling: bool) -> tuple[Mode, tuple[str, ...]]:
        """How a search is made now, and why not better. ``serving`` is the embedder whose vectors there are."""
        if not self._encoders:
            return "keyword", ()
        encoder = self._encoders.get(serving or "")
        if not takes_vectors:
            return "keyword", (NO_VECTORS.format(command=install_package("pysqlite3")),)
        if encoder is None:  # another process has just dropped it; the next look makes it anew
            return "keyword", (STILL_FILLING,)
        if encoder.trouble:
            return "keyword", (f"Search by meaning is off: {encoder.trouble}.",)
        waiting = (STILL_FILLING,) if is_filling else ()
        others = (other.trouble for other in self._encoders.values() if other is not encoder and other.trouble)
        return "hybrid", (*waiting, *(f"{serving} stands in for an embedder that fails. {why}." for why in others))

    def _excerpt(self, path: str, scope: Scope, start: int, lines: int) -> Excerpt:
        """Of the file that ``path`` names: of the folder, or one that a pattern names with its whole path."""
        try:
            if scope.may_read(path) and (outside := self._sources.outside(path)) is not None:
                data = outside.read_bytes()
            else:
                reach = Confined(self._folder, scope)
                data = reach.read(reach.located(path))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return Excerpt(path, 0, 0, 0, "", "There is no such file (yet).")
        except OSError as error:
            return Excerpt(path, 0, 0, 0, "", f"The file can't be read: {error.strerror}.")
        return _excerpt(data, path, start, lines)

    async def _written(self, write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await asyncio.to_thread(write, *args, **kwargs)
        finally:
            self._syncing.touch()


def _embedders(given: Embedder | None, stand_in: Embedder | None, settings: MemorySettings) -> Sequence[Embedder]:
    """What stands in first, the preferred one last; none where search by meaning is switched off."""
    if given is None and (given := embedded(settings.embedder)) is not None and settings.embedder != STATIC:
        stand_in = stand_in or embedded(STATIC)
    every = (stand_in, given) if given is not None and stand_in is not None and stand_in.id != given.id else (given,)
    return [each for each in every if each is not None]


def _excerpt(data: bytes, path: str, start: int, lines: int) -> Excerpt:
    read = files.decode(data)
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
