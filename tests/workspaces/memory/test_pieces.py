"""Our byte-pair encoding gives the numbers that the library gives, whose vocabulary it reads."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workspaces.memory.paraphrases import PAIRS
from workspaces.memory.pieces import Pieces
from workspaces.memory.static_embedder import TOKENIZER

tokenizers = pytest.importorskip("tokenizers")
SPEC = importlib.util.find_spec("wordllama")

FILE = Path(str(SPEC and SPEC.origin)).parent / TOKENIZER
PIECES = Pieces.read(FILE)
LIBRARY = tokenizers.Tokenizer.from_file(str(FILE))
LIBRARY.no_truncation()
LIBRARY.no_padding()

ODD = [
    "", " ", "  a   b ", "a▁b", "▁", "▁▁▁", "\t\n x", "a  \n  b", "😀  😀", "a\u3000b", "\0", "é" * 50, " " * 70,
    "x" * 5000, "漢字" * 2000, "l'été à l'île", "<0x41>", "don't—stop…", "ﷺ", "https://example.org/a_b?c=d&e=%20",
]  # fmt: skip


def library(text: str) -> list[int]:
    numbers: list[int] = LIBRARY.encode(text, add_special_tokens=False).ids
    return numbers


@pytest.mark.parametrize("text", [*ODD, *(text for pairs in PAIRS.values() for pair in pairs[:3] for text in pair)])
def test_as_the_library(text: str) -> None:
    assert PIECES.of(text) == library(text)
    assert PIECES.of(text) == library(text), "and again, when its words are known"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text("▁ abtheins'\n\t.é日😀", max_size=60))
def test_as_the_library_for_any_text(text: str) -> None:
    if not any(mark in text for mark in ("<s>", "</s>", "<unk>")):  # marks to the library, text to us
        assert PIECES.of(text) == library(text)


def test_half_a_character_is_a_question_mark() -> None:
    assert PIECES.of("a \ud800") == [*library("a "), 3 + ord("?")]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workspaces.memory.pieces._KEPT", 10)
    pieces = Pieces.read(FILE)
    for number in range(100):
        text = f"word{number} and {'long' * 20}{number}"
        assert pieces.of(text) == library(text)
    assert len(pieces._known) <= 10


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match="substring not found"):
        Pieces.read(tmp_path / "tokenizer.json")
