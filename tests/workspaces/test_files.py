"""Reading what any editor left, and replacing a file without losing anybody's save."""

from __future__ import annotations

from pathlib import Path

import pytest

from workspaces import files


@pytest.mark.parametrize(
    ("data", "text", "flawed"),
    [
        (b"", "", False),
        (b"a\r\nb\rc\n", "a\nb\nc\n", False),
        (b"\xef\xbb\xbf# x", "# x", False),
        (b"caf\xe9", "caf\ufffd", True),
        (b"a\0b", "a\ufffdb", True),
        ("\ufeffä🎩".encode("utf-16-le"), "ä🎩", False),
        ("\ufeffä🎩".encode("utf-16-be"), "ä🎩", False),
        (b"\xff\xfea", "\ufffd", True),
        (b"\xff\xff\xff", "\ufffd\ufffd\ufffd", True),
    ],
)
def test_bytes_become_text_leniently(data: bytes, text: str, flawed: bool) -> None:
    """G-MEM-26."""
    read = files.decode(data)
    assert read.text == text
    assert bool(read.flaw) == flawed


def test_create_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    assert files.create(path, b"one")
    assert not files.create(path, b"two")
    assert path.read_bytes() == b"one"
    assert path.stat().st_mode & 0o777 == 0o600


def test_replace_keeps_the_mode_and_leaves_no_scraps(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"one")
    path.chmod(0o640)
    assert files.replace(path, b"two", read=b"one")
    assert not files.replace(path, b"three", read=b"one")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["a.md"]
