"""Files that a scope reaches, opened with and without the kernel's help while others swap links below them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.workspaces import old_kernel
from workspaces.confined import Confined, Located
from workspaces.memory.history import History
from workspaces.memory.sources import Sources
from workspaces.memory.writing import Writing
from workspaces.paths import OutOfReach
from workspaces.scope import Level, Scope

HOME = Scope.home()
TEAM = Scope.chat("team", Level.MEMBER)

Run = Callable[[Callable[[], None]], None]


@pytest.fixture(params=["as it is", "old kernel"])
def run(request: pytest.FixtureRequest) -> Run:
    return old_kernel.run if request.param == "old kernel" else lambda function: function()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for path, text in {
        "AGENTS.md": "be brief",
        "memory/people/ada.md": "# Ada",
        "memory/chats/team/a.md": "of the team",
        "memory/chats/other/b.md": "of others",
        "memory/shared/s.md": "for all",
        "work/deep/x.txt": "x",
        ".git/config": "hidden",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/ada.md").write_text("OUTSIDE")
    return root


def read(reach: Confined, path: str) -> bytes:
    return reach.read(reach.located(path))


def written(reach: Confined, path: str, data: bytes, old: bytes | None = None) -> bool:
    return reach.write(reach.located(path, write=True), data, read=old)


def test_files_are_made_read_and_replaced(root: Path, run: Run) -> None:
    def body() -> None:
        reach = Confined(root, HOME)
        assert read(reach, "memory/people/ada.md") == b"# Ada"
        assert written(reach, "a/b/c.txt", b"one")
        assert not written(reach, "a/b/c.txt", b"two")
        assert not written(reach, "a/b/c.txt", b"two", b"other")
        assert written(reach, "a/b/c.txt", b"two", b"one")
        assert read(reach, "a/b/c.txt") == b"two"

    run(body)
    assert [entry.name for entry in (root / "a/b").iterdir()] == ["c.txt"]
    assert (root / "a").stat().st_mode & 0o777 == 0o700
    assert (root / "a/b/c.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "path",
    [
        "..", "../outside/ada.md", "work/../../outside/ada.md", "/etc/passwd", "memory\\people\\ada.md", "a\0b",
        ".git/config", ".git/hooks/post-commit", ".env", "work/.ssh/key", "memory/chats/team/a.md",
        "memory/Chats/team/a.md", "memory/chatſ/team/a.md",
    ],
)  # fmt: skip
def test_what_is_out_of_reach_is_refused(root: Path, run: Run, path: str) -> None:
    """G-MEM-23."""

    def body() -> None:
        with pytest.raises(OutOfReach):
            read(Confined(root, HOME), path)
        with pytest.raises(OutOfReach):
            written(Confined(root, HOME), path, b"x")

    run(body)
    assert not (root / ".git/hooks").exists()


def test_a_link_leads_where_the_scope_reaches_and_nowhere_else(root: Path, run: Run) -> None:
    """G-MEM-23."""
    (root / "ada").symlink_to("memory/people")
    (root / "out").symlink_to(root.parent / "outside")
    (root / "out.md").symlink_to(root.parent / "outside/ada.md")
    (root / "git").symlink_to(".git")
    (root / "theirs").symlink_to("memory/chats/team")

    def body() -> None:
        reach = Confined(root, HOME)
        assert read(reach, "ada/ada.md") == b"# Ada"
        assert reach.located("ada/ada.md") == "memory/people/ada.md"
        for path in ("out/ada.md", "out.md", "git/config", "theirs/a.md", "out/new.md"):
            with pytest.raises(OutOfReach):
                read(reach, path)
            with pytest.raises(OutOfReach):
                written(reach, path, b"x")

    run(body)
    assert [file.name for file in (root.parent / "outside").iterdir()] == ["ada.md"]


@pytest.mark.parametrize("which", ["a folder", "the file"])
def test_a_link_that_came_after_the_path_was_judged_is_not_followed(root: Path, run: Run, which: str) -> None:
    """The moment between the look and the open, made as long as can be."""
    reach = Confined(root, HOME)
    at = reach.located("memory/people/ada.md", write=True)
    if which == "a folder":
        (root / "memory/people").rename(root / "was")
        (root / "memory/people").symlink_to(root.parent / "outside")
    else:
        (root / at).unlink()
        (root / at).symlink_to(root.parent / "outside/ada.md")

    def body() -> None:
        with pytest.raises((OutOfReach, NotADirectoryError)):
            reach.read(at)
        with pytest.raises((OutOfReach, NotADirectoryError)):
            reach.write(at, b"x", read=b"OUTSIDE")
        if which == "a folder":
            with pytest.raises((OutOfReach, NotADirectoryError)):
                reach.write(Located("memory/people/new.md"), b"x", read=None)
        else:
            assert not reach.write(at, b"x", read=None)

    run(body)
    assert {file.name: file.read_text() for file in (root.parent / "outside").iterdir()} == {"ada.md": "OUTSIDE"}


_SWAP = """
import ctypes, os, sys
place, outside = map(os.fsencode, sys.argv[1:])
aside = place + b"-aside"
os.symlink(outside, aside)
rename = ctypes.CDLL(None).renameat2
print(flush=True)
while True:
    rename(-100, place, -100, aside, 2)
