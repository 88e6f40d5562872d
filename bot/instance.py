"""This process among the others that share the home: a random id, and a lock that says it is alive.

Rows in the inbox name the instance that answers them, so that a running hub and a terminal chat beside it never
answer each other's messages, and what a dead one left is recognised.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.errors import BotError
from bot.lock import Lock

_YOUNG_SECONDS = 3600.0
"""An hour: far more than a process takes from making its file to locking it, however slow the machine is."""


class Instances:
    """The instances of one home; ``folder`` holds a lock file for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def join(self) -> Iterator[str]:
        """Be an instance for the length of the block; yields its id. Files of dead ones are swept away."""
        own = secrets.token_hex(8)
        lock = Lock(self._folder / f"{own}.new")
        try:
            if not lock.acquire():
                raise BotError(f"{lock.path} is locked by another process", "try again")
            lock.path = lock.path.rename(self._path(own))  # it has its name only once it is locked: none looks dead
            self._sweep(lock.path)
            yield own
        finally:
            lock.path.unlink(missing_ok=True)
            lock.release()

    def _sweep(self, own: Path) -> None:
        """Remove what dead ones left. One that is about to be locked looks dead too, but only for a moment."""
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another one sweeps as well
                is_new = path.suffix == ".new" and time.time() - path.stat().st_mtime < _YOUNG_SECONDS
                if path != own and not is_new and Lock(path).holder() is None:
                    path.unlink()

    def alive(self) -> list[str]:
        """The instances that run now."""
        return [path.stem for path in self._folder.glob("*.lock") if self.is_alive(path.stem)]

    def is_alive(self, instance: str) -> bool:
        """Whether the process of this id still runs."""
        return Lock(self._path(instance)).holder() is not None

    def _path(self, instance: str) -> Path:
        return self._folder / f"{instance}.lock"
