"""Does one thing to the memory again and again, each time killed some lines of our code later; run as a module.

Checks what each kill left, and exits with 1 and a traceback where that is wrong.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from tests.workspaces.memory.home import HOME, Home
from tests.workspaces.memory.test_writing import ADA, TODAY, writing
from workspaces.memory.writing import Writing

BOB = "memory/people/bob.md"
OLD = b"# Ada\r\n\r\n- tea\r\n- b\r\n"
ACTS = {
    "append": lambda write: write.append("note", HOME),
    "add": lambda write: write.add(ADA, "x", HOME),
    "new": lambda write: write.add(BOB, "x", HOME),
    "update": lambda write: write.update(ADA, "tea", "cake", HOME),
    "delete": lambda write: write.delete(ADA, "tea", HOME),
    "undo": lambda write: write.undo(HOME, by="turn"),
}
BEFORE = {"undo-new": "new", "undo-delete": "delete"}
WHERE = tuple(f"/workspaces/{name}.py" for name in ("files", "memory/saves", "memory/history", "memory/writing"))


def home(folder: Path) -> Home:
    return Home(folder / "workspace", folder / "state" / "index.sqlite")


def killed_after(lines: int) -> Any:
    """A trace function that kills this process at that line of the modules that write."""
    left = lines

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(WHERE):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def states(folder: Path) -> tuple[bytes | None, ...]:
    files = (folder / "workspace" / path for path in (ADA, BOB, TODAY))
    return tuple(file.read_bytes() if file.exists() else None for file in files)


def check(folder: Path, act: str, untouched: object, old: object, new: object) -> object:
    """The state is the old one or the new one, and the journal knows which."""
    state = states(folder)
    assert state in (old, new)
    journal = folder / "state" / "history" / "journal.jsonl"
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        json.loads(line)
    write = writing(home(folder))
    listed = write.changes(HOME)
    undone = write.undo(HOME, by="turn")
    if act in BEFORE:
        assert undone is not None
        assert states(folder) == new
    else:
        assert len(listed) == (undone is not None) == (state == new)
        assert states(folder) == untouched
    assert undone is None or not undone.edited
    assert write.undo(HOME) is None
    write.update(ADA, "- b", "- c", HOME)
    write.add(BOB, "x", HOME)
    write.append("x", HOME)
    left = {file.name for file in (folder / "workspace").rglob("*") if file.is_file()}
    assert left <= {"ada.md", "bob.md", Path(TODAY).name}, "scraps"
    return state


def start(folder: Path, act: str) -> Writing:
    there = home(folder)
    there.write(ADA, OLD)
    write = writing(there)
    if act in BEFORE:
        ACTS[BEFORE[act]](write)
    return write


def main(root: Path, act: str, step: int) -> None:
    """Killed at each ``step``th line."""
    os.fsync = lambda fd: None  # what a kill leaves is in the page cache anyway
    start(root / "untouched", "")
    start(root / "old", act)
    ACTS[act.split("-")[0]](start(root / "new", act))
    untouched, old, new = (states(root / name) for name in ("untouched", "old", "new"))
    assert old != new
    seen = set()
    for number in range(0, 2_000, step):
        write = start(root / str(number), act)
        child = os.fork()
        if not child:
            sys.settrace(killed_after(number))
            ACTS[act.split("-")[0]](write)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            break
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        seen.add(check(root / str(number), act, untouched, old, new))
    assert number > 60
    assert seen == {old, new}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