"""


@contextmanager
def swapping(place: Path, outside: Path) -> Iterator[None]:
    """Meanwhile another process exchanges a folder or file and a link to ``outside``, again and again."""
    if sys.platform != "linux":
        pytest.skip("the process that swaps is written for Linux")
    process = subprocess.Popen([sys.executable, "-c", _SWAP, place, outside], stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def outcomes(what: Callable[[], object], least: int = 100) -> tuple[list[object], int]:
    """What comes of doing it ``least`` times, and how often it was refused before; for 8 seconds at most."""
    done: list[object] = []
    refused = 0
    until = time.monotonic() + 8
    while len(done) < least and time.monotonic() < until:
        try:
            done.append(what())
        except (OutOfReach, OSError):
            refused += 1
    return done, refused


@pytest.mark.parametrize("place", ["memory/people", "memory/people/ada.md"])
def test_a_process_that_swaps_links_gets_nothing_out_and_nothing_in(root: Path, run: Run, place: str) -> None:
    outside = root.parent / "outside" / ("ada.md" if place.endswith(".md") else "")
    reach = Confined(root, HOME)

    def body() -> None:
        with swapping(root / place, outside):
            done, refused = outcomes(lambda: read(reach, "memory/people/ada.md"))
            assert set(done) == {b"# Ada"}
            assert refused
            found, _ = outcomes(lambda: {data for _, data in reach.contents("memory")})
            assert all(each in ({b"# Ada", b"for all"}, {b"for all"}) for each in found)
            outcomes(lambda: written(reach, "memory/people/ada.md", b"# Ada", b"# Ada"))
            outcomes(lambda: written(reach, "memory/people/new.md", b"new"))

    run(body)
    assert {file.name: file.read_text() for file in (root.parent / "outside").iterdir()} == {"ada.md": "OUTSIDE"}


def test_the_memory_is_written_through_no_link_that_is_swapped(root: Path, run: Run, tmp_path: Path) -> None:
    now = datetime(2026, 11, 30, 14, 3, tzinfo=UTC)
    writing = Writing(Sources(root), History(tmp_path / "history"), lambda: now, lambda: UTC)

    def body() -> None:
        with swapping(root / "memory/people", root.parent / "outside"):
            done, _ = outcomes(lambda: writing.add("memory/people/ada.md", "likes tea", HOME), 20)
            assert done
            done, _ = outcomes(lambda: writing.update("memory/people/ada.md", "# Ada", "# Ada!", HOME), 1)
            assert done

    run(body)
    assert {file.name: file.read_text() for file in (root.parent / "outside").iterdir()} == {"ada.md": "OUTSIDE"}


def listed(reach: Confined, path: str = "", *, deep: bool = False) -> list[str]:
    return [entry.path + "/" * entry.is_folder for entry in reach.entries(path, deep=deep)]


def test_a_folder_shows_what_the_scope_reaches(root: Path, run: Run) -> None:
    """G-MEM-32: no name of another chat, nothing hidden, no link."""
    (root / "link.md").symlink_to(root.parent / "outside/ada.md")
    (root / "out").symlink_to(root.parent / "outside")
    os.mkfifo(root / "work/pipe")

    def body() -> None:
        home, team = Confined(root, HOME), Confined(root, TEAM)
        assert listed(home) == listed(home, ".") == ["AGENTS.md", "memory/", "work/"]
        assert listed(home, "memory", deep=True) == [
            "memory/people/", "memory/people/ada.md", "memory/shared/", "memory/shared/s.md",
        ]  # fmt: skip
        assert listed(home, "work/", deep=True) == ["work/deep/", "work/deep/x.txt"]
        assert listed(team) == listed(team, "memory/chats/team") == ["memory/chats/team/a.md"]
        assert listed(team, "memory/shared") == ["memory/shared/s.md"]
        for reach, path in (
            (home, "memory/chats/team"), (home, "memory/chats"), (home, "out"), (home, ".git"), (home, "../outside"),
            (team, "memory"), (team, "memory/chats"), (team, "memory/chats/other"), (team, "work"),
        ):  # fmt: skip
            with pytest.raises(OutOfReach):
                listed(reach, path)
        with pytest.raises(FileNotFoundError):
            listed(home, "nowhere")
        with pytest.raises(NotADirectoryError):
            listed(home, "AGENTS.md")

    run(body)


def test_contents_are_those_of_a_folder_or_of_one_file(root: Path, run: Run) -> None:
    (root / "work/large.txt").write_text("x" * 101)
    (root / "work/closed.txt").write_text("x")
    os.mkfifo(root / "work/pipe")

    def body() -> None:
        reach = Confined(root, HOME)
        assert [(entry.path, data) for entry, data in reach.contents("work/deep/x.txt")] == [("work/deep/x.txt", b"x")]
        found = {entry.path: data for entry, data in reach.contents("", most=100)}
        assert set(found) == {
            "AGENTS.md", "memory/people/ada.md", "memory/shared/s.md", "work/deep/x.txt", "work/closed.txt",
        }  # fmt: skip
        with pytest.raises(OSError, match="101 bytes"):
            list(reach.contents("work/large.txt", most=100))
        with pytest.raises(FileNotFoundError):
            list(reach.contents("nowhere"))

    run(body)


def test_what_is_no_ordinary_file_is_not_waited_for(root: Path, run: Run) -> None:
    os.mkfifo(root / "work/pipe")

    def body() -> None:
        reach = Confined(root, HOME)
        with pytest.raises(OSError, match="no ordinary file"):
            read(reach, "work/pipe")
        with pytest.raises(IsADirectoryError):
            read(reach, "work")
        with pytest.raises(FileNotFoundError):
            read(reach, "work/none/x.txt")
        with pytest.raises(NotADirectoryError):
            read(reach, "AGENTS.md/x.txt")
        with pytest.raises(OSError, match="8 bytes"):
            reach.read(reach.located("AGENTS.md"), most=7)

    run(body)


def test_a_workspace_that_is_a_link_works(root: Path, run: Run) -> None:
    """G-MEM-24."""
    (root.parent / "link").symlink_to(root)

    def body() -> None:
        reach = Confined(root.parent / "link", HOME)
        assert written(reach, "new/x.txt", b"x")
        assert read(reach, "new/x.txt") == b"x"
        assert "new/" in listed(reach)

    run(body)


def test_no_descriptor_is_left_open(root: Path, run: Run) -> None:
    def body() -> None:
        reach = Confined(root, HOME)
        before = sorted(os.listdir("/dev/fd"))  # noqa: PTH208 - of this process
        for path in ("memory/people/ada.md", "none/x", "work", "AGENTS.md/x"):
            for deed in (lambda: read(reach, path), lambda: listed(reach, path, deep=True)):  # noqa: B023 - run at once
                try:
                    deed()
                except OSError:
                    continue
        written(reach, "a/b.txt", b"x")
        next(iter(reach.contents("")))
        assert sorted(os.listdir("/dev/fd")) == before  # noqa: PTH208

    run(body)
