"""A file that comes in piece by piece: whole at its place and on the disk, or not there at all.

Until then it is hidden beside its place; what a killed process left of it gives way to the next of the same name. The
folder is open, so that no link can lead astray (``Confined.folder_of``). Synchronous; raises the system's own errors.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Self

# O_EXCL follows no link either.
_FRESH = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Incoming:
    """The file ``name``, whose ending is not yet known, in the open ``folder``. Gone at the end of the block unless it
    was placed."""

    def __init__(self, folder: int, name: str) -> None:
        self.size = 0
        """Bytes so far."""
        self._folder = folder
        self._name = name
        self._hidden = f".{name}.part"
        self._remove()
        self._file = os.fdopen(os.open(self._hidden, _FRESH, 0o600, dir_fd=folder), "w+b")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()
        self._remove()

    def add(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)

    def read(self) -> bytes:
        """All of it so far."""
        self._file.seek(0)
        return self._file.read()

    def place(self, ending: str) -> None:
        """Give it its name, in the place of what is there under it, and put it on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        name = f"{self._name}.{ending}"
        os.replace(self._hidden, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._hidden, dir_fd=self._folder)
