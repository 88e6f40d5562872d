"""What of an answer is said."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.silence import SpokenStream, is_silent, may_be_silent, spoken


@pytest.mark.parametrize(
    "text",
    [
        "NO_REPLY", "no_reply", "No_Reply", " \nNO_REPLY\n ", "NO_REPLY.", "NO_REPLY!", '"NO_REPLY"', "“NO_REPLY”",
        "**NO_REPLY**", "*NO_REPLY*", "`NO_REPLY`", "```\nNO_REPLY\n```", "> NO_REPLY", "- NO_REPLY", "(NO_REPLY)",
        "NO\\_REPLY", "NO_REPLY\n\nNO_REPLY", "[[reply_to_current]] NO_REPLY", "NO_REPLY [[silent]]", "<NO_REPLY>",
    ],
)  # fmt: skip
def test_silence_in_any_dress(text: str) -> None:
    """G-CMP-10: with punctuation, in quotes, in any case."""
    assert is_silent(text)
    assert spoken(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "NO, I disagree", "No reply.", "NO_REPLY is what I answer to that.", "I answer NO_REPLY", "say `NO_REPLY` then",
        "PIANO_REPLY", "NO_REPLYS", "A\nNO_REPLY\nB", "The token:\n```\nNO_REPLY\n```", "n", "---", "[[Ada]] called",
    ],
)  # fmt: skip
def test_inside_a_sentence_it_is_text(text: str) -> None:
    assert not is_silent(text)
    assert spoken(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("File is there.\n\nNO_REPLY", "File is there."),
        ("File is there.\nno_reply.", "File is there."),
        ("File is there. NO_REPLY", "File is there."),
        ("**Done.** NO_REPLY", "**Done.**"),
        ("- one\n- two\n\n**NO_REPLY**\n", "- one\n- two"),
        ("好的。 NO_REPLY", "好的。"),
        ("NO_REPLY\n\nFile is there.", "File is there."),
        ("NO_REPLY\n**Bold** words", "**Bold** words"),
        ("  Hello  ", "Hello"),
        ("[[reply_to_current]]Hello", "Hello"),
        ("[[ reply_to: 123 ]] Hello [[Ada]] [[audio_as_voice]]", "Hello [[Ada]]"),
        ("Hello [[reply_to_curr", "Hello [[reply_to_curr"),
    ],
)
def test_the_token_and_directives_are_taken_out(text: str, said: str) -> None:
    """G-CMP-09: the token at the end of real text is not shown; nor are orders to the program."""
    assert spoken(text) == said


def test_nothing_is_no_silence() -> None:
    """An empty answer is asked for again; silence is not."""
    assert not is_silent("")
    assert not is_silent("  \n")


def streamed(pieces: list[str]) -> list[str]:
    stream = SpokenStream()
    return [*(stream.feed(piece) for piece in pieces), stream.end()]


def test_a_stream_shows_nothing_of_a_silence() -> None:
    """G-CMP-11: no flash of "NO"; and what only begins like it is said in full."""
    assert streamed(["NO", "_RE", "PLY"]) == ["", "", "", ""]
    assert "".join(streamed(["NO", ", I disagree"])) == "NO, I disagree"
    assert streamed(["Hello ", "there", "!"])[0] == "Hello", "words are not held back"
    assert "".join(streamed(["Done.\n", "\nNO_", "REPLY"])) == "Done."
    assert "".join(streamed(["Done [", "[reply_to", "_current]", "]."])) == "Done ."


PARTS = st.sampled_from(
    ["NO", "_RE", "PLY", "NO_REPLY", "no_reply", "N", "O", "\\", "_", " ", "\n", "\n\n", ".", "*", "**", "`", "```",
     '"',
     "Hello", "done", "。", "[[", "]]", "[", "]", "reply_to_current", ": 1", "[[reply_to_current]]", "🎩", "(",
     "\u00a0"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(PARTS, max_size=14), st.lists(st.integers(0, 60), max_size=12))
def test_however_it_is_cut_the_same_is_said(parts: list[str], cuts: list[int]) -> None:
    """Any answer in any pieces: joined it is what the whole says, and nothing is given out that would be taken back."""
    text = "".join(parts)
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    whole = spoken(text)
    assert "".join(streamed(pieces)) == whole
    assert "".join(streamed(list(text))) == whole
    assert whole == whole.strip(" \t\r\n")
    if text.count("[[") == text.count("[[reply_to_current]]"):
        assert "reply_to_current]]" not in whole or "reply_to_current]]" in text.replace("[[reply_to_current]]", "")


@pytest.mark.parametrize(
    "text", ["*" * 50_000 + "a", "NO_REPLY" * 5_000, "[[" * 20_000, " \n" * 30_000 + "x", "-" * 9_999]
)
def test_a_long_run_takes_no_time(text: str) -> None:
    assert spoken(text) == text.strip()


@pytest.mark.parametrize(
    ("asked", "is_direct", "allowed"),
    [
        ("What is my dog called?", True, False),
        ("who plays the cello", True, False),
        ("and then？", True, False),
        ("remember that I like tea", True, False),
        ("thanks!", True, True),
        ("What is my dog called?", False, True),
    ],
)
def test_a_direct_question_is_never_met_with_silence(asked: str, is_direct: bool, allowed: bool) -> None:
    assert may_be_silent(asked, is_direct=is_direct) is allowed
