"""Which waiting messages were sent as one: the pictures of an album, the pieces of a text too long for one message.

Pure: messages go in, and the one that they make comes out. Knows no inbox and no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from adapters.message import Attachment, Message
from bot import commands

ALBUM_SECONDS = 1.0
PASTE_SECONDS = 1.5
"""How long the rest of an album, or of a text, is waited for behind its last piece."""

_APART = timedelta(seconds=4)
"""What was said later than this after the piece before is another message. Some platforms tell whole seconds only."""


def gap(message: Message) -> float:
    """Seconds to wait behind ``message`` for what may belong to it; 0.0 for one that is whole."""
    if message.album is not None:
        return ALBUM_SECONDS
    return PASTE_SECONDS if message.is_cut and commands.given(message) is None else 0.0


def belonging(first: Message, later: Sequence[Message]) -> list[int]:
    """Which of ``later``, in the order in which they came, were sent as one with ``first``: their indices.

    What others said between is passed over.
    """
    found, last = [], first
    for index, message in enumerate(later):
        if message.sender.id != first.sender.id or message.address != first.address:
            continue
        if not _goes_on(last, message):
            break
        found.append(index)
        last = message
    return found


def merged(messages: Sequence[Message]) -> Message:
    """The message that ``messages`` are together; the first gives its id, place and time.

    The caption of a picture of an album begins with the number of the picture, unless only the first has one.
    """
    first, *rest = messages
    if not rest:
        return first
    files: list[Attachment] = []
    texts: list[str] = []
    for message in messages:
        files += message.attachments
        if message.text:
            texts.append(f"[{len(files)}] {message.text}" if first.album is not None else message.text)
    if first.album is not None and len(texts) == 1 and first.text:
        texts = [first.text]
    return replace(
        first,
        text="\n".join(texts),
        attachments=tuple(files),
        quote=next((message.quote for message in messages if message.quote), None),
        reply_to=next((message.reply_to for message in messages if message.reply_to), None),
        mentions_me=any(message.mentions_me for message in messages),
        album=None,
        is_cut=False,
    )


def _goes_on(before: Message, after: Message) -> bool:
    if before.album is not None or after.album is not None:
        return before.album == after.album
    is_next = after.sent_at - before.sent_at <= _APART and after.forwarded_from == before.forwarded_from
    return before.is_cut and is_next and bool(after.text) and commands.given(after) is None
