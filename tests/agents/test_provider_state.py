"""Signed and sealed thinking, put together from pieces of any size and kept as it was."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.provider_state import StateAssembler, field_of

THOUGHT = {"type": "thinking", "thinking": "They greet.", "signature": "c2ln"}
SEALED = {"type": "redacted_thinking", "data": "c2VhbGVk"}
DETAIL = {
    "type": "reasoning.text",
    "text": "They greet.",
    "signature": "c2ln",
    "format": "anthropic-claude-v1",
    "index": 0,
}
ENCRYPTED = {
    "type": "reasoning.encrypted",
    "data": "c2VhbGVk",
    "id": "rs_1",
    "format": "openai-responses-v1",
    "index": 1,
}


def assembled(*pieces: dict[str, Any]) -> list[dict[str, Any]]:
    state = StateAssembler()
    for piece in pieces:
        state.add([piece])
    return [dict(block) for block in state.blocks()]


@pytest.mark.parametrize("block", [THOUGHT, SEALED, DETAIL, ENCRYPTED])
def test_a_whole_block_is_kept_as_it_is(block: dict[str, Any]) -> None:
    """G-MOD-10."""
    assert assembled(block) == [block]


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_pieces_become_the_block_again(index: dict[str, int]) -> None:
    pieces = [{"type": "thinking", "thinking": t, **index} for t in ("They ", "greet.")]
    assert assembled(*pieces, {"type": "thinking", "thinking": "", "signature": "c2ln", **index}) == [THOUGHT]


@pytest.mark.parametrize("numbered", [True, False])
def test_two_blocks_stay_two(numbered: bool) -> None:
    blocks = [THOUGHT, {"type": "thinking", "thinking": "More.", "signature": "c2ln2"}, SEALED, SEALED]
    pieces = []
    for index, block in enumerate(blocks):
        place = {"index": index} if numbered else {}
        if block is SEALED:
            pieces.append({**block, **place})
            continue
        pieces.append({"type": "thinking", "thinking": block["thinking"], **place})
        pieces.append({"type": "thinking", "thinking": "", "signature": block["signature"], **place})
    assert assembled(*pieces) == blocks


def test_a_block_that_was_cut_before_its_signature_is_not_taken_back() -> None:
    assert assembled(THOUGHT, {"type": "thinking", "thinking": "half a"}) == [THOUGHT]
    assert assembled({"type": "reasoning.text", "text": "unsigned", "index": 0}) != [], "of an open model"


def test_what_has_no_type_is_passed_over() -> None:
    assert assembled({"thinking": "x"}, {"type": None}) == []


def test_where_it_goes_back() -> None:
    assert [field_of(b) for b in (THOUGHT, SEALED, DETAIL)] == ["thinking_blocks"] * 2 + ["reasoning_details"]


@given(st.text(min_size=1), st.lists(st.integers(0, 40), max_size=6))
def test_however_it_is_cut(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [{**DETAIL, "text": text[a:b], "signature": None} for a, b in itertools.pairwise(places)]
    assert assembled(*pieces, {**DETAIL, "text": "", "signature": "c2ln"}) == [{**DETAIL, "text": text}]
