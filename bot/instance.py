"""This process among the others that share the home: a random id, and a lock that says it is alive.

Rows in the inbox name the instance that answers them, so that a running hub and a terminal chat beside it never
answer each other's messages, and what a dead one left is recognised.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.errors import BotError
from bot.lock import Lock


class Instances:
    """The instances of one home; ``folder`` holds a lock file for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def join(self) -> Iterator[str]:
        """Be an instance for the length of the block; yields its id. Files of dead ones are swept away."""
        own = secrets.token_hex(8)
        lock = Lock(self._folder / f"{own}.new")
        if not lock.acquire():
            raise BotError(f"{lock.path} is locked by another process", "try again")
        lock.path = lock.path.rename(self._path(own))  # it has its name only once it is locked: none looks dead
        for path in self._folder.glob("*.lock"):
            if path != lock.path and Lock(path).holder() is None:
                path.unlink(missing_ok=True)
        try:
            yield own
        finally:
            lock.path.unlink(missing_ok=True)
            lock.release()

    def is_alive(self, instance: str) -> bool:
        """Whether the process of this id still runs."""
        return Lock(self._path(instance)).holder() is not None

    def _path(self, instance: str) -> Path:
        return self._folder / f"{instance}.lock"
