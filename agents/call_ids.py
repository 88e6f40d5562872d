"""The ids of the tool calls in one request: each is present once, and of a form that its reader takes.

A history may hold calls of another model, whose ids are too long or too odd for this one (some carry a signature), and
ids that two answers share. Knows no provider.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from agents.model import AssistantMessage, ChatMessage, ToolCall, ToolResult


def free_id(used: Collection[str]) -> str:
    """Nine letters and digits: the one form that every provider takes, Mistral's being the strictest."""
    return next(name for n in itertools.count(1) if (name := f"call{n:05d}") not in used)


def with_own_ids(messages: Iterable[ChatMessage], model: str) -> Iterator[ChatMessage]:
    """``messages`` as ``model`` can take them back: its own calls keep their ids, all others get new ones.

    A call that is twice in one message stays once, with one result. The same history gives the same ids.
    """
    messages = tuple(messages)
    if not any(isinstance(m, ToolResult) or (isinstance(m, AssistantMessage) and m.tool_calls) for m in messages):
        yield from messages
        return
    spoken = [m for m in messages if isinstance(m, AssistantMessage) and m.model == model]
    used = {call.id for message in spoken for call in message.tool_calls}
    given: set[str] = set()
    waiting: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            waiting = {}
            if not message.tool_calls:
                yield message
                continue
            calls: list[ToolCall] = []
            for call in message.tool_calls:
                if call.id in waiting:
                    continue
                keeps = message.model == model and call.id not in given
                name = call.id if keeps else free_id(used | given)
                given.add(name)
                waiting[call.id] = name
                calls.append(replace(call, id=name))
            own = tuple(calls)
            yield message if own == message.tool_calls else replace(message, tool_calls=own)
        elif isinstance(message, ToolResult):
            if message.call_id in waiting:
                name = waiting.pop(message.call_id)
                yield message if name == message.call_id else replace(message, call_id=name)
        else:
            yield message
