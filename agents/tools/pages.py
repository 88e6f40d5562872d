"""A part of a long text, in whole lines, and how the rest is had. Pure: knows no file and no tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """Lines ``start`` to ``end`` of ``total``, counted from 1; ``end`` is one less than ``start`` where there are none.

    ``skip`` is where to go on in the line ``end``, in characters, when that line alone is longer than a page; else 0.
    """

    text: str
    start: int
    end: int
    total: int
    skip: int = 0

    def rest(self, things: str = "Lines") -> str:
        """How to read on, as a sentence in brackets with the exact arguments; "" at the end."""
        if self.skip:
            return f"(Line {self.end} of {self.total} goes on. Read on with start={self.end}, skip={self.skip}.)"
        if self.end >= self.total:
            return ""
        return f"({things} {self.start} to {self.end} of {self.total}. Read on with start={self.end + 1}.)"


def page(lines: Sequence[str], room: int, *, start: int = 1, skip: int = 0, most: int | None = None) -> Page:
    """From line ``start``, without its first ``skip`` characters, what fits into ``room`` characters.

    At most ``most`` lines, None for any number. A line that is longer than ``room`` is given in parts.
    """
    start, skip, room = max(start, 1), max(skip, 0), max(room, 1)
    chosen = list(lines[start - 1 : None if most is None else start - 1 + max(most, 1)])
    if not chosen:
        return Page("", start, start - 1, len(lines))
    first = chosen[0][skip:]
    if len(first) > room:
        return Page(first[:room], start, start, len(lines), skip + room)
    taken, size = [first], len(first)
    for line in chosen[1:]:
        size += 1 + len(line)
        if size > room:
            break
        taken.append(line)
    return Page("\n".join(taken), start, start + len(taken) - 1, len(lines))
