"""Files on their way out: their bytes as they were when the answer was given, until every part of it is settled.

A file in a workspace may change or go before it is sent, and be sent again after a crash: so it is copied, into a
folder of its turn. Knows no platform and no scope: what may be sent is decided before.
"""

from __future__ import annotations

import mimetypes
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from adapters.message import File
from agents.enclosing import Enclosed
from bot.delivery import Enclosure
from workspaces.confined import Confined
from workspaces.names import portable_name
from workspaces.paths import OutOfReach

_VOICE = (".ogg", ".oga", ".opus")


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

    def gathered(self, turn: str, sent: Iterable[Enclosed], reach: Confined, most: int) -> Iterator[Enclosure | str]:
        """The files that a turn sent, from where it may read; for one that can't be had, why, as a sentence.

        ``most`` is the size in bytes that the platform takes, 0 where it takes none.
        """
        for number, one in enumerate(sent, 1):
            name = PurePosixPath(one.path).name
            if not most:
                yield f"(Files can't be sent here. It is in the workspace: {one.path})"
                continue
            try:
                data = reach.read(reach.located(one.path), most=most)
            except (OSError, OutOfReach) as error:
                yield f"({name} could not be sent: {getattr(error, 'strerror', None) or error})"
                continue
            yield Enclosure(self.keep(turn, number, File(_kind(name), "", name), data), one.caption)

    def drop(self, turn: str) -> None:
        """Nothing of ``turn`` is to be sent any more."""
        shutil.rmtree(self._root / portable_name(turn), ignore_errors=True)

    def sweep(self, turns: Iterable[str]) -> None:
        """Drop all but what belongs to ``turns``: what a crash left behind."""
        kept = {portable_name(turn) for turn in turns}
        for folder in self._root.iterdir() if self._root.is_dir() else ():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)


def _kind(name: str) -> Literal["image", "audio", "voice", "video", "document"]:
    if name.lower().endswith(_VOICE):
        return "voice"
    whole = (mimetypes.guess_type(name)[0] or "").partition("/")
    if whole[0] == "image" and whole[2] in ("png", "jpeg", "webp"):
        return "image"
    return "video" if whole[0] == "video" else "audio" if whole[0] == "audio" else "document"
