"""What was told already is not told a second time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.told import Told


def test_a_sentence_is_new_once_and_again_after_it_was_not_true(tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    told = Told(file)
    assert told.anew({"model": "small", "zone": None}) == ("small",)
    assert told.anew({"model": "small", "zone": "wrong"}) == ("wrong",)
    assert Told(file).anew({"model": "small", "zone": "wrong"}) == (), "another process knows it"
    assert told.anew({"model": "large", "zone": "wrong"}) == ("large",)
    assert told.anew({"model": "large", "zone": None}) == ()
    assert told.anew({"zone": "wrong"}) == ("wrong",)
    assert told.anew({"model": "large"}) == (), "what is not spoken of stays as it was"


@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b"\xff", b"null"])
def test_a_damaged_file_costs_one_repetition(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "told.json"
    file.write_bytes(data)
    assert Told(file).anew({"model": "small"}) == ("small",)
    assert Told(file).anew({"model": "small"}) == ()


def test_where_nothing_can_be_written_it_is_said_again(tmp_path: Path) -> None:
    told = Told(tmp_path / "no folder" / "told.json")
    assert told.anew({"model": "small"}) == ("small",)
    assert told.anew({"model": "small"}) == ("small",)
