"""The files of a workspace that a scope reaches, opened so that no link can lead astray, whoever swaps one meanwhile.

``paths`` says where a path leads at one moment; from there on no link is followed. The kernel sees to that in one step
(openat2 on Linux), or else the folders are opened one by one, each from the one above. Hidden files and folders, such
as .git, are out of reach. Synchronous; raises OutOfReach, and the system's own errors. Knows no format.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NewType

from workspaces import files, paths
from workspaces.paths import OutOfReach
from workspaces.scope import Scope

_OPENAT2 = 437
"""The number of openat2(2) on every machine that Python is built for (Linux 5.6)."""

_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x02, 0x04, 0x08

_NOT_HERE = (errno.ENOSYS, errno.EPERM, errno.E2BIG, errno.EINVAL, errno.EAGAIN)
"""openat2 is unknown, forbidden by a sandbox that is older than it, or could not be sure: the folders are walked."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""A named pipe would block who opens it; what is no ordinary file is refused once it is open."""

_INSIDE = "-"
"""Any name: a folder is judged as what is in it."""


Located = NewType("Located", str)
"""A path that was judged, relative to the workspace and without links: what is opened is at this place or nowhere."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is at ``path``, relative to the workspace. ``size`` is in bytes, 0 for a folder."""

    path: str
    is_folder: bool
    size: int
    saved: datetime


