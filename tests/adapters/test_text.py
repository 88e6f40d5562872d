"""Formatted text as markup: that two small tables make a renderer, for platforms with quite different dialects."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.markdown import parse
from adapters.text import FormattedText, Span, SpanKind, marked, sanitize


def tags(span: Span) -> tuple[str, str]:
    return f"<{span.kind}>", f"</{span.kind}>"


def as_html(text: FormattedText) -> str:
    return marked(text, tags, lambda run, _: html.escape(run))


class Dialect:
    """Marks around words, "> " at the start of each line of a quote. ``wide``: marks may stand over several lines."""

    def __init__(self, marks: dict[str, str], escapes: str = "", *, wide: bool = True) -> None:
        self._marks = marks
        self._escapes = escapes
        self._wide = wide

    def __call__(self, text: FormattedText) -> str:
        return marked(text, self._around, self._escaped)

    def _around(self, span: Span) -> tuple[str, str]:
        match span.kind:
            case "quote":
                return "> ", ""
            case "pre":
                return f"```{span.value}\n", "\n```"
            case "code":
                return "`", "`"
            case "link":
                return self._linked(span)
            case kind:
                mark = self._marks.get(kind, "")
                return mark, mark

    def _linked(self, span: Span) -> tuple[str, str]:
        return "[", f"]({span.value})"

    def _escaped(self, run: str, around: Sequence[Span]) -> str:
        if not any(span.kind in ("code", "pre") for span in around):
            run = re.sub(f"([{re.escape(self._escapes)}])", r"\\\1", run) if self._escapes else run
        prefix = "> " * sum(span.kind == "quote" for span in around)
        marks = [] if self._wide else [self._marks.get(span.kind, "") for span in around]
        return run.replace("\n", "".join([*marks[::-1], "\n", prefix, *marks]))


class Mrkdwn(Dialect):
    """Slack's."""

    def _linked(self, span: Span) -> tuple[str, str]:
        return f"<{html.escape(span.value, quote=False)}|", ">"

    def _escaped(self, run: str, around: Sequence[Span]) -> str:
        return super()._escaped(html.escape(run, quote=False), around)


discord = Dialect({"bold": "**", "heading": "**", "italic": "*", "strike": "~~"}, "*_~`|>")
slack = Mrkdwn({"bold": "*", "heading": "*", "italic": "_", "strike": "~"})
whatsapp = Dialect({"bold": "*", "heading": "*", "italic": "_", "strike": "~"}, wide=False)


@pytest.mark.parametrize(
    ("dialect", "markdown", "written"),
    [
        (slack, "**Status:** OK, https://ex.test/?a=1&b=2",
         "*Status:* OK, <https://ex.test/?a=1&amp;b=2|https://ex.test/?a=1&amp;b=2>"),  # G-FMT-09
        (slack, "> q\n> r", "> q\n> r"),  # G-FMT-10
        (slack, "***x*** a &amp; b", "_*x*_ a &amp; b"),
        (slack, "[w](https://en.wikipedia.org/wiki/Foo_(bar))", "<https://en.wikipedia.org/wiki/Foo_(bar)|w>"),
        (slack, "See <https://ex.test/doc|the document> now", "See <https://ex.test/doc|the document> now"),  # G-FMT-11
        (slack, "<!channel> <@U0001> [x](!channel)", "&lt;!channel&gt; &lt;@U0001&gt; x (!channel)"),  # G-FMT-12
        (whatsapp, "**b** ~~s~~ `a**b` ***launch 🚀 now***", "*b* ~s~ `a**b` _*launch 🚀 now*_"),  # G-FMT-14
        (whatsapp, "## **Title** x", "*Title x*"),  # G-FMT-15
        (whatsapp, "**two\nlines**", "*two*\n*lines*"),
        (whatsapp, "|a|b|\n|-|-|\n|1|2|", "```\na | b\n--+--\n1 | 2\n```"),
        (discord, "> a **b\n> c**\n> > d\n\n1. `x*y`\n   - z*", "> a **b\n> c**\n> > d\n\n1. `x*y`\n   • z\\*"),
        (discord, "- a\n  ```py\n  x = '`'\n  ```\n- > q", "• a\n```py\nx = '`'\n```\n•\n> q"),
        (discord, "# A\n\n[l](https://ex.test \"title\") ***", "**A**\n\n[l](https://ex.test) \\*\\*\\*"),
    ],
)  # fmt: skip
def test_a_renderer_is_two_small_tables(dialect: Dialect, markdown: str, written: str) -> None:
    assert dialect(parse(markdown)) == written


def test_marks_that_are_open_are_not_opened_again() -> None:
    """G-FMT-15"""
    text = FormattedText("abc", (Span("heading", 0, 3, "1"), Span("bold", 1, 2)))
    assert marked(text, lambda _: ("<b>", "</b>"), lambda run, _: run) == "<b>abc</b>"


def test_what_has_no_marks_is_text() -> None:
    text = FormattedText("abc", (Span("spoiler", 0, 3), Span("underline", 1, 2)))
    assert marked(text, lambda _: ("", ""), lambda run, _: run.upper()) == "ABC"


_KINDS: tuple[SpanKind, ...] = ("bold", "italic", "link", "strike")
_PLACES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.sampled_from(_KINDS)), max_size=8)


@given(st.text("ab\n<&", min_size=12, max_size=12), _PLACES)
@settings(max_examples=300)
def test_each_character_has_its_marks_and_tags_are_nested(plain: str, places: list[tuple[int, int, SpanKind]]) -> None:
    """G-FMT-05, G-SPL-08: whatever the spans and their order."""
    spans: list[Span] = []
    for start, end, kind in places:
        if start < end and not any(s.start < start < s.end < end or start < s.start < end < s.end for s in spans):
            spans.append(Span(kind, start, end))
    shown: list[tuple[str, set[str]]] = []
    opened: list[str] = []
    for closing, opening, char in re.findall(
        r"</(\w+)>|<(\w+)[^>]*>|(&\w+;|[^<&])", as_html(FormattedText(plain, tuple(spans)))
    ):
        if closing:
            assert opened.pop() == closing
        elif opening:
            opened.append(opening)
        else:
            shown.append((html.unescape(char), set(opened)))
    assert opened == []
    around = [{span.kind for span in spans if span.start <= place < span.end} for place in range(len(plain))]
    assert shown == list(zip(plain, around, strict=True))


@given(st.text(st.characters(codec=None), max_size=60))
def test_what_is_sanitized_goes_anywhere(text: str) -> None:
    """G-SPL-03"""
    clean = sanitize(text)
    assert clean.encode().decode() == clean
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", clean)
    assert sanitize(clean) == clean
    kept = re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "", text)
    assert re.sub(r"[\n\t\ufffd]|[^\u0000-\uffff]", "", clean) == re.sub(r"[\ufffd]|[^\u0000-\uffff]", "", kept)
