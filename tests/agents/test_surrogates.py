"""Surrogate code units never leave the model layer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.surrogates import SurrogateMender, mended


def test_a_pair_and_a_lone_half() -> None:
    """G-SPL-03: a pair that came as two code units is its character, a lone one U+FFFD."""
    assert mended("ok \ud83c\udfa9 end") == "ok \U0001f3a9 end"
    assert mended("ok \ud83c end") == "ok \ufffd end"
    assert mended("\udfa9") == "\ufffd"
    assert mended("Ærø 🐚") == "Ærø 🐚"


def test_a_pair_that_was_cut_in_two() -> None:
    """G-SPL-03: the halves in two deltas."""
    mender = SurrogateMender()
    assert mender.feed("hat \ud83c") == "hat "
    assert mender.feed("\udfa9!") == "\U0001f3a9!"
    assert mender.feed("\ud83c") == ""
    assert mender.end() == "\ufffd"
    assert mender.end() == ""


@given(st.lists(st.text(st.characters(), max_size=4)))
def test_pieces_are_mended_like_the_whole(pieces: list[str]) -> None:
    mender = SurrogateMender()
    text = "".join(mender.feed(piece) for piece in pieces) + mender.end()
    assert text == mended("".join(pieces))
    assert text.encode("utf-8").decode("utf-8") == text
