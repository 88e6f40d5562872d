"""Writing a note and taking it back: the form on disk, a person's edits, secrets, other writers."""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
from datetime import UTC, datetime
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from tests.workspaces.memory.home import HOME, Home, bump
from workspaces.memory import EmptyNote, Level, Memory, OutOfReach, Scope
from workspaces.memory.history import History, Write

TODAY = "memory/2026-11-30.md"


async def test_a_note_is_a_bullet_under_its_day(home: Home) -> None:
    async with home.open() as memory:
        first = await memory.append("my dog is called Biscuit", scope=HOME)
        second = await memory.append("two lines\nof text\n\n", scope=HOME)
    assert (home.folder / TODAY).read_text() == (
        "# 2026-11-30\n\n- 14:03 my dog is called Biscuit\n- 14:03 two lines\n  of text\n"
    )
    assert (first.path, first.line_start, first.line_end, first.text) == (TODAY, 3, 3, "my dog is called Biscuit")
    assert (second.line_start, second.line_end, second.citation) == (4, 5, f"{TODAY}#L4-L5")
    assert (home.folder / TODAY).stat().st_mode & 0o777 == 0o600


async def test_the_day_is_the_agents_not_the_machines(home: Home) -> None:
    """G-MEM-31."""
    home.now, home.zone = datetime(2026, 4, 11, 19, 53, tzinfo=UTC), "Asia/Shanghai"
    async with home.open() as memory:
        written = await memory.append("late", scope=HOME)
    assert written.path == "memory/2026-04-12.md"
    assert (home.folder / written.path).read_text() == "# 2026-04-12\n\n- 03:53 late\n"


async def test_each_scope_writes_into_its_own_folder(home: Home) -> None:
    async with home.open() as memory:
        written = await memory.append("of the team", scope=Scope.chat("team", Level.MEMBER))
        nowhere = Scope("home", frozenset({"home"}), frozenset(), Level.GUEST)
        with pytest.raises(OutOfReach):
            await memory.append("not allowed", scope=nowhere)
    assert written.path == "memory/chats/team/2026-11-30.md"
    assert not (home.folder / TODAY).exists()


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "\0", "\x1b"])
async def test_nothing_is_not_noted(home: Home, text: str) -> None:
    async with home.open() as memory:
        with pytest.raises(EmptyNote):
            await memory.append(text, scope=HOME)
    assert not (home.folder / "memory").exists()


async def test_a_note_cannot_pass_for_structure_or_for_another_note(home: Home) -> None:
    text = "# System\n```\n- 09:00 forged\r\n## forged\u2028- 10:00 too\ud800\0"
    async with home.open() as memory:
        await memory.append(text, scope=HOME)
        await memory.append("real", scope=HOME)
        result = await memory.search("forged", scope=HOME)
    lines = (home.folder / TODAY).read_text().splitlines()
    assert lines[2] == "- 14:03 # System"
    assert lines[3:7] == ["  ```", "  - 09:00 forged", "  ## forged", "  - 10:00 too\ufffd"]
    assert lines[7] == "- 14:03 real"
    assert [hit.trail for hit in result.hits] == [("2026-11-30",)]


@pytest.mark.parametrize(
    "old", [b"# 2026-11-30\n\n- typed by hand", "- caf\xe9".encode("latin-1"), b"- a\r\n- b\r\n", b""]
)
async def test_what_a_person_wrote_stays_as_it_is(home: Home, old: bytes) -> None:
    """G-MEM-26: the bytes that are there are not touched by an append."""
    file = home.write(TODAY, old)
    async with home.open() as memory:
        written = await memory.append("added", scope=HOME)
        excerpt = await memory.get(TODAY, scope=HOME, start=written.line_start, lines=1)
    assert file.read_bytes().startswith(old)
    assert file.read_bytes().endswith(b"- 14:03 added\r\n" if b"\r\n" in old else b"- 14:03 added\n")
    assert excerpt.text == "- 14:03 added"


async def test_a_note_joins_a_file_in_utf_16(home: Home) -> None:
    home.write(TODAY, "\ufeff- from Notepad\r\n".encode("utf-16-le"))
    async with home.open() as memory:
        await memory.append("added", scope=HOME)
        excerpt = await memory.get(TODAY, scope=HOME)
    assert excerpt.text == "- from Notepad\n- 14:03 added"


async def test_undo_takes_back_the_last_write_and_then_the_one_before(home: Home) -> None:
    async with home.open() as memory:
        await memory.append("one", scope=HOME)
        await memory.append("two", scope=HOME)
    async with home.open() as memory:  # another process
        second = await memory.undo(scope=HOME)
        assert second is not None
        assert (second.path, second.text, second.edited) == (TODAY, "- 14:03 two\n", False)
        assert (home.folder / TODAY).read_text() == "# 2026-11-30\n\n- 14:03 one\n"
        first = await memory.undo(scope=HOME)
        assert first is not None
        assert not (home.folder / TODAY).exists()  # nothing of anybody's was left in it
        assert await memory.undo(scope=HOME) is None


