"""Pictures that came with a message, fetched into the workspace for the agent to see.

They lie in the ``media`` folder of the chat's own scope, under the turn they came with: fetched again after a crash
they take the same place. Other files are not fetched.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from adapters.errors import AdapterError
from agents.model import Image
from agents.pictures import picture
from agents.quoting import one_line
from workspaces.confined import Confined
from workspaces.names import portable_name
from workspaces.paths import OutOfReach

if TYPE_CHECKING:
    from pathlib import Path

    from adapters.adapter import Adapter
    from adapters.message import Attachment, Message
    from workspaces.scope import Scope

log = structlog.get_logger(__name__)

LARGEST = 10_000_000
"""Bytes of a picture; providers take no larger one."""


async def pictures(message: Message, turn: str, adapter: Adapter, root: Path, scope: Scope) -> tuple[Image, ...]:
    """The pictures of ``message``, on the disk; one that can't be had is left out, and the log says why."""
    found: list[Image] = []
    for number, attachment in enumerate(message.attachments, 1):
        if attachment.kind == "image":
            try:
                found.append(await _fetched(attachment, adapter, root, scope, f"{turn}-{number}"))
            except (AdapterError, OSError, OutOfReach, ValueError) as error:
                log.warning("media.not_fetched", turn=turn, name=one_line(attachment.name, 80), reason=str(error))
    return tuple(found)


async def _fetched(attachment: Attachment, adapter: Adapter, root: Path, scope: Scope, name: str) -> Image:
    data = b"".join([chunk async for chunk in adapter.fetch(attachment.ref, LARGEST)])
    seen = await asyncio.to_thread(picture, data)
    path = f"{scope.folder}media/{portable_name(name)}.{seen.ending}"
    await asyncio.to_thread(_write, Confined(root, scope), path, data)
    return Image(path, seen.media_type)


def _write(reach: Confined, path: str, data: bytes) -> None:
    reach.write(reach.located(path, write=True), data, read=None)  # it is there after a crash: then nothing is written
