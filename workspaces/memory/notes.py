"""Daily notes on disk: adding a bullet, taking it back. Owns the form of a note; knows no index and no scope.

A note is a bullet ``- 14:03 text`` under the heading of its day; further lines are indented, so that nothing inside a
note can pass for a heading, a fence or another note. It is added by one write at the end of the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from workspaces import files

_TRIES = 5
"""How often a file is opened again because an editor, saving by a rename, put another one in its place."""


class EmptyNote(ValueError):
    """There is nothing in the text to note down."""


def heading(day: str) -> str:
    """What a new file of daily notes starts with."""
    return f"# {day}\n\n"


def bullet(text: str, at: datetime) -> str:
    """The lines of a note of a ``sanitized`` text, ending in a newline. Raises EmptyNote for white space."""
    lines = [line.rstrip() for line in text.strip().split("\n")]
    if not any(lines):
        raise EmptyNote("There is nothing to note down: the text is empty.")
    return f"- {at:%H:%M} " + "".join(f"  {line}\n" if line and n else f"{line}\n" for n, line in enumerate(lines))


def sanitized(text: str) -> str:
    """Without what is no text in a file: lone surrogates, control characters but tab, other kinds of line ends."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    for end in ("\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"):
        whole = whole.replace(end, "\n")
    return "".join(ch for ch in whole if ch in "\n\t" or unicodedata.category(ch) != "Cc")


def append(path: Path, start: str, note: str, before: Callable[[], None]) -> tuple[int, int]:
    """Write ``note`` at the end of ``path``, after ``start`` where the file is new or empty; its lines, from 1.

    ``before`` is called ahead of the one write; what it raises stops it. The
    bytes are on the disk when this returns. Raises OSError.
    """
    told = False
    for _ in range(_TRIES):
        new = not path.exists()
        with _opened(path) as descriptor:
            if not _is_at(descriptor, path):
                continue
            old = _contents(descriptor)
            text = files.decode(old).text
            lead = start if not text else "" if text.endswith("\n") else "\n"
            if not told:
                before()
                told = True
            data = (lead + note).encode(files.encoding(old))
            if os.write(descriptor, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(descriptor)
            if not _is_at(descriptor, path):
                continue
        if new:
            _sync_folder(path.parent)
        first = (text + lead).count("\n") + 1
        return first, first + note.count("\n") - 1
    raise OSError(f"{path} is being replaced again and again by another program")


def take_back(path: Path, start: str, note: str, before: Callable[[bytes], None]) -> bool:
    """Remove the lines of ``note``; False, and nothing done, where a person changed, continued or removed them.

    The last of several equal notes is the one. A file that then holds nothing but ``start`` is removed.
    """
    for _ in range(_TRIES):
        try:
            old = path.read_bytes()
        except FileNotFoundError:
            return False
        name = files.encoding(old)
        at = _last_whole_lines(old, note.encode(name), "\n".encode(name))
        rest = old[at + len(note.encode(name)) :]
        if at < 0 or rest.decode(name, "replace").startswith((" ", "\t")):
            return False
        before(old)
        left = old[:at] + rest
        if left == start.encode(name):
            path.unlink()
            return True
        if files.replace(path, left, read=old):
            return True
    raise OSError(f"{path} is being replaced again and again by another program")


def _last_whole_lines(data: bytes, lines: bytes, newline: bytes) -> int:
    """Where ``lines`` last stand in ``data`` from the beginning of a line; -1 for nowhere."""
    at = data.rfind(lines)
    while at > 0 and data[:at][-len(newline) :] != newline:
        at = data.rfind(lines, 0, at + len(lines) - 1)
    return at


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Opened for adding, under a lock that other writers of notes wait for; the lock goes with the descriptor."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """An editor that saves by renaming puts another file at ``path``; what is written to the old one is lost."""
    try:
        return os.fstat(descriptor).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False


def _contents(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
