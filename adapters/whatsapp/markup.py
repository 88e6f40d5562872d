"""A formatted text in WhatsApp's markup, which is small and has rules of its own.

A mark counts only at the edge of a word and within one line; there are no escapes, no underlines and no links with
words of their own. What can't be marked is left as text, and what is only text and would be taken for a mark is kept
from it by a sign that nobody sees; addresses stay as they are. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from adapters.text import FormattedText, Span, marked

BREAK = "\u200b"
"""Behind a sign it makes it none; people see nothing of it."""

_MARKS = {"bold": "*", "heading": "*", "italic": "_", "strike": "~"}
_ORDER = ("quote", "link", "bold", "heading", "italic", "strike", "code", "pre")
"""Of spans over the same text, which is the outer one."""

_SIGN = re.compile(r"(?P<url>https?://[^\s<]+)|(?<![^\W_])(?P<sign>[*_~`])(?=\S|\Z)")
_ENDS_WITH_URL = re.compile(r"https?://[^\s<]+$")
"""Where a mark would be taken for a part of the address."""
_LINE = re.compile(r"^(?=>|[-*] )", re.MULTILINE)
"""A line that would be a quote or a point of a list."""
_FENCE = "```"


def rendered(text: FormattedText) -> str:
    """What is sent for ``text``."""
    spans = tuple(sorted(_shown(text), key=lambda span: (span.start, -span.end, _ORDER.index(span.kind))))
    text = FormattedText(text.plain, spans)
    return marked(text, _Marks(text), _Escapes(text))


def _shown(text: FormattedText) -> Iterator[Span]:
    """The spans that WhatsApp can show, cut to lines and to words."""
    code = [span for span in text.spans if span.kind == "pre" or (span.kind == "code" and _can_be_code(text, span))]
    quoted_until = 0
    for span in text.spans:
        match span.kind:
            case "quote":
                if span.start >= quoted_until:  # a quote in a quote is shown as one
                    quoted_until = span.end
                    yield span
            case "link" | "pre":
                yield span
            case "code":
                if span in code:
                    yield span
            case "bold" | "heading" | "italic" | "strike":
                if not any(one.start <= span.start and span.end <= one.end for one in code if one.kind == "pre"):
                    yield from (line for line in _lines(text.plain, span) if _can_be_marked(text, line, code))


def _lines(plain: str, span: Span) -> Iterator[Span]:
    """``span`` for each of its lines, without white space at either end."""
    start = span.start
    for line in plain[span.start : span.end].split("\n"):
        if line.strip():
            left = start + len(line) - len(line.lstrip())
            yield replace(span, start=left, end=left + len(line.strip()))
        start += len(line) + 1


def _can_be_code(text: FormattedText, span: Span) -> bool:
    inner = text.plain[span.start : span.end]
    return inner == inner.strip() != "" and _FENCE not in inner and _stands_apart(text, span)


def _stands_apart(text: FormattedText, span: Span) -> bool:
    """Whether neither end touches a letter or a digit."""
    before, after = text.plain[: span.start][-1:], text.plain[span.end :][:1]
    if before.isalnum() or after.isalnum():
        return False
    return not any(_is_in_address(text, span, end) for end in (span.start, span.end))


def _is_in_address(text: FormattedText, span: Span, end: int) -> bool:
    """Whether a mark at ``end`` of ``span`` would be a part of the address before it, be it one that is written out."""
    if _ENDS_WITH_URL.search(text.plain, text.plain.rfind("\n", 0, span.start) + 1, end):
        return True
    return any(
        link.kind == "link"
        and link.end <= end
        and not (link.start <= span.start and span.end <= link.end)
        and not any(sign.isspace() for sign in text.plain[link.end : end])
        for link in text.spans
    )


def _can_be_marked(text: FormattedText, span: Span, code: Sequence[Span]) -> bool:
    """Only whole words, and none that hold the mark themselves, outside of code."""
    if not _stands_apart(text, span):
        return False
    mark = _MARKS[span.kind]
    return not any(
        sign == mark and not any(one.start <= place < one.end for one in code)
        for place, sign in enumerate(text.plain[span.start : span.end], span.start)
    )


class _Marks:
    """What stands before and after a span of ``text``."""

    def __init__(self, text: FormattedText) -> None:
        self._plain = text.plain

    def __call__(self, span: Span) -> tuple[str, str]:
        inner = self._plain[span.start : span.end]
        match span.kind:
            case "pre":
                return f"{_FENCE}\n", f"\n{_FENCE}"
            case "code":
                mark = _FENCE if "`" in inner or "\n" in inner else "`"
                return mark, mark
            case "quote":
                return "> ", ""
            case "link":
                return "", "" if inner == span.value else f" ({span.value})"
        mark = _MARKS[span.kind]
        return mark, mark


class _Escapes:
    """Writes the runs of ``text`` between its marks, in order."""

    def __init__(self, text: FormattedText) -> None:
        self._plain = text.plain
        self._marked = {span.start for span in text.spans if span.kind not in ("quote", "link")}
        self._place = 0

    def __call__(self, run: str, spans: Sequence[Span]) -> str:
        is_first = self._place == 0 or self._plain[self._place - 1] == "\n"
        opens_line = is_first and self._place not in self._marked
        self._place += len(run)
        kinds = [span.kind for span in spans]
        if "pre" in kinds:
            written = run.replace(_FENCE, BREAK.join(_FENCE))
        elif "code" in kinds:
            written = run
        else:
            written = _SIGN.sub(lambda found: found[0] if found["url"] else f"{found[0]}{BREAK}", run)
            if self._place == len(self._plain):
                written = written.removesuffix(BREAK)  # behind the last sign there is nothing to mark
            first, newline, rest = written.partition("\n")
            first = _LINE.sub(BREAK, first) if opens_line else first
            written = first + newline + _LINE.sub(BREAK, rest)
        return written.replace("\n", "\n> ") if "quote" in kinds else written
