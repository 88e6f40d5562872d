"""Reasoning that a model writes into its answer never reaches the answer, however the stream was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.model import ReasoningDelta, TextDelta
from agents.thinking import ThinkFilter


def parted(*pieces: str) -> tuple[str, str]:
    """Text and reasoning of an answer that came in ``pieces``."""
    thinking = ThinkFilter()
    deltas = [delta for piece in pieces for delta in thinking.feed(piece)] + thinking.end()
    return (
        "".join(d.text for d in deltas if isinstance(d, TextDelta)),
        "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)),
    )


@pytest.mark.parametrize(
    ("answer", "text", "reasoning"),
    [
        ("<think>a</think>Hi", "Hi", "a"),
        ("<thinking/>Hi", "Hi", ""),
        ("<think>abc", "", "abc"),
        ("```html\n<think>a</think>\n```", "```html\n<think>a</think>\n```", ""),
        ("Use <think> for it.", "Use <think> for it.", ""),
        ("\n <think>a\nb</think>\n\nHi\n", "Hi\n", "a\nb"),
        ("<think>a</think>\n<think>b</think> Hi", "Hi", "ab"),
        ("<THINK>a</THINK>Hi", "Hi", "a"),
        ("<think>a < b </thin k></think>Hi", "Hi", "a < b </thin k>"),
        ("<think>a</think>", "", "a"),
        ("<think></think>Hi <think>b</think>", "Hi <think>b</think>", ""),
        ("<thought >a</thought>Hi", "Hi", "a"),
        ("<thistle>Hi", "<thistle>Hi", ""),
        ("<thi", "<thi", ""),
        ("  Hi", "  Hi", ""),
        ("<", "<", ""),
        ("", "", ""),
        ("<think>a</thi", "", "a</thi"),
    ],
)
def test_think_tags(answer: str, text: str, reasoning: str) -> None:
    """G-MOD-09: tags at the start are reasoning, unclosed ones to the end; a code block that shows them is text."""
    assert parted(answer) == (text, reasoning)
    assert parted(*answer) == (text, reasoning), "letter by letter"


def test_text_is_not_held_back_once_it_has_begun() -> None:
    thinking = ThinkFilter()
    assert thinking.feed("He") == [TextDelta("He")]
    assert thinking.feed(" <think>") == [TextDelta(" <think>")]


def test_reasoning_is_handed_on_while_the_block_is_open() -> None:
    thinking = ThinkFilter()
    assert thinking.feed("<think>a long") == [ReasoningDelta("a long")]
    assert thinking.feed(" thought</th") == [ReasoningDelta(" thought")]


@given(st.text("<>/think \nab`", max_size=60), st.data())
def test_any_cutting_gives_the_same_parts(answer: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(answer)), max_size=10)))
    pieces = [answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    assert parted(*pieces) == parted(answer)
