"""Files that the bot sends: what the real server refuses, and what it makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.fakes.telegram_api.checks import Json, RefusalError, bad

FILE_LIMIT = 50 << 20
PHOTO_LIMIT = 10 << 20
"""Bytes."""

_FAMILIES = {"photo": "pictures", "video": "pictures", "audio": "audio", "document": "documents"}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a multipart request."""

    name: str
    media_type: str
    data: bytes = field(repr=False)


def uploaded(kind: str, value: Any, number: int) -> tuple[str, Json]:
    """What the file of a ``kind`` is shown as, and how the message holds it."""
    if not isinstance(value, Upload):
        raise bad(f"there is no {kind} in the request")
    if len(value.data) > FILE_LIMIT:
        raise RefusalError(413, "Request Entity Too Large")
    if not value.data:
        raise bad("file must be non-empty")
    shown = _shown(kind, value)
    file: Json = {"file_id": f"sent-{number}", "file_unique_id": f"u{number}", "file_size": len(value.data)}
    match shown:
        case "photo":
            width, height = _sides(value.data)
            return shown, {"photo": [file | {"width": width, "height": height}]}
        case "video":
            file |= {"width": 1, "height": 1}
    if shown in ("video", "audio", "voice"):
        file |= {"duration": 1}
    if shown in ("video", "audio", "document"):
        file |= {"file_name": value.name}
    return shown, {shown: file | {"mime_type": value.media_type}}


def check_album(kinds: list[str]) -> None:
    if not 2 <= len(kinds) <= 10:
        raise bad("group send failed: wrong number of messages in the album")
    if len({_FAMILIES.get(kind, kind) for kind in kinds}) > 1 or not set(kinds) <= _FAMILIES.keys():
        raise bad("media of different types can't be mixed in an album")


def _shown(kind: str, file: Upload) -> str:
    """The real server shows what a kind is not as a document."""
    data = file.data
    match kind:
        case "photo":
            width, height = _sides(data)
            if len(data) > PHOTO_LIMIT:
                raise bad(f"file of size {len(data)} bytes is too big for a photo; the maximum size is {PHOTO_LIMIT}")
            if width + height > 10_000 or max(width, height) > 20 * min(width, height):
                raise bad("PHOTO_INVALID_DIMENSIONS")
            return "photo"
        case "voice":
            plays = data.startswith((b"OggS", b"ID3", b"\xff\xfb")) or data[4:11] == b"ftypM4A"
            return "voice" if plays else "document"
        case "video":
            return "video" if data[4:8] == b"ftyp" else "document"
    return kind


def _sides(data: bytes) -> tuple[int, int]:
    """Of a PNG, of a JPEG, and of a WebP with a header of its own."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if data[8:16] == b"WEBPVP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    frame = data.find(b"\xff\xc0")
    if data.startswith(b"\xff\xd8\xff") and frame > 0:
        return int.from_bytes(data[frame + 7 : frame + 9], "big"), int.from_bytes(data[frame + 5 : frame + 7], "big")
    raise bad("IMAGE_PROCESS_FAILED")
