"""The transcript: append-only, durable, and whole after a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces import disk
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


def test_a_record_whose_line_end_was_lost_counts_and_is_not_fused_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, "one", "two")
    path.write_bytes(path.read_bytes()[:-1])
    transcript = Transcript(path, "main/telegram")
    assert [entry.body["text"] for entry in transcript.entries()] == ["one", "two"]
    for text in ("three", "four"):
        transcript.append(turn="t1", kind="user", at="", body={"text": text})
    assert texts(path) == [entry.body["text"] for entry in transcript.entries()] == ["one", "two", "three", "four"]
    assert not path.with_name("s.jsonl.torn").exists()


def test_what_another_process_wrote_is_there_at_the_next_look(tmp_path: Path) -> None:
    """Two hubs of one home take turns in a session: each sees what the other said, and no id comes twice."""
    path = tmp_path / "s.jsonl"
    one, two = Transcript(path, "main/telegram"), Transcript(path, "main/telegram")
    assert one.entries() == two.entries() == ()
    for number in range(6):
        (one, two)[number % 2].append(turn="t", kind="user", at="", body={"text": str(number)})
        assert one.entries() == two.entries()
    assert [entry.body["text"] for entry in one.entries()] == ["0", "1", "2", "3", "4", "5"]
    assert [entry.parent for entry in one.entries()[1:]] == [entry.id for entry in one.entries()[:-1]]
    assert len({entry.id for entry in one.entries()}) == 6


def test_what_is_let_go_of_stays_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    transcript = write(path, "one", "two", "three")
    transcript.forget(transcript.entries()[1].id)
    assert [entry.body["text"] for entry in transcript.entries()] == ["two", "three"]
    transcript.append(turn="t1", kind="user", at="", body={"text": "four"})
    transcript.forget("an id that is not there")
    assert [entry.body["text"] for entry in transcript.entries()] == ["two", "three", "four"]
    assert texts(path) == ["one", "two", "three", "four"]
    assert [entry.id for entry in Transcript(path, "").entries()] == ["t1.0", "t1.1", "t1.2", "t1.3"]


@pytest.mark.parametrize("size", [0, 1, 5_000])
def test_another_file_in_its_place_is_read_from_its_beginning(tmp_path: Path, size: int) -> None:
    """A person may delete a transcript, or put another one back, while we run."""
    path = tmp_path / "s.jsonl"
    transcript = write(path, "one", "two")
    if size:
        write(tmp_path / "other", "x" * size)
        (tmp_path / "other").replace(path)
    else:
        path.unlink()
    assert [entry.body["text"] for entry in transcript.entries()] == (["x" * size] if size else [])
    transcript.append(turn="t", kind="user", at="", body={"text": "new"})
    assert transcript.entries() == Transcript(path, "").entries()
    assert len(transcript.entries()) == 1 + bool(size)


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


class Disk:
    """Counts the flushes and what was in the file at the end of the last one; fails when told to."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.flushes = 0
        self.fails = False
        self.kept: list[str] = []
        self._flush = disk.flush
        monkeypatch.setattr(disk, "flush", self)

    def __call__(self, descriptor: int) -> None:
        if self.fails:
            raise OSError(5, "Input/output error")
        self._flush(descriptor)
        self.flushes += 1
        self.kept = texts(self.path)


async def test_what_was_appended_is_brought_to_the_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk = Disk(tmp_path / "s.jsonl", monkeypatch)
    transcript = write(on_disk.path, "one", "two")
    assert on_disk.kept == []
    await transcript.durable()
    assert (on_disk.flushes, on_disk.kept) == (1, ["one", "two"])
    await transcript.durable()
    transcript.flush()
    assert on_disk.flushes == 1, "there was nothing to wait for"
    transcript.append(turn="t1", kind="user", at="", body={"text": "three"})
    transcript.flush()
    assert (on_disk.flushes, on_disk.kept) == (2, ["one", "two", "three"])


async def test_what_a_dead_process_wrote_is_brought_to_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have died in between; its answer must not be given on the strength of a page in memory."""
    on_disk = Disk(tmp_path / "s.jsonl", monkeypatch)
    write(on_disk.path, "one", "two")
    transcript = Transcript(on_disk.path, "main/telegram")
    assert len(transcript.entries()) == 2
    await transcript.durable()
    assert on_disk.kept == ["one", "two"]
    write(on_disk.path, "three")
    assert len(transcript.entries()) == 3
    await transcript.durable()
    assert on_disk.kept == ["one", "two", "three"]


async def test_what_the_disk_did_not_take_was_never_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the next try would find the step and take it for done: the system tells of a loss once only."""
    on_disk = Disk(tmp_path / "s.jsonl", monkeypatch)
    write(on_disk.path, "from before")
    transcript = Transcript(on_disk.path, "main/telegram")
    transcript.append(turn="t1", kind="user", at="", body={"text": "kept"})
    await transcript.durable()
    for text in ("lost", "and lost"):
        transcript.append(turn="t1", kind="user", at="", body={"text": text})
    on_disk.fails = True
    with pytest.raises(OSError, match="Input/output"):
        await transcript.durable()
    on_disk.fails = False
    assert [entry.body["text"] for entry in transcript.entries()] == ["from before", "kept"]
    transcript.append(turn="t1", kind="user", at="", body={"text": "again"})
    await transcript.durable()
    assert on_disk.kept == texts(on_disk.path) == ["from before", "kept", "again"]
    assert [entry.id for entry in transcript.entries()] == ["t1.0", "t1.1", "t1.2"]


async def test_what_was_there_before_is_cut_off_by_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk = Disk(tmp_path / "s.jsonl", monkeypatch)
    write(on_disk.path, "one", "two")
    transcript = Transcript(on_disk.path, "main/telegram")
    assert len(transcript.entries()) == 2
    on_disk.fails = True
    with pytest.raises(OSError, match="Input/output"):
        await transcript.durable()
    assert texts(on_disk.path) == ["one", "two"]
    transcript.append(turn="t1", kind="user", at="", body={"text": "three"})
    write(tmp_path / "theirs", "another file", "that a person put there")
    (tmp_path / "theirs").replace(on_disk.path)
    with pytest.raises(OSError, match="Input/output"):
        await transcript.durable()
    assert texts(on_disk.path) == ["another file", "that a person put there"]


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_file_that_a_person_took_away_is_no_fault(tmp_path: Path, is_replaced: bool) -> None:
    path = tmp_path / "s.jsonl"
    transcript = write(path, "one", "two")
    path.unlink()
    if is_replaced:
        write(path, "theirs")
    await transcript.durable()
    assert [entry.body["text"] for entry in transcript.entries()] == (["theirs"] if is_replaced else [])


def test_a_lone_surrogate_does_not_stop_the_write(tmp_path: Path) -> None:
    """G-SPL-03: what a broken provider sends can be stored."""
    path = tmp_path / "s.jsonl"
    write(path, "ok \ud83c end")
    assert texts(path) == ["ok ? end"]
