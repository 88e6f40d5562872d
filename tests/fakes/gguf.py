"""Small GGUF files: a valid header, no tensors, whatever keys a test wants."""

from __future__ import annotations

import struct


def gguf(*pairs: tuple[str, int | str | list[int] | list[str]], version: int = 3) -> bytes:
    """Integers are written as uint32, lists as arrays of them or of strings."""
    data = b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs))
    return data + b"".join(_string(key) + _typed(value) for key, value in pairs)


def _typed(value: int | str | list[int] | list[str]) -> bytes:
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    items = [_string(v) if isinstance(v, str) else struct.pack("<I", v) for v in value]
    return struct.pack("<IIQ", 9, 8 if value and isinstance(value[0], str) else 4, len(value)) + b"".join(items)


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()
