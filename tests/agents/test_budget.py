"""Tokens, estimated and corrected."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.budget import IMAGE, Meter, estimate, request_estimate, tokens, tools_estimate
from agents.model import AssistantMessage, Image, Request, ToolCall, ToolResult, ToolSpec, Usage, UserMessage


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("今" * 160, 80, 200),
        ("한" * 160, 80, 200),
        ("ก" * 160, 60, 200),
        ("a" * 160, 35, 55),
        ("ж" * 160, 40, 100),
        ("🎩" * 160, 160, 480),
        ("", 0, 0),
        ("\ud83c", 1, 1),
    ],
)
def test_each_script_has_its_cost(text: str, least: int, most: int) -> None:
    """G-CMP-24: 160 Chinese characters are not 40 tokens."""
    assert least <= tokens(text) <= most


@pytest.mark.parametrize("size", [0, 100, 5_000_000])
def test_a_picture_costs_the_same_however_large_it_is(size: int) -> None:
    """G-CMP-25: neither nothing nor 1.3 million for 5 MB."""
    picture = Image("media/a.png", "image/png", b"x" * size)
    cost = estimate(UserMessage("look", (picture,))) - estimate(UserMessage("look"))
    assert cost == IMAGE
    assert 1_000 <= cost <= 3_000


def test_everything_that_is_sent_is_counted() -> None:
    spec = ToolSpec("read", "Read a file. " * 10, {"type": "object", "properties": {"path": {"type": "string"}}})
    call = ToolCall("c", "write", '{"text": "' + "x" * 4_000 + '"}')
    bare = Request("", (UserMessage("hi"),))
    assert tools_estimate([spec]) > 40
    assert request_estimate(Request("s" * 400, bare.messages, (spec,))) == (
        request_estimate(bare) + tools_estimate([spec]) + 100
    )
    assert estimate(AssistantMessage("", (call,))) > 1_000
    assert estimate(ToolResult("c", "write", "y" * 400)) > 100
    thinking = AssistantMessage("", (call,), reasoning="z" * 4_000)
    signed = AssistantMessage("", (call,), state=({"type": "thinking", "thinking": "z" * 8_000},))
    assert estimate(thinking) - estimate(AssistantMessage("", (call,))) == 1_000
    assert estimate(signed) > estimate(thinking), "what the provider wants back is sent too"
    assert estimate(AssistantMessage("hi", reasoning="z" * 4_000)) < 10, "the thought behind an answer is not"


def test_the_last_count_corrects_the_next_estimate() -> None:
    meter = Meter().learned(1_000, Usage(input=1_500))
    assert meter.counted(1_000) == 1_500
    assert meter.counted(1_100) == 1_650, "what came since is corrected as what was before"
    assert meter.estimated(1_500) == 1_000


@pytest.mark.parametrize("counted", [0, -1, 10, 100_000])
def test_a_count_that_can_not_be_of_the_request_says_nothing(counted: int) -> None:
    """Some servers count only what was not cached, or nothing at all."""
    assert Meter(1.5).learned(1_000, Usage(input=counted)) == Meter(1.5)


@settings(deadline=None)
@given(st.integers(0, 2_000_000), st.integers(1, 2_000_000))
def test_a_meter_never_gives_nonsense(counted: int, estimated: int) -> None:
    meter = Meter().learned(estimated, Usage(input=counted))
    assert 0.25 <= meter.ratio <= 4
    assert meter.counted(meter.estimated(10_000)) <= 10_004
