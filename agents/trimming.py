"""Old messages shown shorter: the head and the tail of a long tool result, the name of a picture in its place.

The cheapest room there is: what a tool said can be asked for again, and no words of a person are touched. Pure; the
transcript keeps every message whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents.model import ChatMessage, ToolResult, UserMessage

HEAD = 800
TAIL = 300
"""Characters of an old result that stay; one that is not much longer stays whole."""

_SLACK = 200
"""A mark costs about this much: what is shorter than head, tail and mark is not worth a cut."""


def shortened(text: str, head: int, tail: int, hint: str) -> str:
    """``text`` with a mark in place of its middle, which says how many characters are gone and what to do about it."""
    gone = len(text) - head - tail
    if gone <= _SLACK:
        return text
    return f"{text[:head]}\n[… {gone:,} characters left out: {hint} …]\n{text[len(text) - tail :]}"


def trimmed(message: ChatMessage) -> ChatMessage:
    """The message as it is shown once it is old; idempotent."""
    match message:
        case ToolResult(text=text, name=name) if len(text) > HEAD + TAIL + _SLACK:
            return replace(message, text=shortened(text, HEAD, TAIL, f"call {name[:64]} again to read them"))
        case UserMessage(images=images) if images:
            return UserMessage(message.naming(images))
        case _:
            return message


def trimmable(messages: Sequence[ChatMessage]) -> int:
    """How many of the first messages have to be trimmed for all of them to be: up to the last that would change."""
    return max((at + 1 for at, message in enumerate(messages) if trimmed(message) != message), default=0)
