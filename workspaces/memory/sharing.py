"""One embedder for several memories: it gives its memory back when none of them has used it for a while.

Alone, an embedder is let go when the memory that used it is closed, or rests. Here that would take it from the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from workspaces.memory.embedder import Embedder, Instant, Matrix, Releasable, Vector

PAUSE = 290.0
"""Seconds without a call by anyone. A little less than each memory itself waits (``encoder.IDLE``)."""


class Shared:
    """``embedder``, for any number of memories; ``clock`` gives seconds."""

    def __init__(self, embedder: Embedder, clock: Callable[[], float] = time.monotonic) -> None:
        self.is_instant = isinstance(embedder, Instant) and embedder.is_instant
        self._embedder = embedder
        self._clock = clock
        self._used_at = clock()

    @property
    def id(self) -> str:
        return self._embedder.id

    @property
    def dims(self) -> int | None:
        return self._embedder.dims

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self._used_at = self._clock()
        return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        self._used_at = self._clock()
        return self._embedder.embed_query(text)

    def release(self) -> None:
        """One of them needs it no more; it is let go unless another has used it just now."""
        if self._clock() - self._used_at >= PAUSE:
            self.let_go()

    def let_go(self) -> None:
        """Whoever needs it."""
        if isinstance(self._embedder, Releasable):
            self._embedder.release()
