"""The form of what is noted down: a bullet, its day's heading, the heading of a topic. Knows no file and no scope.

A note is a bullet ``- 14:03 text`` under the heading of its day; further lines are indented, so that nothing inside a
note can pass for a heading, a fence or another note.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime

from workspaces.memory.errors import EmptyNote

_MARKER = re.compile(r"[-*+][ \t]+(?=\S)")
_INSIDE = re.compile(r" {2}|\t|$")


def heading(day: str) -> str:
    """What a new file of daily notes starts with."""
    return f"# {day}\n\n"


def bullet(text: str, at: datetime) -> str:
    """The lines of a note of a ``sanitized`` text, ending in a newline. Raises EmptyNote for white space."""
    return _item(f"{at:%H:%M} {_filled(text)}")


def bullets(text: str) -> str:
    """The same without a time, for a file that is about one thing; a list stays a list of as many bullets."""
    filled = _filled(text)
    if not _MARKER.match(filled):
        return _item(filled)
    return "".join(_list_item(item) for item in re.split(rf"\n(?={_MARKER.pattern})", filled))


def title(path: str) -> str:
    """The heading of a new file that is about one thing, from its name: "# Ada", "# My project"."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".md")
    words = re.sub(r"(?<!\d)-|-(?!\d)|_", " ", stem.lower() if stem.isupper() else stem).strip() or stem
    return f"# {words[0].upper()}{words[1:]}\n\n"


def sanitized(text: str) -> str:
    """Without what is no text in a file: lone surrogates, control characters but tab, other kinds of line ends."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    for end in ("\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"):
        whole = whole.replace(end, "\n")
    return "".join(ch for ch in whole if ch in "\n\t" or unicodedata.category(ch) != "Cc")


def _filled(text: str) -> str:
    lines = [line.rstrip() for line in text.strip().split("\n")]
    if not any(lines):
        raise EmptyNote("There is nothing to note down: the text is empty.")
    return "\n".join(lines)


def _item(text: str) -> str:
    """One bullet, however many lines: each further one is indented."""
    first, *further = text.split("\n")
    return f"- {first}\n" + "".join(f"  {line}\n" if line else "\n" for line in further)


def _list_item(text: str) -> str:
    """One bullet of a list: what is indented below it is so already."""
    first, *further = _MARKER.sub("", text).split("\n")
    return f"- {first}\n" + "".join(f"{line if _INSIDE.match(line) else '  ' + line}\n" for line in further)
