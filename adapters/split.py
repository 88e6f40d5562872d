"""Cuts a formatted text into parts that each fit one message of a platform.

Lengths are what the platform counts, by the ``measure`` of its adapter, so a cut can't fall into markup or an escape.
It falls where a reader would make it: between paragraphs, lines, sentences, words, and only then between characters.
Spans go on in the next part. Knows no platform.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from adapters.text import FormattedText, Span

Measure: TypeAlias = Callable[[FormattedText], int]

_LONGEST_LANGUAGE = 32
"""A longer name of a language is dropped: every part of a cut ``pre`` block would have to repeat it."""

_VISIBLE = re.compile(r"\S")
# Each matches up to the place of the cut.
_PARAGRAPH = re.compile(r"(?=\n[^\S\n]*\n)")
_LINE = re.compile(r"(?=\n)")
_SENTENCE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)|[。！？]++[”’」』）]*+")
_SPACE = re.compile(r"(?=\s)")


def split(text: FormattedText, limit: int, measure: Measure) -> list[FormattedText]:
    """The parts of ``text`` in order, each at most ``limit`` long as ``measure`` counts.

    ``measure`` must count at least 1 for each code point, and never less for a longer piece of the same text. White
    space at the cuts is dropped, so no part is blank and a blank text has none; nothing else is lost. One character
    that is longer than ``limit`` comes out alone, and spans that would take most of a part for themselves are dropped
    from it. Raises ValueError for a ``limit`` below 2, because one character can be two UTF-16 units.
    """
    if limit < 2:
        raise ValueError(f"the limit of a message must be at least 2, not {limit}")
    rest = _Rest(text)
    parts = []
    while rest.skip_blank():
        part = rest.take(limit, measure)
        if part:  # no more than the indentation of a line of code may have fitted
            parts.append(part)
    return parts


class _Rest:
    """What is still to be cut: the text from ``start`` on, and in ``open`` the spans that reach into it."""

    def __init__(self, text: FormattedText) -> None:
        self.plain = text.plain.rstrip()
        self.start = 0
        self.open: list[Span] = []
        self._coming = sorted(map(_bounded, text.spans), key=lambda span: (-span.start, span.end))

    def skip_blank(self) -> bool:
        """Go to the next thing to see, but keep the indentation of a line of code; False at the end of the text."""
        visible = _VISIBLE.search(self.plain, self.start)
        if visible is None:
            return False
        at = visible.start()
        self._reach(at + 1)
        code = [span.start for span in self.open if span.kind == "pre" and span.start <= at < span.end]
        self.start = max(self.start, self.plain.rfind("\n", self.start, at) + 1, *code) if code else at
        return True

    def take(self, limit: int, measure: Measure) -> FormattedText:
        """The next part, after which ``start`` is behind it."""
        end = min(self.start + limit, len(self.plain))
        self._reach(end)
        piece, room = _fit(FormattedText(self.plain, tuple(self.open)).slice(self.start, end), limit, measure)
        end = self.start + room
        if end < len(self.plain):
            end = self._cut(end, limit)
        part = piece.slice(0, end - self.start).stripped()
        self.start = end
        return part

    def _reach(self, end: int) -> None:
        """Let ``open`` hold the spans between ``start`` and ``end``."""
        self.open = [span for span in self.open if span.end > self.start]
        while self._coming and self._coming[-1].start < end:
            span = self._coming.pop()
            if span.end > self.start:
                self.open.append(span)

    def _cut(self, end: int, limit: int) -> int:
        """The best place for a cut after ``start`` and not after ``end``.

        The first half of the room is always filled: that a paragraph ends there is no reason to cut so early.
        """
        code = [span for span in self.open if span.kind == "pre"]
        whole = [
            span
            for span in self.open
            if span.kind in ("link", "code") and span.start > self.start and span.end - span.start <= limit
        ]
        half = self.start + (end - self.start) // 2
        edges = [edge for span in code for edge in (span.start, span.end)]
        for pattern, low, closed in (
            (_PARAGRAPH, half, [*code, *whole]),
            (_LINE, half, whole),
            (_SENTENCE, half, [*code, *whole]),
            (_SPACE, half, [*code, *whole]),
            (_LINE, self.start, whole),
            (_SPACE, self.start, [*code, *whole]),
            (_SPACE, self.start, whole),
        ):
            places = [place.end() for place in pattern.finditer(self.plain, low, end + 2)]
            if pattern is _PARAGRAPH:
                places = sorted([*places, *edges])
            for place in reversed(places):
                if low < place <= end and not _inside(place, closed) and self._separates(place):
                    return place
        return self._cut_anywhere(end, whole)

    def _cut_anywhere(self, end: int, whole: Iterable[Span]) -> int:
        """Between two characters, which in a text without spaces is the only place there is."""
        import wcwidth

        text = self.plain[self.start : end + 1]
        cut = self.start + wcwidth.grapheme_boundary_before(text, len(text))
        cut = min((span.start for span in whole if span.start < cut < span.end), default=cut)
        return cut if cut > self.start else end

    def _separates(self, place: int) -> bool:
        """Whether the white space at ``place`` stands for itself: an accent may sit on a space."""
        import wcwidth

        visible = _VISIBLE.search(self.plain, place)
        sides = [place, visible.start()] if visible else [place]
        return all(wcwidth.grapheme_boundary_before(self.plain[side - 1 : side + 1], 2) == 1 for side in sides)


def _bounded(span: Span) -> Span:
    return replace(span, value="") if span.kind == "pre" and len(span.value) > _LONGEST_LANGUAGE else span


def _inside(place: int, spans: Iterable[Span]) -> bool:
    return any(span.start < place < span.end for span in spans)


def _fit(text: FormattedText, limit: int, measure: Measure) -> tuple[FormattedText, int]:
    """How many code points of ``text`` fit, at least one; without its spans where those would take most of the room."""
    room = _room(text, limit, measure)
    if text.spans and room < len(text.plain) and room * 4 < limit:
        plain = FormattedText(text.plain)
        bare = _room(plain, limit, measure)
        if bare > room * 2:
            return plain, bare
    return text, max(room, 1)


def _room(text: FormattedText, limit: int, measure: Measure) -> int:
    """How many code points of ``text`` fit: false position, with every second step a halving, to ask seldom."""
    fits, fit_size = 0, 0
    over, over_size = len(text.plain), measure(text)
    if over_size <= limit:
        return over
    halve = False
    while over - fits > 1 and fit_size < limit:
        step = (over - fits) // 2 if halve else (limit - fit_size) * (over - fits) // (over_size - fit_size)
        halve = not halve
        guess = min(max(fits + step, fits + 1), over - 1)
        size = measure(text.slice(0, guess))
        if size <= limit:
            fits, fit_size = guess, size
        else:
            over, over_size = guess, size
    return fits
