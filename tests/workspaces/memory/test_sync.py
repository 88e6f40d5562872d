"""The index says what the files say, whatever happens to the files."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workspaces.memory.home import HOME, Home, Letters, bump
from workspaces.database import connect
from workspaces.memory import BlockingMemory, Memory, MemorySettings, SyncReport, reconcile
from workspaces.memory.sources import Found, Sources

QUICK = MemorySettings(debounce_seconds=0.05)


async def found(memory: Memory, query: str) -> set[str]:
    return {hit.path for hit in (await memory.search(query, scope=HOME)).hits}


async def eventually(memory: Memory, files: int, chunks: int) -> None:
    """Wait until the watcher has brought the index there, without a search that would do it."""
    for _ in range(200):
        status = await memory.status()
        if (status.files, status.chunks) == (files, chunks):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{status.files} files, {status.chunks} chunks")


async def test_files_that_were_there_before_are_found(home: Home) -> None:
    """G-MEM-19."""
    home.write("memory/a.md", "otters\n")
    async with home.open() as memory, memory.watch():
        assert await found(memory, "otters") == {"memory/a.md"}


async def test_which_files_are_memory(home: Home) -> None:
    for path in (
        "MEMORY.md", "USER.md", "memory/2026-11-30.md", "memory/people/ada.md", "memory/chats/x/MEMORY.md",
        "AGENTS.md", "SOUL.md", "notes.md", "memory/a.txt", "memory/.hidden.md", "memory/.git/x.md", "memory/a.md.tmp",
        "media/b.md",
    ):  # fmt: skip
        home.write(path, f"walrus of {path}\n")
    (home.folder / "memory" / "folder.md").mkdir()
    async with home.open() as memory:
        await memory.sync()
        assert await found(memory, "walrus") == {"MEMORY.md", "USER.md", "memory/2026-11-30.md", "memory/people/ada.md"}
        assert (await memory.status()).files == 5


async def test_only_what_changed_is_read_and_embedded(home: Home) -> None:
    embedder = Letters()
    home.write("memory/a.md", "one\n\ntwo\n")
    home.write("memory/b.md", "three\n")
    seen: list[tuple[int, int]] = []
    async with home.open(embedder=embedder) as memory:
        assert await memory.sync(lambda done, total: seen.append((done, total))) == SyncReport(2, 0, 0, 0, 3)
        assert seen == [(1, 2), (2, 2)]
        assert await memory.sync() == SyncReport(unchanged=2)
        bump(home.write("memory/a.md", "one\n\ntwo\n\nfour\n"))
        assert await memory.sync() == SyncReport(changed=1, unchanged=1, embedded=1)
        bump(home.folder / "memory" / "b.md")
        assert await memory.sync() == SyncReport(unchanged=2)
        (home.folder / "memory" / "b.md").rename(home.folder / "memory" / "c.md")
        assert await memory.sync() == SyncReport(added=1, removed=1, unchanged=1)
    assert embedder.texts == ["one", "two", "three", "four"]


async def test_a_save_of_the_same_size_in_the_same_moment_is_seen(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a file system ticks: a second save within a tick has the time of the first."""
    monkeypatch.setattr(reconcile, "FRESH_NS", 60_000_000_000)  # the machine may be slow between the two
    async with home.open() as memory:
        file = home.write("memory/a.md", "otters\n")
        assert await found(memory, "otters") == {"memory/a.md"}
        stat = file.stat()
        file.write_text("walrus")
        file.write_text("badger\n")
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert await found(memory, "badger") == {"memory/a.md"}


