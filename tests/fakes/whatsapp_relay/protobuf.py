"""Protocol Buffers as bytes: messages are dictionaries from field numbers to integers, bytes or messages.

The server speaks the few messages of the login by their numbers, and so needs nothing of the library under test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, Union

Value: TypeAlias = Union[int, bytes, "Mapping[int, Value]"]

_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
"""By wire type, the size in bytes."""


def encoded(message: Mapping[int, Value]) -> bytes:
    out = b""
    for number, value in message.items():
        if isinstance(value, int):
            out += _varint(number << 3 | _VARINT) + _varint(value)
        else:
            body = value if isinstance(value, bytes) else encoded(value)
            out += _varint(number << 3 | _BYTES) + _varint(len(body)) + body
    return out


def decoded(data: bytes) -> dict[int, int | bytes]:
    """The last value of each field; a message within is bytes, to be decoded in turn."""
    found: dict[int, int | bytes] = {}
    place = 0
    while place < len(data):
        key, place = _number(data, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            found[number], place = _number(data, place)
        elif kind == _BYTES:
            size, place = _number(data, place)
            found[number] = data[place : place + size]
            place += size
        elif kind in _FIXED:
            found[number] = int.from_bytes(data[place : place + _FIXED[kind]], "little")
            place += _FIXED[kind]
        else:
            raise ValueError(f"field {number} has the unknown wire type {kind}")
    return found


def inner(message: Mapping[int, int | bytes], number: int) -> dict[int, int | bytes]:
    """The message in field ``number``."""
    return decoded(raw(message, number))


def raw(message: Mapping[int, int | bytes], number: int) -> bytes:
    value = message[number]
    assert isinstance(value, bytes), f"field {number} holds a number"
    return value


def integer(message: Mapping[int, int | bytes], number: int) -> int:
    """0 where it is not there."""
    value = message.get(number, 0)
    assert isinstance(value, int), f"field {number} holds bytes"
    return value


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _number(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
