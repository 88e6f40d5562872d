"""Reads the one thing of a GGUF file that has to be known before it is loaded: the length of its context window.

Version 2 and 3 of the format (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): a magic, counts, then typed
key-value pairs, little-endian. Reads no tensor, and trusts no length that it finds.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

MAGIC = b"GGUF"

_FIXED = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LONGEST_STRING = 1 << 24
_MOST_ENTRIES = 1 << 24


class NotGGUFError(Exception):
    """The file is not what it says it is, or ends too early."""


def context_length(path: Path) -> int | None:
    """The window in tokens that the model was made for, None where the file doesn't say. Raises NotGGUFError."""
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise NotGGUFError(f"{path} is no GGUF file")
        version, _, count = _unpack(file, "IQQ")
        if version not in (2, 3) or count > _MOST_ENTRIES:
            raise NotGGUFError(f"{path} is a GGUF file of an unknown version ({version})")
        for _ in range(count):
            key = _string(file)
            value = _value(file, _unpack(file, "I")[0])
            if key.endswith(b".context_length") and isinstance(value, int):
                return value
    return None


def _value(file: BinaryIO, kind: int) -> object:
    """The value at the file's position; arrays are passed over, since no number that we want is in one."""
    if kind in _FIXED:
        return _unpack(file, _FIXED[kind])[0]
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        raise NotGGUFError(f"unknown type of value {kind}")
    inner, count = _unpack(file, "IQ")
    if count > _MOST_ENTRIES:
        raise NotGGUFError(f"an array of {count} entries")
    if inner in _FIXED:
        file.seek(count * struct.calcsize("<" + _FIXED[inner]), 1)
    else:
        for _ in range(count):
            _value(file, inner)
    return None


def _string(file: BinaryIO) -> bytes:
    (length,) = _unpack(file, "Q")
    if length > _LONGEST_STRING:
        raise NotGGUFError(f"a string of {length} bytes")
    return _exactly(file, length)


def _unpack(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack("<" + form, _exactly(file, struct.calcsize("<" + form)))


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise NotGGUFError("the file ends too early")
    return data