async def test_what_another_process_adds_during_a_look_is_not_taken_for_gone(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write("memory/a.md", "otters\n")
    find = Sources.found

    def found(sources: Sources) -> Found:
        listed = find(sources)
        monkeypatch.setattr(Sources, "found", find)
        home.write("memory/b.md", "badgers\n")
        with BlockingMemory.open(home.folder, home.index, embedder=Letters()) as other:
            other.sync()
        return listed

    async with home.open(embedder=Letters()) as memory:
        await memory.sync()
        monkeypatch.setattr(Sources, "found", found)
        assert (await memory.sync()).removed == 0
        assert (await memory.status()).files == 2


async def test_a_time_to_come_is_read_once(home: Home) -> None:
    """As after a clock that was wrong: not with every search again."""
    file = home.write("memory/a.md", "otters\n")
    later = time.time_ns() + 10**15
    os.utime(file, ns=(later, later))
    async with home.open(embedder=Letters()) as memory:
        await memory.sync()
    db = connect(home.index)
    assert db.execute("SELECT mtime_ns FROM files").fetchall() == [(later,)]
    db.close()


async def test_a_deleted_note_leaves_nothing(home: Home) -> None:
    """G-MEM-22: and takes no other's place."""
    home.write("memory/a.md", "the otter note, number one\n")
    home.write("memory/b.md", "the otter note, number two\n")
    async with home.open() as memory:
        await memory.sync()
        (home.folder / "memory" / "a.md").unlink()
        result = await memory.search("otter note number one", scope=HOME, limit=1)
        assert [hit.path for hit in result.hits] == ["memory/b.md"]
    assert set(home.rows().values()) == {1}


async def test_words_and_their_index_agree_after_many_changes(home: Home) -> None:
    """FTS5's own check of its index against the text, and the counts of every table."""
    rng = random.Random(7)
    texts = ["otter 水獭 and otter", "a\n\nb b\n\nc", "# H\n\n- x\n- y", "", "x" * 3000, "- 🎩 don't\n  more"]
    async with home.open(embedder=Letters()) as memory:
        for _ in range(60):
            path = home.folder / "memory" / rng.choice(["p", "q/r", "s"]) / f"{rng.randrange(3)}.md"
            if path.exists() and rng.random() < 0.4:
                path.unlink()
            else:
                bump(home.write(str(path.relative_to(home.folder)), rng.choice(texts)))
            await memory.sync()
    home.sql("INSERT INTO units_fts(units_fts, rank) VALUES('integrity-check', 1)")
    rows = home.rows()
    assert rows["files"] == len(list(home.folder.rglob("*.md")))
    assert rows["units"] == rows["units_fts_docsize"] == rows["vectors"]

    fresh = Home(home.folder, home.index.with_name("fresh.sqlite"))
    async with fresh.open(embedder=Letters()) as memory:
        await memory.sync()
    assert fresh.rows() == rows


async def test_saves_by_renaming_are_watched(home: Home, tmp_path: Path) -> None:
    """G-MEM-20: a rename within the folder, and one from outside."""
    home.write("memory/a.md", "otters\n")
    async with home.open(settings=QUICK) as memory, memory.watch():
        await eventually(memory, 1, 1)
        inside = home.folder / "memory" / "a.md.tmp"
        inside.write_text("# 1\n\nbadgers\n\n# 2\n\nbadgers\n")
        inside.replace(home.folder / "memory" / "a.md")
        await eventually(memory, 1, 2)
        assert await found(memory, "otters") == set()
        outside = tmp_path / "new.md"
        outside.write_text("# 1\n\nwalrus\n\n# 2\n\nwalrus\n\n# 3\n\nwalrus\n")
        outside.replace(home.folder / "memory" / "a.md")
        await eventually(memory, 1, 3)
        assert await found(memory, "badgers") == set()
        assert await found(memory, "walrus") == {"memory/a.md"}


async def test_a_folder_moved_away_is_watched(home: Home, tmp_path: Path) -> None:
    """G-MEM-21: one event, and none for its files."""
    home.write("memory/proj/a.md", "otters\n")
    home.write("memory/proj/b.md", "badgers\n")
    async with home.open(settings=QUICK) as memory, memory.watch():
        await eventually(memory, 2, 2)
        shutil.move(home.folder / "memory" / "proj", tmp_path / "away")
        await eventually(memory, 0, 0)
        assert await found(memory, "otters") == set()
        shutil.move(tmp_path / "away", home.folder / "memory" / "back")
        await eventually(memory, 2, 2)
    (home.folder / "memory" / "back").rename(tmp_path / "gone")
    async with home.open() as memory:
        await memory.sync()
    assert set(home.rows().values()) == {0}


async def test_a_folder_that_appears_later_is_watched(home: Home) -> None:
    home.folder.mkdir()
    async with home.open(settings=QUICK) as memory, memory.watch():
        await eventually(memory, 0, 0)
        home.write("memory/new/a.md", "otters\n")
        await eventually(memory, 1, 1)
        home.write("MEMORY.md", "badgers\n")
        await eventually(memory, 2, 2)


async def test_a_watched_folder_is_not_compared_again_for_a_search(home: Home) -> None:
    home.write("memory/a.md", "otters\n")
    async with home.open() as memory, memory.watch():
        await memory.search("otters", scope=HOME)
        first = (await memory.status()).last_sync
        home.now = home.now.replace(minute=59)
        await memory.search("otters", scope=HOME)
        assert (await memory.status()).last_sync == first
        await memory.append("badgers", scope=HOME)
        assert await found(memory, "badgers") == {"memory/2026-11-30.md"}


async def test_a_save_is_found_long_before_the_folder_is_quiet(home: Home) -> None:
    home.write("memory/a.md", "otters\n")
    async with home.open(settings=MemorySettings(debounce_seconds=60)) as memory, memory.watch():
        assert await found(memory, "otters") == {"memory/a.md"}
        home.write("memory/b.md", "badgers\n")
        for _ in range(100):
            if await found(memory, "badgers"):
                return
            await asyncio.sleep(0.02)
    raise AssertionError("the event did not make the search compare")


async def test_links_are_not_followed(home: Home, tmp_path: Path) -> None:
    """G-MEM-23: what is outside is not memory, whatever leads there."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("otters\n")
    (home.folder / "memory").mkdir(parents=True)
    (home.folder / "memory" / "dir").symlink_to(tmp_path / "outside")
    (home.folder / "memory" / "file.md").symlink_to(tmp_path / "outside" / "a.md")
    (home.folder / "memory" / "loop").symlink_to(home.folder / "memory")
    (home.folder / "MEMORY.md").symlink_to(tmp_path / "outside" / "a.md")
    async with home.open() as memory:
        assert await found(memory, "otters") == set()
        shutil.rmtree(home.folder / "memory")
        (home.folder / "memory").symlink_to(tmp_path / "outside")
        assert await found(memory, "otters") == set()


async def test_a_workspace_that_is_a_link_works(home: Home, tmp_path: Path) -> None:
    """G-MEM-24."""
    home.write("memory/a.md", "otters\n")
    link = tmp_path / "link"
    link.symlink_to(home.folder)
    linked = Home(link, home.index)
    async with linked.open(settings=QUICK) as memory, memory.watch():
        await eventually(memory, 1, 1)
        assert await found(memory, "otters") == {"memory/a.md"}
        assert (await memory.get("memory/a.md", scope=HOME)).text == "otters"
        home.write("memory/b.md", "badgers\n")
        await eventually(memory, 2, 2)
        assert (await memory.append("x", scope=HOME)).path == "memory/2026-11-30.md"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"User prefers caf\xe9 mode\n", "User prefers caf\ufffd mode"),
        (b"\xef\xbb\xbf# Facts\n\nUser prefers tea\n", "User prefers tea"),
        (b"first\r\n\r\nUser prefers milk\r\n", "User prefers milk"),
        (b"User prefers \0 nothing\n", "User prefers \ufffd nothing"),
        ("\ufeffUser prefers utf\n".encode("utf-16-le"), "User prefers utf"),
    ],
)
async def test_files_of_any_encoding_are_read(home: Home, data: bytes, text: str) -> None:
    """G-MEM-26: readable text is kept, one warning for what is not, the bytes on disk untouched."""
    file = home.write("memory/a.md", data)
    async with home.open() as memory:
        result = await memory.search("user prefers", scope=HOME)
        warnings = (await memory.status()).warnings
        excerpt = await memory.get("memory/a.md", scope=HOME)
    assert [hit.text for hit in result.hits] == [text]
    assert result.hits[0].trail in ((), ("Facts",))
    assert len(warnings) == ("\ufffd" in text)
    assert bool(excerpt.note) == ("\ufffd" in text)
    assert not excerpt.text.startswith("\ufeff")
    assert file.read_bytes() == data


def test_killed_while_indexing_it_goes_on_where_it_was(home: Home) -> None:
    """kill -9 in the middle: the index opens, and the next comparison completes it."""
    for number in range(300):
        home.write(f"memory/{number}.md", f"# Note {number}\n\n" + f"- otter {number} and more\n" * 20)
    script = (
        "import asyncio, sys; from pathlib import Path; from workspaces.memory import Memory\n"
        "async def go():\n"
        "    async with Memory.open(Path(sys.argv[1]), Path(sys.argv[2])) as memory:\n"
        "        await memory.sync(lambda done, total: done == 20 and print('going', flush=True))\n"
        "asyncio.run(go())"
    )
    command = [sys.executable, "-c", script, str(home.folder), str(home.index)]
    for delay in (0.0, 0.05, 0.2):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()
            time.sleep(delay)
            worker.send_signal(signal.SIGKILL)

    async def finish() -> SyncReport:
        async with home.open() as memory:
            return await memory.sync()

    report = asyncio.run(finish())
    assert report.added + report.unchanged == 300
    rows = home.rows()
    assert rows["files"] == 300
    assert rows["units"] == rows["units_fts_docsize"] == rows["vectors"] == 6000
    home.sql("INSERT INTO units_fts(units_fts, rank) VALUES('integrity-check', 1)")
