"""Random Markdown on its way to Telegram: what is written arrives, within the limits, and is taken by the server."""

from __future__ import annotations

from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.markdown import parse
from adapters.split import split
from adapters.telegram import TelegramAdapter
from adapters.telegram.entities import as_markdown, rendered
from adapters.text import FormattedText, utf16_length
from tests.fakes.telegram_api.checks import check_entities, units

MARKUP = st.sampled_from(
    [
        *("*", "**", "_", "~~", "`", "```", "```py\n", "\n```\n", "> ", "# ", "- ", "1. ", "\n", "\n\n", "\\", "||"),
        *(
            "| a | b |\n|---|---|\n",
            "[",
            "![",
            "](https://ex.test/a_b)",
            "](x)",
            "https://ex.test/c_d ",
            "<b>",
            "&amp;",
        ),
        "<https://ex.test> ",
    ]
)
WORDS = st.text(st.sampled_from("ab .,:!()👋🎩é日\u0301👨\u200d👩שx12\t"), min_size=1, max_size=12)
MARKDOWN = st.lists(MARKUP | WORDS, max_size=60).map("".join)


def pieces(text: FormattedText, limit: int) -> list[FormattedText]:
    return split(text, limit, lambda piece: utf16_length(piece.plain))


@given(MARKDOWN, st.integers(20, 200))
@settings(max_examples=400, deadline=None)
@example("**bold *both** italic*", 20)
@example("```py\n" + "x = 1\n" * 40 + "```", 40)
@example("[" + "word " * 30 + "](https://ex.test/a_b)", 30)
def test_what_the_real_server_refuses_is_never_made(markdown: str, limit: int) -> None:
    """G-SPL-01, G-SPL-02, G-SPL-06, G-SPL-08, G-FMT-05: by the checks of the server of the other tests."""
    for piece in pieces(parse(markdown), limit):
        text, entities = rendered(piece)
        assert text.strip()
        assert 0 < units(text) <= limit
        text.encode()
        check_entities(text, [entity.to_dict() for entity in entities])
        assert len(entities) <= 100


@given(MARKDOWN, st.integers(20, 200))
@settings(max_examples=400, deadline=None)
def test_no_character_that_can_be_seen_is_lost_or_added(markdown: str, limit: int) -> None:
    """G-SPL-02, G-SPL-12"""
    text = parse(markdown)
    shown = "".join(piece.plain for piece in pieces(text, limit))
    assert "".join(shown.split()) == "".join(text.plain.split())


@given(MARKDOWN)
@settings(max_examples=400, deadline=None)
def test_what_we_sent_is_read_back_with_the_same_words(markdown: str) -> None:
    """A reply to a message of somebody who uses a bot like us: its words come back, with marks around them."""
    text, entities = rendered(parse(markdown))
    read = as_markdown(text, entities)
    assert not Counter("".join(text.split())) - Counter("".join(read.split()))


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_string_at_all_is_sent_as_something_telegram_takes(anything: str) -> None:
    """G-SPL-03: lone surrogates and control characters included."""
    measure = TelegramAdapter.measure
    for piece in split(parse(anything), 40, lambda text: measure(None, text)):  # type: ignore[arg-type]  # needs no self
        text, entities = rendered(piece)
        text.encode()
        check_entities(text, [entity.to_dict() for entity in entities])