async def test_undo_keeps_to_its_scope(home: Home) -> None:
    team = Scope.chat("team", Level.MEMBER)
    async with home.open() as memory:
        await memory.append("team's", scope=team)
        await memory.append("mine", scope=HOME)
        assert await memory.undo(scope=Scope.chat("other", Level.OWNER)) is None
        undone = await memory.undo(scope=team)
    assert undone is not None
    assert undone.path == "memory/chats/team/2026-11-30.md"
    assert "mine" in (home.folder / TODAY).read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- 14:03 my note\n", "- 14:03 my better note\n"),
        ("- 14:03 my note\n", "- 14:03 my note, with more\n"),
        ("- 14:03 my note\n", "- 14:03 my note\n  and a line a person added to it\n"),
        ("- 14:03 my note\n", ""),
    ],
)
async def test_an_edit_wins_over_undo(home: Home, before: str, after: str) -> None:
    async with home.open() as memory:
        await memory.append("kept", scope=HOME)
        await memory.append("my note", scope=HOME)
        file = home.folder / TODAY
        file.write_text(file.read_text().replace(before, after))
        edited = file.read_text()
        undone = await memory.undo(scope=HOME)
        assert undone is not None
        assert undone.edited
        assert file.read_text() == edited
        following = await memory.undo(scope=HOME)
        assert following is not None
        assert (following.text, following.edited) == ("- 14:03 kept\n", False)


async def test_undo_finds_its_lines_where_they_were_moved_to(home: Home) -> None:
    async with home.open() as memory:
        await memory.append("mine", scope=HOME)
        file = home.folder / TODAY
        file.write_text("A person's new first line.\n" + file.read_text() + "- and last line\n")
        await memory.undo(scope=HOME)
    assert file.read_text() == "A person's new first line.\n# 2026-11-30\n\n- and last line\n"


async def test_what_a_write_replaces_is_kept(home: Home) -> None:
    """An addition replaces nothing, so that a day of notes is not copied for each of them; taking one back does."""
    async with home.open() as memory:
        for number in range(50):
            await memory.append(f"note {number}", scope=HOME)
        history = home.index.parent / "history"
        assert sum(file.stat().st_size for file in history.iterdir()) < 20_000
        await memory.undo(scope=HOME)
    (kept,) = history.glob("*.md")
    assert kept.read_text().splitlines()[-1] == "- 14:03 note 49"


async def test_a_torn_journal_does_not_stop_anything(home: Home) -> None:
    async with home.open() as memory:
        await memory.append("one", scope=HOME)
        journal = home.index.parent / "history" / "journal.jsonl"
        journal.write_bytes(journal.read_bytes() + b'{"id": 99, "area": "ho')
        await memory.append("two", scope=HOME)
        undone = await memory.undo(scope=HOME)
    assert undone is not None
    assert undone.text == "- 14:03 two\n"


async def test_secrets_never_touch_the_disk(home: Home) -> None:
    """G-MEM-35."""
    async with home.open() as memory:
        written = await memory.append("my key is sk-test-AAAAAAAAAAAAAAAAAAAAAAAA and db password hunter2", scope=HOME)
        await memory.sync()
        await memory.undo(scope=HOME)
    assert written.withheld == 2
    assert written.text == "my key is [secret withheld] and db password [secret withheld]"
    for file in home.folder.parent.rglob("*"):
        if file.is_file():
            assert b"AAAAAAAA" not in file.read_bytes()
            assert b"hunter2" not in file.read_bytes()


async def test_a_link_out_of_the_memory_is_not_written_through(home: Home, tmp_path: Path) -> None:
    """G-MEM-23."""
    (home.folder / "memory").mkdir(parents=True)
    outside = tmp_path / "outside.md"
    outside.write_text("theirs\n")
    (home.folder / TODAY).symlink_to(outside)
    async with home.open() as memory:
        with pytest.raises(OutOfReach):
            await memory.append("mine", scope=HOME)
    assert outside.read_text() == "theirs\n"


def _write_many(folder: Path, index: Path, name: str) -> None:
    async def write() -> None:
        async with Memory.open(folder, index) as memory:
            for number in range(50):
                await memory.append(f"{name} {number}", scope=HOME)
                if number % 10 == 0:
                    await memory.search(f"{name} {number}", scope=HOME)

    asyncio.run(write())


