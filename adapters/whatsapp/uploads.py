"""Files on their way to WhatsApp: read, checked, and as the message that shows them.

What its apps don't show as a picture, a video or a sound goes as a document, and so does a sound with words: nobody
would see them. The library takes a file as a whole, so that it is read into memory. Knows no chat.
"""

from __future__ import annotations

import asyncio
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from adapters.errors import Rejected
from adapters.message import File
from adapters.opus import Converter, is_opus
from adapters.text import sanitize
from adapters.whatsapp.library import load
from adapters.whatsapp.voice import seconds

FILE_LIMIT = 64 << 20
"""Bytes of one file. WhatsApp takes larger documents; they would be in memory several times."""

_MEDIA_LIMIT = 16 << 20
"""Bytes that WhatsApp shows as a picture, a video or a sound."""

_SOUNDS = {"mp3": "audio/mpeg", "m4a": "audio/mp4", "aac": "audio/aac", "amr": "audio/amr", "ogg": "audio/ogg"}
_OPUS = "audio/ogg; codecs=opus"


@dataclass(frozen=True, slots=True)
class Upload:
    """``form`` is how it is shown; ``is_voice`` that a sound is played as a voice note."""

    form: Literal["image", "video", "audio", "document"]
    data: bytes
    name: str
    media_type: str
    is_voice: bool = False


async def read(file: File, *, has_text: bool, converter: Converter) -> Upload:
    """``file`` in the form that it is taken in. Raises Rejected for what WhatsApp would take in none."""
    name = " ".join(sanitize(file.name).split())
    path = Path(file.path)
    try:
        size = (await asyncio.to_thread(path.stat)).st_size
        if size == 0:
            raise Rejected(f"{name} is empty: WhatsApp takes no empty file")
        if size > FILE_LIMIT:
            raise Rejected(f"{name} has {size} bytes: up to {FILE_LIMIT} are sent to WhatsApp")
        data = await asyncio.to_thread(path.read_bytes)
    except OSError as error:
        raise Rejected(f"{name} can't be read ({error.strerror}): it has to be there until it is sent") from None
    if file.kind == "voice" and not has_text and (data_of := await _voice(path, data, converter)):
        return Upload("audio", data_of, name, _OPUS, is_voice=True)
    return _shown(file, name, data, has_text=has_text)


async def _voice(path: Path, data: bytes, converter: Converter) -> bytes | None:
    if is_opus(data):
        return data
    with path.open("rb") as sound:
        converted = await converter.opus(sound)
    if converted is None:
        return None
    with converted:
        converted.seek(0)
        return converted.read()


def _shown(file: File, name: str, data: bytes, *, has_text: bool) -> Upload:
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if len(data) <= _MEDIA_LIMIT:
        if file.kind == "image" and (picture := _picture(data)):
            return Upload("image", data, name, picture)
        if file.kind == "video" and data[4:8] == b"ftyp":
            return Upload("video", data, name, "video/mp4")
        if file.kind in ("audio", "voice") and not has_text and (sound := _sound(data)):
            return Upload("audio", data, name, sound)
    return Upload("document", data, name, media_type)


def _picture(data: bytes) -> str | None:
    """Its type, where WhatsApp shows it as a picture: a GIF would stand still."""
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _sound(data: bytes) -> str | None:
    if data.startswith(b"OggS"):
        return _OPUS if is_opus(data) else _SOUNDS["ogg"]
    if data.startswith(b"#!AMR"):
        return _SOUNDS["amr"]
    if data[4:8] == b"ftyp":
        return _SOUNDS["m4a"]
    if data.startswith(b"ID3"):
        return _SOUNDS["mp3"]
    if len(data) > 1 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0:  # a frame of MPEG, or of AAC, which has no layer
        return _SOUNDS["mp3" if data[1] & 0x06 else "aac"]
    return None


def body_of(upload: Upload, handed_over: Any, caption: str, context: Any | None) -> Any:
    """The message that shows a file that was handed over; ``context`` is what it answers, if anything."""
    bodies = load().bodies
    own: dict[str, Any] = {
        "URL": handed_over.url,
        "directPath": handed_over.DirectPath,
        "mediaKey": handed_over.MediaKey,
        "fileEncSHA256": handed_over.FileEncSHA256,
        "fileSHA256": handed_over.FileSHA256,
        "fileLength": handed_over.FileLength,
        "mimetype": upload.media_type,
    }
    if context is not None:
        own["contextInfo"] = context
    if caption:
        own["caption"] = caption
    match upload.form:
        case "image":
            return bodies.Message(imageMessage=bodies.ImageMessage(**own))
        case "video":
            return bodies.Message(videoMessage=bodies.VideoMessage(**own))
        case "audio":
            if upload.is_voice:
                own |= {"PTT": True, "seconds": seconds(upload.data)}
            return bodies.Message(audioMessage=bodies.AudioMessage(**own))
    return bodies.Message(documentMessage=bodies.DocumentMessage(fileName=upload.name, title=upload.name, **own))
