"""What holds for any text: Slack takes it, people see all of it, and nobody is called by it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.markdown import parse
from adapters.slack.blocks import rendered
from adapters.slack.markdown import Names, from_mrkdwn, from_rich_text, without_me
from adapters.split import split
from adapters.text import utf16_length
from tests.fakes.slack_api.checks import check_content, controls, plain

_PIECES = st.sampled_from(
    [
        *(
            "**",
            "*",
            "_",
            "~~",
            "`",
            "```",
            "\n",
            "\n\n",
            "> ",
            "- ",
            "1. ",
            "# ",
            "[l](https://ex.test/a_b)",
            "|a|b|\n",
        ),
        *("<!channel>", "<@U1>", "<#C1>", "<https://ex.test|x>", "&amp;", "<", ">", "word ", "🎩", "é", " ", "\t"),
    ]
)
_MARKDOWN = st.lists(_PIECES, max_size=60).map("".join)
_KEYS = st.sampled_from(["type", "elements", "text", "style", "user_id", "url", "name"])
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=20,
)


def lines(text: str) -> list[str]:
    """Those that are not blank: between two blocks there is room already."""
    return [line for line in text.split("\n") if line.strip()]


@given(_MARKDOWN)
def test_whatever_is_written_is_taken_and_seen_and_calls_nobody(markdown: str) -> None:
    """G-FMT-05, G-FMT-12, G-SPL-08"""
    for part in split(parse(markdown), 60, lambda text: utf16_length(text.plain)):
        text, blocks = rendered(part)
        check_content(text, blocks)
        assert controls(text, blocks) == []
        assert lines(plain(text, blocks)) == lines(part.plain)


@given(st.text(max_size=200))
def test_any_mrkdwn_can_be_read(text: str) -> None:
    read = without_me(from_mrkdwn(text, Names("U1")))
    assert "\ue000" not in read


@given(st.lists(_ANY, max_size=3))
def test_any_rich_text_can_be_read(elements: list[object]) -> None:
    """Nothing that a workspace sends may hold up what comes behind it."""
    for kind in ("rich_text_section", "rich_text_list", "rich_text_quote", "rich_text_preformatted"):
        block = {"type": "rich_text", "elements": [{"type": kind, "elements": elements}]}
        assert isinstance(from_rich_text([block, {"type": "rich_text", "elements": elements}], Names("U1")), str)
