"""What was told already is not told a second time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.told import Told


def said(told: Told, sentences: Mapping[str, str | None]) -> tuple[str, ...]:
    """What is new of them, which is then shown."""
    news = told.news(sentences)
    told.keep(sentences)
    return news


def test_a_sentence_is_new_once_and_again_after_it_was_not_true(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    told = Told(file)
    assert said(told, {"model": "small", "zone": None}) == ("small",)
    assert said(told, {"model": "small", "zone": "wrong"}) == ("wrong",)
    assert said(Told(file), {"model": "small", "zone": "wrong"}) == (), "another process knows it"
    assert said(told, {"model": "large", "zone": "wrong"}) == ("large",)
    assert said(told, {"model": "large", "zone": None}) == ()
    assert said(told, {"zone": "wrong"}) == ("wrong",)
    assert said(told, {"model": "large"}) == (), "what is not spoken of stays as it was"


def test_what_nobody_was_shown_is_still_news(tmp_path: Path) -> None:
    told = Told(tmp_path / "told.json")
    for _ in range(2):
        assert told.news({"model": "small"}) == ("small",)
    assert not (tmp_path / "told.json").exists()


@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b"\xff", b"null"])
def test_a_damaged_file_costs_one_repetition(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "told.json"
    file.write_bytes(data)
    assert said(Told(file), {"model": "small"}) == ("small",)
    assert said(Told(file), {"model": "small"}) == ()


def test_where_nothing_can_be_written_it_is_said_again(tmp_path: Path) -> None:
    told = Told(tmp_path / "no folder" / "told.json")
    assert said(told, {"model": "small"}) == ("small",)
    assert said(told, {"model": "small"}) == ("small",)
