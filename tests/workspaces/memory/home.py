"""A folder of notes in a temporary place, and embedders whose every move is known."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from workspaces.database import connect
from workspaces.memory import Memory, Scope

NOW = datetime(2026, 11, 30, 14, 3, tzinfo=UTC)
HOME = Scope.home()


@dataclass
class Home:
    """``folder`` is the workspace, ``index`` where its index belongs; ``now`` is what the clock says."""

    folder: Path
    index: Path
    now: datetime = NOW
    zone: str = "UTC"

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def open(self, **changes: Any) -> AbstractAsyncContextManager[Memory]:
        given = {"clock": lambda: self.now, "zone": lambda: ZoneInfo(self.zone), **changes}
        return Memory.open(self.folder, self.index, **given)

    def rows(self) -> dict[str, int]:
        """How many rows each table of the index has."""
        db = connect(self.index, vectors=True)
        try:
            spaces = [f"vectors_{number}" for (number,) in db.execute("SELECT id FROM spaces ORDER BY id")]
            tables = ("files", "chunks", "units", "units_fts_docsize", *spaces[-1:])
            counts = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}
            return {"vectors" if name.startswith("vectors") else name: count for name, count in counts.items()}
        finally:
            db.close()

    def sql(self, *statements: str) -> None:
        """Do something to the index behind the engine's back."""
        db = connect(self.index, vectors=True)
        try:
            for statement in statements:
                db.execute(statement)
        finally:
            db.close()


def bump(path: Path) -> None:
    """Make the file's time differ from any that was seen, as a save a moment later would."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))


@dataclass
class Letters:
    """Vectors of letter counts: the same text has the same vector, and nothing is learned."""

    id: str = "letters"
    dims: int = 32
    texts: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.texts += texts
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        self.queries.append(text)
        return np.array(self._vector(text), dtype=np.float32)

    def _vector(self, text: str) -> list[float]:
        counts = [0.0] * self.dims
        for ch in text.lower():
            if ch.isalnum():
                counts[ord(ch) % self.dims] += 1
        length = math.sqrt(sum(x * x for x in counts)) or 1.0
        return [x / length for x in counts]


class Broken(Letters):
    """Raises as long as ``works`` is false."""

    works = False

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self._check()
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        self._check()
        return super().embed_query(text)

    def _check(self) -> None:
        if not self.works:
            raise RuntimeError("402 quota exceeded")
