"""Which files are memory: the patterns, and what no pattern reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.memory.home import HOME, Home, bump
from workspaces.memory import ANY, MemorySettings, OutOfReach
from workspaces.memory.sources import Sources
from workspaces.scope import Level, Scope

FILES = (
    "MEMORY.md", "USER.md", "AGENTS.md", "memory/a.md", "memory/deep/er/b.md", "memory/.hidden/c.md", "memory/.d.md",
    "memory/e.txt", "projects/f.md", "projects/sub/g.md", "media/h.md",
)  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in FILES:
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["MEMORY.md"], ["MEMORY.md"]),
        (["memory/**/*.md"], ["memory/a.md", "memory/deep/er/b.md"]),
        (["memory/*.md"], ["memory/a.md"]),
        (["memory/**"], ["memory/a.md", "memory/deep/er/b.md", "memory/e.txt"]),
        (["*/?.md"], ["media/h.md", "memory/a.md", "projects/f.md"]),
        (["projects/*/*.md"], ["projects/sub/g.md"]),
        (["**/*.md"], [name for name in FILES if name.endswith(".md") and "/." not in name]),
        (["./memory//a.md", "memory/*.md"], ["memory/a.md"]),
        (["nothing/here/*.md", "a[b].md"], []),
    ],
)
def test_patterns_below_the_folder(root: Path, patterns: list[str], found: list[str]) -> None:
    sources = Sources(root, patterns)
    assert sorted(sources.found()) == sorted(found)
    assert {name for name in FILES if sources.includes(name)} == set(found)


def test_a_whole_path_names_files_from_elsewhere(root: Path, tmp_path: Path) -> None:
    (tmp_path / "notes" / "sub").mkdir(parents=True)
    (tmp_path / "notes" / "n.md").write_text("n")
    (tmp_path / "notes" / "sub" / "m.md").write_text("m")
    elsewhere = (tmp_path / "notes").as_posix()
    assert sorted(Sources(root, [f"{elsewhere}/**/*.md"]).found()) == [f"{elsewhere}/n.md", f"{elsewhere}/sub/m.md"]
    assert sorted(Sources(root, [f"{elsewhere}/*.md"]).found()) == [f"{elsewhere}/n.md"]
    inside = Sources(root, [f"{root.as_posix()}/memory/*.md", "memory/*.md"])
    assert sorted(inside.found()) == ["memory/a.md"]
    assert not inside.includes(f"{root.as_posix()}/memory/a.md")


def test_a_home_folder_is_meant_by_a_tilde(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sorted(Sources(root, ["~/root/MEMORY.md", "~nobody-here/x.md"]).found()) == ["MEMORY.md"]


async def test_extra_files_are_found_read_and_followed_by_home_only(home: Home, tmp_path: Path) -> None:
    note = tmp_path / "notes" / "sea.md"
    note.parent.mkdir()
    note.write_text("The otters sleep in the harbour.\n")
    (tmp_path / "notes" / "link.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "secret.md").write_text("otters of another\n")
    home.folder.mkdir()
    settings = MemorySettings(extra=(f"{tmp_path.as_posix()}/notes/*.md",), debounce_seconds=0.05)
    guest = Scope.chat("x", Level.GUEST)
    async with home.open(settings=settings) as memory, memory.watch():
        (hit,) = (await memory.search("otters", scope=HOME)).hits
        assert hit.path == note.as_posix()
        assert (await memory.get(hit.path, scope=HOME)).text == "The otters sleep in the harbour."
        assert (await memory.search("otters", scope=guest)).hits == ()
        for path, scope in [(note, guest), (tmp_path / "secret.md", HOME), (tmp_path / "notes" / "link.md", HOME)]:
            with pytest.raises(OutOfReach):
                await memory.get(path.as_posix(), scope=scope)
        bump(note)
        note.write_text("The badgers sleep in the wood.\n")
        while not (await memory.search("badgers", scope=HOME)).hits:
            assert (await memory.status()).files == 1


async def test_a_plain_folder_of_notes(home: Home) -> None:
    home.write("deep/er/sea.md", "otters\n")
    async with home.open(patterns=ANY) as memory:
        assert [hit.path for hit in (await memory.search("otters", scope=HOME)).hits] == ["deep/er/sea.md"]
