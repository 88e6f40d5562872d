"""Cuts Markdown into chunks, and each chunk into the units that are ranked.

A chunk is a passage of one section, about 400 tokens; a unit is a bullet, a paragraph, a code block or a table row,
about 100. Both are literal runs of the text, of whole lines wherever a line is not longer than a unit, with lines
counted from 1. A heading, and a line that ends in a colon before a list, is the trail of what follows it; it is part
of its chunk's text and no unit. Empty fields ("- Name:"), comments and bare headings are no units either, so that an
untouched template can't be found. Only an unindented "#" or fence is structure. Knows no file and no index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias, cast

from workspaces.memory import words

Kind: TypeAlias = Literal["heading", "item", "text", "row", "code", "skip"]

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t#]*$")
_ITEM = re.compile(r"([-*+]|\d{1,9}[.)])([ \t]|$)")
_EMPTY_FIELD = re.compile(r"\s*([-*+]|\d{1,9}[.)])?\s*(\[[ xX]\]\s*)?[*_]*([^:\n]{0,60}:[*_]*)?\s*$")
_FENCE = re.compile(r"`{3,}|~{3,}")
_BREAKS = frozenset(".!?;。！？；")

_LEAD_IN = 7
"""The level of a "Shopping list:" line: below every heading."""

_TITLE = 3
"""Words that carry meaning in a heading with nothing below it, from which on it counts as a note of its own."""

_LONGEST_TITLE = 120
"""Characters of one heading that are kept in a trail; a longer line that ends in a colon leads nothing in."""


@dataclass(frozen=True, slots=True)
class Unit:
    """``start`` and ``end`` are offsets into the chunk's text; lines are the file's, both included."""

    start: int
    end: int
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """``trail`` holds the headings above, outermost first. ``units`` are those no earlier chunk has."""

    text: str
    start_line: int
    end_line: int
    trail: tuple[str, ...]
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines ``first`` up to ``end`` (counted from 0, ``end`` excluded)."""

    kind: Kind
    first: int
    end: int


class _Lines(list[str]):
    """A text by lines, with the offset each starts at."""

    def __init__(self, text: str) -> None:
        super().__init__(text.split("\n"))
        self.text = text
        self.starts = [0]
        for line in self:
            self.starts.append(self.starts[-1] + len(line) + 1)


def chunked(text: str, *, size: int = 400, overlap: int = 80, unit: int = 100) -> list[Chunk]:
    """The chunks of ``text``, whose line ends are LF. Sizes are in tokens; chunks of a section share ``overlap``."""
    lines = _Lines(text)
    found: list[Chunk] = []
    for trail, blocks in _sections(lines, _blocks(lines)):
        pieces = [piece for block in blocks for piece in _pieces(lines, block, min(unit, size))]
        if not pieces and blocks[0].kind == "heading" and _is_a_note(trail[-1]):
            pieces = list(_split(lines, blocks[0], min(unit, size)))
        if pieces:
            start = lines.starts[blocks[0].first]
            found += _grouped(text, Unit(start, start, blocks[0].first + 1, 0), trail, pieces, size, overlap)
    return found


def _blocks(lines: list[str]) -> list[_Block]:
    found: list[_Block] = []
    at = 0
    while at < len(lines):
        if lines[at].strip():
            kind, end = _block_at(lines, at)
            found.append(_Block(kind, at, end))
            at = end
        else:
            at += 1
    return found


def _block_at(lines: list[str], at: int) -> tuple[Kind, int]:
    """What starts at line ``at``, which is not blank, and the line after its last."""
    line, kind = lines[at], _opening(lines[at])
    end = at + 1
    if kind == "code":
        fence = cast(re.Match[str], _FENCE.match(line))[0]
        while end < len(lines) and not (lines[end].startswith(fence) and not lines[end].strip(fence[0] + " \t")):
            end += 1
        return kind, min(end + 1, len(lines))
    if kind == "skip":
        while end < len(lines) and "-->" not in lines[end - 1]:
            end += 1
    elif kind == "item":
        while end < len(lines) and _continues_item(lines, end):
            end += 1
    elif kind == "text":
        while end < len(lines) and lines[end].strip() and _opening(lines[end]) == "text":
            end += 1
    return kind, end


def _opening(line: str) -> Kind:
    """The kind of block that ``line`` would open."""
    if line.startswith((" ", "\t")) or _ITEM.match(line):
        return "item"
    if line.startswith("#") and _HEADING.match(line):
        return "heading"
    if _FENCE.match(line):
        return "code"
    if line.startswith("<!--"):
        return "skip"
    return "row" if line.startswith("|") else "text"


