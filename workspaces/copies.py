"""Plain copies of files that were about to be replaced, so that nothing a person wrote is lost to a tool.

They lie apart from the workspace, where no tool reaches them. The oldest go first. Knows no scope and no format.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

MOST = 50
MOST_BYTES = 20_000_000
"""Of all copies. The newest is kept however large it is."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies in ``folder``, which is made (0700) when it is needed. ``clock`` gives aware times."""

    folder: Path
    clock: Callable[[], datetime]

    def keep(self, name: str, data: bytes) -> Path:
        """Put what a file called ``name`` held on the disk, under the time and its name. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        start = f"{self.clock().astimezone(UTC):%Y%m%dT%H%M%S.%f}-"
        descriptor, path = tempfile.mkstemp(prefix=start, suffix=f"-{name[-40:]}", dir=self.folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        self._forget()
        return Path(path)

    def _forget(self) -> None:
        total = 0
        for number, copy in enumerate(sorted(self.folder.iterdir(), reverse=True)):
            total += copy.stat().st_size
            if number and (number >= MOST or total > MOST_BYTES):
                copy.unlink(missing_ok=True)
