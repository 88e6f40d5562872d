"""Locks that a dead process can't hold."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from multiprocessing.synchronize import Barrier
from pathlib import Path

from bot.instance import Instances
from bot.lock import Lock

HOLD = """
import sys, time
from pathlib import Path
from bot.lock import Lock
lock = Lock(Path(sys.argv[1]))
assert lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


def _holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_only_one_process_holds_it_and_the_other_learns_which(tmp_path: Path) -> None:
    path = tmp_path / "hub.lock"
    process = _holder(path)
    try:
        mine = Lock(path)
        assert mine.acquire() is False
        assert mine.holder() == process.pid
    finally:
        process.kill()
        process.communicate()


def test_kill_9_releases_it(tmp_path: Path) -> None:
    path = tmp_path / "hub.lock"
    process = _holder(path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    mine = Lock(path)
    assert mine.holder() is None
    assert mine.acquire() is True
    mine.release()


def test_an_instance_is_alive_for_the_length_of_its_block(tmp_path: Path) -> None:
    instances = Instances(tmp_path)
    with instances.join() as first:
        with instances.join() as second:
            assert first != second
            assert instances.is_alive(first)
            assert instances.is_alive(second)
        assert instances.is_alive(first)
        assert not instances.is_alive(second)
    assert not instances.is_alive(first)
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_dead_instances_are_swept_away(tmp_path: Path) -> None:
    (tmp_path / "dead.lock").write_text("1\n")
    with Instances(tmp_path).join() as own:
        assert [path.stem for path in tmp_path.iterdir()] == [own]


def _join_many(folder: Path, ready: Barrier) -> None:
    ready.wait()
    for _ in range(200):
        with Instances(folder).join() as own:
            assert Instances(folder).is_alive(own), "swept away by another that was just joining"


def test_instances_that_join_at_once_leave_each_other_alone(tmp_path: Path) -> None:
    """Each sweeps away the files of dead ones: none may look dead between being made and being locked."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(4)
    workers = [context.Process(target=_join_many, args=(tmp_path, ready)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert list(tmp_path.iterdir()) == []


def test_a_holder_that_has_not_said_who_it_is_yet_is_waited_for(tmp_path: Path) -> None:
    """Between taking the lock and writing the number there is a moment; "pid 0" helps nobody."""
    path = tmp_path / "hub.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        writing = threading.Timer(0.05, lambda: path.write_text("4711\n"))
        writing.start()
        assert Lock(path).holder() == 4711
        writing.join()


def test_what_a_start_that_failed_has_left_is_swept_away(tmp_path: Path) -> None:
    """One that is just starting looks the same, and is left alone."""
    folder = tmp_path / "instances"
    folder.mkdir()
    old, young, dead = folder / "a.new", folder / "b.new", folder / "c.lock"
    for path in (old, young, dead):
        path.touch()
    os.utime(old, (0, 0))
    with Instances(folder).join() as own:
        assert {path.name for path in folder.iterdir()} == {"b.new", f"{own}.lock"}
    assert list(folder.iterdir()) == [young]


def test_a_lock_that_can_not_be_written_is_let_go_and_leaves_no_instance(tmp_path: Path) -> None:
    """As on a full disk: in a process of its own, since the limit can't be raised again."""
    code = (
        "import resource, sys\nfrom pathlib import Path\nfrom bot.instance import Instances\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try:\n    with Instances(Path(sys.argv[1])).join(): pass\n"
        "except OSError as error: print(error.filename)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path))
    assert done.stdout.endswith(".new\n")
    assert list(tmp_path.iterdir()) == []
