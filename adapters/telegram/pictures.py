"""The width and height of a picture, from its first bytes: enough to know whether Telegram takes it as a photo.

JPEG, PNG and WebP, which are what it shows as photos. Decodes nothing.
"""

from __future__ import annotations

from typing import IO

_SHAPE = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG's markers of a frame, which begin with its height and width."""


def size(picture: IO[bytes]) -> tuple[int, int] | None:
    """In pixels; None for what is none of the three, or is cut off."""
    head = picture.read(30)
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return _number(head[16:20]), _number(head[20:24])
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) == 30:
        return _webp(head)
    if head.startswith(b"\xff\xd8\xff"):
        picture.seek(2)
        return _jpeg(picture)
    return None


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _webp(head: bytes) -> tuple[int, int] | None:
    match head[12:16]:
        case b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    return None


def _jpeg(picture: IO[bytes]) -> tuple[int, int] | None:
    """Segment by segment up to the frame; those before it can be as long as a preview of the picture."""
    while len(marker := picture.read(4)) == 4 and marker[0] == 0xFF:
        if marker[1] == 0xFF:  # a byte of padding
            picture.seek(-3, 1)
        elif marker[1] in _SHAPE:
            shape = picture.read(5)
            return (_number(shape[3:5]), _number(shape[1:3])) if len(shape) == 5 else None
        else:
            picture.seek(_number(marker[2:4]) - 2, 1)
    return None
