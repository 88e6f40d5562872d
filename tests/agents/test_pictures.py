"""What is taken for a picture: by its own structure, whole, and of a size that providers take."""

from __future__ import annotations

from base64 import b64decode
from zlib import compress, crc32

import pytest

from agents.pictures import LONGEST_SIDE, Picture, picture


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + crc32(kind + data).to_bytes(4, "big")


def png(width: int = 3, height: int = 2) -> bytes:
    """A grey PNG; of a large one only the first rows are there."""
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    rows = compress(b"\0" * (width + 1) * min(height, 4))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def jpeg(width: int = 3, height: int = 2) -> bytes:
    """The segments of a JPEG: comment with an end mark in it, frame, tables, scan, end."""
    frame = bytes([8]) + height.to_bytes(2, "big") + width.to_bytes(2, "big") + bytes([1, 1, 0x11, 0])
    parts = [(0xFE, b"\xff\xd9"), (0xC4, bytes(17)), (0xC0, frame), (0xDA, bytes([1, 1, 0, 0, 63, 0]))]
    segments = [bytes([0xFF, kind]) + (len(data) + 2).to_bytes(2, "big") + data for kind, data in parts]
    return b"\xff\xd8" + b"".join(segments) + b"\x12\xff\x00\x34" + b"\xff\xd9"


def gif(width: int = 3, height: int = 2) -> bytes:
    """An animation's extension, then one frame."""
    size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    extension = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    return b"GIF89a" + size + b"\x80\0\0" + bytes(6) + extension + b"\x2c" + bytes(9) + b"\x02\x02\x44\x01\0\x3b"


def webp(width: int = 3, height: int = 2) -> bytes:
    data = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + len(data).to_bytes(4, "little") + data
    return b"RIFF" + len(body).to_bytes(4, "little") + body


MADE = {"png": png, "jpg": jpeg, "gif": gif, "webp": webp}
TYPES = {"png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}

SMALLEST = {
    "lossy": "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA",
    "lossless": "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==",
    "gif": "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
    "png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
}
"""Pictures of one pixel that others made."""


@pytest.mark.parametrize("ending", MADE)
def test_what_it_is_and_how_large(ending: str) -> None:
    assert picture(MADE[ending](640, 480)) == Picture(TYPES[ending], ending, 640, 480)
    assert picture(MADE[ending](LONGEST_SIDE, 1)).width == LONGEST_SIDE


@pytest.mark.parametrize("name", SMALLEST)
def test_pictures_of_other_programs(name: str) -> None:
    found = picture(b64decode(SMALLEST[name]))
    assert (found.width, found.height) == (1, 1)


@pytest.mark.parametrize("ending", MADE)
@pytest.mark.parametrize("size", [(LONGEST_SIDE + 1, 1), (1, LONGEST_SIDE + 1)])
def test_one_that_is_too_large_is_none(ending: str, size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="pixels"):
        picture(MADE[ending](*size))


@pytest.mark.parametrize("ending", MADE)
def test_one_that_breaks_off_is_none_wherever_it_does(ending: str) -> None:
    whole = MADE[ending]()
    ends = len(whole) - 1 if ending == "gif" else len(whole)  # of a GIF the end mark itself is missing in many
    for length in range(ends):
        with pytest.raises(ValueError, match=r"."):
            picture(whole[:length])


def test_a_png_with_a_damaged_byte_is_none() -> None:
    whole = png()
    for at in range(8, len(whole)):
        with pytest.raises(ValueError, match=r"."):
            picture(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])


@pytest.mark.parametrize(
    "data",
    [
        b"RIFF\x24\x08\0\0WAVEfmt " + bytes(40), b"RIFF" + bytes(4) + b"AVI ", b"\x89PNG\r\n\x1a\n" + bytes(range(30)),
        b"\xff\xd8\xff" + bytes(100), b"\xff\xd8" + b"\xff" * 1000, b"GIF8", b"GIF88a" + bytes(50),
        b"GIF89a" + bytes(50),
        b"<svg onload=alert(1)>", b"%PDF-1.7", b"", b"\0\0\0\x18ftypheic", b"RIFF\x04\0\0\0WEBP",
    ],
)  # fmt: skip
def test_other_files_are_none(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        picture(data)
