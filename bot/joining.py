"""Which waiting messages are answered as one: the pictures of an album, the pieces of a text too long for one message,
what was said within the pause of a debounce, and in a session that collects whatever one person said meanwhile.

Pure: messages go in, and the one that they make comes out. Knows no inbox and no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from adapters.message import Attachment, Message
from bot import commands
from bot.queueing import Queue, is_press

ALBUM_SECONDS = 1.0
PASTE_SECONDS = 1.5
"""How long the rest of an album, or of a text, is waited for behind its last piece."""

_APART = timedelta(seconds=4)
"""What was said later than this after the piece before is another message. Some platforms tell whole seconds only."""

_WHOLE_SECOND = 1.0
"""Added to the pause of a debounce, for the same reason."""

ONE_BY_ONE = Queue("followup")
"""Joins nothing but what was sent as one."""


def gap(message: Message, queue: Queue = ONE_BY_ONE) -> float:
    """Seconds to wait behind ``message`` for what may belong to it; 0.0 for one that is whole."""
    if message.album is not None:
        return max(ALBUM_SECONDS, queue.debounce)
    if not _goes_together(message):
        return 0.0
    return max(PASTE_SECONDS if message.is_cut else 0.0, queue.debounce)


def belonging(first: Message, later: Sequence[Message], queue: Queue = ONE_BY_ONE) -> list[int]:
    """Which of ``later``, in the order in which they came, are answered as one with ``first``: their indices.

    What others said between is passed over.
    """
    found, last = [], first
    for index, message in enumerate(later):
        if not is_same_place(message, first):
            continue
        if not (_goes_on(last, message) or _joins(last, message, queue)):
            break
        found.append(index)
        last = message
    return found


def wholes(messages: Sequence[Message]) -> list[list[int]]:
    """The indices of ``messages``, those that were sent as one together, by when the first of them came."""
    found: list[list[int]] = []
    left = list(range(len(messages)))
    while left:
        first, *rest = left
        together = [rest[index] for index in belonging(messages[first], [messages[index] for index in rest])]
        found.append([first, *together])
        left = [index for index in rest if index not in together]
    return found


def merged(messages: Sequence[Message]) -> Message:
    """The message that ``messages``, sent as one, are together; the first gives its id, place and time.

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


def is_same_place(later: Message, message: Message) -> bool:
    """Whether both are of one sender at one address."""
    return later.sender.id == message.sender.id and later.address == message.address


def may_enter(later: Message, message: Message) -> bool:
    """Whether ``later`` may enter the turn that answers ``message``: the same sender's words at the same place."""
    return is_same_place(later, message) and commands.given(later) is None


def _goes_together(message: Message) -> bool:
    return commands.given(message) is None and not is_press(message)


def _goes_on(before: Message, after: Message) -> bool:
    """Whether they were sent as one."""
    if before.album is not None or after.album is not None:
        return before.album == after.album
    is_next = after.sent_at - before.sent_at <= _APART and after.forwarded_from == before.forwarded_from
    return before.is_cut and is_next and bool(after.text) and commands.given(after) is None


def _joins(before: Message, after: Message, queue: Queue) -> bool:
    """Whether they are answered as one though they were not sent so."""
    if not (_goes_together(before) and _goes_together(after)):
        return False
    if queue.mode == "collect":
        return True
    soon = timedelta(seconds=queue.debounce + _WHOLE_SECOND)
    return bool(queue.debounce) and after.sent_at - before.sent_at <= soon
