"""Runs ``limpet`` and lets one durable write of it go wrong: ``python -m tests.faults.launcher PLAN run``.

The program knows nothing of this. What it asks the disk for is wrapped from outside before it is imported: commits and
flushes of its state, and every write, flush, rename and removal below its home. They are counted; at the one that the
plan names the process is killed right before or right after it, is killed in the middle of it, or is told that the disk
failed. What is derived (an index), and logs, are left out.
"""

from __future__ import annotations

import errno
import json
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Literal, TypeAlias

Action: TypeAlias = Literal["before", "after", "torn", "eio", "enospc"]
"""Killed before the write, after it, or when half of it is written; or the write fails, once, with that error."""

ROOT = Path(__file__).parents[2]
OURS = ("bot", "adapters", "agents", "workspaces")

_PLUMBING = ("bot.state", "bot.config_file", "workspaces.files", "workspaces.disk", "workspaces.memory.saves")
"""Modules that write on behalf of others: a point is named for who asked them."""

_DERIVED = ("index.sqlite", f"{os.sep}logs{os.sep}", f"{os.sep}models{os.sep}", ".lock")


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes wrong at the ``number``-th (from 1) durable write whose name has ``match`` in it; 0 for nothing.

    ``seen`` is a file that gets the name of each point, one a line; ``clock`` is one that holds by how many seconds the
    clock is wrong, read whenever the program asks for the time. "" for none.
    """

    number: int = 0
    action: Action = "before"
    match: str = ""
    seen: str = ""
    clock: str = ""

    def words(self) -> tuple[str, str, str]:
        """The arguments of Python that start the program with this plan."""
        return "-m", __name__, json.dumps(asdict(self))

    def __str__(self) -> str:
        return f"{self.action} {self.match or 'write'} #{self.number}"


class Points:
    """Counts the durable writes of this process, from any thread, and does what the plan says at its own."""

    def __init__(self, plan: Plan, home: Path) -> None:
        self._plan = plan
        self._home = str(home)
        self._lock = threading.Lock()
        self._count = 0
        self._seen = os.open(plan.seen, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if plan.seen else None
        self._write = os.write

    def reached(self, what: str, path: str, do: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        """Carry ``do`` out, or what is to happen instead; ``half`` does the first half of it."""
        if not path.startswith(self._home) or any(part in path for part in _DERIVED):
            return do()
        name = f"{_asker()} {what} {Path(path).name}"
        with self._lock:
            is_it = self._plan.match in name
            self._count += is_it
            is_it = is_it and self._count == self._plan.number
            if self._seen is not None:
                self._write(self._seen, f"{name}{'  <<<' if is_it else ''}\n".encode())
        if not is_it:
            return do()
        match self._plan.action:
            case "eio" | "enospc" as error:
                raise _failure(what, getattr(errno, error.upper()), path)
            case "torn":
                (half or do)()
            case "after":
                do()
            case "before":
                pass
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody gets here")


def _failure(what: str, number: int, path: str) -> Exception:
    if what not in ("commit", "checkpoint"):
        return OSError(number, os.strerror(number), path)
    from workspaces.database import sqlite

    words = "disk I/O error" if number == errno.EIO else "database or disk is full"
    error: Exception = sqlite().OperationalError(words)
    return error


def _asker() -> str:
    """The function of ours that wanted something written: "bot.inbox.put"."""
    frame: FrameType | None = sys._getframe(2)
    found = "?"
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] in OURS and name not in ("bot.__main__", "bot.cli.app"):
            found = f"{name}.{frame.f_code.co_name}"
            if name not in _PLUMBING:
                return found
        frame = frame.f_back
    return found


def _path(descriptor: int) -> str:
    """Of the file; "" where it is none, or the system has no ``/proc``."""
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:
        return ""


def install(points: Points) -> None:
    """Wrap what the program asks the disk for. Call it before anything of ours is imported."""
    write, truncate = os.write, os.ftruncate

    def watched_write(descriptor: int, data: Any) -> int:
        half = memoryview(data)[: len(data) // 2]
        done: int = points.reached(
            "write", _path(descriptor), lambda: write(descriptor, data), lambda: write(descriptor, half)
        )
        return done

    def watched_truncate(descriptor: int, length: int) -> None:
        points.reached("truncate", _path(descriptor), lambda: truncate(descriptor, length))

    os.write = watched_write
    os.ftruncate = watched_truncate
    for name in ("fsync", "fdatasync"):
        setattr(os, name, _flush(getattr(os, name), points))
    for name in ("replace", "rename", "link", "unlink"):
        setattr(os, name, _named(name, getattr(os, name), points))
    _databases(points)


def _flush(flush: Callable[[int], None], points: Points) -> Callable[[Any], None]:
    def watched(descriptor: Any) -> None:
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        points.reached("flush", _path(number), lambda: flush(number))

    return watched


def _named(name: str, call: Callable[..., None], points: Points) -> Callable[..., None]:
    """Of a call with paths; the last one is where something is afterwards, and may be seen from an open folder."""

    def watched(*paths: Any, **how: Any) -> None:
        folder = how.get("dst_dir_fd", how.get("dir_fd"))
        at = os.path.join(_path(folder) if folder is not None else os.getcwd(), os.fsdecode(paths[-1]))  # noqa: PTH118, PTH109
        points.reached(name, at, lambda: call(*paths, **how))

    return watched


def _databases(points: Points) -> None:
    from workspaces.database import sqlite

    module: Any = sqlite()
    connect = module.connect

    class Connection(module.Connection):  # type: ignore[misc]
        def __init__(self, database: Any, *args: Any, **how: Any) -> None:
            super().__init__(database, *args, **how)
            self._at = os.fsdecode(database)

        def execute(self, sql: str, *values: Any) -> Any:
            def do() -> Any:
                return super(Connection, self).execute(sql, *values)

            if sql == "COMMIT":
                return points.reached("commit", self._at, do)
            if sql == "PRAGMA wal_checkpoint":
                return points.reached("checkpoint", self._at, do)
            return do()

    module.connect = lambda *args, **how: connect(*args, **{"factory": Connection, **how})


def _shift_clock(wrong: Path) -> None:
    import bot.clock

    now = bot.clock.now
    bot.clock.now = lambda: now() + timedelta(seconds=float(wrong.read_text()))


def main() -> None:
    plan = Plan(**json.loads(sys.argv.pop(1)))
    sys.argv[0] = "limpet"
    home = Path(os.environ["LIMPET_HOME"])
    install(Points(plan, home.resolve()))
    if plan.clock:
        _shift_clock(Path(plan.clock))
    import bot.state

    bot.state.LONGEST_LOG, bot.state.SOON_SECONDS = 8, 0.05  # so that the log is copied in a short talk too
    runpy.run_module("bot", run_name="__main__")


if __name__ == "__main__":
    main()
