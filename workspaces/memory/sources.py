"""Which files are memory: patterns below a folder, and others that a person named with their whole path.

A pattern is a path in which ``*`` and ``?`` stand for letters of one name and ``**`` for any folders. Hidden files and
folders are left out, and so is every symbolic link below where a pattern starts: what a link inside the memory leads to
is there under its own name, and what is outside is not memory. So are the files that came with the messages of a chat.
Reads no file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

WORKSPACE = ("MEMORY.md", "USER.md", "memory/**/*.md")
"""An agent's: the other bootstrap files are instructions, not memory."""

ANY = ("**/*.md",)
"""Every note of a folder."""

_CAME = re.compile(r"memory/chats/[^/]+/media(?:/.*)?", re.DOTALL)
"""Where the files that came with a chat's messages lie: others wrote them, whatever they are called."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""What stands in a name for a byte that is no UTF-8."""


class NoPattern(ValueError):
    """The pattern can't be one; the message says why."""


@dataclass(frozen=True, slots=True)
class Found:
    """The files, by path, with their state, and a sentence for each place that can't be read.

    ``unread`` are those places as beginnings of paths: what is known below them is not gone.
    """

    files: dict[str, os.stat_result]
    troubles: tuple[str, ...]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """``base`` is where its folders start, below which ``name`` is matched; ``depth`` None for any."""

    base: Path
    prefix: str
    name: re.Pattern[str]
    depth: int | None

    @property
    def is_outside(self) -> bool:
        return self.prefix.startswith("/")


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that ``patterns`` name below ``root``; a pattern that starts with "/" or "~" may name others.

    A file is called by its path from ``root`` in POSIX form, one from elsewhere by its whole path. A whole path never
    reaches into ``root``, whose files have names of their own, nor into one of the folders ``apart``. Raises NoPattern.
    """

    root: Path
    patterns: Sequence[str] = WORKSPACE
    apart: Sequence[Path] = ()
    _compiled: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)
    _closed: tuple[Path, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compiled", tuple(_compiled(self.root, pattern) for pattern in self.patterns))
        object.__setattr__(self, "_closed", tuple(folder.resolve() for folder in (self.root, *self.apart)))

    def found(self) -> Found:
        """Every file there is."""
        walk = _Walk(self._closed)
        for pattern in self._compiled:
            walk.follow(pattern)
        return Found(walk.files, tuple(walk.troubles), tuple(walk.unread))

    def file(self, path: str) -> Path:
        """Where a file of that path lies."""
        return Path(path) if path.startswith("/") else self.root / path

    def outside(self, path: str) -> Path | None:
        """The file that a whole path names, None where no pattern reaches it, or only through a link."""
        if path.startswith("/") and ".." not in path.split("/"):
            for pattern in self._compiled:
                real = pattern.base.resolve() / path.removeprefix(pattern.prefix)
                if _includes(pattern, path, folder=False) and _is_open(real, self._closed) and real.resolve() == real:
                    return real
        return None

    def includes(self, path: str, *, folder: bool = False) -> bool:
        """Whether there could be memory at ``path``; for a ``folder``, at or below it."""
        return any(_includes(pattern, path, folder) for pattern in self._compiled)

    def folders(self) -> list[tuple[Path, bool]]:
        """The folders to watch, and whether those below them matter too; all within ``root`` as one."""
        outside = [(p.base, p.depth is None or p.depth > 1) for p in self._compiled if p.is_outside]
        return [(self.root, True), *outside]


class _Walk:
    """One look at everything."""

    def __init__(self, closed: Sequence[Path]) -> None:
        self.files: dict[str, os.stat_result] = {}
        self.troubles: list[str] = []
        self.unread: list[str] = []
        self._closed = closed

    def follow(self, pattern: _Pattern) -> None:
        if pattern.is_outside or not _has_link(pattern.base, pattern.prefix):
            self._below(pattern, pattern.base.resolve() if pattern.is_outside else pattern.base, "", 1)

    def _below(self, pattern: _Pattern, folder: Path, relative: str, depth: int) -> None:
        if pattern.is_outside and not _is_open(folder, self._closed):
            return
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._trouble(pattern.prefix + relative, error.strerror or str(error))
            return
        for entry in entries:
            name = relative + entry.name
            try:
                if not entry.name.startswith(".") and not entry.is_symlink():
                    self._take(pattern, folder, entry, name, depth)
            except FileNotFoundError:  # removed since it was listed
                continue
            except OSError as error:
                self._trouble(pattern.prefix + name, error.strerror or str(error))

    def _take(self, pattern: _Pattern, folder: Path, entry: os.DirEntry[str], name: str, depth: int) -> None:
        if _CAME.fullmatch(pattern.prefix + name):
            return
        if _SURROGATE.search(entry.name):
            self._trouble(os.fsencode(pattern.prefix + name).decode("utf-8", "replace"), "its name is not UTF-8")
        elif entry.is_dir():
            if pattern.depth is None or depth < pattern.depth:
                self._below(pattern, folder / entry.name, f"{name}/", depth + 1)
        elif pattern.name.fullmatch(name) and entry.is_file():
            self.files[pattern.prefix + name] = entry.stat()

    def _trouble(self, path: str, why: str) -> None:
        if path not in self.unread:
            self.unread.append(path)
            self.troubles.append(f"{path} can't be read: {why}.")


def _compiled(root: Path, pattern: str) -> _Pattern:
    whole = os.path.expanduser(pattern)  # noqa: PTH111 - pathlib refuses a user that isn't there
    if ".." in whole.split("/"):
        raise NoPattern(f"{pattern!r} climbs with '..': write the whole path, beginning with / or ~")
    if whole.startswith("/") and Path(whole).is_relative_to(root.absolute()):
        whole = Path(whole).relative_to(root.absolute()).as_posix()
    parts = [part for part in whole.split("/") if part not in ("", ".")]
    fixed = 0
    while fixed < len(parts) - 1 and not re.search(r"[*?]", parts[fixed]):
        fixed += 1
    start = "/".join(parts[:fixed])
    prefix = f"{start}/" if start else ""
    base = root / start
    if whole.startswith("/"):
        prefix, base = f"/{prefix}", Path("/", start)
    rest = parts[fixed:]
    expression = "".join(_part(part, last=at == len(rest)) for at, part in enumerate(rest, 1))
    return _Pattern(base, prefix, re.compile(expression), None if "**" in rest else len(rest))


def _part(part: str, *, last: bool) -> str:
    if part == "**":
        return r"(?:[^/]+/)*" + (r"[^/]+" if last else "")
    letters = "".join({"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter)) for letter in part)
    return letters + ("" if last else "/")


def _is_open(path: Path, closed: Sequence[Path]) -> bool:
    """Whether a resolved path lies in none of the closed folders."""
    return not any(path.is_relative_to(folder) for folder in closed)


def _has_link(folder: Path, prefix: str) -> bool:
    """Whether one of the folders that ``prefix`` names is a link."""
    steps = [folder, *folder.parents][: prefix.count("/")]
    return any(step.is_symlink() for step in steps)


def _includes(pattern: _Pattern, path: str, folder: bool) -> bool:
    if _CAME.fullmatch(path):
        return False
    if folder and pattern.prefix.startswith(f"{path}/"):
        return True
    if not path.startswith(pattern.prefix) or path.startswith("/") != pattern.is_outside:
        return False
    rest = path[len(pattern.prefix) :]
    if any(name.startswith(".") for name in rest.split("/")):
        return False
    if folder:
        return pattern.depth is None or rest.count("/") + 1 < pattern.depth
    return pattern.name.fullmatch(rest) is not None
