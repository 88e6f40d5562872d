"""kill -9 at system calls, counted by the kernel's own tracer: also within SQLite, where no wrapper reaches.

Only by ``make faults``, and where strace may trace a process.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.doors import DOORS
from tests.faults.talk import Talk
from tests.flows.conftest import Limpet

CALLS = {
    "pwrite64": 7,
    "write": 11,
    "fdatasync": 1,
    "fsync": 1,
    "rename,renameat,renameat2,link,linkat,unlink,unlinkat,ftruncate": 1,
}
"""Which calls, and every how many of them the process is killed: SQLite makes several for one commit."""


@dataclass(frozen=True)
class Traced:
    """The ``number``-th of each of ``calls`` in a thread kills the process as it begins."""

    calls: str
    number: int

    def words(self) -> tuple[str, ...]:
        inject = f"inject={self.calls}:signal=SIGKILL:when={self.number}"
        strace = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={self.calls}", "-e", inject]
        run = f"import os, sys; os.execvp('strace', {strace!r} + [sys.executable, '-m', 'bot', *sys.argv[1:]])"
        return "-c", run


def traces() -> bool:
    if shutil.which("strace") is None:
        return False
    tried = [sys.executable, *Traced("getppid", 1).words()]
    tried[-1] = tried[-1].replace("'-m', 'bot'", "'-c', 'import os; os.getppid()'")
    return subprocess.run(tried, capture_output=True, timeout=60, check=False).returncode == -9


pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(7200),
]


@pytest.mark.parametrize("calls", CALLS)
async def test_a_kill_at_any_system_call_loses_and_doubles_nothing(tmp_path: Path, calls: str) -> None:
    if not traces():
        pytest.skip("strace is missing, or may not trace here (Debian: apt-get install strace)")
    for number in itertools.count(1, CALLS[calls]):
        async with DOORS["telegram"]() as door:
            home = Limpet(tmp_path / str(number) / "home")
            home.home.parent.mkdir()
            talk = Talk(home, door, Traced(calls, number))
            await talk.run()
            talk.check()
        if talk.ends[0] != -9:
            assert number > 1, "it was never killed"
            return
