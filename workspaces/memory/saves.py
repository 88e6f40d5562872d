"""Puts an edit of a file on the disk, beside other writers and open editors. Knows no Markdown, scope or history.

What is at the end is added by one O_APPEND write; anything else goes into a new file that takes the old one's place if
nobody saved meanwhile, else it is planned anew. Writers lock the file (flock), or its folder while there is none yet.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from workspaces import files
from workspaces.memory.edits import Content, Edit

Plan: TypeAlias = Callable[[Content, bytes], Edit | None]
"""From a file, as text and as bytes, what to do; None for nothing. Called again when somebody saved meanwhile."""

_PATIENCE = 10.0
"""Seconds until a file that is saved again and again by others is given up."""

_PAUSE = 0.01
"""Seconds that an editor which saves in place is given to finish."""


@dataclass(frozen=True, slots=True)
class Save:
    """One try: the ``edit`` of ``content``, the bytes that were read and those that are to be."""

    content: Content
    edit: Edit
    old: bytes
    new: bytes


def save(
    path: Path,
    plan: Plan,
    before: Callable[[Save], None],
    after: Callable[[], None] = lambda: None,
    *,
    dir_fd: int | None = None,
) -> Save | None:
    """Do what ``plan`` says; None where it says nothing. ``dir_fd`` is as in ``files``.

    ``before`` is called ahead of each try; what it raises stops the write. ``after`` is called when it is done and the
    file still locked. Raises OSError, and what ``plan`` does.
    """
    lost: Save | None = None
    emptied = False
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with _locked(path, dir_fd) as descriptor:
            if descriptor is not None and not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "It is no ordinary file", str(path))
            if descriptor is not None and not _is_at(descriptor, path, dir_fd):
                continue  # replaced while this waited for the lock
            old = b"" if descriptor is None else _contents(descriptor)
            content = Content(new=True) if descriptor is None else Content.decoded(old)
            if lost and _carries(content, lost):
                after()
                return lost
            if old or emptied or content.new:
                edit = plan(content, old)
                if edit is None:
                    return None
                tried = Save(content, edit, old, edit.applied(content).encoded())
                before(tried)
                if _put(path, descriptor, tried, dir_fd):
                    after()
                    return tried
                lost = tried if edit.is_addition(content) else None
        emptied = True  # looked at twice: an editor that saves in place empties the file first
        time.sleep(_PAUSE)
    raise OSError(errno.EBUSY, "It is being saved again and again by another program", str(path))


def _put(path: Path, descriptor: int | None, save: Save, dir_fd: int | None) -> bool:
    """False where somebody saved meanwhile."""
    try:
        if descriptor is None:
            done = files.create(path, save.new, dir_fd=dir_fd)
        elif save.edit.unlinks:
            done = files.remove(path, read=save.old, dir_fd=dir_fd)
        elif save.edit.is_addition(save.content):
            _append(descriptor, path, len(save.old), save.content.encode(save.edit.start + save.edit.added))
            return _is_at(descriptor, path, dir_fd)
        else:
            done = files.replace(path, save.new, read=save.old, dir_fd=dir_fd)
    except FileNotFoundError:  # removed meanwhile
        return False
    if done:
        files.sync_folder(path.parent, dir_fd=dir_fd)
    return done


def _append(descriptor: int, path: Path, size: int, data: bytes) -> None:
    """All of ``data`` at the end, or nothing."""
    written = os.write(descriptor, data)
    if written != len(data):
        if os.fstat(descriptor).st_size == size + written:
            os.ftruncate(descriptor, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    os.fsync(descriptor)


def _carries(content: Content, lost: Save) -> bool:
    """Whether an addition that went to a file which was then replaced is in the new one: its editor had read it."""
    return content.text.count(lost.edit.added) > lost.content.text.count(lost.edit.added)


@contextmanager
def _locked(path: Path, dir_fd: int | None) -> Iterator[int | None]:
    """The file, locked; None, with its folder locked, where there is none. No lock where there is no folder either."""
    how = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    with _open(path, how, dir_fd) as there:
        if there is not None:
            yield there
            return
    with _open(path.parent, os.O_RDONLY | os.O_DIRECTORY, dir_fd), _open(path, how, dir_fd) as came:
        yield came


@contextmanager
def _open(path: Path, how: int, dir_fd: int | None) -> Iterator[int | None]:
    """Opened under a lock that other writers wait for; the lock goes with the descriptor. None if it is not there."""
    try:
        descriptor = os.open(path, how | os.O_CLOEXEC, dir_fd=dir_fd)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path, dir_fd: int | None) -> bool:
    """An editor that saves by renaming puts another file at ``path``; what is written to the old one is lost."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, dir_fd=dir_fd))
    except FileNotFoundError:
        return False


def _contents(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
