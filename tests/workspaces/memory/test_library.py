"""The memory by itself: no bot, no agent, no channel; only a folder and an index."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from workspaces.memory import BlockingMemory, Level, Memory, NotOnePlace, OutOfReach, Scope

ME = Scope.home()


async def test_told_today_and_known_tomorrow(tmp_path: Path) -> None:
    notes, index = tmp_path / "notes", tmp_path / "index.sqlite"
    async with Memory.open(notes, index) as memory:
        written = await memory.append("my dog is called Biscuit", scope=ME)
        assert (notes / written.path).read_text().splitlines()[written.line_start - 1].endswith("dog is called Biscuit")

    async with Memory.open(notes, index) as memory:
        result = await memory.search("name of my dog", scope=ME)
        best = result.hits[0]
        assert "Biscuit" in best.text
        assert best.citation == written.citation == f"{written.path}#L3"
        assert (result.mode, result.warnings) == ("hybrid", ())

        excerpt = await memory.get(best.path, scope=ME, start=best.start_line, lines=1)
        assert excerpt.text == best.text

        undone = await memory.undo(scope=ME)
        assert undone is not None
        assert ("Biscuit" in undone.text, undone.edited) == (True, False)
        assert (await memory.search("name of my dog", scope=ME)).hits == ()

    assert {path.name for path in tmp_path.iterdir()} == {"notes", "index.sqlite", "history"}


async def test_topic_files_are_written_listed_and_taken_back(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "notes", tmp_path / "index.sqlite") as memory:
        added = await memory.add("memory/people/ada.md", "Ada plays the cello", scope=ME, by="a test")
        assert (await memory.search("who plays the cello", scope=ME)).hits[0].path == added.path
        changed = await memory.update(added.path, "cello", "viola", scope=ME)
        assert (changed.removed, changed.added) == ("- Ada plays the cello\n", "- Ada plays the viola\n")
        await memory.add(added.path, "Ada lives in Kyoto", scope=ME)
        await memory.delete(added.path, "Ada lives in Kyoto", scope=ME)
        (listed,) = await memory.list(scope=ME)
        assert (listed.path, listed.day) == ("memory/people/ada.md", None)
        assert listed.size == (tmp_path / "notes" / listed.path).stat().st_size
        kinds = [change.kind for change in await memory.changes(scope=ME)]
        assert kinds == ["delete", "add", "update", "add"]
        for _ in kinds:
            undone = await memory.undo(scope=ME)
            assert undone is not None
            assert not undone.edited
        assert await memory.undo(scope=ME) is None
        assert await memory.list(scope=ME) == ()
        assert (await memory.search("cello or viola", scope=ME)).hits == ()
        with pytest.raises(NotOnePlace):
            await memory.update("memory/people/ada.md", "cello", "viola", scope=ME)
        guest = Scope.chat("x", Level.GUEST)
        with pytest.raises(OutOfReach):
            await memory.add("MEMORY.md", "mine", scope=guest)
        assert await memory.list(scope=guest) == ()
        await memory.close()


def test_a_script_needs_no_loop(tmp_path: Path) -> None:
    with BlockingMemory.open(tmp_path / "notes", tmp_path / "index.sqlite") as memory:
        memory.append("my dog is called Biscuit", by="a script")
        memory.add("memory/dogs.md", "Biscuit likes carrots")
        assert {hit.path for hit in memory.search("Biscuit").hits} == {"memory/dogs.md", memory.list()[0].path}
        assert memory.get("memory/dogs.md", start=3).text == "- Biscuit likes carrots"
        memory.update("memory/dogs.md", "carrots", "apples")
        memory.delete("memory/dogs.md", "Biscuit likes apples")
        assert [change.by for change in memory.changes()] == [None, None, None, "a script"]
        assert memory.undo() is not None
        memory.sync()
        assert memory.rebuild().unchanged == 2
        assert memory.status().units == 2
    for thread in threading.enumerate():
        if thread.name.startswith("memory"):
            thread.join(20)
            assert not thread.is_alive()


async def test_what_an_editor_saved_is_found_by_the_next_search(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "notes", tmp_path / "index.sqlite") as memory:
        assert (await memory.search("otters", scope=ME)).hits == ()
        (tmp_path / "notes" / "memory").mkdir(parents=True)
        (tmp_path / "notes" / "memory" / "sea.md").write_text("Otters hold hands while they sleep.\n")
        assert [hit.path for hit in (await memory.search("otters", scope=ME)).hits] == ["memory/sea.md"]
        (tmp_path / "notes" / "memory" / "sea.md").write_text("Seals whistle under water.\n")
        assert (await memory.search("otters", scope=ME)).hits == ()
        assert (await memory.search("seals", scope=ME)).hits != ()


async def test_status_tells_what_there_is(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "notes", tmp_path / "index.sqlite") as memory:
        before = await memory.status()
        assert (before.files, before.chunks, before.vectors, before.last_sync) == (0, 0, 0, None)
        await memory.append("one", scope=ME)
        report = await memory.sync()
        after = await memory.status()
    assert (report.added, report.embedded) == (1, 1)
    assert (after.files, after.chunks, after.vectors, after.mode) == (1, 1, 1, "hybrid")
    assert 0 < after.index_bytes < 600_000
    assert after.warnings == ()


async def test_latest_gives_the_newest_notes_first(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text("# Memory\n\n- curated\n")
    (tmp_path / "memory" / "2026-11-29.md").write_text("- 09:00 older\n")
    (tmp_path / "memory" / "2026-11-30.md").write_text("- 09:00 morning\n- 18:00 evening\n")
    async with Memory.open(tmp_path, tmp_path / "state" / "index.sqlite") as memory:
        assert [hit.text[-7:] for hit in await memory.latest(scope=ME, limit=3)] == ["evening", "morning", "0 older"]
        assert [hit.text for hit in await memory.latest(scope=ME)][-1] == "- curated"


def test_it_is_light_to_import() -> None:
    """Nothing of the rest of the program, and none of the heavy libraries, comes with it."""
    check = (
        "import sys, workspaces.memory\n"
        "heavy = {'numpy', 'tokenizers', 'watchdog', 'wordllama', 'bot', 'agents', 'adapters'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
