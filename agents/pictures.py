"""What kind of picture some bytes are, by their own structure: what a platform says of a file is often wrong.

A provider refuses the whole call for one picture that it can't read, and a conversation sends its pictures again and
again. So a picture is looked at before it gets in: its size, and whether its end is there. Decodes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

LONGEST_SIDE = 8_000
"""Pixels; Anthropic refuses a picture with a longer one."""

NO_PICTURE = "it is no picture of a kind that models take"
BROKEN_OFF = "the picture breaks off, or is damaged"


@dataclass(frozen=True, slots=True)
class Picture:
    """``ending`` is that of a file name; ``width`` and ``height`` are in pixels."""

    media_type: str
    ending: str
    width: int
    height: int


def picture(data: bytes) -> Picture:
    """What ``data`` is. Raises ValueError, with one clause, for what no model would take."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        found = Picture("image/png", "png", *_png(data))
    elif data.startswith(b"\xff\xd8\xff"):
        found = Picture("image/jpeg", "jpg", *_jpeg(data))
    elif data.startswith((b"GIF87a", b"GIF89a")):
        found = Picture("image/gif", "gif", *_gif(data))
    elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        found = Picture("image/webp", "webp", *_webp(data))
    else:
        raise ValueError(NO_PICTURE)
    if not (0 < found.width <= LONGEST_SIDE and 0 < found.height <= LONGEST_SIDE):
        raise ValueError(f"it has {found.width} × {found.height} pixels, and a side may have {LONGEST_SIDE:,}")
    return found


def _png(data: bytes) -> tuple[int, int]:
    """By the PNG specification, 5: chunks of length, type, data and checksum, IHDR first and IEND last."""
    kinds: list[bytes] = []
    at = 8
    while at + 12 <= len(data) and kinds[-1:] != [b"IEND"]:
        end = at + 8 + _big(data[at : at + 4])
        if crc32(data[at + 4 : end]) != _big(data[end : end + 4]):
            raise ValueError(BROKEN_OFF)
        kinds.append(data[at + 4 : at + 8])
        at = end + 4
    if kinds[:1] != [b"IHDR"] or b"IDAT" not in kinds or kinds[-1] != b"IEND":
        raise ValueError(BROKEN_OFF)
    return _big(data[16:20]), _big(data[20:24])


def _jpeg(data: bytes) -> tuple[int, int]:
    """By ITU T.81, annex B: segments up to the first scan, one of them the frame's header; then all up to EOI."""
    size = (0, 0)
    for marker, start in _segments(data):
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            size = (_big(data[start + 5 : start + 7]), _big(data[start + 3 : start + 5]))
        if marker == 0xDA and size != (0, 0) and data.find(b"\xff\xd9", start) > 0:
            return size
    raise ValueError(BROKEN_OFF)


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """The marker of each segment of a JPEG up to the first scan, and where its length stands."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a marker may be filled up
            at += 1
            continue
        yield marker, at + 2
        if marker == 0xDA:
            return
        at += 2 + max(2, _big(data[at + 2 : at + 4]))


def _gif(data: bytes) -> tuple[int, int]:
    """By the GIF89a specification, 17 to 26: the screen, then blocks; one of them has to be a whole picture."""
    at = 13 + _colours(data[10:11])
    while at < len(data):
        match data[at]:
            case 0x21:
                at = _behind_blocks(data, at + 2)
            case 0x2C:
                _behind_blocks(data, at + 11 + _colours(data[at + 9 : at + 10]))
                return _little(data[6:8]), _little(data[8:10])
            case _:
                break
    raise ValueError(BROKEN_OFF)


def _colours(flags: bytes) -> int:
    """Bytes of the table of colours that the byte ``flags`` announces."""
    return 3 << ((flags[0] & 7) + 1) if flags and flags[0] & 0x80 else 0


def _behind_blocks(data: bytes, at: int) -> int:
    """Where the sub-blocks that begin at ``at`` end."""
    while at < len(data):
        if data[at] == 0:
            return at + 1
        at += 1 + data[at]
    raise ValueError(BROKEN_OFF)


def _webp(data: bytes) -> tuple[int, int]:
    """By the WebP container specification: the size of the whole, then a first chunk that has that of the picture."""
    if _little(data[4:8]) + 8 > len(data):
        raise ValueError(BROKEN_OFF)
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
        case b"VP8L" if data[20:21] == b"\x2f":
            bits = _little(data[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return _little(data[24:27]) + 1, _little(data[27:30]) + 1
        case _:
            raise ValueError(BROKEN_OFF)


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
