"""Files on their way to Slack: opened, checked and uploaded, and then shown as one message.

Nothing is read into memory: what is handed on are open files. Slack shows a file a moment after it says so; that is
waited for, so that what is said next comes below it. Knows no part.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from adapters.errors import AdapterError, Rejected
from adapters.text import sanitize

if TYPE_CHECKING:
    from adapters.message import File
    from adapters.slack.client import Client, Json

FILE_LIMIT = 1 << 30
"""Bytes that Slack takes in one file."""

ALBUM = 10
"""Files that Slack shows with one message."""

_PAUSES = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Seconds before each look whether a file is shown."""


@dataclass(frozen=True, slots=True)
class Upload:
    """``content`` is at its beginning; ``size`` is in bytes."""

    name: str
    size: int
    content: IO[bytes]


@asynccontextmanager
async def opened(files: Sequence[File]) -> AsyncIterator[list[Upload]]:
    """The files of one message. Raises Rejected for what Slack would not take."""
    if len(files) > ALBUM:
        raise Rejected(f"{len(files)} files in one message: Slack shows {ALBUM}")
    with ExitStack() as stack:
        yield [await _opened(file, stack) for file in files]


async def _opened(file: File, stack: ExitStack) -> Upload:
    name = " ".join(sanitize(file.name).split())
    try:
        content = await asyncio.to_thread(Path(file.path).open, "rb")
        stack.callback(content.close)
        size = os.fstat(content.fileno()).st_size
    except OSError as error:
        raise Rejected(f"{name} can't be read ({error.strerror}): it has to be there until it is sent") from None
    if size == 0:
        raise Rejected(f"{name} is empty: Slack takes no empty file")
    if size > FILE_LIMIT:
        raise Rejected(f"{name} has {size} bytes: Slack takes {FILE_LIMIT}")
    return Upload(name, size, content)


async def uploaded(client: Client, uploads: Sequence[Upload]) -> list[tuple[str, str]]:
    """The ids and names of files that nobody sees yet; all of it may be done again."""
    return [(await client.upload(one.name, one.size, one.content), one.name) for one in uploads]


async def shown(
    client: Client, file: str, chat: str, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> str | None:
    """The message that shows a file in ``chat``; None where Slack doesn't say so in time."""
    for pause in _PAUSES:
        await sleep(pause)
        try:
            if message := _message(await client.file(file), chat):
                return message
        except AdapterError:
            return None
    return None


def _message(file: Json, chat: str) -> str | None:
    shares = file.get("shares")
    for places in shares.values() if isinstance(shares, dict) else ():
        for share in places.get(chat, ()) if isinstance(places, dict) else ():
            if isinstance(share, dict) and isinstance(share.get("ts"), str):
                return str(share["ts"])
    return None
