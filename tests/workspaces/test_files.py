"""Reading what any editor left, and replacing a file without losing anybody's save."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from workspaces import files


@pytest.mark.parametrize(
    ("data", "text", "flawed"),
    [
        (b"", "", False),
        (b"a\r\nb\rc\n", "a\nb\nc\n", False),
        (b"\xef\xbb\xbf# x", "# x", False),
        (b"caf\xe9", "caf\ufffd", True),
        (b"a\0b", "a\ufffdb", True),
        ("\ufeffä🎩".encode("utf-16-le"), "ä🎩", False),
        ("\ufeffä🎩".encode("utf-16-be"), "ä🎩", False),
        (b"\xff\xfea", "\ufffd", True),
        (b"\xff\xff\xff", "\ufffd\ufffd\ufffd", True),
    ],
)
def test_bytes_become_text_leniently(data: bytes, text: str, flawed: bool) -> None:
    """G-MEM-26."""
    read = files.decode(data)
    assert read.text == text
    assert bool(read.flaw) == flawed


def test_create_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    assert files.create(path, b"one")
    assert not files.create(path, b"two")
    assert path.read_bytes() == b"one"
    assert path.stat().st_mode & 0o777 == 0o600


def test_replace_keeps_the_mode_and_leaves_no_scraps(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    path.chmod(0o640)
    assert files.replace(path, b"two", read=b"one")
    assert not files.replace(path, b"three", read=b"one")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["a.md"]


def test_replace_and_remove_leave_what_was_saved_since(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"saved")
    assert not files.replace(path, b"two", read=b"one")
    assert not files.remove(path, read=b"one")
    assert path.read_bytes() == b"saved"
    assert files.remove(path, read=b"saved")
    assert list(tmp_path.iterdir()) == []


def test_create_does_not_follow_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a.md").symlink_to(tmp_path / "outside.md")
    assert not files.create(tmp_path / "a.md", b"one")
    assert not (tmp_path / "outside.md").exists()


def test_what_a_killed_process_left_is_swept_by_the_next_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    (tmp_path / ".a.md.dead.tmp").write_bytes(b"half")
    (tmp_path / ".b.md.dead.tmp").write_bytes(b"of another file")
    script = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    used = tmp_path / ".a.md.used.tmp"
    holder = subprocess.Popen([sys.executable, "-c", script, used], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout
    holder.stdout.readline()
    assert files.replace(path, b"two", read=b"one")
    holder.communicate(b"\n")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".a.md.used.tmp", ".b.md.dead.tmp", "a.md"]


def test_a_name_of_any_length_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 126 + ".md")
    assert files.create(path, b"one")
    assert files.replace(path, b"two", read=b"one")
    assert path.read_bytes() == b"two"


def _save_numbers(path: Path, ready: Barrier) -> None:
    """Saves 1, 2, 3, … by renaming, each when the one before is there for good; exits with 1 when it never is."""
    beside = path.with_name("saving")
    ready.wait()
    for number in range(4_000):
        until = time.monotonic() + 10
        while int(path.read_bytes().split()[0]) != number:  # for a moment, what gives way may be there
            if time.monotonic() > until:
                sys.exit(1)
        beside.write_bytes(b"%d" % (number + 1))
        beside.replace(path)


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="only there two names can be swapped")
def test_a_save_between_the_compare_and_the_rename_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"0")
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(2)
    editor = context.Process(target=_save_numbers, args=(path, ready))
    editor.start()
    ready.wait()
    replaced = 0
    while editor.is_alive():
        read = path.read_bytes()
        replaced += files.replace(path, read + b" mine", read=read)
    assert editor.exitcode == 0
    assert replaced
    assert path.read_bytes().split()[0] == b"4000"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.md"]
