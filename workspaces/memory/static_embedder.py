"""The embedded embedder: a table of token vectors, averaged. English, instant, and nothing to download.

It reads the weights that the ``wordllama`` package ships (MIT; Miller, 2024) without importing it: the import would
bring pydantic, requests and a logging set-up. The table is mapped, not loaded: 16 MB of disk, a few hundred kB of
memory for a question. A question needs no numpy at all, which halves what one search from the shell costs.
"""

from __future__ import annotations

import array
import importlib.util
import json
import math
import mmap
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workspaces.memory.embedder import EmbedderError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from workspaces.memory.embedder import Matrix

WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
TENSOR = "embedding.weight"
BATCH = 64
"""Texts that are averaged at once: 64 of 100 tokens are 7 MB of float32."""


class StaticEmbedder:
    """Mean of the token vectors, scaled to length 1. Nothing is read before the first use."""

    id = "wordllama/l2_supercat_256"
    dims = 256

    def __init__(self, folder: Path | None = None) -> None:
        """``folder`` holds ``weights/`` and ``tokenizers/``; None takes the installed package's."""
        self._folder = folder
        self._lock = threading.Lock()
        self._table: tuple[mmap.mmap, int, int] | None = None
        self._tokens: Tokenizer | None = None

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """(n, 256) float32. Raises EmbedderError when the package is not there or not as it should be."""
        import numpy as np

        data, start, rows = self._weights()
        table = np.frombuffer(data, dtype="<f2", count=rows * self.dims, offset=start).reshape(rows, self.dims)
        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for first in range(0, len(texts), BATCH):
            encodings = self._tokenizer().encode_batch_fast(
                list(texts[first : first + BATCH]), add_special_tokens=False
            )
            for row, encoding in enumerate(encodings, first):
                if encoding.ids:
                    vectors[row] = table[encoding.ids].mean(axis=0, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
        return vectors

    def embed_query(self, text: str) -> array.array[float]:
        """256 float32 values; zeros for a text without tokens. Raises as ``embed_documents``."""
        data, start, _ = self._weights()
        row = struct.Struct(f"<{self.dims}e")
        ids = self._tokenizer().encode(text, add_special_tokens=False).ids
        vectors = [row.unpack_from(data, start + i * row.size) for i in ids]
        total = [sum(column) for column in zip(*vectors, strict=True)] or [0.0] * self.dims
        length = math.sqrt(sum(x * x for x in total)) or 1.0
        return array.array("f", [x / length for x in total])

    def _weights(self) -> tuple[mmap.mmap, int, int]:
        """The mapped file, the byte at which the table starts, and its rows."""
        with self._lock:
            if self._table is None:
                self._table = _mapped(self._file(WEIGHTS), self.dims)
            return self._table

    def _tokenizer(self) -> Tokenizer:
        with self._lock:
            if self._tokens is None:
                from tokenizers import Tokenizer

                tokens = Tokenizer.from_file(str(self._file(TOKENIZER)))
                tokens.no_padding()
                tokens.no_truncation()
                self._tokens = tokens
            return self._tokens

    def _file(self, name: str) -> Path:
        if self._folder is None:
            spec = importlib.util.find_spec("wordllama")
            if spec is None or spec.origin is None:
                raise EmbedderError("the package wordllama is not installed. Install it: pip install wordllama")
            self._folder = Path(spec.origin).parent
        path = self._folder / name
        if not path.is_file():
            raise EmbedderError(
                f"{path} is missing. Install the package again: pip install --force-reinstall wordllama"
            )
        return path


def _mapped(path: Path, dims: int) -> tuple[mmap.mmap, int, int]:
    """Map a safetensors file: eight bytes of length, a JSON header, the tensors (its format's own description)."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (size,) = struct.unpack_from("<Q", data)
    tensor: dict[str, Any] = json.loads(data[8 : 8 + size])[TENSOR]
    rows, columns = tensor["shape"]
    if tensor["dtype"] != "F16" or columns != dims:
        raise EmbedderError(f"{path}: a table of {dims} columns F16 was expected, not {columns} {tensor['dtype']}.")
    return data, 8 + size + tensor["data_offsets"][0], rows
