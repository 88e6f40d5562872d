"""Runs a function as on a kernel without openat2: in a thread of its own, where a seccomp filter forbids the call."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable

import pytest

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_OPENAT2, _ENOSYS = 437, 0x0005_0026
_ALLOW = 0x7FFF_0000


class _Step(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("then", ctypes.c_uint8), ("other", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step)))


def run(function: Callable[[], None]) -> None:
    """Raises what ``function`` does; skips the test where the system can't do this."""
    if sys.platform != "linux":
        pytest.skip("there is no openat2 anyway")
    failed: list[BaseException] = []

    def body() -> None:
        try:
            _forbid()
            function()
        except BaseException as error:  # pytest's own too: it is raised again in the test's thread
            failed.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _forbid() -> None:
    system = ctypes.CDLL(None, use_errno=True)
    steps = (_Step * 4)(
        _Step(_LOAD, 0, 0, 0),
        _Step(_IF_EQUAL, 0, 1, _OPENAT2),
        _Step(_RETURN, 0, 0, _ENOSYS),
        _Step(_RETURN, 0, 0, _ALLOW),
    )
    program = _Program(4, ctypes.cast(steps, ctypes.POINTER(_Step)))
    if system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or system.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        pytest.skip("this system lets no process filter its own calls")
    assert system.syscall(_OPENAT2, -1, None, None, 0) == -1
    assert ctypes.get_errno() == _ENOSYS & 0xFFFF
