"""The transcript: append-only, durable, and whole after a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.transcript import Transcript


def write(path: Path, *texts: str) -> Transcript:
    transcript = Transcript(path, "main/telegram")
    for text in texts:
        transcript.append(turn="t1", kind="user", at="2026-11-30T12:00:00+00:00", body={"text": text})
    return transcript


def texts(path: Path) -> list[str]:
    return [entry.body["text"] for entry in Transcript(path, "main/telegram").entries()]


def test_entries_are_read_back_in_order_and_linked(tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "s.jsonl"
    write(path, "one", "two\nlines \u2028 and 🎩")
    entries = Transcript(path, "main/telegram").entries()
    assert [e.body["text"] for e in entries] == ["one", "two\nlines \u2028 and 🎩"]
    assert entries[1].parent == entries[0].id
    assert json.loads(path.read_text().splitlines()[0]) == {"version": 1, "session": "main/telegram"}
    assert path.stat().st_mode & 0o777 == 0o600


@given(cut=st.integers(min_value=0, max_value=10_000))
def test_a_cut_anywhere_costs_at_most_the_cut_record(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """G-OPS-12: a torn line is set aside and never fused with the next record."""
    path = tmp_path_factory.mktemp("torn") / "s.jsonl"
    write(path, "one", "two", "three é")
    data = path.read_bytes()
    cut %= len(data) + 1
    path.write_bytes(data[:cut])
    before = [t for t in ("one", "two", "three é") if json.dumps(t, ensure_ascii=False).encode() in data[:cut]]
    kept = texts(path)
    assert kept == before or kept == before[:-1], "only the record that was cut may be missing"
    write(path, "after")
    assert texts(path) == [*kept, "after"]
    assert path.read_bytes().endswith(b"\n")


def test_the_torn_part_is_kept_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, "one")
    with path.open("ab") as file:
        file.write(b'{"id": "x", "bo\xff')
    write(path, "two")
    assert texts(path) == ["one", "two"]
    assert (tmp_path / "s.jsonl.torn").read_bytes() == b'{"id": "x", "bo\xff\n'


def test_a_line_that_is_no_entry_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, "one")
    with path.open("a") as file:
        file.write('nonsense\n[]\n{"id": 1, "body": {}}\n\n')
    write(path, "two")
    assert texts(path) == ["one", "two"]


def test_a_full_disk_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G-OPS-13: one failed write loses nothing and stops nothing."""
    path = tmp_path / "s.jsonl"
    transcript = write(path, "one")
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        real(descriptor, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        transcript.append(turn="t", kind="user", at="", body={"text": "lost"})
    monkeypatch.undo()
    transcript.append(turn="t", kind="user", at="", body={"text": "two"})
    assert texts(path) == ["one", "two"]


def test_a_lone_surrogate_does_not_stop_the_write(tmp_path: Path) -> None:
    """G-SPL-03: what a broken provider sends can be stored."""
    path = tmp_path / "s.jsonl"
    write(path, "ok \ud83c end")
    assert texts(path) == ["ok ? end"]
