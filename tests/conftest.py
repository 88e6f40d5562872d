"""What holds for every test."""

from __future__ import annotations

import os

import structlog
from hypothesis import settings

# How long an example takes says more of the machine than of the code.
settings.register_profile("limpet", deadline=None)
settings.load_profile("limpet")

# Tracebacks as Python prints them: structlog's own show every local variable, which takes seconds on a busy machine.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: a fifth of the time goes by with waiting for what others do."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1
