"""What a phone shows for a text with WhatsApp's marks, by the rules that WhatsApp documents and clients follow.

A mark opens before what is no space and not behind a letter or a digit, and closes on the same line before what is no
letter or digit; the invisible sign that the program puts behind a sign makes it none. Its own reading of the rules, so
that the renderer is not measured by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_INVISIBLE = "\u200b"
_KINDS = {"*": "bold", "_": "italic", "~": "strike", "`": "code"}


@dataclass
class Shown:
    """``plain`` is what people read, without quote signs; ``marked`` the texts that are shown in a kind, in order."""

    plain: str = ""
    marked: list[tuple[str, str]] = field(default_factory=list)


def shown(text: str) -> Shown:
    found = Shown()
    pieces = re.split(r"```(.+?)```", text, flags=re.DOTALL)
    for place, piece in enumerate(pieces):
        if place % 2:
            body = piece.removeprefix("\n").removesuffix("\n")
            found.marked.append(("mono", body))
            found.plain += body
        else:
            found.plain += "\n".join(_line(line, found) for line in piece.split("\n"))
    found.plain = found.plain.replace(_INVISIBLE, "")
    found.marked = [(kind, inner.replace(_INVISIBLE, "")) for kind, inner in found.marked]
    return found


def _line(line: str, found: Shown) -> str:
    if line.startswith("> "):
        line = line[2:]
        found.marked.append(("quote", _inline(line, Shown())))
    return _inline(line, found)


def _inline(line: str, found: Shown) -> str:
    shown_here = ""
    place = 0
    while place < len(line):
        if url := re.compile(r"https?://[^\s<]+").match(line, place):
            shown_here += url[0]
            place = url.end()
            continue
        end = _closing(line, place)
        if end is None:
            shown_here += line[place]
            place += 1
            continue
        kind, inner = _KINDS[line[place]], line[place + 1 : end]
        slot = len(found.marked)
        words = inner if kind == "code" else _inline(inner, found)
        found.marked.insert(slot, (kind, words))
        shown_here += words
        place = end + 1
    return shown_here


def _closing(line: str, place: int) -> int | None:
    sign = line[place]
    if sign not in _KINDS or (place and line[place - 1].isalnum()) or line[place + 1 : place + 2] in ("", _INVISIBLE):
        return None
    if line[place + 1].isspace() or line[place + 1] == sign:
        return None
    for end in range(place + 2, len(line)):
        before, after = line[end - 1], line[end + 1 : end + 2]
        if line[end] == sign and not before.isspace() and not after.isalnum():
            return end
    return None
