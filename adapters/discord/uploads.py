"""Files on their way to Discord: opened and checked. Nothing is read into memory. Knows no chat and no call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.errors import Rejected
from adapters.message import File
from adapters.text import sanitize

if TYPE_CHECKING:
    import discord

FILE_LIMIT = 10 << 20
"""Bytes that a bot may send in one file on a server without boosts."""

ALBUM = 10

_IN_HEADERS = str.maketrans({'"': "'", "\\": "_", "/": "_", "\n": " ", "\t": " "})
"""Characters that would be escaped in the header of a file, and so be shown with their escapes."""


@asynccontextmanager
async def opened(files: Sequence[File]) -> AsyncIterator[list[discord.File]]:
    """The files of one message. Raises Rejected for what Discord would not take."""
    if len(files) > ALBUM:
        raise Rejected(f"{len(files)} files in one message: Discord takes {ALBUM}")
    with ExitStack() as stack:
        yield [await asyncio.to_thread(_opened, file, stack) for file in files]


def _opened(file: File, stack: ExitStack) -> discord.File:
    import discord

    name = sanitize(file.name).translate(_IN_HEADERS)
    try:
        size = Path(file.path).stat().st_size
        if size > FILE_LIMIT:
            raise Rejected(f"{name} has {size} bytes: a Discord bot may send {FILE_LIMIT}")
        held = discord.File(file.path, name)
    except OSError as error:
        raise Rejected(f"{name} can't be read ({error.strerror}): it has to be there until it is sent") from None
    stack.callback(held.close)
    return held
