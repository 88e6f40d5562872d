"""Which files are memory: patterns below a folder, and others that a person named with their whole path.

A pattern is a path in which ``*`` and ``?`` stand for letters of one name and ``**`` for any folders. Hidden files and
folders are left out, and so is every symbolic link below where a pattern starts: what a link inside the memory leads to
is there under its own name, and what is outside is not memory. Reads no file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

WORKSPACE = ("MEMORY.md", "USER.md", "memory/**/*.md")
"""An agent's: the other bootstrap files are instructions, not memory."""

ANY = ("**/*.md",)
"""Every note of a folder."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """``base`` is where its folders start, below which ``name`` is matched; ``depth`` None for any."""

    base: Path
    prefix: str
    name: re.Pattern[str]
    depth: int | None


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that ``patterns`` name below ``root``; a pattern that starts with "/" or "~" may name others.

    A file is called by its path from ``root`` in POSIX form, one from elsewhere by its whole path.
    """

    root: Path
    patterns: Sequence[str] = WORKSPACE
    _compiled: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compiled", tuple(_compiled(self.root, pattern) for pattern in self.patterns))

    def found(self) -> dict[str, os.stat_result]:
        """Every file, by its path, with its state. A folder that can't be read counts as empty."""
        every: dict[str, os.stat_result] = {}
        for pattern in self._compiled:
            every.update(_below(pattern, pattern.base, pattern.prefix, "", 1))
        return every

    def file(self, path: str) -> Path:
        """Where a file of that path lies."""
        return Path(path) if path.startswith("/") else self.root / path

    def includes(self, path: str, *, folder: bool = False) -> bool:
        """Whether there could be memory at ``path``; for a ``folder``, at or below it."""
        return any(_includes(pattern, path, folder) for pattern in self._compiled)

    def folders(self) -> list[tuple[Path, bool]]:
        """The folders to watch, and whether those below them matter too; all within ``root`` as one."""
        outside = [(p.base, p.depth is None or p.depth > 1) for p in self._compiled if p.prefix.startswith("/")]
        return [(self.root, True), *(found for found in outside if found[0].is_dir())]


def _compiled(root: Path, pattern: str) -> _Pattern:
    whole = os.path.expanduser(pattern)  # noqa: PTH111 - pathlib refuses a user that isn't there
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
    expression = "".join(_part(part, last=part is rest[-1]) for part in rest)
    return _Pattern(base, prefix, re.compile(expression), None if "**" in rest else len(rest))


def _part(part: str, *, last: bool) -> str:
    if part == "**":
        return r"(?:[^/]+/)*" + (r"[^/]+" if last else "")
    letters = "".join({"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter)) for letter in part)
    return letters + ("" if last else "/")


def _below(
    pattern: _Pattern, folder: Path, prefix: str, relative: str, depth: int
) -> Iterator[tuple[str, os.stat_result]]:
    try:
        if depth == 1 and prefix and not prefix.startswith("/") and _has_link(folder, prefix):
            return
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = relative + entry.name
        try:
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir():
                if pattern.depth is None or depth < pattern.depth:
                    yield from _below(pattern, folder / entry.name, prefix, f"{name}/", depth + 1)
            elif pattern.name.fullmatch(name) and entry.is_file():
                yield prefix + name, entry.stat()
        except OSError:  # removed since it was listed
            continue


def _has_link(folder: Path, prefix: str) -> bool:
    """Whether one of the folders that ``prefix`` names is a link."""
    steps = [folder, *folder.parents][: prefix.count("/")]
    return any(step.is_symlink() for step in steps)


def _includes(pattern: _Pattern, path: str, folder: bool) -> bool:
    if folder and pattern.prefix.startswith(f"{path}/"):
        return True
    if not path.startswith(pattern.prefix) or path.startswith("/") != pattern.prefix.startswith("/"):
        return False
    rest = path[len(pattern.prefix) :]
    if any(name.startswith(".") for name in rest.split("/")):
        return False
    if folder:
        return pattern.depth is None or rest.count("/") + 1 < pattern.depth
    return pattern.name.fullmatch(rest) is not None
