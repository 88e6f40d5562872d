"""Formatted text: a plain string and the spans that say how to show it.

It is what stands between Markdown and a platform: lengths and cuts are made here, where a cut can never fall into
markup, and each adapter writes it in its platform's own form. Offsets are Python indices (code points); an adapter
converts them to its own unit. Knows no Markdown syntax and no platform.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

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
    """``spans`` are well nested: two of them are apart or one holds the other, never crossing."""

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


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units, the unit of Telegram's limits and offsets."""
    return len(text) + sum(ch > "\uffff" for ch in text)


def sanitize(text: str) -> str:
    """Text that any platform, file and database takes.

    A surrogate pair that arrived as two code units becomes its character and a lone surrogate U+FFFD; control
    characters other than tab and newline are dropped; line ends become "\\n".
    """
    if any("\ud800" <= ch <= "\udfff" for ch in text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(ch for ch in text if ch in "\n\t" or not (ch < " " or "\x7f" <= ch < "\xa0"))
