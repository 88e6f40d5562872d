"""Locks that a dead process can't hold: flock on a small file that names the holder.

The hub's lock says that this process answers the channels; a session's lock that one turn runs at a time, also between
processes; an instance's lock that the process is alive. Released by the kernel, also after kill -9.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from pathlib import Path

POLL_SECONDS = 0.05


def _locked(descriptor: int) -> bool:
    for _ in range(3):  # a process that only looks (``holder``) has it for a moment
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.002)
        else:
            return True
    return False


def _number_in(descriptor: int) -> int:
    """Who holds it, as the file says; 0 for one who doesn't say so. A holder takes the lock first and writes then."""
    for _ in range(50):
        text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        if text.isdigit():
            return int(text)
        time.sleep(0.002)
    return 0


class Lock:
    """An exclusive lock on ``path``. Not reentrant."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock if nobody holds it. The file then holds our process id. Raises OSError."""
        try:
            descriptor = self._opened()
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = self._opened()
        if not _locked(descriptor):
            os.close(descriptor)
            return False
        try:
            ours = f"{os.getpid()}\n".encode()
            if os.pread(descriptor, len(ours) + 1, 0) != ours:  # a session's lock is taken again and again
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, ours, 0)
        except OSError as error:  # as it comes it names no file
            os.close(descriptor)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._descriptor = descriptor
        return True

    def _opened(self) -> int:
        return os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    async def wait(self) -> None:
        """Take the lock as soon as it is free."""
        while not self.acquire():  # noqa: ASYNC110 - the holder may be another process: there is no event to wait for
            await asyncio.sleep(POLL_SECONDS)

    async def __aenter__(self) -> None:
        await self.wait()

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let go. The file stays: removing it would let two processes hold a lock each on two files of one name."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def holder(self) -> int | None:
        """The process id of who holds it (0: not known), None when it is free (or held by this object)."""
        if self._descriptor is not None:
            return None
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _number_in(descriptor)
        finally:
            os.close(descriptor)
        return None
