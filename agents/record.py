"""A conversation as one text to be read, for a model that is to note or sum up and not to go on with it.

Sent as messages, a conversation is continued: the model answers it, calls its tools, and the provider wants every tool
declared. As a record it is data, fenced and with its times. Knows no model and no window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import assert_never

from agents.budget import tokens
from agents.conversation import Line
from agents.model import AssistantMessage, ToolResult, UserMessage
from agents.quoting import quoted
from agents.trimming import shortened

SOURCE = "the conversation"

LONGEST_RESULT = 2_000
LONGEST_CALL = 300
"""Characters: what a tool said or was told stands in a file or can be had again; what people said can't."""


def record(lines: Sequence[Line], zone: tzinfo | None, most: int) -> str:
    """The lines as a fenced text. ``zone`` None is the machine's; one message has at most ``most`` tokens."""
    return quoted("\n".join(filter(None, (_told(line, zone, most) for line in lines))), SOURCE)


def batches(lines: Sequence[Line], room: int) -> Iterator[Sequence[Line]]:
    """The lines in as few runs as fit into ``room`` tokens each, none cut between a call and its result.

    One message counts for at most half of ``room``, as ``record`` is to show it: ``record(…, most=room // 2)``.
    """
    start = spent = 0
    for at, line in enumerate(lines):
        cost = tokens(_told(line, None, room // 2)) + 1
        if spent + cost > room and at > start and not isinstance(line.message, ToolResult):
            yield lines[start:at]
            start, spent = at, 0
        spent += cost
    if start < len(lines):
        yield lines[start:]


def halves(lines: Sequence[Line]) -> list[Sequence[Line]]:
    """The lines in two runs, as even as can be, for a model that doesn't take them; in one that can't be parted."""
    places = [at for at in range(1, len(lines)) if not isinstance(lines[at].message, ToolResult)]
    at = min(places, key=lambda at: abs(2 * at - len(lines)), default=0)
    return [lines[:at], lines[at:]] if at else [lines]


def _told(line: Line, zone: tzinfo | None, most: int) -> str:
    """One line of the record, "" for a message without words."""
    message = line.message
    match message:
        case UserMessage(images=images):
            named = message.naming(images)
            told = f"{_time(line.at, zone)}Person: {named}" if named.strip() else ""
        case AssistantMessage(text=text, tool_calls=calls):
            used = (f"(calls {call.name} {_brief(call.arguments, LONGEST_CALL)})" for call in calls)
            told = "\n".join([*([f"Assistant: {text}"] if text.strip() else []), *used])
        case ToolResult(name=name, text=text):
            told = f"({name} gave: {_brief(text, LONGEST_RESULT)})"
        case _:
            assert_never(message)
    cost = tokens(told)
    return _brief(told, len(told) * most // cost) if cost > most else told


def _time(at: str, zone: tzinfo | None) -> str:
    with suppress(ValueError):
        return f"[{datetime.fromisoformat(at).astimezone(zone):%a %Y-%m-%d %H:%M}] "
    return ""


def _brief(text: str, most: int) -> str:
    return shortened(text, most * 2 // 3, most // 3, "the middle")
