"""What every process of the program does before anything else."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

_THREADS = """
import ctypes, threading
from bot.__main__ import use_one_arena
{first}
threads = [threading.Thread(target=lambda: [bytearray(1000) for _ in range(1000)]) for _ in range(6)]
for each in threads: each.start()
for each in threads: each.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, out)
libc.fflush(out)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives each thread an arena")
@pytest.mark.parametrize(("first", "is_one"), [("use_one_arena()", True), ("", False)])
def test_all_threads_take_memory_from_one_place(first: str, is_one: bool) -> None:
    """And without it they don't, so that there is something to ask for."""
    code = _THREADS.format(first=first)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert (done.stdout.count("<heap nr=") == 1) is is_one, done.stdout


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2, reason="there are threads to be counted"
)
@pytest.mark.parametrize(("first", "is_one"), [("use_one_core()", True), ("", False)])
def test_numpy_begins_no_threads(first: str, is_one: bool) -> None:
    """And without it it does."""
    count = "import os, numpy; print(len(os.listdir('/proc/self/task')))"
    code = f"from bot.__main__ import use_one_core\n{first}\n{count}"
    environ = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environ)
    assert (int(done.stdout) == 1) is is_one
