"""The transcript of one session: append-only JSON Lines, complete for ever.

An entry survives the end of the process once ``append`` returns, and a power cut once ``durable`` does. A line that a
crash tore is set aside beside the file and never fused with the next record. Knows no model and no chat platform: what
an entry holds is its writer's business.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workspaces import disk

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
    """A session's file. One process writes at a time: the caller holds the session's lock.

    What another process wrote meanwhile is there at the next look. In memory is what was not let go of.
    """

    def __init__(self, path: Path, session: str) -> None:
        self.path = path
        self.session = session
        self._entries: tuple[Entry, ...] = ()
        self._count = 0
        """Of the entries in the file, those that were let go of included."""
        self._read = (0, 0)
        """The file's inode, and how many bytes of it were read."""
        self._is_torn = False
        """Whether the last line has no end."""
        self._settled: int | None = None
        """How many bytes of the file are not ours to take back where a flush fails; None while none is wanted."""

    def entries(self) -> tuple[Entry, ...]:
        """The entries in order, from the one that ``forget`` named last, else all.

        A missing file has none; a line that is no entry is passed over.
        """
        self._look()
        return self._entries

    def append(self, *, turn: str, kind: str, at: str, body: Mapping[str, Any]) -> Entry:
        """Write one entry and return it; ``durable`` is to be awaited before anything is done on its strength.

        Raises OSError when the disk refuses it.
        """
        self._look()
        if self._is_torn:
            _mend(self.path)
            self._look()
            self._is_torn = False
        parent = self._entries[-1].id if self._entries else None
        entry = Entry(f"{turn}.{self._count}", parent, turn, kind, at, body)
        lines = [] if self._read[1] else [{"version": VERSION, "session": self.session}]
        lines.append({"id": entry.id, "parent": entry.parent, "turn": turn, "kind": kind, "at": at, "body": dict(body)})
        data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8", "replace")
        inode, size = self._write(data)
        if size == self._read[1] and self._read[0] in (0, inode):
            self._take([entry], (inode, size + len(data)))
        return entry  # where somebody wrote without the lock, the next look reads both from the file

    async def durable(self) -> None:
        """Return once all that is in the file is on the disk, also what a dead process wrote.

        Raises OSError, and then what was appended since the last time is not in the file either.
        """
        if self._settled is not None:
            await asyncio.to_thread(self.flush)

    def flush(self) -> None:
        """The same at once, for one who can't wait: the disk may take its time."""
        settled, self._settled = self._settled, None
        if settled is None:
            return
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # a person took it away
            return
        try:
            disk.flush(descriptor)
        except OSError:
            if os.fstat(descriptor).st_ino == self._read[0]:
                os.ftruncate(descriptor, settled)  # or the next try would find the step there and take it for done
            raise
        finally:
            os.close(descriptor)

    def forget(self, before: str) -> None:
        """Let go of the entries before the one of this id: they stay in the file, and ``entries`` gives the rest."""
        at = next((at for at, entry in enumerate(self._entries) if entry.id == before), 0)
        self._entries = self._entries[at:]

    def _look(self) -> None:
        """Read what the file has beyond what was read; all of it where it is another file, or a shorter one."""
        try:
            found = os.stat(self.path)  # noqa: PTH116 - asked ten times a turn
        except FileNotFoundError:
            self._entries, self._count, self._read, self._is_torn = (), 0, (0, 0), False
            return
        if (found.st_ino, found.st_size) == self._read:
            return
        if found.st_ino != self._read[0] or found.st_size < self._read[1]:
            self._entries, self._count, self._read = (), 0, (found.st_ino, 0)
        with self.path.open("rb") as file:
            file.seek(self._read[1])
            data = file.read()
        whole, torn = data[: data.rfind(b"\n") + 1], data[data.rfind(b"\n") + 1 :]
        self._is_torn = bool(torn)
        if _parsed(torn) is not None:  # only its line end is missing
            whole = data
        entries = [entry for line in whole.split(b"\n") if (entry := _parsed(line)) is not None]
        self._take(entries, (found.st_ino, self._read[1] + len(whole)))
        if self._settled is None:
            self._settled = found.st_size

    def _take(self, entries: Sequence[Entry], read: tuple[int, int]) -> None:
        self._entries = (*self._entries, *entries)
        self._count += len(entries)
        self._read = read

    def _write(self, data: bytes) -> tuple[int, int]:
        """Append ``data``; the inode of the file and its size before."""
        if not self._read[0]:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            found = os.fstat(descriptor)
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
            except OSError:
                os.ftruncate(descriptor, found.st_size)  # a full disk: no half record stays behind
                raise
            if self._settled is None:
                self._settled = found.st_size
            return found.st_ino, found.st_size
        finally:
            os.close(descriptor)


def _parsed(line: bytes) -> Entry | None:
    try:
        raw = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("body"), dict):
        return None  # the header, or nothing of ours
    try:
        return Entry(raw["id"], raw["parent"], raw["turn"], raw["kind"], raw["at"], raw["body"])
    except KeyError:
        return None


def _mend(path: Path) -> None:
    """End the last line of a file, which has no end: what is torn of it goes to ``<name>.torn``, byte for byte."""
    data = path.read_bytes()
    start = data.rfind(b"\n") + 1
    tail = data[start:]
    if _parsed(tail) is not None:  # whole, only its line end is missing
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
