"""Cutting a formatted text to a limit."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import wcwidth
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adapters.markdown import parse
from adapters.split import split
from adapters.text import FormattedText, Span, marked, sanitize, utf16_length
from tests.adapters.test_markdown import assert_nested


def units(text: FormattedText) -> int:
    """The measure of Telegram."""
    return utf16_length(text.plain)


def as_html(text: FormattedText) -> str:
    """The worst a platform does to a text: tags, targets and escapes all count."""
    return marked(
        text, lambda span: (f"<{span.kind} {span.value}>", f"</{span.kind}>"), lambda run, _: html.escape(run)
    )


def as_fences(text: FormattedText) -> str:
    """As a platform without entities writes code blocks."""
    plain = text.plain
    for span in reversed([span for span in text.spans if span.kind == "pre"]):
        plain = f"{plain[: span.start]}```{span.value}\n{plain[span.start : span.end]}\n```{plain[span.end :]}"
    return plain


def length_of(write: Callable[[FormattedText], str]) -> Callable[[FormattedText], int]:
    return lambda text: len(write(text))


def plain(text: str, limit: int) -> list[str]:
    return [part.plain for part in split(FormattedText(text), limit, units)]


def visible(text: str) -> str:
    return re.sub(r"\s", "", text)


def test_counts_utf16_units() -> None:
    """G-SPL-01"""
    assert plain("🎩" * 2048, 4096) == ["🎩" * 2048]
    assert plain("🎩" * 2049, 4096) == ["🎩" * 2048, "🎩"]


@pytest.mark.timeout(2)
def test_never_cuts_a_surrogate_pair() -> None:
    """G-SPL-02"""
    text = "a" + "🙂" * 4096
    parts = plain(text, 4096)
    assert [utf16_length(part) for part in parts] == [4095, 4096, 2]
    assert "".join(parts) == text


@pytest.mark.timeout(2)
@pytest.mark.parametrize("limit", [1, 0, -4096])
def test_an_impossible_limit_is_refused_at_once(limit: int) -> None:
    """G-SPL-02"""
    with pytest.raises(ValueError, match="at least 2"):
        split(FormattedText("hello"), limit, units)


def test_surrogates_from_the_model_reach_no_part() -> None:
    """G-SPL-03"""
    parts = split(parse("ok \ud83c\udfa9 end, lone \ud83c"), 10, units)
    shown = "".join(part.plain for part in parts)
    assert "\U0001f3a9" in shown
    assert shown.endswith("\ufffd")
    assert shown.encode()


def test_a_long_info_string_is_not_repeated() -> None:
    """G-SPL-04"""
    code = "\n".join(f"line_{i} = {i}" for i in range(300))
    for info in ("z" * 3000, "python " + "z" * 3000):
        text = parse(f"```{info}\n{code}\n```")
        parts = split(text, 2000, length_of(as_fences))
        assert all(len(as_fences(part)) <= 2000 for part in parts)
        assert len(parts) <= 1.2 * len(code) / 2000 + 2
        assert "\n".join(part.plain for part in parts) == code
        assert all([span.kind for span in part.spans] == ["pre"] for part in parts)


def test_a_long_language_that_came_another_way_is_dropped() -> None:
    """G-SPL-04"""
    text = FormattedText("x = 1\n" * 400, (Span("pre", 0, 2400, "z" * 3000),))
    parts = split(text, 2000, length_of(as_fences))
    assert [[span.value for span in part.spans] for part in parts] == [[""], [""]]


def test_a_cut_code_block_goes_on_as_code() -> None:
    text = parse("Look:\n\n```python\n" + "value = 1\n" * 50 + "```\n\nThat was it.")
    parts = split(text, 200, units)
    assert len(parts) >= 3
    assert all(part.spans[0].value == "python" for part in parts[:-1])
    assert all(line in ("Look:", "", "value = 1", "That was it.") for part in parts for line in part.plain.split("\n"))


@pytest.mark.parametrize("length", range(90, 111))
def test_no_part_is_an_empty_code_block(length: int) -> None:
    """G-SPL-05"""
    parts = split(parse(f"```\n{'x' * length}\n```\nend"), 100, length_of(as_fences))
    for part in parts:
        written = as_fences(part)
        assert len(written) <= 100
        assert written.count("```") % 2 == 0
        assert not re.search(r"```\n\s*```", written)
    assert visible("".join(part.plain for part in parts)) == "x" * length + "end"


@pytest.mark.parametrize("blank", ["\n" * 5000, "\n\n", "", " \t\n", "\u00a0"])
def test_a_blank_text_has_no_parts(blank: str) -> None:
    """G-SPL-06"""
    assert plain(blank, 100) == []


def test_cuts_between_words() -> None:
    """G-SPL-07"""
    parts = plain("Regulatory overhang lifts beta for UK banks", 28)
    assert parts == ["Regulatory overhang lifts", "beta for UK banks"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aaaa bbbb. cccc\n\ndddd eeee", ["aaaa bbbb. cccc", "dddd eeee"]),
        ("aaaa bbbb. cccc\ndddd eeee", ["aaaa bbbb. cccc", "dddd eeee"]),
        ("aaaa bbbb cc. dddd eeee ff", ["aaaa bbbb cc.", "dddd eeee ff"]),
        ("aaaa bbbb\n\nccc\ndddd eeee", ["aaaa bbbb", "ccc\ndddd eeee"]),
        ("aaaa bbbb\nccc. dddd eeee", ["aaaa bbbb", "ccc. dddd eeee"]),
        ("aaaa bbbb. cc dddd eeee", ["aaaa bbbb.", "cc dddd eeee"]),
        ("一二三四五六七八九十。甲乙丙丁戊己庚辛壬", ["一二三四五六七八九十。", "甲乙丙丁戊己庚辛壬"]),
        ("a\n\n" + "b" * 30, ["a", "b" * 17, "b" * 13]),
    ],
)
def test_prefers_the_larger_break(text: str, parts: list[str]) -> None:
    assert plain(text, 17) == parts


def test_white_space_at_the_end_is_no_reason_to_cut() -> None:
    assert plain("aaaaa. b \n", 8) == ["aaaaa. b"]


def test_escapes_are_counted_and_never_cut() -> None:
    """G-SPL-08"""
    for text in ("&" * 4000, "a<b" * 1500):
        parts = split(FormattedText(text), 1000, length_of(as_html))
        assert all(len(as_html(part)) <= 1000 for part in parts)
        assert "".join(html.unescape(as_html(part)) for part in parts) == text
        assert len(parts) <= 1.2 * len(html.escape(text)) / 1000 + 2


def test_a_grapheme_stays_whole() -> None:
    """G-SPL-12"""
    assert [utf16_length(part) for part in plain("x" * 4090 + "👨‍👩‍👧‍👦", 4096)] == [4090, 11]
    assert plain("🇩🇪" * 3, 6) == ["🇩🇪", "🇩🇪", "🇩🇪"]


def test_an_accent_on_a_space_is_no_place_to_cut() -> None:
    """G-SPL-12"""
    assert plain("xxxxx \u0301yyyyy", 8) == ["xxxxx \u0301y", "yyyy"]


def test_one_grapheme_longer_than_the_limit_is_cut_all_the_same() -> None:
    parts = plain("e" + "\u0301" * 50, 10)
    assert "".join(parts) == "e" + "\u0301" * 50
    assert max(map(len, parts)) <= 10


@pytest.mark.parametrize(
    "markdown", ["words here [a link of words](https://ex.test/x) end", "words here `code of words x` end"]
)
def test_links_and_inline_code_stay_whole_where_they_can(markdown: str) -> None:  # fmt: skip
    text = parse(markdown)
    parts = split(text, 20, units)
    assert parts[0].plain == "words here"
    assert text.plain[text.spans[0].start : text.spans[0].end] in parts[1].plain


def test_a_link_longer_than_a_message_is_cut_between_words() -> None:
    parts = split(FormattedText("word " * 20, (Span("link", 0, 99, "https://ex.test"),)), 24, units)
    assert {part.plain for part in parts} == {"word word word word word"}
    assert all(part.spans[0].kind == "link" for part in parts)


def test_a_target_longer_than_a_message_is_not_repeated_for_every_word() -> None:
    text = FormattedText("word " * 200, (Span("link", 0, 999, "https://ex.test/" + "z" * 990),))
    parts = split(text, 1000, length_of(as_html))
    assert len(parts) <= 3
    assert all(len(as_html(part)) <= 1000 for part in parts)


@pytest.mark.parametrize("limit", [80, 100, 250, 1000])
def test_a_row_of_a_table_stays_whole(limit: int) -> None:
    rows = "".join(f"|row {number}|{'x' * (number % 40)}|**{number}** & more|\n" for number in range(60))
    text = parse(f"Look:\n\n|a|b|c|\n|-|-|-|\n{rows}\nThat was it.")
    parts = split(text, limit, units)
    assert [line for part in parts for line in part.plain.split("\n") if line] == text.plain.replace(
        "\n\n", "\n"
    ).split("\n")
    assert all([span.kind for span in part.spans] == ["pre"] for part in parts[1:-1]), "and every part of it is a table"


def test_a_quote_that_is_cut_goes_on_as_a_quote() -> None:
    text = parse("> " + "Some words. " * 40 + "\n>\n> > deeper " + "and deeper " * 40)
    parts = split(text, 200, units)
    assert len(parts) > 4
    for part in parts:
        assert (part.spans[0].kind, part.spans[0].start, part.spans[0].end) == ("quote", 0, len(part.plain))


def test_a_code_line_keeps_its_indentation() -> None:
    text = parse("```\nif x:\n    one()\n    two()\n```")
    assert [part.plain for part in split(text, 18, units)] == ["if x:\n    one()", "    two()"]


def test_a_megabyte_takes_about_a_second() -> None:
    piece = parse("Some *prose* with `code`, 🎩 and a [link](https://ex.test).\n\n- an item\n- another")
    width = len(piece.plain) + 1
    count = 1_000_000 // width
    spans = [replace(s, start=s.start + i * width, end=s.end + i * width) for i in range(count) for s in piece.spans]
    text = FormattedText(f"{piece.plain}\n" * count, tuple(spans))
    asked = 0

    def measure(part: FormattedText) -> int:
        nonlocal asked
        asked += 1
        return units(part)

    began = time.process_time()
    parts = split(text, 4096, measure)
    assert time.process_time() - began < 3
    assert asked <= 6 * len(parts)


_TEXT = st.text(
    st.one_of(st.sampled_from("ab \n\n.&<🎩日\u0301\x00\x1b\ud83c\r"), st.characters(codec=None)), max_size=200
)
_MARKDOWN = st.lists(
    st.one_of(
        st.sampled_from(["**bold text** ", "`code a b` ", "[label x](https://ex.test/y) ", "> quoted\n\n", "# Head\n"]),
        st.sampled_from(["```py\nx = 1\n\n    y = 2\n```\n", "- item\n  - deep\n", "🎩🎩 ", "a&b<c ", "word. "]),
        st.sampled_from(["\n|a|b|\n|-|-|\n|1|`x`|\n\n", "> > deep **and\n> bold**\n\n", "- > in an item\n", "\n---\n"]),
        _TEXT,
    ),
    max_size=12,
).map("".join)


@given(_MARKDOWN, st.integers(60, 300))
@settings(max_examples=300, deadline=None)
def test_each_part_fits_and_nothing_visible_is_lost(markdown: str, limit: int) -> None:
    text = parse(markdown)
    for measure in (units, length_of(as_html)):
        parts = split(text, limit, measure)
        assert all(0 < measure(part) <= limit for part in parts)
        assert all(part for part in parts)
        assert visible("".join(part.plain for part in parts)) == visible(text.plain)
        for part in parts:
            assert_nested(part)
            assert part.plain == sanitize(part.plain)


@given(_MARKDOWN, st.integers(60, 300))
@settings(max_examples=300, deadline=None)
def test_links_inline_code_and_lines_of_code_stay_whole(markdown: str, limit: int) -> None:
    text = parse(markdown)
    parts = split(text, limit, units)
    shown = [
        part.plain[span.start : span.end] for part in parts for span in part.spans if span.kind in ("link", "code")
    ]
    asked = [text.plain[span.start : span.end] for span in text.spans if span.kind in ("link", "code")]
    assert [words.split() for words in shown if words.split()] == [words.split() for words in asked if words.split()]
    lines = {line.strip() for part in parts for line in part.plain.split("\n")}
    for span in text.spans:
        if span.kind == "pre":
            code = text.plain[span.start : span.end].split("\n")
            assert {line.strip() for line in code if utf16_length(line) <= limit} <= {*lines, ""}


@given(_TEXT.map(sanitize), st.integers(2, 30))
@settings(max_examples=300, deadline=None)
def test_plain_text_at_any_limit(text: str, limit: int) -> None:
    parts = plain(text, limit)
    assert all(utf16_length(part) <= limit for part in parts)
    assert visible("".join(parts)) == visible(text)
    if not re.search(r"\s", text):
        assert "".join(parts) == text


_CLUSTERS = ["👨‍👩‍👧‍👦", "🇩🇪", "e\u0301", "x", "👍🏽", " ", "한", "\u0301", "."]


@given(st.lists(st.sampled_from(_CLUSTERS), max_size=60), st.integers(11, 40))
@settings(max_examples=300, deadline=None)
def test_no_grapheme_is_cut(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)
    whole = {cluster.strip() for cluster in wcwidth.iter_graphemes(text)}
    assume(max(map(utf16_length, whole), default=0) <= limit)
    for part in plain(text, limit):
        assert {cluster.strip() for cluster in wcwidth.iter_graphemes(part)} <= whole
