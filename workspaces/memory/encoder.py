"""An embedder as the engine uses it: in threads of its own, checked, and left alone for a while after it failed.

So a broken embedder costs one try a minute and the search by meaning, never a search; a slow one fills no thread that
others need, and a question never waits behind documents. One that is instant may be asked where the question is, which
saves two hops between threads. Knows no index.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from workspaces.memory.embedder import EmbedderError, Instant, Releasable
from workspaces.memory.vectors import packed, packed_query

if TYPE_CHECKING:
    from workspaces.memory.embedder import Embedder, Matrix

logger = logging.getLogger(__name__)

PAUSE = timedelta(seconds=60)
"""How long a failed embedder is not asked again; twice as long after each further failure."""

LONGEST_PAUSE = timedelta(minutes=15)
"""No pause is longer; the one after an error that only a person can end is as long."""

IDLE = 300.0
"""Seconds without a call after which an embedder's memory is given back."""

A = TypeVar("A")
R = TypeVar("R")


class Encoder:
    """``trouble`` says why there are no vectors now, "" when all is well. ``clock`` gives aware times."""

    def __init__(self, embedder: Embedder, clock: Callable[[], datetime]) -> None:
        self.trouble = ""
        self.is_instant = isinstance(embedder, Instant) and embedder.is_instant
        self._embedder = embedder
        self._clock = clock
        self._rests_until: datetime | None = None
        self._failures = 0
        self._threads = {kind: ThreadPoolExecutor(1, f"memory-{kind}") for kind in ("documents", "query")}
        self._let_go = embedder.release if isinstance(embedder, Releasable) else None
        self._release: asyncio.TimerHandle | None = None

    @property
    def identity(self) -> tuple[str, int | None]:
        """The embedder's id and dims; None while it doesn't know them."""
        return self._embedder.id, self._embedder.dims

    async def documents(self, texts: Sequence[str]) -> list[bytes | None]:
        """A vector of int8s for each text, None for one that has none. Raises EmbedderError."""
        return await self._try("documents", self._documents, texts)

    async def query(self, text: str) -> bytes | None:
        """The vector of a question. Raises EmbedderError."""
        return await self._try("query", self._query, text)

    def query_now(self, text: str) -> bytes | None:
        """As ``query``, in the thread of whoever asks; for an embedder that is instant. ``release_later`` is theirs."""
        with self._judged():
            return self._query(text)

    def release_later(self) -> None:
        """After it was used: its memory is given back once nobody has used it for a while. To be called in the loop."""
        if self._let_go:
            if self._release:
                self._release.cancel()
            self._release = asyncio.get_running_loop().call_later(IDLE, self._let_go)

    def close(self) -> None:
        """End the threads, once what they do is done; waits between tries end at once."""
        if self._release:
            self._release.cancel()
        if self._let_go:
            self._let_go()
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)

    def _documents(self, texts: Sequence[str]) -> list[bytes | None]:
        rows = self._embedder.embed_documents(texts)
        self._check(rows, (len(texts), self._embedder.dims))
        return packed(rows)

    def _query(self, text: str) -> bytes | None:
        vector = self._embedder.embed_query(text)
        if len(vector) != self._embedder.dims:
            raise EmbedderError(f"{self._embedder.id} made {len(vector)} values, not {self._embedder.dims}")
        return packed_query(vector)

    def _check(self, rows: Matrix, shape: tuple[int, int | None]) -> None:
        if rows.shape != shape or rows.dtype != "float32":
            raise EmbedderError(f"{self._embedder.id} made {rows.shape} {rows.dtype}, not {shape} float32")

    async def _try(self, kind: str, work: Callable[[A], R], argument: A) -> R:
        loop = asyncio.get_running_loop()
        with self._judged():
            result = await loop.run_in_executor(self._threads[kind], work, argument)
        self.release_later()
        return result

    @contextmanager
    def _judged(self) -> Iterator[None]:
        """A try: none while it rests, and a rest after one that failed. Raises EmbedderError."""
        if self._rests_until is not None and self._clock() < self._rests_until:
            raise EmbedderError(self.trouble)
        try:
            yield
        except Exception as error:  # an embedder may be anybody's code, over anybody's network
            self._rest(error)
            raise EmbedderError(self.trouble) from error
        self.trouble, self._rests_until, self._failures = "", None, 0

    def _rest(self, error: Exception) -> None:
        self.trouble = f"{self._embedder.id}: {error}"
        pause = PAUSE * 2 ** min(self._failures, 4)
        if isinstance(error, EmbedderError):
            pause = LONGEST_PAUSE if error.lasting else max(pause, timedelta(seconds=error.retry_after or 0))
        self._failures += 1
        self._rests_until = self._clock() + min(pause, LONGEST_PAUSE)
        logger.warning("The embedder failed, and is left alone for a while: %s", self.trouble)
