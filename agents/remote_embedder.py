"""An embedder whose vectors a server makes: what is the same whoever the server is and however it is asked.

It cuts lists into requests, tries again where that helps, sets aside the text that a server can't take, and ends by
itself: a call has a deadline, so no thread is kept for ever. Knows no wire; a ``Transport`` asks once.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agents.model import Failed
from workspaces.memory.embedder import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from workspaces.memory.embedder import Matrix, Vector

MOST_TEXTS = 32
"""Texts in a request: what the strictest server in use (text-embeddings-inference) takes by default."""

MOST_CHARACTERS = 24_000
"""Characters in a request, about 6,000 tokens: a small server answers that within its deadline."""

LONGEST = 8_000
"""Characters of a text that are sent; what is ranked is far shorter."""

SHORTEST = 100
"""Characters: a text of which a server can't even take so many has no vector."""

QUERY_SECONDS = 10.0
"""A person waits for a search, and it finds by words meanwhile."""

LONGEST_WAIT = 10.0
"""Seconds between two tries; a server that asks for more is left to whoever called."""

_TEXTS_FAULT = re.compile(r"unsupported value: NaN|too large to process|maximum allowed batch size", re.IGNORECASE)
"""What servers say of a text or a list that they can't work on, with a status that says something else."""


class CallFailed(Exception):
    """A transport's one try ended in ``failed``."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed

    @property
    def is_the_texts(self) -> bool:
        """Whether a shorter list or text may be taken where this one was not."""
        return self.failed.kind in ("overflow", "filtered") or bool(_TEXTS_FAULT.search(self.failed.message))


class Transport(Protocol):
    """Asks a server once. Called by several threads at once."""

    def ask(self, texts: Sequence[str], *, is_query: bool, seconds: float) -> Sequence[Vector]:
        """A vector of any length for each text, in their order, within ``seconds``. Raises CallFailed."""

    def close(self) -> None:
        """Drop the connections; calls that use them fail. The next call makes new ones."""


@dataclass(frozen=True, slots=True)
class _Call:
    """The bounds of one call of the embedder. ``stop`` is set when it is to give up waiting."""

    is_query: bool
    deadline: float
    tries: int
    stop: threading.Event


class RemoteEmbedder:
    """``id`` names the vector space, the prefixes are what the model was trained to see before a text.

    ``patience`` is how many seconds a list of documents may take in all, ``pause`` how many pass before the second try
    where the server names none, twice that before the third. ``clock`` counts seconds.
    """

    def __init__(
        self,
        id: str,  # noqa: A002  # the protocol's name for it
        transport: Transport,
        *,
        document_prefix: str = "",
        query_prefix: str = "",
        patience: float = 120.0,
        pause: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = id
        self.dims: int | None = None
        """None until the first vectors have come."""
        self._transport = transport
        self._document_prefix = document_prefix
        self._query_prefix = query_prefix
        self._patience = patience
        self._pause = pause
        self._clock = clock
        self._stop = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """(n, dims) float32; zeros for a blank text and for one that the server can't take. Raises EmbedderError."""
        return self._embedded(texts, self._call(self._patience, is_query=False))

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """``dims`` float32 values, within ``QUERY_SECONDS``. Raises EmbedderError."""
        vector: npt.NDArray[np.float32] = self._embedded(
            [text], self._call(min(QUERY_SECONDS, self._patience), is_query=True)
        )[0]
        return vector

    def release(self) -> None:
        stop, self._stop = self._stop, threading.Event()
        stop.set()
        self._transport.close()

    def _call(self, seconds: float, *, is_query: bool) -> _Call:
        return _Call(is_query, self._clock() + seconds, tries=2 if is_query else 3, stop=self._stop)

    def _embedded(self, texts: Sequence[str], call: _Call) -> Matrix:
        import numpy as np

        prefix = self._query_prefix if call.is_query else self._document_prefix
        found: dict[int, Vector | None] = {}
        for rows in _requests(texts):
            try:
                vectors = self._split([prefix + texts[row][:LONGEST] for row in rows], call)
            except CallFailed as error:
                failed = error.failed
                raise EmbedderError(
                    failed.message, retry_after=failed.retry_after, lasting=not failed.may_retry
                ) from error
            found.update(zip(rows, vectors, strict=True))
        matrix = np.zeros((len(texts), self.dims or 0), dtype=np.float32)
        for row, vector in found.items():
            if vector is not None:
                matrix[row] = vector
        matrix[~np.isfinite(matrix).all(axis=1)] = 0
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        matrix /= np.where(lengths > 0, lengths, 1)
        return matrix

    def _split(self, texts: list[str], call: _Call) -> Sequence[Vector | None]:
        """As asked for at once; where the fault is with the texts, in halves down to the one, which is shortened.

        None for a text that the server can't take at all.
        """
        try:
            return self._tried(texts, call)
        except CallFailed as error:
            if not error.is_the_texts:
                raise
        if len(texts) > 1:
            half = len(texts) // 2
            return [*self._split(texts[:half], call), *self._split(texts[half:], call)]
        if len(texts[0]) > SHORTEST:
            return self._split([texts[0][: len(texts[0]) // 2]], call)
        return [None]

    def _tried(self, texts: list[str], call: _Call) -> Sequence[Vector]:
        for left in reversed(range(call.tries)):
            try:
                vectors = self._transport.ask(
                    texts, is_query=call.is_query, seconds=max(0.0, call.deadline - self._clock())
                )
            except CallFailed as error:
                if error.is_the_texts or not error.failed.may_retry or not left:
                    raise
                wait = error.failed.retry_after
                wait = self._pause * 2 ** (call.tries - left - 1) if wait is None else wait
                if wait > LONGEST_WAIT or self._clock() + wait >= call.deadline or call.stop.wait(wait):
                    raise
            else:
                self._learn_dims(vectors)
                return vectors
        raise AssertionError("the last try returns or raises")

    def _learn_dims(self, vectors: Sequence[Vector]) -> None:
        for vector in vectors:
            if self.dims is None and len(vector):
                self.dims = len(vector)
            if len(vector) != self.dims:
                raise EmbedderError(
                    f"{self.id} gave a vector of {len(vector)} values where {self.dims} were expected: "
                    "another model answers by that name. Restart when it is the right one again.",
                    lasting=True,
                )


def _requests(texts: Sequence[str]) -> Iterator[list[int]]:
    """The numbers of the texts that are not blank, as many at a time as go into one request."""
    rows: list[int] = []
    characters = 0
    for row, text in enumerate(texts):
        if not text.strip():
            continue
        length = min(len(text), LONGEST)
        if rows and (len(rows) == MOST_TEXTS or characters + length > MOST_CHARACTERS):
            yield rows
            rows, characters = [], 0
        rows.append(row)
        characters += length
    if rows:
        yield rows
