"""The protocol of whatever turns text into vectors. Those that call a vendor live elsewhere and are passed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

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
    """An embedder can't work; the message says why and what mends it. Any other exception is taken the same way."""


class Embedder(Protocol):
    """Called in worker threads, never while the index is being written; may be slow, and may raise.

    ``id`` names the vector space: two embedders with the same id and dims make vectors that can be compared.
    A row of zeros or not-a-numbers means that there is no vector for that text.
    """

    @property
    def id(self) -> str: ...

    @property
    def dims(self) -> int: ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix: ...

    def embed_query(self, text: str) -> Vector: ...
