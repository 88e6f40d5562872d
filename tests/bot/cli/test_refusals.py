"""What the machine refuses is told with its path and its mend, and every command that writes tells it alike."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.home import Home
from bot.refusals import refusal
from tests.bot.cli.conftest import Limpet, Outcome
from workspaces.database import DatabaseError, sqlite

SETTINGS = '[memory]\nlimit = 3\n[channels.telegram]\ntoken = "1:x"\n'

WRITING = [
    ["init", "--yes", "--name", "Ann", "--model", "ollama/x"],
    ["config", "set", "memory.limit", "5"],
    ["config", "set", "models.api_key", "sk-0123456789abcdef0123"],
    ["config", "unset", "memory.limit"],
    ["channels", "remove", "telegram", "--yes"],
    ["pairing", "list"],
    ["pairing", "approve", "telegram:7", "--owner"],
    ["pairing", "revoke", "telegram:7"],
    ["pairing", "deny", "ABCDEFGH"],
    ["route", "explain"],
    ["chat", "--once", "Remember that I like tea"],
    ["run"],
]

ALIKE = ("memory.limit", "telegram:7", "ABCDEFGH", "explain", "--yes")
"""Ends of those that differ from others in nothing that matters to the second of the two tests."""


@pytest.fixture
def full_home(limpet: Limpet) -> Iterator[Limpet]:
    """A home that was in use."""
    limpet.settings(SETTINGS)
    limpet.home.config.chmod(0o600)
    assert limpet("pairing", "list").code == 0
    yield limpet
    for path in (limpet.home.root, *limpet.home.root.rglob("*")):
        path.chmod(0o700)


def run(limpet: Limpet, words: list[str], before: Callable[[], None]) -> Outcome:
    """One command in a process of its own, in which ``before`` runs first."""
    done = subprocess.run(
        [sys.executable, "-m", "bot", *words],
        env=limpet.environ(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=before,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def no_byte_more() -> None:
    """As on a full disk: whatever makes a file longer fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def rights_count() -> None:
    """The superuser passes every mode of a file, unless these two capabilities are dropped."""
    drop, capabilities = 24, (1, 2)  # PR_CAPBSET_DROP; CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    if os.getuid() == 0:
        for capability in capabilities:
            ctypes.CDLL(None).prctl(drop, capability, 0, 0, 0)


def told(outcome: Outcome, limpet: Limpet, words: list[str]) -> bool:
    """Whether it is one line with the place and the mend, and the file is as it was."""
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    assert line.startswith(f"limpet: {limpet.home.root}")
    assert " — " in line
    place = line.removeprefix("limpet: ").partition(": ")[0]
    assert not place.startswith(f"{limpet.home.root}/.limpet.toml."), "a temporary file is no place to look at"
    if words[0] in ("config", "channels"):
        assert place == str(limpet.home.env_file if "models.api_key" in words else limpet.home.config)
    assert limpet.home.config.read_text() == SETTINGS
    return "unexpected" not in line


@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_a_full_disk(full_home: Limpet, words: list[str]) -> None:
    """G-OPS-13: told, and temporary."""
    outcome = run(full_home, words, no_byte_more)
    assert outcome.code == 75, outcome.err
    assert told(outcome, full_home, words)
    assert not list(full_home.home.root.glob(".*.*")), "no temporary file is left"


@pytest.mark.skipif(os.getuid() == 0 and sys.platform != "linux", reason="the superuser may write anywhere")
@pytest.mark.parametrize("words", [words for words in WRITING if words[-1] not in ALIKE], ids=" ".join)
def test_a_home_that_may_only_be_read(full_home: Limpet, words: list[str]) -> None:
    root = full_home.home.root
    for path in (*root.rglob("*"), root):
        path.chmod(0o500 if path.is_dir() else 0o400)
    outcome = run(full_home, words, rights_count)
    assert outcome.code == 77, outcome.err
    assert told(outcome, full_home, words)


def test_what_only_reads_works_in_a_home_that_may_only_be_read(full_home: Limpet) -> None:
    root = full_home.home.root
    for path in (*root.rglob("*"), root):
        path.chmod(0o500 if path.is_dir() else 0o400)
    for words in (["where"], ["config", "get"], ["config", "check"], ["channels", "list"], ["models", "list"]):
        assert run(full_home, words, rights_count).code == 0, words
    status = run(full_home, ["status"], rights_count)
    assert (status.code, status.err) == (1, "")
    assert f"the state can't be read: {full_home.home.state}" in status.out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["where"], ["config", "get"], ["completion", "bash"]], ids=" ".join
)
def test_an_answer_that_can_not_be_written_is_no_success(limpet: Limpet, words: list[str]) -> None:
    limpet.settings(SETTINGS)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bot", *words],
            env=limpet.environ(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 75
    (line,) = done.stderr.splitlines()
    assert line.startswith("limpet: standard output can't be written: No space left on device")


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (errno.EACCES, 77, "this user may not read or write there"),
        (errno.EROFS, 77, "the file system is read-only"),
        (errno.ENOSPC, 75, "no room is left on the disk"),
        (errno.EDQUOT, 75, "no room is left on the disk"),
        (errno.EFBIG, 75, "ulimit -f"),
        (errno.EIO, 75, "the disk reports an error"),
        (errno.ENOTDIR, 1, "move away what stands there"),
    ],
)
def test_each_refusal_names_the_path(tmp_path: Path, number: int, code: int, said: str) -> None:
    home = Home(tmp_path)
    for path, place in ((str(home.config), home.config), (None, home.root), ("/srv/notes/a.md", "/srv/notes/a.md")):
        error = refusal(OSError(number, os.strerror(number), path), home)
        assert error is not None
        assert error.exit_code == code
        assert error.message.startswith(f"{place}: ")
        assert said in str(error)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("attempt to write a readonly database", 77),
        ("unable to open database file", 77),
        ("database or disk is full", 75),
        ("disk I/O error", 75),
        ("database is locked", 75),
    ],
)
def test_sqlite_is_understood(tmp_path: Path, words: str, code: int) -> None:
    error = sqlite().OperationalError(words)
    told = refusal(error, Home(tmp_path))
    assert told is not None
    assert told.exit_code == code
    around = DatabaseError("state: it failed")
    around.__cause__ = error
    assert refusal(around, Home(tmp_path)) is not None


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")
def test_a_home_where_nothing_can_be_kept(limpet: Limpet) -> None:
    def said(*words: str) -> Outcome:
        return limpet.process(*words, LIMPET_HOME="/proc/nope/home")

    for words in (
        ["config", "set", "memory.limit", "5"],
        ["init", "--yes"],
        ["memory", "rebuild"],
        ["pairing", "list"],
    ):
        outcome = said(*words)
        assert (outcome.code, outcome.out) == (77, ""), words
        assert outcome.err == (
            "limpet: /proc/nope/home: nothing can be kept there — set LIMPET_HOME to a folder of your own\n"
        )
    status = said("status")
    assert (status.code, status.err) == (1, "")
    assert "✗ /proc/nope/home: nothing can be kept there — set LIMPET_HOME to a folder of your own\n" in status.out


def test_a_fault_of_ours_is_no_refusal(tmp_path: Path) -> None:
    for error in (
        ValueError("x"),
        OSError("no number"),
        FileNotFoundError(errno.ENOENT, "x", "y"),
        sqlite().OperationalError("no such table: x"),
        DatabaseError("it was written by a newer version"),
    ):
        assert refusal(error, Home(tmp_path)) is None
