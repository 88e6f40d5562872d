"""What the engine wrote, and the text that was there before: enough to take any write back.

A journal of one JSON object a line, with the lines that each write removed and added, and plain copies of files beside
it. It is kept apart from the workspace, so that no tool of an agent reaches it. Several processes may use it at once.
What is old is forgotten, so that it does not grow for ever. Knows no Markdown.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from workspaces.memory.results import Kind

LONGEST_JOURNAL = 2_000_000
"""Bytes. A longer one is cut to the newest half: about 3,000 notes of a line are kept at least."""

MOST_COPIES = 50
MOST_COPIED = 5_000_000
"""Bytes of all copies. The newest is kept however large it is."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write: behind ``offset`` characters of a file, ``removed`` gave way to ``start`` and ``text``.

    ``id`` is where its line starts in the journal, in bytes, counting those that were forgotten. ``start`` is what an
    addition needs before it. ``before`` and ``after`` are the lines around it; ``left`` is the digest of the file with
    it, "" where none was taken; ``new``: it made the file; ``by`` is who wrote it, as the caller says.
    """

    id: int
    at: str
    area: str
    path: str
    text: str
    start: str
    kind: Kind = "append"
    removed: str = ""
    offset: int = 0
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    left: str = ""
    new: bool = True
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Undo:
    """A write that is being taken back. ``begun``: this was tried before, and the process died before it could say so.

    ``read`` is the digest of the file as it was then, "" where none was taken. ``taken_back`` is how it ended, None
    while it has not.
    """

    write: Write
    begun: bool
    taken_back: bool | None
    read: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """A write and what became of it. ``taken_back`` None: it stands; False: a person's edit won over its undo."""

    write: Write
    taken_back: bool | None
    taken_back_by: str | None


@dataclass(frozen=True, slots=True)
class _Entries:
    """Its entries by the number of the write: begun undos with who asked and the digest, settled ones with the end.

    One that is settled with None never reached its file.
    """

    writes: dict[int, Write] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    begun: dict[int, tuple[str | None, str]] = field(default_factory=dict)
    settled: dict[int, bool | None] = field(default_factory=dict)


_WRITE = {f.name for f in fields(Write)}
_NEEDED = {f.name for f in fields(Write) if f.default is MISSING}


