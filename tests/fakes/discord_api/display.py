"""What people see of a message: its text without the markup, by the rules of Discord's apps."""

from __future__ import annotations

import re

_FENCE = re.compile(r"```(?:([\w+\-.#]+?)?\n)?\n*([^\n].*?)\n*```", re.DOTALL)
_CODE = re.compile(r"(`+)(.*?[^`])\1(?!`)", re.DOTALL)
_ESCAPED = re.compile(r"\\([^0-9A-Za-z\s])")
_URL = re.compile(r"https?://[^\s<]+[^<.,:;\"'\]\s]")
_BARE = re.compile(r"<(https?://[^\s<>]+)>")
_LINK = re.compile(
    r"\[((?:\\.|\[[^\]]*\]|[^\[\]\\])+)\]\(\s*<?(https?://(?:[^\s<>()]|\([^()\s]*\))+)>?\s*\)", re.DOTALL
)
_MENTION = re.compile(r"<(?:@[!&]?|#)(\d+)>|<a?:\w+:\d+>|<t:-?\d+(?::\w)?>|</[^:>]+:\d+>")
_MARKS = (
    re.compile(r"\*\*((?:\\.|[^\\])+?)\*\*(?!\*)", re.DOTALL),
    re.compile(r"__((?:\\.|[^\\])+?)__(?!_)", re.DOTALL),
    re.compile(r"\b_((?:__|\\.|[^\\_])+?)_\b", re.DOTALL),
    re.compile(r"\*(?=\S)((?:\*\*|\\.|\s+(?:\\.|[^\s*\\]|\*\*)|[^\s*\\])+?)\*(?!\*)", re.DOTALL),
    re.compile(r"~~(?=\S)(.*?\S)~~(?!_)", re.DOTALL),
    re.compile(r"\|\|(.+?)\|\|", re.DOTALL),
)
_HEADING = re.compile(r"(?:#{1,3}|-#)\s+(?=\S)")
_QUOTE = re.compile(r"> ?(?=.*)")
_BULLET = re.compile(r"([ \t]*)[-*] (?=\S)")


def shown(content: str) -> str:
    """The text as it is seen, without what the app adds (bullets are kept as a dot)."""
    return _blocks(content)


def _blocks(content: str) -> str:
    pieces, place = [], 0
    for fence in _FENCE.finditer(content):
        if _is_escaped(content, fence.start()):
            continue
        pieces.append(_lines(content[place : fence.start()]))
        pieces.append(fence[2])
        place = fence.end()
    return "".join(pieces) + _lines(content[place:])


def _lines(content: str) -> str:
    """Headings, quotes and lists are matters of a line; the rest may go over several."""
    lines = []
    for line in content.split("\n"):
        rest = line
        if rest.startswith("> "):
            rest = rest[2:]
        if heading := _HEADING.match(rest):
            rest = rest[heading.end() :]
        rest = _BULLET.sub(r"\1• ", rest, count=1) if _BULLET.match(rest) else rest
        lines.append(rest)
    return _inline("\n".join(lines))


def _inline(text: str) -> str:
    out: list[str] = []
    place = 0
    while place < len(text):
        found = _next(text, place)
        if found is None:
            out.append(text[place])
            place += 1
        else:
            end, words = found
            out.append(words)
            place = end
    return "".join(out)


def _next(text: str, place: int) -> tuple[int, str] | None:
    """What begins at ``place``: where it ends, and what is seen of it."""
    if match := _ESCAPED.match(text, place):
        return match.end(), match[1]
    if match := _URL.match(text, place):
        return match.end(), match[0]
    if match := _BARE.match(text, place):
        return match.end(), match[1]
    if (match := _LINK.match(text, place)) and "://" not in match[1]:
        return match.end(), _inline(match[1])
    if match := _MENTION.match(text, place):
        return match.end(), "@somebody"
    if match := _CODE.match(text, place):
        return match.end(), match[2].strip(" ") if "`" in match[2] else match[2]
    for mark in _MARKS:
        if match := mark.match(text, place):
            return match.end(), _inline(match[1])
    return None


def _is_escaped(text: str, place: int) -> bool:
    before = len(text[:place]) - len(text[:place].rstrip("\\"))
    return before % 2 == 1
