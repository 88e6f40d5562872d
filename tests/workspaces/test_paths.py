"""Where a path somebody asked for may lead."""

from __future__ import annotations

from pathlib import Path

import pytest

from workspaces.paths import OutOfReach, resolve
from workspaces.scope import Level, Scope

HOME = Scope.home()
TEAM = Scope.chat("team", Level.OWNER)

ESCAPES = [
    "", ".", "..", "/", "../../etc/passwd", "/etc/passwd", "memory/../config.toml", "memory/../../memory-evil/x.md",
    "memory/chats/team/../../x.md", "a\0b", "a\nb.md", "memory\\..\\..\\x.md", "x\ud800.md", "./..//x",
]  # fmt: skip


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize("write", [False, True])
def test_an_escape_is_refused(tmp_path: Path, path: str, write: bool) -> None:
    """G-MEM-23."""
    with pytest.raises(OutOfReach):
        resolve(tmp_path, path, HOME, write=write)


@pytest.mark.parametrize("path", ["MEMORY.md", "memory/a b/…/ü.md", "./memory//x.md", "memory/notes..md", "~x.md"])
def test_a_path_below_the_workspace_is_allowed_whether_or_not_it_exists(tmp_path: Path, path: str) -> None:
    assert resolve(tmp_path, path, HOME, write=True).is_relative_to(tmp_path.resolve())


def test_areas_keep_apart(tmp_path: Path) -> None:
    for path in (
        "MEMORY.md",
        "memory/2026-11-30.md",
        "memory/chats/other/a.md",
        "memory/chats/teams/a.md",
        "AGENTS.md",
    ):
        with pytest.raises(OutOfReach):
            resolve(tmp_path, path, TEAM)
    with pytest.raises(OutOfReach):
        resolve(tmp_path, "memory/chats/team/a.md", HOME)
    with pytest.raises(OutOfReach):
        resolve(tmp_path, "memory/shared/a.md", TEAM, write=True)
    assert resolve(tmp_path, "memory/shared/a.md", TEAM)
    assert resolve(tmp_path, "memory/shared/a.md", HOME, write=True)
    assert resolve(tmp_path, "memory/chats/team/a.md", TEAM, write=True)


@pytest.mark.parametrize(
    "path", ["Memory/Chats/team/a.md", "memory/chatſ/team/a.md", "memory/CHATS/team/a.md", "MEMORY/shared/a"]
)
def test_other_case_does_not_change_the_area(tmp_path: Path, path: str) -> None:
    """On a file system that ignores case these are the files of another area."""
    with pytest.raises(OutOfReach):
        resolve(tmp_path, path, HOME)


def test_links_are_judged_by_where_they_lead(tmp_path: Path) -> None:
    """G-MEM-23."""
    root, outside = tmp_path / "root", tmp_path / "root-evil"
    (root / "memory" / "chats" / "team").mkdir(parents=True)
    outside.mkdir()
    (outside / "x.md").write_text("x")
    (root / "memory" / "out").symlink_to(outside)
    (root / "memory" / "file.md").symlink_to(outside / "x.md")
    (root / "memory" / "loop").symlink_to("loop")
    (root / "memory" / "theirs").symlink_to(root / "memory" / "chats" / "team")
    (root / "memory" / "chats" / "team" / "up").symlink_to(root)
    (root / "memory" / "mine.md").symlink_to(root / "MEMORY.md")
    for path in ("memory/out/x.md", "memory/out/new.md", "memory/file.md", "memory/loop/x.md", "memory/theirs/a.md"):
        with pytest.raises(OutOfReach):
            resolve(root, path, HOME)
    with pytest.raises(OutOfReach):
        resolve(root, "memory/chats/team/up/MEMORY.md", TEAM)
    assert resolve(root, "memory/mine.md", HOME) == (root / "MEMORY.md").resolve()


def test_a_root_that_is_a_link_works(tmp_path: Path) -> None:
    """G-MEM-24."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert resolve(tmp_path / "link", "memory/new.md", HOME, write=True) == (tmp_path / "real/memory/new.md").resolve()


def test_the_error_does_not_tell_what_exists(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("x")
    messages = set()
    for there in (True, False):
        if not there:
            (tmp_path / "MEMORY.md").unlink()
        with pytest.raises(OutOfReach) as caught:
            resolve(tmp_path, "MEMORY.md", TEAM)
        messages.add(str(caught.value))
    assert len(messages) == 1