class History:
    """The journal in ``folder``, which is made (0700) on the first write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin_write(self, write: Write) -> Write:
        """Note what is about to be written, under an id that is given here. On the disk at return. Raises OSError."""
        with self._journal(shortened=True) as journal:
            numbered = replace(write, id=_forgotten(journal) + os.lseek(journal, 0, os.SEEK_END))
            self._add(journal, asdict(numbered))
        return numbered

    def end_write(self, write: Write) -> None:
        """Note that it is in its file. A power cut or a full disk may lose this, and then the file tells."""
        with suppress(OSError), self._journal() as journal:
            _append(journal, {"written": write.id})

    def was_written(self, write: Write) -> bool:
        """Whether ``write`` reached its file, as far as the journal knows. A write of an older form counts."""
        return write.left == "" or write.id in self._read().written

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """One undo at a time, between processes as well: two would take back the same write.

        A lock of its own, because who writes locks the file first and the journal after it.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._folder / "undo.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def undo(self, area: str, by: str | None) -> Undo | None:
        """The undo that ``by`` began before, else one of the newest write in ``area`` that was not settled since."""
        journal = self._read()
        writes = [number for number, write in journal.writes.items() if write.area == area]
        again = [n for n in writes if by is not None and n in journal.begun and journal.begun[n][0] == by]
        number = next(iter(again), max((n for n in writes if n not in journal.settled), default=None))
        if number is None:
            return None
        read = journal.begun.get(number, (None, ""))[1]
        return Undo(journal.writes[number], number in journal.begun, journal.settled.get(number), read)

    def begin(self, write: Write, at: datetime, by: str | None, read: str = "") -> None:
        """Note that ``write`` is about to be taken back from a file with the digest ``read``.

        ``by`` is who asked, the same when they ask again.
        """
        with self._journal() as journal:
            self._add(journal, {"begun": write.id, "at": at.isoformat(), "by": by, "read": read})

    def settle(self, write: Write, at: datetime, *, taken_back: bool | None) -> None:
        """Never offer ``write`` again: it was taken back, a person's edit stands, or (None) it was never written."""
        with self._journal() as journal:
            self._add(journal, {"settled": write.id, "at": at.isoformat(), "taken_back": taken_back})

    def past(self, area: str) -> Iterator[tuple[Past, bool]]:
        """Every write in ``area``, newest first, and whether the journal knows that it reached its file."""
        journal = self._read()
        for number, write in sorted(journal.writes.items(), reverse=True):
            if write.area != area or (number in journal.settled and journal.settled[number] is None):
                continue
            by = journal.begun.get(number, (None, ""))[0]
            known = write.left == "" or number in journal.written or number in journal.settled
            yield Past(write, journal.settled.get(number), by), known

    def keep(self, write: Write, old: bytes, why: str = "undo") -> None:
        """Keep the whole text of a file that is about to be replaced, beside the newest of those kept before."""
        name = f"{write.id:010}-{why}-{Path(write.path).name[-40:]}"
        descriptor = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(old)
            file.flush()
            os.fsync(file.fileno())
        total = 0
        copies = sorted(self._folder.glob("*-*-*.md"), key=lambda copy: copy.stat().st_mtime_ns, reverse=True)
        for number, copy in enumerate(copies):
            total += copy.stat().st_size
            if number and (number >= MOST_COPIES or total > MOST_COPIED):
                copy.unlink(missing_ok=True)

    def _add(self, journal: int, entry: dict[str, Any]) -> None:
        _append(journal, entry)
        os.fsync(journal)

    def _read(self) -> _Entries:
        """The journal; a line torn by a crash is passed over."""
        try:
            data = (self._folder / _NAME).read_bytes()
        except FileNotFoundError:
            data = b""
        journal = _Entries()
        for line in data.split(b"\n"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            match entry:
                case {"written": int(number)}:
                    journal.written.add(number)
                case {"begun": int(number), "by": by}:
                    journal.begun[number] = (by, entry.get("read", ""))
                case {"settled": int(number), "taken_back": taken_back}:
                    journal.settled[number] = taken_back
                case {"id": int(number)} if entry.keys() >= _NEEDED:
                    journal.writes[number] = _write(entry)
        return journal

    @contextmanager
    def _journal(self, *, shortened: bool = False) -> Iterator[int]:
        """The journal, locked, its last line whole; ``shortened`` where it has become too long."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / _NAME
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.fstat(descriptor).st_ino != _inode(path):  # shortened while this waited
                    continue
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    os.write(descriptor, b"\n")
                if shortened and size > LONGEST_JOURNAL:
                    shortened = False  # once: the newest entry alone may be that long
                    _shorten(descriptor, path)
                    continue
                yield descriptor
                return
            finally:
                os.close(descriptor)


_NAME = "journal.jsonl"


def _write(entry: dict[str, Any]) -> Write:
    known: dict[str, Any] = {name: value for name, value in entry.items() if name in _WRITE}
    for name in ("before", "after"):
        known[name] = tuple(known.get(name, ()))
    return Write(**known)


def _append(journal: int, entry: dict[str, Any]) -> None:
    # What is no text in a person's file is a lone surrogate here.
    os.write(journal, (json.dumps(entry, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))


def _first_line(forgotten: int) -> bytes:
    return f'{{"forgotten": {forgotten:>15}}}\n'.encode()


def _forgotten(journal: int) -> int:
    """How many bytes more a longer journal would have before what is in it."""
    try:
        return int(json.loads(os.pread(journal, len(_first_line(0)), 0))["forgotten"])
    except (ValueError, TypeError, KeyError):
        return 0


def _shorten(journal: int, path: Path) -> None:
    """Put the newest half in its place, at least the last entry. The ids go on where they were."""
    data = os.pread(journal, os.fstat(journal).st_size, 0)
    cut = data.find(b"\n", len(data) - LONGEST_JOURNAL // 2) + 1
    if cut in (0, len(data)):
        cut = data.rstrip(b"\n").rfind(b"\n") + 1
    forgotten = _forgotten(journal)
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(_first_line(max(forgotten, forgotten + cut - len(_first_line(0)))) + data[cut:])
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
