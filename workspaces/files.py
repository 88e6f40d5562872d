"""Reading and replacing text files that people also edit: lenient bytes in, nothing lost on the way out.

A file of the workspace may come from any editor: with a byte order mark, with CRLF, in another encoding, half saved.
Nothing here raises for what a file holds; only the operating system's own errors pass. Knows no scope and no format.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_SCRAP = ".tmp"

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""Of renameat2(2) on Linux."""

_RENAME_SWAP = 2
"""Of renamex_np(2) on macOS."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """``text`` has LF line ends only. ``flaw`` says in one clause what had to be mended in it, "" when nothing."""

    text: str
    flaw: str = ""


def encoding(data: bytes) -> str:
    """How ``data`` is encoded: UTF-8, or the UTF-16 that its byte order mark names."""
    return {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(data[:2], "utf-8")


def decode(data: bytes) -> TextFile:
    """The text of ``data`` without its byte order mark; what is not text is replaced by U+FFFD."""
    name, flaw = encoding(data), ""
    try:
        text = data.decode(name)
    except UnicodeDecodeError:
        text = data.decode(name, "replace")
        flaw = f"it is not valid {name.upper()}: unreadable bytes are shown as \ufffd"
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
        flaw = flaw or "it holds NUL bytes, shown as \ufffd"
    return TextFile(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), flaw)


def digest(data: bytes) -> bytes:
    """16 bytes that tell two contents apart."""
    return hashlib.blake2b(data, digest_size=16).digest()


def create(path: Path, data: bytes) -> bool:
    """Write a file that must not be there yet (0600), whole or not at all; False, and nothing done, when it is."""
    with _scrap(path, data) as (fresh, _):
        try:
            os.link(fresh, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without links: a crash may leave a part
            return _create_in_place(path, data)
    return True


def replace(path: Path, data: bytes, *, read: bytes) -> bool:
    """Put ``data`` in the place of ``path`` in one step, if it still holds the bytes ``read``; else False.

    Mode and owner are kept. The new file is locked (flock) until this returns. Where the system can swap two names,
    what was swapped out is looked at, so that a save that fell in between is put back; elsewhere a save between the
    compare and the rename (microseconds) is the one that is lost. Raises OSError.
    """
    with _scrap(path, data) as (fresh, descriptor):
        was = path.stat()
        with suppress(PermissionError):
            os.chown(fresh, was.st_uid, was.st_gid)
        fresh.chmod(was.st_mode & 0o777)
        if path.read_bytes() != read:
            return False
        if not _swap(fresh, path):
            fresh.replace(path)
            return True
        if fresh.read_bytes() == read:
            return True
        _give_way(fresh, path, descriptor)
        return False


def remove(path: Path, *, read: bytes) -> bool:
    """Remove ``path`` if it still holds the bytes ``read``; else False. Raises OSError."""
    with _scrap(path, b"") as (aside, _):
        path.replace(aside)
        if aside.read_bytes() == read:
            return True
        with suppress(FileExistsError):  # saved anew since: that is the newest
            os.link(aside, path)
        return False


def sync_folder(folder: Path) -> None:
    """Make sure that a file that was made, renamed or removed in ``folder`` is so after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _create_in_place(path: Path, data: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return True


@contextmanager
def _scrap(path: Path, data: bytes) -> Iterator[tuple[Path, int]]:
    """A hidden file beside ``path`` that holds ``data``, and its descriptor. It is locked while it is used, then gone.

    One that a killed process left is not locked any more: the next to make one for the same path removes it.
    """
    start = f".{path.name[:40]}."
    for other in path.parent.iterdir():
        if other.name.startswith(start) and other.name.endswith(_SCRAP):
            _sweep(other)
    descriptor, name = tempfile.mkstemp(prefix=start, suffix=_SCRAP, dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
            yield fresh, descriptor
    finally:
        fresh.unlink(missing_ok=True)


def _sweep(scrap: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(scrap, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            scrap.unlink()
        finally:
            os.close(descriptor)


def _give_way(fresh: Path, path: Path, mine: int) -> None:
    """Put the save that was swapped out into ``fresh`` back, unless a newer one has come meanwhile: then that one.

    ``mine`` is the descriptor of what was put in its place. What is put is kept open, so that no other file can get
    its number, and locked, so that nobody sweeps it.
    """
    with ExitStack() as opened:
        put = mine
        while True:
            putting = os.open(fresh, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, putting)
            with suppress(BlockingIOError):
                fcntl.flock(putting, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _swap(fresh, path)
            if os.path.samestat(fresh.stat(), os.fstat(put)):
                return
            put = putting


def _swap(one: Path, other: Path) -> bool:
    """Exchange what two names stand for in one step; False, and nothing done, where the system can't."""
    system = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            failed = system.renamex_np(*names, _RENAME_SWAP)
        else:
            failed = system.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    except AttributeError:  # a C library without it
        return False
    error = ctypes.get_errno()
    if failed and error not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP):
        raise OSError(error, os.strerror(error), str(other))
    return not failed
