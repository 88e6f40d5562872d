"""What was replaced is still there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from workspaces import copies
from workspaces.copies import Copies

NOW = datetime(2026, 11, 30, 14, 3, tzinfo=UTC)


def test_copies_of_one_moment_are_kept_apart(tmp_path: Path) -> None:
    kept = Copies(tmp_path / "kept", lambda: NOW)
    first, second = kept.keep("a.md", b"one"), kept.keep("a.md", b"two")
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
    assert first.name.startswith("20261130T140300")
    assert first.name.endswith("-a.md")
    assert first.stat().st_mode & 0o777 == 0o600
    assert first.parent.stat().st_mode & 0o777 == 0o700


def test_the_oldest_go_first(tmp_path: Path) -> None:
    times = iter(NOW + timedelta(minutes=n) for n in range(copies.MOST + 5))
    kept = Copies(tmp_path, lambda: next(times))
    paths = [kept.keep("ä" * 200, str(n).encode()) for n in range(copies.MOST + 5)]
    assert [path.exists() for path in paths] == [False] * 5 + [True] * copies.MOST


def test_one_that_is_too_large_is_kept_alone(tmp_path: Path) -> None:
    times = iter(NOW + timedelta(minutes=n) for n in range(2))
    kept = Copies(tmp_path, lambda: next(times))
    small, large = kept.keep("a", b"x"), kept.keep("b", b"x" * (copies.MOST_BYTES + 1))
    assert not small.exists()
    assert large.exists()
