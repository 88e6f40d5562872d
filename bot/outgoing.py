"""Files on their way out: their bytes as they were when the answer was given, until every part of it is settled.

A file in a workspace may change or go before it is sent, and be sent again after a crash: so it is copied, into a
folder of its turn. Knows no platform and no scope: what may be sent is decided before.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from adapters.message import File
from workspaces.names import portable_name


class Outgoing:
    """The folder ``root``, with one of its own for each turn."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def keep(self, turn: str, number: int, file: File, data: bytes) -> File:
        """``file`` with ``data`` as its bytes, on the disk. The same again, after a crash, takes its place."""
        folder = self._root / portable_name(turn)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number}-{portable_name(file.name)}"
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(data)
        part.replace(path)
        return File(file.kind, str(path), file.name)

    def drop(self, turn: str) -> None:
        """Nothing of ``turn`` is to be sent any more."""
        shutil.rmtree(self._root / portable_name(turn), ignore_errors=True)

    def sweep(self, turns: Iterable[str]) -> None:
        """Drop all but what belongs to ``turns``: what a crash left behind."""
        kept = {portable_name(turn) for turn in turns}
        for folder in self._root.iterdir() if self._root.is_dir() else ():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)
