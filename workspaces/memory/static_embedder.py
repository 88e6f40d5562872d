"""The embedded embedder: a table of token vectors, averaged. English, instant, and nothing to download.

It reads the weights that the ``wordllama`` package ships (MIT; Miller, 2024) without importing it: the import would
bring pydantic, requests and a logging set-up. The table is mapped, not loaded: 16 MB of disk, a few hundred kB of
memory for a question. A question needs no numpy and no tokenizer's library, which is most of what a search from the
shell would cost.
"""

from __future__ import annotations

import array
import importlib.util
import json
import math
import mmap
import operator
import struct
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workspaces.installation import AGAIN, install_package
from workspaces.memory.embedder import EmbedderError
from workspaces.memory.pieces import Pieces

if TYPE_CHECKING:
    from workspaces.memory.embedder import Matrix, Vector

WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
TENSOR = "embedding.weight"


class StaticEmbedder:
    """Mean of the token vectors, scaled to length 1. Nothing is read before the first use."""

    id = "wordllama/l2_supercat_256"
    dims = 256
    is_instant = True

    def __init__(self, folder: Path | None = None) -> None:
        """``folder`` holds ``weights/`` and ``tokenizers/``; None takes the installed package's."""
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: Table | None = None

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """(n, 256) float32. Raises EmbedderError when the package is not there or not as it should be."""
        import numpy as np

        table = self._table()
        rows = self._rows(table)
        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, text in enumerate(texts):
            if numbers := table.pieces.of(text):
                vectors[row] = rows[numbers].mean(axis=0, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
        return vectors

    def embed_query(self, text: str) -> Vector:
        """256 float32 values; zeros for a text without tokens. Raises as ``embed_documents``.

        Sums of rows are exact in any order: half floats are whole multiples of 2**-24, and below 2**16.
        """
        table = self._table()
        numbers = table.pieces.of(text)
        if "numpy" in sys.modules:  # the process has it anyway: 20 µs of CPU instead of 300
            exact = self._rows(table)[numbers].sum(axis=0, dtype="float64")
            scaled: Vector = (exact / (math.sqrt(exact @ exact) or 1.0)).astype("float32")
            return scaled
        total = self._total(table, numbers)
        length = math.sqrt(sum(map(operator.mul, total, total))) or 1.0
        return array.array("f", [x / length for x in total])

    def _total(self, table: Table, numbers: Sequence[int]) -> list[float]:
        row = struct.Struct(f"<{self.dims}e")
        vectors = [row.unpack_from(table.data, table.start + n * row.size) for n in numbers]
        return [sum(column) for column in zip(*vectors, strict=True)] or [0.0] * self.dims

    def _rows(self, table: Table) -> Any:
        """(rows, 256) float16, as they are mapped."""
        import numpy as np

        rows = np.frombuffer(table.data, dtype="<f2", count=table.rows * self.dims, offset=table.start)
        return rows.reshape(table.rows, self.dims)

    def release(self) -> None:
        """Forget the vocabulary and unmap the table; a call that is running keeps them until it ends."""
        with self._lock:
            self._loaded = None

    def _table(self) -> Table:
        with self._lock:
            if self._loaded is None:
                try:
                    mapped = _mapped(self._file(WEIGHTS), self.dims)
                    self._loaded = Table(*mapped, Pieces.read(self._file(TOKENIZER)))
                except (OSError, ValueError, KeyError, struct.error) as error:
                    raise EmbedderError(f"its files can't be read: {error}. {_again()}", lasting=True) from error
            return self._loaded

    def _file(self, name: str) -> Path:
        if self._folder is None:
            spec = importlib.util.find_spec("wordllama")
            if spec is None or spec.origin is None:
                command = install_package("wordllama")
                raise EmbedderError(f"the package wordllama is not installed. Install it: `{command}`", lasting=True)
            self._folder = Path(spec.origin).parent
        path = self._folder / name
        if not path.is_file():
            raise EmbedderError(f"{path} is missing. {_again()}", lasting=True)
        return path


@dataclass(frozen=True, slots=True)
class Table:
    """The mapped file, the byte at which its vectors start, how many there are, and what numbers them."""

    data: mmap.mmap
    start: int
    rows: int
    pieces: Pieces


def _again() -> str:
    return f"Install the package again: `{install_package('wordllama', *AGAIN)}`"


def _mapped(path: Path, dims: int) -> tuple[mmap.mmap, int, int]:
    """Map a safetensors file: eight bytes of length, a JSON header, the tensors (its format's own description)."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (size,) = struct.unpack_from("<Q", data)
    tensor: dict[str, Any] = json.loads(data[8 : 8 + size])[TENSOR]
    rows, columns = tensor["shape"]
    if tensor["dtype"] != "F16" or columns != dims:
        raise EmbedderError(
            f"{path}: a table of {dims} columns F16 was expected, not {columns} {tensor['dtype']}", lasting=True
        )
    return data, 8 + size + tensor["data_offsets"][0], rows
