"""Notes as they are compared: a file of the memory as a whole, and its lines without what is no word of them.

For what writes into the memory unasked and must not say a thing twice. Knows no model.
"""

from __future__ import annotations

import re

from workspaces.memory import Memory
from workspaces.scope import Scope

_LABEL = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])?\s*(?:\[[ xX]\]\s+)?(?:\d\d:\d\d\s+)?")
"""What comes before the words: a bullet or a number, a box, the time of a note."""

_SOURCES = re.compile(r"\s*\((?:[^\s()#]+\.md#L\d+(?:-L\d+)?(?:,\s*)?)+\)\s*$")

_LINES = 1_000
"""Read at once."""


async def whole(memory: Memory, path: str, scope: Scope) -> str:
    """The text of a file, "" for one that isn't there. Raises OutOfReach."""
    parts, start = [], 1
    while True:
        excerpt = await memory.get(path, scope=scope, start=start, lines=_LINES)
        parts.append(excerpt.text)
        if excerpt.end >= excerpt.total or excerpt.end < start:
            return "\n".join(parts)
        start = excerpt.end + 1


def unlabelled(line: str) -> str:
    """A line without its bullet and its time."""
    return _LABEL.sub("", line).strip()


def compared(line: str) -> str:
    """The words of a line: also without the sources behind it, its case, its spacing and its last full stop."""
    return " ".join(_SOURCES.sub("", unlabelled(line)).casefold().split()).rstrip(".!。")
