"""Reading and replacing text files that people also edit: lenient bytes in, nothing lost on the way out.

A file of the workspace may come from any editor: with a byte order mark, with CRLF, in another encoding, half saved.
Nothing here raises for what a file holds; only the operating system's own errors pass. Knows no scope and no format.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TextFile:
    """``text`` has LF line ends only. ``flaw`` says in one clause what had to be mended in it, "" when nothing."""

    text: str
    flaw: str = ""


def encoding(data: bytes) -> str:
    """How ``data`` is encoded: UTF-8, or the UTF-16 that its byte order mark names."""
    return {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(data[:2], "utf-8")


def decode(data: bytes) -> TextFile:
    """The text of ``data`` without its byte order mark; what is not text is replaced by U+FFFD."""
    name, flaw = encoding(data), ""
    try:
        text = data.decode(name)
    except UnicodeDecodeError:
        text = data.decode(name, "replace")
        flaw = f"it is not valid {name.upper()}: unreadable bytes are shown as \ufffd"
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
        flaw = flaw or "it holds NUL bytes, shown as \ufffd"
    return TextFile(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), flaw)


def digest(data: bytes) -> bytes:
    """16 bytes that tell two contents apart."""
    return hashlib.blake2b(data, digest_size=16).digest()


def create(path: Path, data: bytes) -> bool:
    """Write a file that must not be there yet (0600); False, and nothing done, when it is."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return True


def replace(path: Path, data: bytes, *, read: bytes) -> bool:
    """Put ``data`` in the place of ``path`` in one step, if it still holds the bytes ``read``; else False.

    The compare and the rename are two system calls: a save that falls between them (microseconds) is the one that
    is lost. The file's mode is kept.
    """
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(path.stat().st_mode & 0o777)
        if path.read_bytes() != read:
            return False
        fresh.replace(path)
        return True
    finally:
        fresh.unlink(missing_ok=True)
