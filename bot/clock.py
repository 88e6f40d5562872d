"""What time it is, for whoever is handed no other clock. Loads nothing: a command that only asks this is quick."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Aware, in UTC."""
    return datetime.now(UTC)
