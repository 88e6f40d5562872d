"""Reading on from a hit: the lines asked for, and nothing out of reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.memory.home import HOME, Home
from workspaces.memory import Excerpt, Level, OutOfReach, Scope

TEAM = Scope.chat("team", Level.MEMBER)


async def test_the_lines_asked_for(home: Home) -> None:
    home.write("memory/a.md", "".join(f"line {n}\n" for n in range(1, 201)))
    async with home.open() as memory:
        assert await memory.get("memory/a.md", scope=HOME, start=3, lines=2) == Excerpt(
            "memory/a.md", 3, 4, 200, "line 3\nline 4"
        )
        whole = await memory.get("memory/a.md", scope=HOME)
        assert (whole.start, whole.end, whole.total) == (1, 120, 200)
        beyond = await memory.get("memory/a.md", scope=HOME, start=500)
        assert (beyond.text, beyond.total) == ("", 200)
        odd = await memory.get("memory/a.md", scope=HOME, start=-5, lines=-1)
        assert (odd.start, odd.text) == (1, "")


async def test_a_file_that_is_not_there_is_empty_with_a_note(home: Home) -> None:
    """G-MEM-24."""
    async with home.open() as memory:
        for path in ("MEMORY.md", "memory/2026-11-30.md", "memory", "memory/a/b/c.md", "x" * 5000, "…/" * 5000):
            excerpt = await memory.get(path, scope=HOME)
            assert (excerpt.text, excerpt.total) == ("", 0)
            assert excerpt.note


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "memory/out/x.md", "memory-evil/../../x.md", "memory/../../config.toml"]
)
async def test_what_is_out_of_reach(home: Home, tmp_path: Path, path: str) -> None:
    """G-MEM-23: no content, and no word of whether it is there."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("secret")
    (home.folder / "memory").mkdir(parents=True)
    (home.folder / "memory" / "out").symlink_to(outside)
    async with home.open() as memory:
        with pytest.raises(OutOfReach) as caught:
            await memory.get(path, scope=HOME)
    assert "secret" not in str(caught.value)


async def test_another_scopes_files_are_out_of_reach(home: Home) -> None:
    """G-MEM-32, G-MEM-33."""
    home.write("MEMORY.md", "secret-XYZ\n")
    home.write("memory/chats/team/MEMORY.md", "of the team\n")
    home.write("memory/shared/a.md", "for all\n")
    async with home.open() as memory:
        with pytest.raises(OutOfReach):
            await memory.get("MEMORY.md", scope=TEAM)
        with pytest.raises(OutOfReach):
            await memory.get("memory/chats/team/MEMORY.md", scope=HOME)
        assert (await memory.get("memory/chats/team/MEMORY.md", scope=TEAM)).text == "of the team"
        assert (await memory.get("memory/shared/a.md", scope=TEAM)).text == "for all"


async def test_a_huge_line_is_cut(home: Home) -> None:
    home.write("memory/a.md", "x" * 90_000 + "\nsecond\n")
    async with home.open() as memory:
        excerpt = await memory.get("memory/a.md", scope=HOME)
    assert (excerpt.start, excerpt.end, excerpt.total, len(excerpt.text)) == (1, 1, 2, 20_000)
    assert "20,000" in excerpt.note