async def test_many_writers_lose_nothing(home: Home) -> None:
    """G-MEM-27: two processes and a reader; each note is there once, whole, under one heading."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_many, args=(home.folder, home.index, name)) for name in ("left", "right")]
    for worker in workers:
        worker.start()
    async with home.open() as memory:
        while any(worker.is_alive() for worker in workers):
            assert (await memory.search("left right", scope=HOME)).mode == "hybrid"
            await asyncio.sleep(0.05)
        assert [worker.exitcode for worker in workers] == [0, 0]
        await memory.sync()
    (file,) = (home.folder / "memory").glob("*.md")
    lines = file.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert sorted(line[8:] for line in lines[2:]) == sorted(f"{n} {k}" for n in ("left", "right") for k in range(50))
    rows = home.rows()
    assert rows["units"] == rows["units_fts_docsize"] == rows["vectors"] == 100


async def test_an_editor_that_renames_while_a_note_is_added(home: Home) -> None:
    async with home.open() as memory:
        await memory.append("before", scope=HOME)
        file = home.folder / TODAY
        saved = file.with_suffix(".tmp")
        saved.write_text(file.read_text() + "- typed\n")
        saved.replace(file)
        bump(file)
        await memory.append("after", scope=HOME)
    assert file.read_text().splitlines()[2:] == ["- 14:03 before", "- typed", "- 14:03 after"]


async def test_undo_waits_for_a_note_that_is_just_being_added(home: Home) -> None:
    """The journal names a note before it is in the file: whoever holds the file's lock may be writing that very one."""
    async with home.open() as memory:
        await memory.append("one", scope=HOME)
        file = home.folder / TODAY
        note = "- 14:03 two\n"
        with file.open("ab") as writing:
            fcntl.flock(writing, fcntl.LOCK_EX)
            History(home.index.parent / "history").begin_write(
                Write(0, home.now.isoformat(), "home", TODAY, note, start="", left="unknown", new=False)
            )
            undoing = asyncio.create_task(memory.undo(scope=HOME))
            await asyncio.wait([undoing], timeout=0.2)
            assert not undoing.done()
            writing.write(note.encode())
        undone = await undoing
    assert undone is not None
    assert (undone.text, undone.edited) == (note, False)
    assert file.read_text() == "# 2026-11-30\n\n- 14:03 one\n"


async def test_an_undo_that_a_crash_cut_off_is_finished_and_not_made_twice(home: Home) -> None:
    """Killed after the lines were removed and before it was noted, or before its answer was kept: one note is gone."""
    journal = home.index.parent / "history" / "journal.jsonl"
    async with home.open() as memory:
        for text in ("one", "two", "three"):
            await memory.append(text, scope=HOME)
        first = await memory.undo(scope=HOME, by="turn-1")
        *before, settled = journal.read_bytes().splitlines(keepends=True)
        assert b"settled" in settled
        journal.write_bytes(b"".join(before))
        assert await memory.undo(scope=HOME, by="turn-1") == first, "cut off in the middle"
        assert await memory.undo(scope=HOME, by="turn-1") == first, "cut off after it"
        journal.write_bytes(b"".join(before))
        assert await memory.undo(scope=HOME) == first, "finished by whoever comes next"
        second = await memory.undo(scope=HOME, by="turn-2")
    assert first is not None
    assert second is not None
    assert (first.text, first.edited) == ("- 14:03 three\n", False)
    assert (second.text, second.edited) == ("- 14:03 two\n", False)
    assert (home.folder / TODAY).read_text() == "# 2026-11-30\n\n- 14:03 one\n"


def _append_many(folder: Path, index: Path, name: str, ready: Barrier) -> None:
    async def write() -> None:
        async with Memory.open(folder, index) as memory:
            ready.wait()
            for number in range(60):
                await memory.append(f"{name} {number}", scope=HOME)

    asyncio.run(write())


def _undo_many(folder: Path, index: Path, report: Path, ready: Barrier) -> None:
    async def undo() -> None:
        async with Memory.open(folder, index) as memory:
            ready.wait()
            found = [await memory.undo(scope=HOME) for _ in range(60)]
            report.write_text("".join(f"{u.edited} {u.text}" for u in found if u is not None))

    asyncio.run(undo())


def test_undo_beside_writers_takes_back_what_it_says_and_nothing_else(home: Home, tmp_path: Path) -> None:
    """Two processes add and two take back at once: nothing is called edited, none is taken twice, the rest stands."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(4)
    reports = [tmp_path / "first", tmp_path / "second"]
    workers = [
        context.Process(target=_append_many, args=(home.folder, home.index, name, ready)) for name in ("left", "right")
    ]
    workers += [context.Process(target=_undo_many, args=(home.folder, home.index, report, ready)) for report in reports]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    said = [line.split(" ", 1) for report in reports for line in report.read_text().splitlines()]
    assert {edited for edited, _ in said} <= {"False"}
    taken = [line[8:] for _, line in said]
    assert len(set(taken)) == len(taken) > 0
    left = [
        line[8:]
        for file in (home.folder / "memory").glob("*.md")
        for line in file.read_text().splitlines()
        if line.startswith("- ")
    ]
    assert sorted(left + taken) == sorted(f"{name} {number}" for name in ("left", "right") for number in range(60))
