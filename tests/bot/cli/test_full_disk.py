"""A disk that fills while a turn runs, and one that can't be written: real ones, in a namespace of the test's own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bot.cli.conftest import Limpet, Outcome

FACT = "Remember that my dog is called Biscuit"
SECONDS = 20
"""A hang took as long as somebody watched; a turn takes two on a slow machine."""


def own_namespace() -> list[str]:
    return ["unshare", "--user", "--map-root-user", "--mount"]


def may_mount() -> bool:
    try:
        done = subprocess.run([*own_namespace(), "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
    except FileNotFoundError:
        return False
    return done.returncode == 0


mounts = pytest.mark.skipif(not may_mount(), reason="no disk can be mounted here")

PROGRAM = """
import json, os, subprocess, sys
from pathlib import Path

disk = Path(sys.argv[1])

def run(*words):
    done = subprocess.run([sys.executable, "-m", "bot", *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr

def mount(*options):
    subprocess.run(["mount", *options, str(disk)], check=True)

said = []
"""


def on_a_disk(limpet: Limpet, body: str) -> Any:
    """What ``body`` leaves in ``said``, in a namespace where it can mount the folder ``disk``, the home's parent."""
    disk = limpet.home.root / "disk"
    disk.mkdir()
    done = subprocess.run(
        [*own_namespace(), sys.executable, "-c", f"{PROGRAM}\n{body}\nprint(json.dumps(said))", str(disk)],
        env=limpet.environ(LIMPET_HOME=str(disk / "home"), PYTHONPATH=str(Path(__file__).parents[3])),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def one_line(err: str) -> str:
    """The only line beside the hint at a model."""
    (line,) = (line for line in err.splitlines() if not line.startswith("Notes only: "))
    return line


@mounts
@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [80, pytest.param(10, marks=pytest.mark.faults)])
def test_a_disk_that_fills_in_a_turn_is_told_and_nothing_is_lost(limpet: Limpet, step: int) -> None:
    """G-OPS-13: wherever it fills up, from the first file on to the last. ``step`` is in kilobytes."""
    tried = on_a_disk(
        limpet,
        f"""
for kilobytes in range(40, 290, {step}):
    mount("-t", "tmpfs", "-o", "size=800k", "tmpfs")
    (disk / "fill").write_bytes(bytes(1024 * (800 - kilobytes)))
    first = run({FACT!r})
    status = run("status")
    left = [path.name for path in disk.glob("home/state/instances/*")]
    (disk / "fill").unlink()
    said.append([first, status, left, run("What is my dog called?")])
    subprocess.run(["umount", str(disk)], check=True)
""",
    )
    kept = 0
    for (code, out, err), (status, shown, _), left, (_, answer, beside) in tried:
        assert left == [], "no process runs, and none has left its mark"
        if code == 0:
            assert out.startswith("Noted: ")
            continue
        assert (code, out) == (75, "")
        line = one_line(err)
        assert f"{limpet.home.root}/disk/home" in line
        assert ": no room is left on the disk — make room there and try again" in line
        assert status == 1
        assert "on the disk — make room there" in shown
        if "Your message is kept, and is answered once that is mended." in line:
            kept += 1
            said, asked, before = beside.partition(f'An answer from before, to "{FACT}": ')
            assert asked, said
            if before.startswith("Noted: my dog is called Biscuit (memory/"):
                assert "Biscuit" in answer
            else:  # there was room for the answer, and none for the note
                assert before.startswith("I could not note that, and have not.")
    assert kept, "the message was stored in none of the tries: other sizes are needed"


@pytest.mark.parametrize("kilobytes", [1, 40, 72, 84, 100, 120])
def test_files_that_may_not_grow_any_more_are_told_and_nothing_hangs(limpet: Limpet, kilobytes: int) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kilobytes, 1024 * kilobytes))

    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "bot", FACT],
        env=limpet.environ(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=limited,
    )
    assert time.monotonic() - started < SECONDS
    if done.returncode == 0:
        assert done.stdout.startswith("Noted: ")
        return
    assert (done.returncode, done.stdout) == (75, "")
    assert str(limpet.home.root) in one_line(done.stderr)
    assert list(limpet.home.state.glob("instances/*")) == []


@mounts
def test_a_read_only_disk_is_told_whoever_asks(limpet: Limpet) -> None:
    """The superuser's rights end there too."""
    writing = (
        ["config", "set", "memory.limit", "4"],
        ["init", "--yes", "--name", "Ann"],
        ["memory", "rebuild"],
        ["memory", "undo"],
        ["pairing", "list"],
        ["models", "pull", "smollm2"],
        ["run"],
        [FACT],
    )
    said = on_a_disk(
        limpet,
        f"""
mount("-t", "tmpfs", "tmpfs")
said.append(run({FACT!r}))
mount("-o", "remount,ro")
said.extend(run(*words) for words in {writing!r})
said.append(run("status"))
said.append(run("memory", "search", "dog"))
""",
    )
    first, *others, status, found = (Outcome(*outcome) for outcome in said)
    assert first.code == 0
    for words, outcome in zip(writing, others, strict=True):
        assert (outcome.code, outcome.out) == (77, ""), words
        assert ": the file system is read-only — mount it for writing, or set LIMPET_HOME" in one_line(outcome.err)
    assert status.code == 1
    assert "the file system is read-only — mount it for writing" in status.out
    assert "Biscuit" in found.out, "what can be read is"


@mounts
def test_weights_that_do_not_fit_are_not_fetched(limpet: Limpet) -> None:
    ((code, out, err),) = on_a_disk(
        limpet, 'mount("-t", "tmpfs", "-o", "size=3m", "tmpfs")\nsaid.append(run("models", "pull", "smollm2"))'
    )
    assert (code, out) == (75, "")
    assert "the weights don't fit into" in one_line(err)
    assert err.endswith(" (3 MB free) — make room, then pull again\n")


@mounts
def test_a_disk_that_is_nearly_full_is_a_finding(limpet: Limpet) -> None:
    ((code, out, _), (fine, verdict, _)) = on_a_disk(
        limpet,
        """
mount("-t", "tmpfs", "-o", "size=9m", "tmpfs")
said.append(run("status"))
mount("-o", "remount,size=50m")
said.append(run("status"))
""",
    )
    assert (code, fine) == (1, 0)
    assert f"✗ {limpet.home.root}/disk/home: only 9.4 MB are left on the disk — make room there" in out
    assert verdict.startswith("All well.")
