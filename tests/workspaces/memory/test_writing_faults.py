"""Several writers, an open editor and kill -9: nothing is lost, and there is the old state or the new one."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.workspaces.memory import cut_off
from tests.workspaces.memory.home import HOME, Home
from tests.workspaces.memory.test_writing import ADA, writing
from workspaces.memory.errors import WriteRefused

ROUNDS = 24
SAVES = 200


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.faults)])
@pytest.mark.parametrize("act", ["append", "add", "update", "undo-new", "undo-delete"])
def test_killed_at_any_line_there_is_the_old_state_or_the_new(tmp_path: Path, act: str, step: int) -> None:
    command = [sys.executable, "-m", cut_off.__name__, str(tmp_path), act, str(step)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _agent(folder: Path, index: Path, name: str, ready: Barrier) -> None:
    """Adds its lines, changes each and deletes every fourth."""
    write = writing(Home(folder, index))
    ready.wait()
    for number in range(ROUNDS):
        write.add(ADA, f"{name} {number} tea", HOME)
        write.update(ADA, f"{name} {number} tea", f"{name} {number} cake", HOME)
        if number % 4 == 3:
            write.delete(ADA, f"{name} {number} cake", HOME)


def test_two_writers_lose_nothing(home: Home) -> None:
    """G-MEM-27: additions in place and edits by a rename, on the same file at once."""
    home.folder.mkdir()
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(2)
    workers = [context.Process(target=_agent, args=(home.folder, home.index, n, ready)) for n in ("left", "right")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    lines = (home.folder / ADA).read_text().splitlines()
    assert lines[:2] == ["# Ada", ""]
    assert sorted(lines[2:]) == sorted(
        f"- {name} {n} cake" for name in ("left", "right") for n in range(ROUNDS) if n % 4 != 3
    )
    changes = writing(home).changes(HOME, limit=1_000)
    assert len(changes) == 2 * (2 * ROUNDS + ROUNDS // 4)


def _rename(file: Path, text: str) -> None:
    beside = file.with_name("saving")
    beside.write_text(text)
    beside.replace(file)


def _in_place(file: Path, text: str) -> None:
    with file.open("w") as open_file:
        open_file.write(text)


def _editor(file: Path, how: Callable[[Path, str], None], ready: Barrier, pace: float = 0) -> None:
    """Types a line and saves, ``pace`` seconds after the last. Exits with 1 when a line it had saved is gone.

    Loads the file anew before each, as editors do when it has changed.
    """
    ready.wait()
    for number in range(SAVES):
        time.sleep(pace)
        how(file, f"- typed {number}\n" + _loaded(file, number))


def _loaded(file: Path, typed: int) -> str:
    """The file, once all that was typed is in it: for a moment, an edit that gives way to a save may be there."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        text = file.read_text()
        if all(f"- typed {n}\n" in text for n in range(typed)):
            return text
    sys.exit(1)


def _curator(folder: Path, index: Path, ready: Barrier) -> None:
    """Changes the last line until it is told otherwise; what an editor does beside it may make that fail."""
    write = writing(Home(folder, index))
    ready.wait()
    for number in range(60):
        try:
            write.update(ADA, "- state", f"- state {number} of many", HOME)
            write.update(ADA, f"- state {number} of many", "- state", HOME)
        except (WriteRefused, OSError):
            continue


@pytest.mark.parametrize("how", [_rename, _in_place])
def test_an_open_editor_loses_nothing(home: Home, how: Callable[[Path, str], None]) -> None:
    """Whatever an editor saves while edits are made stays; the edit is made anew, or refused."""
    file = home.write(ADA, "- state\n")
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(2)
    editor = context.Process(target=_editor, args=(file, how, ready))
    curator = context.Process(target=_curator, args=(home.folder, home.index, ready))
    for worker in (editor, curator):
        worker.start()
    for worker in (editor, curator):
        worker.join()
    assert [editor.exitcode, curator.exitcode] == [0, 0]
    text = file.read_text()
    assert all(f"- typed {n}\n" in text for n in range(SAVES))
    assert [entry.name for entry in file.parent.iterdir()] == ["ada.md"]


def _noter(folder: Path, index: Path, ready: Barrier) -> None:
    write = writing(Home(folder, index))
    ready.wait()
    for number in range(40):
        write.add(ADA, f"note {number}", HOME)


def test_notes_beside_an_open_editor_are_in_the_file_once_or_in_the_history(home: Home) -> None:
    file = home.write(ADA, "- state\n")
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(2)
    editor = context.Process(target=_editor, args=(file, _rename, ready, 0.02))
    noter = context.Process(target=_noter, args=(home.folder, home.index, ready))
    for worker in (editor, noter):
        worker.start()
    for worker in (editor, noter):
        worker.join()
    assert [editor.exitcode, noter.exitcode] == [0, 0]
    lines = file.read_text().splitlines()
    listed = {change.added for change in writing(home).changes(HOME, limit=1_000)}
    for number in range(40):
        assert lines.count(f"- note {number}") <= 1
        assert f"- note {number}\n" in listed
    assert all(f"- typed {n}" in lines for n in range(SAVES))


@pytest.mark.parametrize("event", ["call", "return"])
def test_a_note_in_a_file_that_is_just_being_replaced_is_there_once(home: Home, event: str) -> None:
    """An editor loads and saves by renaming just before a note is added to the old file, and just after."""
    file = home.write(ADA, "- state\n")
    saved: list[str] = []

    def trace(frame: FrameType, happened: str, _: object) -> Any:
        if frame.f_code.co_name != "_append" or not frame.f_code.co_filename.endswith("saves.py"):
            return None
        if happened == event and not saved:
            saved.append(happened)
            _rename(file, "- typed\n" + file.read_text())
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        writing(home).add(ADA, "note", HOME)
    finally:
        sys.settrace(before)
    assert saved
    assert file.read_text() == "- typed\n- state\n- note\n"
    assert [change.added for change in writing(home).changes(HOME)] == ["- note\n"]
    writing(home).undo(HOME)
    assert file.read_text() == "- typed\n- state\n"
    assert writing(home).undo(HOME) is None
