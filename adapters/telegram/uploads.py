"""Files on their way to Telegram: opened, checked, and in the form that it takes them in.

A picture that is too large for a photo goes as a document, sound that is no voice note as audio. Nothing is read into
memory: what is handed on are open files. Knows no chat and no call.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import IO, Literal, TypeAlias

from adapters.errors import Rejected
from adapters.message import File
from adapters.opus import Converter
from adapters.telegram import pictures
from adapters.telegram.voice import is_voice
from adapters.text import sanitize

Form: TypeAlias = Literal["photo", "video", "audio", "voice", "document"]

FILE_LIMIT = 50 << 20
"""Bytes that a bot may send in one file (``telegram.constants.FileSizeLimit``)."""

ALBUM = 10

_PHOTO_LIMIT = 10 << 20
_PHOTO_SIDES = 10_000
_PHOTO_RATIO = 20
"""A photo's bytes, its width and height together, and how many times as long one may be as the other: sendPhoto."""

_ALBUMS = ({"image", "video"}, {"audio"}, {"document"})
"""The kinds of files that may stand in one album together."""

_IN_HEADERS = str.maketrans({'"': "'", "\\": "_", "\n": " ", "\t": " "})
"""Characters that would be escaped in the header of a file, and so be shown with their escapes."""


@dataclass(frozen=True, slots=True)
class Upload:
    """``content`` is at its beginning."""

    form: Form
    content: IO[bytes]
    name: str


@asynccontextmanager
async def opened(files: Sequence[File], converter: Converter) -> AsyncIterator[list[Upload]]:
    """The files of one message, or of one album. Raises Rejected for what Telegram would take in no form."""
    if len(files) > 1:
        _check_album(files)
    with ExitStack() as stack:
        uploads = [await _opened(file, converter, stack) for file in files]
        if any(upload.form == "document" for upload in uploads):  # pictures stay together where one can't be a photo
            uploads = [replace(upload, form="document") for upload in uploads]
        yield uploads


def _check_album(files: Sequence[File]) -> None:
    if len(files) > ALBUM:
        raise Rejected(f"an album of {len(files)} files: Telegram takes {ALBUM}")
    kinds = {file.kind for file in files}
    if not any(kinds <= together for together in _ALBUMS):
        raise Rejected(
            f"an album of {', '.join(sorted(kinds))}: one of Telegram's holds pictures and videos, or documents, "
            "or audio, and no voice notes. Send them apart"
        )


async def _opened(file: File, converter: Converter, stack: ExitStack) -> Upload:
    name = sanitize(file.name).translate(_IN_HEADERS)
    content: IO[bytes]
    try:
        content = await asyncio.to_thread(open, file.path, "rb")
        stack.callback(content.close)
        form = await asyncio.to_thread(_form, file, content)
    except OSError as error:
        raise Rejected(f"{name} can't be read ({error.strerror}): it has to be there until it is sent") from None
    if file.kind == "voice" and form != "voice" and (converted := await converter.opus(content)):
        form, content = "voice", stack.enter_context(converted)
        name = f"{name.rpartition('.')[0] or name}.ogg"
    content.seek(0)
    return Upload(form, content, name)


def _form(file: File, content: IO[bytes]) -> Form:
    size = os.fstat(content.fileno()).st_size
    if size == 0:
        raise Rejected(f"{file.name} is empty: Telegram takes no empty file")
    if size > FILE_LIMIT:
        raise Rejected(f"{file.name} has {size} bytes: a Telegram bot may send {FILE_LIMIT}")
    head = content.read(128)
    match file.kind:
        case "image":
            content.seek(0)
            return "photo" if size <= _PHOTO_LIMIT and _is_photo(content) else "document"
        case "video":
            return "video" if head[4:8] == b"ftyp" else "document"  # other containers are not played
        case "voice":
            return "voice" if is_voice(head) else "audio"
    return file.kind


def _is_photo(content: IO[bytes]) -> bool:
    sides = pictures.size(content)
    if sides is None or min(sides) == 0:
        return False
    return sum(sides) <= _PHOTO_SIDES and max(sides) <= _PHOTO_RATIO * min(sides)
