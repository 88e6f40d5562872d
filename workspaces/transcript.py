"""The transcript of one session: append-only JSON Lines, complete for ever.

An entry is on disk before ``append`` returns. A line that a crash tore is set aside beside the file and never fused
with the next record. Knows no model and no chat platform: what an entry holds is its writer's business.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One record. ``turn`` is the turn it belongs to; ``kind`` says what ``body`` holds; ``at`` is ISO 8601."""

    id: str
    parent: str | None
    turn: str
    kind: str
    at: str
    body: Mapping[str, Any]


class Transcript:
    """A session's file. One process writes at a time: the caller holds the session's lock."""

    def __init__(self, path: Path, session: str) -> None:
        self.path = path
        self.session = session
        self._entries: list[Entry] | None = None

    def entries(self) -> tuple[Entry, ...]:
        """All entries, in order. A missing file has none; a line that is no entry is passed over."""
        return tuple(self._loaded())

    def append(self, *, turn: str, kind: str, at: str, body: Mapping[str, Any]) -> Entry:
        """Write one entry durably (write and fsync) and return it. Raises OSError when the disk refuses it."""
        entries = self._loaded()
        parent = entries[-1].id if entries else None
        entry = Entry(f"{turn}.{len(entries)}", parent, turn, kind, at, body)
        lines = [] if entries or self.path.exists() else [{"version": VERSION, "session": self.session}]
        lines.append({"id": entry.id, "parent": entry.parent, "turn": turn, "kind": kind, "at": at, "body": dict(body)})
        self._write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
        entries.append(entry)
        return entry

    def _loaded(self) -> list[Entry]:
        if self._entries is None:
            _mend(self.path)
            self._entries = list(_read(self.path))
        return self._entries

    def _write(self, text: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        data = text.encode("utf-8", "replace")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)  # a full disk: no half record stays behind
                raise
        finally:
            os.close(descriptor)


def _read(path: Path) -> Iterator[Entry]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    for line in data.decode("utf-8", "replace").split("\n"):
        entry = _parse(line)
        if entry is not None:
            yield entry


def _parse(line: str) -> Entry | None:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("body"), dict):
        return None  # the header, or nothing of ours
    try:
        return Entry(raw["id"], raw["parent"], raw["turn"], raw["kind"], raw["at"], raw["body"])
    except KeyError:
        return None


def _mend(path: Path) -> None:
    """Make the file end in a whole line: a torn tail goes to ``<name>.torn``, byte for byte."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    if not data or data.endswith(b"\n"):
        return
    start = data.rfind(b"\n") + 1
    tail = data[start:]
    if _parse(tail.decode("utf-8", "replace")) is not None:  # whole, only its line end is missing
        with path.open("ab") as file:
            file.write(b"\n")
            os.fsync(file.fileno())
        return
    torn = path.with_name(path.name + ".torn")
    with torn.open("ab") as file:
        file.write(tail + b"\n")
        os.fsync(file.fileno())
    with path.open("r+b") as file:
        file.truncate(start)
        os.fsync(file.fileno())
