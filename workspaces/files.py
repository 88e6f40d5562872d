"""Reading and replacing text files that people also edit: lenient bytes in, nothing lost on the way out.

A file of the workspace may come from any editor: with a byte order mark, with CRLF, in another encoding, half saved.
Nothing here raises for what a file holds; only the operating system's own errors pass. Where ``dir_fd`` is given a path
is relative to that open folder, as in ``os``, and a link in its place is not followed. Knows no scope and no format.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_SCRAP = ".tmp"

_AT_FDCWD = -2 if sys.platform == "darwin" else -100
_RENAME_SWAP = 2
"""RENAME_EXCHANGE of renameat2(2) on Linux, RENAME_SWAP of renameatx_np(2) on macOS."""


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


def create(path: Path, data: bytes, *, dir_fd: int | None = None) -> bool:
    """Write a file that must not be there yet (0600), whole or not at all; False, and nothing done, when it is."""
    with _scrap(path, data, dir_fd) as (fresh, _):
        try:
            os.link(fresh, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        except FileExistsError:
            return False
        except OSError:  # a file system without links: a crash may leave a part
            return _create_in_place(path, data, dir_fd)
    return True


def replace(path: Path, data: bytes, *, read: bytes, dir_fd: int | None = None) -> bool:
    """Put ``data`` in the place of ``path`` in one step, if it still holds the bytes ``read``; else False.

    Mode and owner are kept. The new file is locked (flock) until this returns. Where the system can swap two names,
    what was swapped out is looked at, so that a save that fell in between is put back; elsewhere a save between the
    compare and the rename (microseconds) is the one that is lost. Raises OSError.
    """
    with _scrap(path, data, dir_fd) as (fresh, descriptor):
        was = os.stat(path, dir_fd=dir_fd, follow_symlinks=dir_fd is None)
        with suppress(PermissionError):
            os.fchown(descriptor, was.st_uid, was.st_gid)
        os.fchmod(descriptor, was.st_mode & 0o777)
        if _contents(path, dir_fd) != read:
            return False
        if not _swap(fresh, path, dir_fd):
            os.replace(fresh, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
            return True
        if _contents(fresh, dir_fd) == read:
            return True
        _give_way(fresh, path, descriptor, dir_fd)
        return False


def remove(path: Path, *, read: bytes, dir_fd: int | None = None) -> bool:
    """Remove ``path`` if it still holds the bytes ``read``; else False. Raises OSError."""
    with _scrap(path, b"", dir_fd) as (aside, _):
        os.replace(path, aside, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        if _contents(aside, dir_fd) == read:
            return True
        with suppress(FileExistsError):  # saved anew since: that is the newest
            os.link(aside, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        return False


def sync_folder(folder: Path, *, dir_fd: int | None = None) -> None:
    """Make sure that a file that was made, renamed or removed in ``folder`` is so after a power cut."""
    with _folder(folder, dir_fd) as descriptor:
        os.fsync(descriptor)


@contextmanager
def _folder(folder: Path, dir_fd: int | None) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _contents(path: Path, dir_fd: int | None) -> bytes:
    links = 0 if dir_fd is None else os.O_NOFOLLOW
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | links, dir_fd=dir_fd), "rb") as file:
        return file.read()


def _create_in_place(path: Path, data: bytes, dir_fd: int | None) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=dir_fd)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return True


@contextmanager
def _scrap(path: Path, data: bytes, dir_fd: int | None) -> Iterator[tuple[Path, int]]:
    """A hidden file beside ``path`` that holds ``data``, and its descriptor. It is locked while it is used, then gone.

    One that a killed process left is not locked any more: the next to make one for the same path removes it.
    """
    start = f".{path.name[:40]}."
    with _folder(path.parent, dir_fd) as folder, os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        if name.startswith(start) and name.endswith(_SCRAP):
            _sweep(path.with_name(name), dir_fd)
    fresh = path.with_name(f"{start}{secrets.token_hex(8)}{_SCRAP}")
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=dir_fd)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
            yield fresh, descriptor
    finally:
        with suppress(OSError):  # what is done is done, and the next one sweeps what stays behind
            os.unlink(fresh, dir_fd=dir_fd)


def _sweep(scrap: Path, dir_fd: int | None) -> None:
    with suppress(OSError):
        descriptor = os.open(scrap, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(scrap, dir_fd=dir_fd)
        finally:
            os.close(descriptor)


def _give_way(fresh: Path, path: Path, mine: int, dir_fd: int | None) -> None:
    """Put the save that was swapped out into ``fresh`` back, unless a newer one has come meanwhile: then that one.

    ``mine`` is the descriptor of what was put in its place. What is put is kept open, so that no other file can get
    its number, and locked, so that nobody sweeps it.
    """
    with ExitStack() as opened:
        put = mine
        while True:
            putting = os.open(fresh, os.O_RDONLY | os.O_CLOEXEC, dir_fd=dir_fd)
            opened.callback(os.close, putting)
            with suppress(BlockingIOError):
                fcntl.flock(putting, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _swap(fresh, path, dir_fd)
            if os.path.samestat(os.stat(fresh, dir_fd=dir_fd), os.fstat(put)):
                return
            put = putting


def _swap(one: Path, other: Path, dir_fd: int | None) -> bool:
    """Exchange what two names stand for in one step; False, and nothing done, where the system can't."""
    system = ctypes.CDLL(None, use_errno=True)
    folder = _AT_FDCWD if dir_fd is None else dir_fd
    try:
        rename = system.renameatx_np if sys.platform == "darwin" else system.renameat2
    except AttributeError:  # a C library without it
        return False
    failed = rename(folder, os.fsencode(one), folder, os.fsencode(other), _RENAME_SWAP)
    error = ctypes.get_errno()
    if failed and error not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP):
        raise OSError(error, os.strerror(error), str(other))
    return not failed