@dataclass(frozen=True, slots=True)
class Confined:
    """The files below ``root`` that ``scope`` reaches.

    What is out of reach raises OutOfReach, whether or not there is such a file. A file that is not there raises
    FileNotFoundError, and what is no ordinary file IsADirectoryError or another OSError.
    """

    root: Path
    scope: Scope

    def located(self, path: str, *, write: bool = False) -> Located:
        """Where ``path`` leads, as a person or a model wrote it, relative to the workspace; it need not be there."""
        real = paths.resolve(self.root, path, self.scope, write=write).relative_to(self.root.resolve()).as_posix()
        if any(part.startswith(".") for part in real.split("/")):
            raise OutOfReach(path)
        return Located(real)

    def read(self, at: Located, *, most: int | None = None) -> bytes:
        """All bytes of a file; one with more than ``most`` raises OSError (EFBIG)."""
        with self.folder_of(at) as (folder, name):
            return _read(folder, name, most)

    def write(self, at: Located, data: bytes, *, read: bytes | None) -> bool:
        """Put ``data`` in the place of a file that still holds the bytes ``read``; None for one that is not there yet.

        Whole or not at all, and on the disk at return; folders that are missing are made (0700). False, and nothing
        done, where the file holds something else.
        """
        with self.folder_of(at, make=read is None) as (folder, name):
            if read is None:
                done = files.create(Path(name), data, dir_fd=folder)
            else:
                done = files.replace(Path(name), data, read=read, dir_fd=folder)
            if done:
                os.fsync(folder)
            return done

    def entries(self, path: str = "", *, deep: bool = False) -> Iterator[Entry]:
        """What is in a folder, "" for the scope's own, in the order of names; with ``deep`` all below it, too.

        Left out is what the scope can't read, what is hidden, and links: what one leads to is there under its own name.
        """
        with self._folder(path) as (folder, real):
            for entry, _ in self._below(folder, real, deep):
                yield entry

    def contents(self, path: str = "", *, most: int | None = None) -> Iterator[tuple[Entry, bytes]]:
        """The files at and below ``path`` with their bytes, in the order of names.

        Below a folder what can't be read, or has more than ``most`` bytes, is left out.
        """
        try:
            with self._folder(path) as (folder, real):
                for entry, where in self._below(folder, real, deep=True):
                    if not entry.is_folder:
                        with suppress(OSError):
                            yield entry, _read(where, entry.path.rpartition("/")[2], most)
        except NotADirectoryError:
            at = self.located(path)
            with self.folder_of(at) as (folder, name):
                yield _entry(at, os.stat(name, dir_fd=folder, follow_symlinks=False)), _read(folder, name, most)

    @contextmanager
    def folder_of(self, at: Located, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder of a file and its name in it, for use with ``dir_fd``.

        ``make``: folders that are missing are made (0700). Raises FileNotFoundError where they are not.
        """
        parent, _, name = at.rpartition("/")
        with _refusing(at), _opened(self.root, parent, make=make) as folder:
            yield folder, name

    @contextmanager
    def _folder(self, path: str) -> Iterator[tuple[int, str]]:
        """An open folder and where it is, "" for the workspace itself."""
        here = self.scope.folder if path in ("", ".") else path
        real = self.located(f"{here.rstrip('/')}/{_INSIDE}" if here else _INSIDE).rpartition("/")[0]
        with _refusing(path), _opened(self.root, real) as folder:
            yield folder, real

    def _below(self, folder: int, real: str, deep: bool) -> Iterator[tuple[Entry, int]]:
        """What is in an open folder, each with the open folder that it lies in."""
        with os.scandir(folder) as found:
            names = sorted(entry.name for entry in found if not entry.name.startswith("."))
        for name in names:
            path = f"{real}/{name}" if real else name
            try:
                state = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:  # removed since it was listed
                continue
            entry = _entry(path, state)
            if (entry.is_folder or stat.S_ISREG(state.st_mode)) and self._shows(entry):
                yield entry, folder
                if entry.is_folder and deep:
                    with suppress(OSError), _child(folder, name) as below:
                        yield from self._below(below, path, deep)

    def _shows(self, entry: Entry) -> bool:
        path = f"{entry.path}/{_INSIDE}" if entry.is_folder else entry.path
        clean = paths.normalised(path)
        return clean is not None and self.scope.may_read(clean)


def _entry(path: str, state: os.stat_result) -> Entry:
    is_folder = stat.S_ISDIR(state.st_mode)
    return Entry(path, is_folder, 0 if is_folder else state.st_size, datetime.fromtimestamp(state.st_mtime, UTC))


def _read(folder: int, name: str, most: int | None) -> bytes:
    descriptor = os.open(name, _FILE | os.O_NOFOLLOW, dir_fd=folder)
    try:
        state = os.fstat(descriptor)
        if stat.S_ISDIR(state.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "It is no ordinary file", name)
        if most is not None and state.st_size > most:
            raise OSError(errno.EFBIG, f"It has {state.st_size:,} bytes, and {most:,} is the most that is read", name)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """A link where there was none when the path was judged is a path out of reach."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EXDEV):
            raise OutOfReach(path) from None
        raise


@contextmanager
def _opened(root: Path, folder: str, *, make: bool = False) -> Iterator[int]:
    """The folder at the path ``folder`` below ``root``, "" for that itself, reached without following a link."""
    if make:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    top = os.open(root.resolve(), _FOLDER | os.O_NOFOLLOW)
    try:
        descriptor = _kernel(top, folder, make) if folder else os.dup(top)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    finally:
        os.close(top)


def _kernel(top: int, folder: str, make: bool) -> int:
    """Opened in one step by the kernel, where it can; else step by step."""
    if sys.platform == "linux":
        try:
            return _openat2(top, folder)
        except FileNotFoundError:
            if not make:
                raise
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
    return _walk(top, folder, make)


class _How(ctypes.Structure):
    """The struct open_how of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _openat2(top: int, folder: str) -> int:
    how = _How(_FOLDER, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    system = ctypes.CDLL(None, use_errno=True)
    name, size = ctypes.c_char_p(os.fsencode(folder)), ctypes.c_size_t(ctypes.sizeof(how))
    descriptor: int = system.syscall(ctypes.c_long(_OPENAT2), ctypes.c_int(top), name, ctypes.byref(how), size)
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), folder)
    return descriptor


def _walk(top: int, folder: str, make: bool) -> int:
    here = os.dup(top)
    for name in folder.split("/"):
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=here)
            below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


@contextmanager
def _child(folder: int, name: str) -> Iterator[int]:
    descriptor = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
