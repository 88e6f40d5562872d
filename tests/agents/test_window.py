"""The shares of a window: formulas of its size alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.window import LEAST, Window

SIZES = [8_000, 8_192, 32_000, 128_000, 200_000, 1_000_000]


@pytest.mark.parametrize(
    ("context", "reserve", "soft", "tail", "flush_at", "compact_at"),
    [
        (8_000, 2_000, 1_333, 1_333, 4_667, 6_000),
        (32_000, 8_000, 4_000, 5_333, 20_000, 24_000),
        (128_000, 20_000, 4_000, 20_000, 104_000, 108_000),
        (200_000, 20_000, 4_000, 20_000, 176_000, 180_000),
        (1_000_000, 20_000, 4_000, 20_000, 976_000, 980_000),
    ],
)
def test_the_shares_of_usual_windows(
    context: int, reserve: int, soft: int, tail: int, flush_at: int, compact_at: int
) -> None:
    """G-CMP-02: with 200,000 the flush was above a compaction at 75 %, and never ran."""
    window = Window(context)
    assert (window.reserve, window.soft, window.tail) == (reserve, soft, tail)
    assert (window.flush_at, window.compact_at) == (flush_at, compact_at)


@settings(deadline=None)
@given(st.integers(LEAST, 10_000_000))
def test_no_size_puts_one_threshold_above_another(context: int) -> None:
    """G-CMP-02, G-CMP-12, G-CMP-14: whatever the size, in this order, and what was compacted is far from both."""
    window = Window(context)
    compacted = window.prefix + window.summary + window.recall + window.tail
    assert 0 < compacted < window.flush_at < window.compact_at < context
    assert window.compact_at + window.reserve == context, "an answer of the reserve still fits"
    assert compacted <= context * 0.55
    assert window.soft <= window.tail
    assert compacted - window.tail + window.message <= context * 0.55, "the newest message is always kept whole"
    assert window.prefix_characters <= 60_000


@pytest.mark.parametrize("context", [-1, 0, 512, LEAST - 1])
def test_a_window_that_holds_no_sentence_is_refused(context: int) -> None:
    with pytest.raises(ValueError, match="at least 1,024 tokens"):
        Window(context)
