"""Formatted text: a plain string and the spans that say how to show it.

It is what stands between Markdown and a platform: lengths and cuts are made here, where a cut can never fall into
markup, and each adapter writes it in its platform's own form. Offsets are Python indices (code points); an adapter
converts them to its own unit. Knows no Markdown syntax and no platform.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

SpanKind: TypeAlias = Literal[
    "bold", "italic", "underline", "strike", "spoiler", "code", "pre", "link", "quote", "heading"
]


@dataclass(frozen=True, slots=True)
class Span:
    """``[start, end)`` of the plain text is shown as ``kind``.

    ``value`` is the target of a ``link``, the language of a ``pre`` block ("" when none was named) and the level
    ("1" to "6") of a ``heading``; it is empty for the rest.
    """

    kind: SpanKind
    start: int
    end: int
    value: str = ""


@dataclass(frozen=True, slots=True)
class FormattedText:
    """``spans`` are well nested: two of them are apart or one holds the other, never crossing.

    Of two over the same text the outer stands first. ``pre`` and ``quote`` begin at the start of a line and end at the
    end of one, so that a platform whose quotes are marked line by line can show them.
    """

    plain: str
    spans: tuple[Span, ...] = ()

    def slice(self, start: int, end: int) -> FormattedText:
        """The text from ``start`` up to ``end``, its spans clipped to it; spans left empty are dropped."""
        return FormattedText(self.plain[start:end], tuple(_clipped(self.spans, start, end)))

    def stripped(self) -> FormattedText:
        """Without white space at either end (indentation of a leading ``pre`` line is kept)."""
        end = len(self.plain.rstrip())
        lead = len(self.plain) - len(self.plain.lstrip())
        in_pre = any(s.kind == "pre" and s.start <= lead < s.end for s in self.spans)
        start = self.plain.rfind("\n", 0, lead) + 1 if in_pre else lead
        return self.slice(start, max(start, end))

    def __bool__(self) -> bool:
        """False when there is nothing to see: no platform takes a blank message."""
        return bool(self.plain.strip())


def _clipped(spans: Iterable[Span], start: int, end: int) -> Iterable[Span]:
    for span in spans:
        left, right = max(span.start, start), min(span.end, end)
        if left < right:
            yield Span(span.kind, left - start, right - start, span.value)


def marked(
    text: FormattedText,
    marks: Callable[[Span], tuple[str, str]],
    escape: Callable[[str, Sequence[Span]], str],
) -> str:
    """``text`` in the markup of a platform: all of a renderer but its two tables.

    ``marks`` says what stands before and after a span, two empty strings for one that is not shown. ``escape`` writes a
    run of plain text; it is told the spans around it, outermost first, since code has other escapes and a quote goes on
    in each of its lines. Where marks are open already, the same ones inside of them are left out, except a quote's.
    """
    pieces: list[str] = []
    opened: list[tuple[Span, tuple[str, str]]] = []
    place = 0

    def write(end: int) -> None:
        nonlocal place
        if place < end:
            pieces.append(escape(text.plain[place:end], [span for span, _ in opened]))
            place = end

    def close(until: int) -> None:
        while opened and opened[-1][0].end <= until:
            write(opened[-1][0].end)
            pieces.append(opened.pop()[1][1])
        write(until)

    for span in sorted(text.spans, key=lambda span: (span.start, -span.end)):
        close(span.start)
        own = marks(span)
        if span.kind != "quote" and own in [theirs for _, theirs in opened]:
            own = ("", "")
        pieces.append(own[0])
        opened.append((span, own))
    close(len(text.plain))
    return "".join(pieces)


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units, the unit of Telegram's limits and offsets."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def sanitize(text: str) -> str:
    """Text that any platform, file and database takes.

    A surrogate pair that arrived as two code units becomes its character and a lone surrogate U+FFFD; control
    characters other than tab and newline are dropped; line ends become "\\n".
    """
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", text)