def _continues_item(lines: list[str], at: int) -> bool:
    """A line belongs to the item above it when it is indented, or follows directly and opens nothing."""
    if lines[at].strip():
        return lines[at].startswith((" ", "\t")) or (_opening(lines[at]) == "text" and bool(lines[at - 1].strip()))
    following = next((line for line in lines[at:] if line.strip()), "")
    return following.startswith((" ", "\t"))


def _sections(lines: _Lines, blocks: list[_Block]) -> Iterator[tuple[tuple[str, ...], list[_Block]]]:
    """Blocks under the same headings, and those headings. Prose after a list ends what a lead-in began."""
    trail: dict[int, str] = {}
    section: list[_Block] = []
    for block, following in zip_longest(blocks, blocks[1:]):
        level, title = _title(lines, block, following)
        if section and (level or (block.kind == "text" and _LEAD_IN in trail)):
            yield tuple(trail.values()), section
            section = []
        if level or block.kind == "text":
            trail = {at: above for at, above in trail.items() if at < (level or _LEAD_IN)}
        if level:
            trail[level] = title
        section.append(_Block("heading", block.first, block.end) if level else block)
    if section:
        yield tuple(trail.values()), section


def _title(lines: _Lines, block: _Block, following: _Block | None) -> tuple[int, str]:
    """The level and words of a block that is the title of what follows; level 0 for one that is not."""
    line = lines[block.first].strip()
    if block.kind == "heading" and (match := _HEADING.match(line)):
        return len(match[1]), match[2][:_LONGEST_TITLE]
    leads = block.kind == "text" and block.end == block.first + 1 and line.endswith(":") and len(line) <= _LONGEST_TITLE
    if leads and following is not None and following.kind in ("item", "row", "code"):
        return _LEAD_IN, line.rstrip(":").strip("*_ ")
    return 0, ""


def _is_a_note(title: str) -> bool:
    return sum(word not in words.STOP and word.isalpha() for word in words.words(title)) >= _TITLE


def _pieces(lines: _Lines, block: _Block, limit: int) -> Iterator[Unit]:
    text = lines.text[lines.starts[block.first] : lines.starts[block.end] - 1]
    if block.kind in ("heading", "skip") or _EMPTY_FIELD.match(text):
        return
    if any(ch.isalnum() for ch in text) or words.emoji(text):
        yield from _split(lines, block, limit)


def _split(lines: _Lines, block: _Block, limit: int) -> Iterator[Unit]:
    """Runs of whole lines within ``limit`` tokens; a longer line by itself, cut."""
    start, end, first, last = -1, 0, 0, 0
    for number in range(block.first, block.end):
        line, at = lines[number], lines.starts[number]
        if start >= 0 and words.tokens(lines.text[start : at + len(line)]) > limit:
            yield Unit(start, end, first + 1, last + 1)
            start = -1
        if not line.strip():
            continue
        if words.tokens(line) > limit:
            yield from (Unit(at + a, at + b, number + 1, number + 1) for a, b in _cut(line, limit))
            continue
        if start < 0:
            start, first = at, number
        end, last = at + len(line), number
    if start >= 0:
        yield Unit(start, end, first + 1, last + 1)


def _cut(line: str, limit: int) -> Iterator[tuple[int, int]]:
    """Cut a long line after a sentence where there is one in the second half, else at a space, else anywhere."""
    at = 0
    while at < len(line):
        width = limit * 4
        while (size := words.tokens(line[at : at + width])) > limit:
            width = max(1, min(width - 1, width * limit // size))
        end = at + width
        if end < len(line):
            half = at + width // 2
            stops = (n + 1 for n in range(end - 1, half, -1) if line[n] in _BREAKS)
            spaces = (n + 1 for n in range(end - 1, half, -1) if line[n].isspace())
            end = next(stops, next(spaces, end))
        if line[at:end].strip():
            yield at, min(end, len(line))
        at = end


def _grouped(
    text: str, head: Unit, trail: tuple[str, ...], pieces: list[Unit], size: int, overlap: int
) -> Iterator[Chunk]:
    """Pieces of one section, gathered into chunks. ``head`` is where the section starts."""
    at = 0
    while at < len(pieces):
        begin, back = head, at
        while back > 0 and words.tokens(text[pieces[back - 1].start : pieces[at - 1].end]) <= overlap:
            back -= 1
        if at or words.tokens(text[head.start : pieces[0].end]) > size:
            while words.tokens(text[pieces[back].start : pieces[at].end]) > size:
                back += 1
            begin = pieces[back]
        end = at + 1
        while end < len(pieces) and words.tokens(text[begin.start : pieces[end].end]) <= size:
            end += 1
        inside = tuple(
            Unit(p.start - begin.start, p.end - begin.start, p.start_line, p.end_line) for p in pieces[at:end]
        )
        last = pieces[end - 1]
        yield Chunk(text[begin.start : last.end], begin.start_line, last.end_line, trail, inside)
        at = end
