"""Markdown as Discord shows it: what people see is the text that was meant, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.discord.markup import rendered
from adapters.markdown import parse
from adapters.split import split
from adapters.text import FormattedText
from tests.adapters.markdowns import markdowns
from tests.fakes.discord_api import shown


@pytest.mark.parametrize(
    ("markdown", "written"),
    [
        ("https://e.test/a_b, https://e.test/c_d", "https://e.test/a_b, https://e.test/c_d"),  # G-FMT-01
        ("light.bedroom_lamp", "light.bedroom\\_lamp"),  # G-FMT-02
        ("**antique_identifier**", "**antique\\_identifier**"),  # G-FMT-03
        ("***x***", "_**x**_"),  # G-FMT-05
        ("**a***b*", "**a**_b_"),
        ("un*frigging*believable", "un*frigging*believable"),
        ("> a\n> **b**", "> a\n> **b**"),  # G-FMT-06
        ("## **Title** x", "## **Title** x"),  # G-FMT-15
        ("#### small", "**small**"),
        ("[w](https://en.wikipedia.org/wiki/Foo_(bar))", "[w](<https://en.wikipedia.org/wiki/Foo_(bar)>)"),  # G-FMT-10
        ("[https://a.test](https://b.test)", "https://a.test (<https://b.test>)"),
        ("<@1> <@&2> <#3> <:a:4> <t:5:R> </b:6>", "\\<@1> \\<@&2> \\<#3> \\<:a:4> \\<t:5:R> \\</b:6>"),  # G-FMT-13
        ("`a*b`", "`a*b`"),
        ("**`x`**", "**`x`**"),
        ("a < b, c | d, e ~ f", "a < b, c | d, e ~ f"),
        ("C:\\dir", "C:\\dir"),
    ],
)
def test_a_row(markdown: str, written: str) -> None:
    assert rendered(parse(markdown)) == written


MARKDOWN = markdowns("||", "`", "<@1>", "@everyone", "&amp;", "[a_b](https://e.test/x)")


def bare(text: str) -> str:
    """Without what the app adds or leaves out: a quote in a quote keeps its sign, and brackets around an address go."""
    return "".join(text.replace("\u200b", "").replace("<", "").replace(">", "").split())


@settings(max_examples=400, deadline=None, derandomize=True)
@given(MARKDOWN)
def test_what_people_see_is_what_was_meant(markdown: str) -> None:
    text = parse(markdown)
    assert bare(shown(rendered(text))) == bare(text.plain)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=60))
def test_plain_text_is_seen_as_it_is(plain: str) -> None:
    assert bare(shown(rendered(FormattedText(plain)))) == bare(plain)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(MARKDOWN.map(lambda markdown: markdown * 12), st.integers(60, 400))
def test_no_part_is_longer_than_the_limit(markdown: str, limit: int) -> None:
    """G-SPL-04, G-SPL-05: fences that are opened and closed again count too."""

    def measure(text: FormattedText) -> int:
        return len(rendered(text))

    for piece in split(parse(markdown), limit, measure):
        assert measure(piece) <= limit
        assert rendered(piece).count("```") % 2 == 0


def test_a_long_info_string_is_not_repeated() -> None:
    """G-SPL-04"""
    source = f"```{'x' * 3000}\n" + "line\n" * 300 + "```"
    pieces = split(parse(source), 2000, lambda text: len(rendered(text)))
    assert len(pieces) <= 1.2 * len(source) / 2000 + 2
    assert all(len(rendered(piece)) <= 2000 for piece in pieces)
