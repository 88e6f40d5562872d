"""What a hub is spared at its start: imports that a library makes for something that is never shown."""

from __future__ import annotations

import sys
from typing import Any, cast


def without_rich() -> None:
    """Import structlog by itself. Where rich is installed it is taken along, for tracebacks in colour that no log of
    ours has: a tenth of the CPU that a question from the shell costs. structlog is prepared for its absence."""
    if not {"rich", "structlog"} & sys.modules.keys():
        sys.modules["rich"] = cast(Any, None)
        try:
            import structlog  # noqa: F401
        finally:
            del sys.modules["rich"]
