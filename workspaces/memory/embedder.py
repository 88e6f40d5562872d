"""The protocol of whatever turns text into vectors. Those that call a vendor live elsewhere and are passed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import array

    import numpy as np
    import numpy.typing as npt

    Matrix: TypeAlias = npt.NDArray[np.float32]
    """(n, dims) float32, each row of length 1."""

    Vector: TypeAlias = npt.NDArray[np.float32] | array.array[float]
    """``dims`` float32 values, of length 1: anything numpy-like or an ``array("f")``."""
else:
    Matrix = Vector = Any


class EmbedderError(Exception):
    """An embedder can't work; the message says why and what mends it.

    ``retry_after`` is how many seconds the other side asked to be left alone, None where it said nothing. ``lasting``:
    only a person's doing ends it (a key, credit, a package, a name), so asking again soon is of no use. Any other
    exception of an embedder is taken as one of these, without either.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, lasting: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.lasting = lasting


class Embedder(Protocol):
    """Called in worker threads, by several at once, never while the index is being written; may be slow, may raise.

    ``id`` names the vector space: two embedders with the same id and dims make vectors that can be compared. ``dims``
    is None until the first vectors have come, where nothing else tells; after that it never changes. A row of zeros or
    not-a-numbers means that there is no vector for that text. A call ends by itself: one that asks a server has a
    deadline.
    """

    @property
    def id(self) -> str: ...

    @property
    def dims(self) -> int | None: ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix: ...

    def embed_query(self, text: str) -> Vector: ...


@runtime_checkable
class Releasable(Protocol):
    """An embedder that holds memory or connections."""

    def release(self) -> None:
        """Give them back; the next call takes them again. A call that waits to try again gives up. Never raises."""


@runtime_checkable
class Instant(Protocol):
    """An embedder to which a question costs less than its way into another thread would."""

    is_instant: bool
