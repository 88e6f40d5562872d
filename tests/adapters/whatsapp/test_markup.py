"""Markdown as WhatsApp shows it: what people see is the text that was meant, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.errors import Rejected
from adapters.markdown import parse
from adapters.message import Address, Button, Part
from adapters.split import split
from adapters.text import FormattedText
from adapters.whatsapp import outbound
from adapters.whatsapp.markup import rendered
from tests.adapters.markdowns import markdowns
from tests.fakes.whatsapp_display import shown

CHAT = Address("whatsapp", "main", "1@lid", "direct")


@pytest.mark.parametrize(
    ("markdown", "written"),
    [
        ("**b** ~~s~~ `a**b` ***launch 🚀 now***", "*b* ~s~ `a**b` *_launch 🚀 now_*"),  # G-FMT-14
        ("## **Title** x", "*Title x*"),  # G-FMT-15
        ("https://e.test/a_b, https://e.test/c_d", "https://e.test/a_b, https://e.test/c_d"),  # G-FMT-01
        ("light.bedroom_lamp", "light.bedroom_lamp"),  # G-FMT-02
        ("test_1:beta done", "test_1:beta done"),
        ("**antique_identifier**", "*antique_identifier*"),  # G-FMT-03
        ("1. Foo:\n\n```\nBar\n```", "1. Foo:\n\n```\nBar\n```"),  # G-FMT-04
        ("> a\n> **b**", "> a\n> *b*"),  # G-FMT-06
        ("[w](https://en.wikipedia.org/wiki/Foo_(bar))", "w (https://en.wikipedia.org/wiki/Foo_(bar))"),
        ("<https://e.test>", "https://e.test"),
        ("un*frigging*believable", "unfriggingbelievable"),  # no mark counts inside of a word
        ("**a\nb**", "*a*\n*b*"),  # nor over two lines
        ("**a\\*b**", "a*b"),
        ("\\*not bold\\*", "*\u200bnot bold*"),
        ("**see https://e.test/x**", "see https://e.test/x"),  # the mark would be a part of the address
        ("[l](https://e.test/q)🎩**b**", "l (https://e.test/q)🎩b"),
        ("**see [l](https://e.test/q)**", "see l (https://e.test/q)"),
        ("**[l](https://e.test/q) and**", "*l (https://e.test/q) and*"),
        ("[**l**](https://e.test/q)", "*l* (https://e.test/q)"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("\\> no quote", "\u200b> no quote"),
        ("- one\n- two", "• one\n• two"),
        ("`` a`b ``", "```a`b```"),
        ("> a\n> > b", "> a\n> b"),
    ],
)
def test_a_row(markdown: str, written: str) -> None:
    assert rendered(parse(markdown)) == written


MARKDOWN = markdowns("@15550000002", "\\*", "\\_", "\\~", "**a *b* c**", "__dunder__", "**x [l](https://e.test/q)**")


def _read(text: FormattedText) -> str:
    """What a person is to read: the text, and each target that is not its words."""
    plain = text.plain
    for span in sorted(text.spans, key=lambda span: -span.end):
        if span.kind == "link" and text.plain[span.start : span.end] != span.value:
            plain = f"{plain[: span.end]} ({span.value}){plain[span.end :]}"
    return plain


@settings(max_examples=300, deadline=None)
@given(MARKDOWN)
def test_people_read_what_was_meant(markdown: str) -> None:
    """No sign is lost, and none of the program's own is seen."""
    text = parse(markdown)
    assert shown(rendered(text)).plain.split() == _read(text).split()


@settings(max_examples=200, deadline=None)
@given(MARKDOWN)
def test_nothing_is_marked_that_was_not_meant(markdown: str) -> None:
    text = parse(markdown)
    meant = {"heading": "bold", "bold": "bold", "italic": "italic", "strike": "strike"}
    for kind, inner in shown(rendered(text)).marked:
        if kind in meant.values():
            spans = [text.plain[span.start : span.end] for span in text.spans if meant.get(span.kind) == kind]
            assert any(inner.split(" (https")[0] in one for one in spans), (kind, inner)


@settings(max_examples=100, deadline=None)
@given(MARKDOWN.map(lambda text: text * 20), st.sampled_from([40, 200, 4000]))
def test_each_part_fits_and_is_not_blank(markdown: str, limit: int) -> None:
    """G-SPL-04, G-SPL-06."""
    for piece in split(parse(markdown), limit, outbound.measure):
        assert outbound.measure(piece) <= limit
        assert rendered(piece).strip()


def test_a_length_is_counted_as_phones_count_it() -> None:
    """G-SPL-01: a sign outside of the basic plane is two."""
    parts = split(FormattedText("🎩" * 2001), outbound.TEXT_LIMIT, outbound.measure)
    assert [len(part.plain) for part in parts] == [2000, 1]


def test_a_blank_message_is_refused() -> None:
    with pytest.raises(Rejected, match="blank"):
        outbound.text_of(Part(CHAT, FormattedText(" \n")))


def test_a_text_beyond_the_limit_is_refused() -> None:
    with pytest.raises(Rejected, match="4000"):
        outbound.text_of(Part(CHAT, FormattedText("x" * 4001)))


def test_links_that_burst_the_message_are_a_matter_of_formatting() -> None:
    """The hub then sends it once as plain text."""
    link = f"[x](https://e.test/{'y' * 2000}) "
    with pytest.raises(Rejected) as refused:
        outbound.text_of(Part(CHAT, parse(link * 40)))
    assert refused.value.formatting


def test_choices_stand_below_the_text() -> None:
    part = Part(CHAT, parse("**Really?**"), buttons=((Button("Yes", "/yes 1"), Button("No", "/no 1")),))
    assert outbound.text_of(part) == "*Really?*\n\n1. Yes\n2. No\n\nAnswer with a number."
