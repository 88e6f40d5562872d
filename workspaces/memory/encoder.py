"""An embedder as the engine uses it: in a thread, checked, and left alone for a while after it failed.

So a broken embedder costs one try a minute and the search by meaning, never a search. Knows no index.
"""

from __future__ import annotations

import asyncio
import logging
import math
from array import array
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from workspaces.memory.embedder import EmbedderError

if TYPE_CHECKING:
    from workspaces.memory.embedder import Embedder, Vector

logger = logging.getLogger(__name__)

PAUSE = timedelta(seconds=60)
"""How long a failed embedder is not asked again."""

A = TypeVar("A")
R = TypeVar("R")


class Encoder:
    """``trouble`` says why there are no vectors now, "" when all is well. ``clock`` gives aware times."""

    def __init__(self, embedder: Embedder, clock: Callable[[], datetime]) -> None:
        self.trouble = ""
        self._embedder = embedder
        self._clock = clock
        self._rests_until: datetime | None = None

    @property
    def identity(self) -> tuple[str, int]:
        return self._embedder.id, self._embedder.dims

    async def documents(self, texts: Sequence[str]) -> list[bytes | None]:
        """A float32 blob for each text, None for one that has no vector. Raises EmbedderError."""
        return await self._try(self._documents, texts)

    async def query(self, text: str) -> bytes | None:
        """The blob of a question. Raises EmbedderError."""
        return await self._try(self._query, text)

    def _documents(self, texts: Sequence[str]) -> list[bytes | None]:
        rows = self._embedder.embed_documents(texts)
        if len(rows) != len(texts):
            raise EmbedderError(f"{self._embedder.id} made {len(rows)} vectors of {len(texts)} texts")
        return [self._blob(row) for row in rows]

    def _query(self, text: str) -> bytes | None:
        return self._blob(self._embedder.embed_query(text))

    def _blob(self, vector: Vector) -> bytes | None:
        blob = vector.tobytes()
        if len(blob) != 4 * self._embedder.dims:
            raise EmbedderError(f"{self._embedder.id} made {len(blob)} bytes, not {self._embedder.dims} float32 values")
        square = math.fsum(x * x for x in array("f", blob))
        return blob if 0 < square < math.inf else None

    async def _try(self, work: Callable[[A], R], argument: A) -> R:
        if self._rests_until is not None and self._clock() < self._rests_until:
            raise EmbedderError(self.trouble)
        try:
            result = await asyncio.to_thread(work, argument)
        except Exception as error:  # an embedder may be anybody's code, over anybody's network
            self.trouble = f"{self._embedder.id}: {error}"
            self._rests_until = self._clock() + PAUSE
            logger.warning("The embedder failed, searching by words: %s", self.trouble)
            raise EmbedderError(self.trouble) from error
        self.trouble, self._rests_until = "", None
        return result
