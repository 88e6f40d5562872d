"""The one place that turns a path somebody asked for into a file of the workspace, or refuses.

The policy: a path is relative, never climbs, and lies in an area of the scope, both as it is written and where it
really leads. The workspace's folder itself may be a symbolic link; a link below it may lead anywhere the scope
reaches and nowhere else. Knows no file's contents.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from workspaces.scope import area_of

if TYPE_CHECKING:
    from pathlib import Path

    from workspaces.scope import Scope


class OutOfReach(Exception):
    """The path can't be used here. The message is the same whether or not there is such a file."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path!r} is not a path that can be used here. Paths are relative, such as 'memory/notes.md'."
        )
        self.path = path


def resolve(root: Path, relative: str, scope: Scope, *, write: bool = False) -> Path:
    """The real path of ``relative`` below ``root``, which need not exist. Raises OutOfReach."""
    allowed = scope.may_write if write else scope.may_read
    clean = normalised(relative)
    if clean is None or not allowed(clean):
        raise OutOfReach(relative)
    try:
        base = root.resolve()
        real = (base / clean).resolve()
    except (OSError, RuntimeError):  # a link that leads to itself, a name too long
        raise OutOfReach(relative) from None
    if not real.is_relative_to(base) or not allowed(real.relative_to(base).as_posix()):
        raise OutOfReach(relative)
    return real


def normalised(relative: str) -> str | None:
    """``relative`` in POSIX form without "." and empty parts; None where it can't be a path below the workspace."""
    if relative.startswith("/") or any(ch == "\\" or unicodedata.category(ch) in ("Cc", "Cs") for ch in relative):
        return None
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        return None
    clean = "/".join(parts)
    # A file system that ignores case would open one area's file under the name of another's.
    folded = unicodedata.normalize("NFC", clean).casefold()
    return clean if area_of(clean) == area_of(folded) else None
