"""What the engine wrote, and the text that was there before: enough to take the last write back.

A journal of one JSON object a line and plain copies of files beside it. It is kept apart from the workspace, so that
no tool of an agent reaches it. Several processes may use it at once. Knows no Markdown.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Write:
    """One write: ``text`` was added to ``path`` in ``area``. ``start`` is what a new file began with.

    ``id`` is where its line starts in the journal, in bytes.
    """

    id: int
    at: str
    area: str
    path: str
    text: str
    start: str


_WRITE = {field.name for field in fields(Write)}
_SETTLED = {"settled", "at", "taken_back"}


class History:
    """The journal in ``folder``, which is made (0700) on the first write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def record(self, at: datetime, area: str, path: str, text: str, start: str) -> None:
        """Note that ``text`` is about to be added to the end of a file. Raises OSError.

        No copy is kept: what was before is the file without ``text``, and a copy for each note of a day would make
        the history grow with their square.
        """
        with self._journal() as journal:
            self._add(
                journal, asdict(Write(os.lseek(journal, 0, os.SEEK_END), at.isoformat(), area, path, text, start))
            )

    def last(self, area: str) -> Write | None:
        """The newest write in ``area`` that was not settled since."""
        settled: set[int] = set()
        for entry in reversed(list(self._entries())):
            if "settled" in entry:
                settled.add(entry["settled"])
            elif entry["area"] == area and entry["id"] not in settled:
                return Write(**entry)
        return None

    def settle(self, write: Write, at: datetime, *, taken_back: bool) -> None:
        """Never offer ``write`` again: it was taken back, or a person's edit stands."""
        with self._journal() as journal:
            self._add(journal, {"settled": write.id, "at": at.isoformat(), "taken_back": taken_back})

    def keep(self, write: Write, old: bytes) -> None:
        """Keep the text that taking ``write`` back replaces."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._keep(write, old, "undo-")

    def _keep(self, write: Write, old: bytes, kind: str = "") -> str:
        name = f"{write.id:010}-{kind}{Path(write.path).name}"
        descriptor = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(old)
            file.flush()
            os.fsync(file.fileno())
        return name

    def _add(self, journal: int, entry: dict[str, Any]) -> None:
        os.write(journal, (json.dumps(entry, ensure_ascii=False) + "\n").encode())
        os.fsync(journal)

    def _entries(self) -> Iterator[dict[str, Any]]:
        """The entries of the journal; a line torn by a crash is passed over."""
        try:
            data = (self._folder / "journal.jsonl").read_bytes()
        except FileNotFoundError:
            return
        for line in data.split(b"\n"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and entry.keys() in (_WRITE, _SETTLED):
                yield entry

    @contextmanager
    def _journal(self) -> Iterator[int]:
        """The journal, locked, its last line whole."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / "journal.jsonl"
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                os.write(descriptor, b"\n")
            yield descriptor
        finally:
            os.close(descriptor)
