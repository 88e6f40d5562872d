"""The beginnings of files of every kind: enough for whoever looks at what a file is, and no more."""

from __future__ import annotations


def png(width: int = 40, height: int = 30, *, size: int = 0) -> bytes:
    """``size`` in bytes; it is at least as long as its header."""
    sides = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + sides + b"\x08\x02\x00\x00\x00").ljust(size, b"\0")


def jpeg(width: int = 40, height: int = 30, *, preview: int = 0) -> bytes:
    """A preview of ``preview`` bytes stands before the frame, as cameras do it."""
    app = b"\xff\xe1" + (preview + 2).to_bytes(2, "big") + bytes(preview)
    frame = b"\xff\xc0\x00\x11\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return b"\xff\xd8" + (app if preview else b"") + b"\xff\xff" + frame[1:] + bytes(12)


def webp(form: bytes = b"VP8X", width: int = 40, height: int = 30) -> bytes:
    match form:
        case b"VP8X":
            body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        case b"VP8L":
            body = b"\x2f" + (width - 1 | (height - 1) << 14).to_bytes(4, "little") + bytes(5)
        case _:
            body = bytes(3) + b"\x9d\x01\x2a" + width.to_bytes(2, "little") + height.to_bytes(2, "little")
    return b"RIFF" + (22 + len(body)).to_bytes(4, "little") + b"WEBP" + form + len(body).to_bytes(4, "little") + body


GIF = b"GIF89a\x28\x00\x1e\x00" + bytes(20)
OPUS = b"OggS" + bytes(24) + b"OpusHead" + bytes(60)
VORBIS = b"OggS" + bytes(25) + b"vorbis" + bytes(60)
MP3 = b"ID3\x04" + bytes(60)
BARE_MP3 = b"\xff\xfb\x90\x00" + bytes(60)
M4A = b"\x00\x00\x00\x20ftypM4A " + bytes(60)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(60)
MP4 = b"\x00\x00\x00\x20ftypisom" + bytes(60)
WEBM = b"\x1a\x45\xdf\xa3" + bytes(60)
PDF = b"%PDF-1.7\n" + bytes(20)
