"""A conversation on disk and as a model reads it: transcript entries ⇄ chat messages.

What a crash left half done is completed here, so that a provider never sees a tool call without its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, assert_never

from agents.model import AssistantMessage, ChatMessage, ToolCall, ToolResult, UserMessage
from agents.quoting import Quotation, accompanied, one_line
from workspaces.transcript import Entry

INTERRUPTED = "Interrupted: the program was stopped while this ran. It may or may not have had an effect."


def body(message: ChatMessage) -> tuple[str, dict[str, Any]]:
    """The kind and the body of the entry that stores ``message``."""
    match message:
        case UserMessage():
            return "user", asdict(message)
        case AssistantMessage():
            return "assistant", asdict(message)
        case ToolResult():
            return "tool", asdict(message)
        case _:
            assert_never(message)


def messages(entries: Iterable[Entry]) -> list[ChatMessage]:
    """The messages of a transcript, in order, every call followed by exactly one result."""
    found: list[ChatMessage] = []
    waiting: dict[str, ToolCall] = {}
    for entry in entries:
        message = _message(entry)
        if message is None:
            continue
        if isinstance(message, ToolResult):
            if waiting.pop(message.call_id, None) is not None:
                found.append(message)
            continue
        found.extend(_interrupted(waiting))
        found.append(message)
        waiting = {call.id: call for call in message.tool_calls} if isinstance(message, AssistantMessage) else {}
    found.extend(_interrupted(waiting))
    return found


def fitting(history: Sequence[ChatMessage], tokens: int) -> list[ChatMessage]:
    """The newest whole exchanges that fit into ``tokens``: the first message kept is a person's."""
    from agents.budget import estimate

    kept = len(history)
    spent = 0
    for index in range(len(history) - 1, -1, -1):
        spent += estimate(history[index])
        if spent > tokens:
            break
        if isinstance(history[index], UserMessage):
            kept = index
    return list(history[kept:])


def _interrupted(waiting: Mapping[str, ToolCall]) -> list[ChatMessage]:
    return [ToolResult(call.id, call.name, INTERRUPTED, is_error=True) for call in waiting.values()]


def _message(entry: Entry) -> ChatMessage | None:
    """The message of an entry; None for one that holds none, or is damaged."""
    try:
        return _read(entry)
    except (KeyError, TypeError, AttributeError):
        return None


def _read(entry: Entry) -> ChatMessage | None:
    body = entry.body
    match entry.kind:
        case "user":
            return UserMessage(_said(body))
        case "assistant":
            calls = tuple(ToolCall(c["id"], c["name"], c["arguments"]) for c in body.get("tool_calls", ()))
            return AssistantMessage(str(body.get("text", "")), calls, str(body.get("reasoning", "")))
        case "tool":
            return ToolResult(body["call_id"], body["name"], str(body["text"]), bool(body.get("is_error")))
        case _:
            return None


def _said(body: Mapping[str, Any]) -> str:
    """A person's words as they were: what they quoted in its fence, and who spoke where several do."""
    came = [Quotation(str(q["text"]), str(q["source"]), bool(q.get("below"))) for q in body.get("quotations", ())]
    who = f"[{one_line(str(body['sender']), 60)}] " if body.get("sender") else ""
    return accompanied(who + str(body.get("text", "")), came)
