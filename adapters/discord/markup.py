"""A formatted text in Discord's Markdown, which has rules of its own.

What is no markup is escaped wherever Discord would take it for some: signs, beginnings of lines, mentions, links; URLs
are left as they are, because there Discord shows a backslash. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adapters.text import FormattedText, Span, marked

_URL = r"https?://[^\s<]+"

_SIGNS = re.compile(
    rf"(?P<url>{_URL})"
    r"|[*_`]"
    r"|\\(?=[^0-9A-Za-z\s]|$)"
    r"|(?<=\|)\||\|(?=\|)|(?<=~)~|~(?=~)"
    r"|<(?=[@#:]|a:|t:|id:|/[^<>:\n]+:\d)"
    r"|\[(?=[^\[\]\n]*\]\()"
)
"""What Discord would take for markup anywhere in a line. A single ``|`` or ``~``, or a ``<`` before a word, is text."""

_LINE = re.compile(r"[ \t]*(?:(?P<heading>#{1,3}|-#|>|>>>|[-+])(?=\s))")
"""What it would take for a heading, small print, a quote or a list at the beginning of a line."""

_ENDS_WITH_URL = re.compile(rf"{_URL}$")
_AFTER_URL = re.compile(r"[.,:;\"']?(?:\s|$)")
"""Where Discord ends an address by itself."""

_LANGUAGE = re.compile(r"[\w+#.-]*")
_BRACKETS = re.compile(r"(?<!\\)[\[\]]")

_CODE = ("code", "pre")
_JOINED = ("bold", "italic", "underline", "strike", "spoiler")
_MARKS = {"bold": "**", "underline": "__", "strike": "~~", "spoiler": "||"}
_LARGEST_HEADING = 3
_BREAK = "\u200b"
"""Parts signs that would be read as one mark; Discord knows no escape inside of code, and shows nothing of this."""


def rendered(text: FormattedText) -> str:
    """What is sent for ``text``; its length in code points is what Discord counts."""
    text = FormattedText(text.plain, tuple(_joined(_needed(text.spans))))
    return marked(text, _Marks(text), _Escapes(text))


def _needed(spans: Sequence[Span]) -> list[Span]:
    """Without what would be shown as signs: whatever is inside of code, and a kind inside of itself.

    What covers the same text as code stands around it.
    """
    kept: list[Span] = []
    around: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end, span.kind in _CODE)):
        around = [outer for outer in around if outer.end > span.start]
        kinds = {outer.kind for outer in around}
        if kinds.isdisjoint(_CODE) and not (span.kind in _JOINED and span.kind in kinds):
            kept.append(span)
            around.append(span)
    return kept


def _joined(spans: list[Span]) -> list[Span]:
    """What goes on right where the same ends is one: between them the marks of both would be read as another."""
    joined: list[Span] = []
    ends: dict[tuple[str, int], int] = {}
    for span in spans:
        place = ends.pop((span.kind, span.start), None) if span.kind in _JOINED else None
        whole = None if place is None else replace(joined[place], end=span.end)
        if place is None or whole is None or any(_cross(whole, one) for one in spans):
            place, whole = len(joined), span
            joined.append(span)
        joined[place] = whole
        ends[span.kind, whole.end] = place
    return joined


def _cross(one: Span, other: Span) -> bool:
    first, second = sorted((one, other), key=lambda span: (span.start, -span.end))
    return first.start < second.start < first.end < second.end


class _Marks:
    """What stands before and after a span of ``text``."""

    _starts: frozenset[int] = frozenset()
    _ends: frozenset[int] = frozenset()
    _bold: frozenset[int] = frozenset()

    def __init__(self, text: FormattedText) -> None:
        self._plain = text.plain
        self._quotes = [span for span in text.spans if span.kind == "quote"]
        self._all_starts = {span.start for span in text.spans}
        bold = [span for span in text.spans if span.kind == "bold"]
        self._bold = frozenset(bound for span in bold for bound in (span.start, span.end))
        self._struck = {span.end for span in text.spans if span.kind == "strike"}
        shown = [span for span in text.spans if self(span) != ("", "")]
        self._starts = frozenset(span.start for span in shown)
        self._ends = frozenset(span.end for span in shown)

    def __call__(self, span: Span) -> tuple[str, str]:
        inner = self._plain[span.start : span.end]
        match span.kind:
            case "pre":
                language = span.value if _LANGUAGE.fullmatch(span.value) else ""
                return f"```{language}\n", "\n```"
            case "code":
                fence = "``" if "`" in inner else "`"
                pad = " " if inner.startswith("`") or inner.endswith("`") else ""
                return fence + pad, pad + fence
            case "quote":
                return "> ", ""
            case "heading" if int(span.value) <= _LARGEST_HEADING and self._opens_line(span) and "\n" not in inner:
                return f"{'#' * int(span.value)} ", ""
            case "heading":
                return "**", "**"
            case "italic":
                if "_" not in inner and self._stands_apart(span):
                    return "_", "_"
                opening = self._gap(span.start, self._ends) + "*" + self._gap(span.start, self._bold)
                return opening, self._gap(span.end, self._bold) + "*" + self._gap(span.end, self._starts)
            case "link":
                return self._link(span, inner)
        mark = _MARKS[span.kind]
        return mark, mark

    def _opens_line(self, span: Span) -> bool:
        """Discord knows no quote inside of a quote: its sign is the first of the line."""
        depth = sum(quote.start <= span.start < quote.end for quote in self._quotes)
        return depth < 2 and (span.start == 0 or self._plain[span.start - 1] == "\n")

    def _stands_apart(self, span: Span) -> bool:
        """Whether neither end touches a letter, or the end of a strike: there a ``_`` is no mark for Discord."""
        before = "" if span.start in self._ends else self._plain[max(0, span.start - 1) : span.start]
        after = "" if span.end in self._starts else self._plain[span.end : span.end + 1]
        return span.start not in self._struck and not (_is_word(before) or _is_word(after))

    def _gap(self, place: int, bounds: frozenset[int]) -> str:
        """What keeps a ``*`` from running together with the marks that stand right beside it."""
        return _BREAK if place in bounds else ""

    def _link(self, span: Span, label: str) -> tuple[str, str]:
        """A link to itself is one already, and Discord shows none whose words are another address."""
        if label == span.value:
            is_apart = span.end not in self._all_starts and _AFTER_URL.match(self._plain, span.end)
            return ("", "") if is_apart else ("<", ">")
        target = span.value.replace("<", "%3C").replace(">", "%3E")
        if "://" in label:
            return "", f" (<{target}>)"
        return "[", f"](<{target}>)"


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


class _Escapes:
    """Writes the runs of ``text`` between its marks, in order."""

    def __init__(self, text: FormattedText) -> None:
        self._plain = text.plain
        self._starts = {span.start for span in text.spans}
        self._place = 0

    def __call__(self, run: str, spans: Sequence[Span]) -> str:
        opens_line = self._place == 0 or self._plain[self._place - 1] == "\n"
        self._place += len(run)
        kinds = [span.kind for span in spans]
        if "pre" in kinds:
            written = re.sub("```+", lambda ticks: _BREAK.join(ticks[0]), run)
        elif "code" in kinds:
            written = re.sub("``+", lambda ticks: _BREAK.join(ticks[0]), run)
        else:
            in_link = any(span.kind == "link" and self._plain[span.start : span.end] != span.value for span in spans)
            written = _escaped(run, opens_line=opens_line, in_link=in_link)
            if self._place in self._starts and _ENDS_WITH_URL.search(run):
                written += " "  # or the mark that follows would be a part of the address
        if depth := kinds.count("quote"):
            written = written.replace("\n", "\n" + "> " * depth)
        return written


def _escaped(run: str, *, opens_line: bool, in_link: bool) -> str:
    lines = []
    for number, line in enumerate(run.split("\n")):
        written = _signs_escaped(line)
        if (number or opens_line) and (mark := _LINE.match(written)):
            at = mark.start("heading")
            written = f"{written[:at]}\\{written[at:]}"
        lines.append(_BRACKETS.sub(r"\\\g<0>", written) if in_link else written)
    return "\n".join(lines)


def _signs_escaped(line: str) -> str:
    """Right behind an address a backslash would be a part of it."""
    url_end = -1

    def written(sign: re.Match[str]) -> str:
        nonlocal url_end
        if sign["url"]:
            url_end = sign.end()
            return sign[0]
        return f"{' ' if sign.start() == url_end else ''}\\{sign[0]}"

    return _SIGNS.sub(written, line)
