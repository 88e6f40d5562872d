"""OpenAI's chat completions format, both ways: a ``Request`` as a JSON body, and the chunks of an answer as events.

It is what the lean client speaks over HTTP, what litellm translates every provider to, and what the embedded engine
takes in process; so all three share one reader. Knows no transport and no provider's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from agents.model import (
    AssistantMessage,
    ChatMessage,
    Finished,
    ModelEvent,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
)
from agents.surrogates import SurrogateMender, mended
from agents.thinking import ThinkFilter
from agents.tool_calls import CallAssembler

Json: TypeAlias = dict[str, Any]
Reason: TypeAlias = Literal["stop", "tools", "length", "filtered"]

LONGEST_NAME = 64
"""Characters of a tool's name, by OpenAI's reference; letters, digits, "_" and "-" are taken."""

_FOREIGN_TO_NAMES = re.compile(r"[^A-Za-z0-9_-]")

_REASONS: Mapping[str, Reason] = {
    "stop": "stop",
    "end_turn": "stop",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
}


def body_of(
    request: Request,
    model: str,
    *,
    temperature: float | None = None,
    max_output: int | None = None,
    output_field: str = "max_tokens",
    reasoning_field: str = "reasoning_content",
) -> Json:
    """The body of a streamed call. ``temperature`` and ``max_output`` (tokens) hold where the request says nothing.

    Keys come in a fixed order and what changes from turn to turn comes last within the messages, so that the prefix
    of two bodies of one session is the same bytes.
    """
    body: Json = {"model": model, "messages": _messages(request, reasoning_field)}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": dict(t.parameters)},
            }
            for t in request.tools
        ]
    most = request.max_output if request.max_output is not None else max_output
    if most is not None:
        body[output_field] = most
    warmth = request.temperature if request.temperature is not None else temperature
    if warmth is not None:
        body["temperature"] = warmth
    return body | {"stream": True, "stream_options": {"include_usage": True}}


def _messages(request: Request, reasoning_field: str) -> list[Json]:
    messages: list[Json] = [{"role": "system", "content": mended(request.system)}] if request.system else []
    messages += [_message(m, reasoning_field) for m in request.messages]
    return messages


def _message(message: ChatMessage, reasoning_field: str) -> Json:
    if isinstance(message, UserMessage):
        return {"role": "user", "content": mended(message.text)}
    if isinstance(message, ToolResult):
        return {"role": "tool", "tool_call_id": message.call_id, "content": mended(message.text)}
    return _answer(message, reasoning_field)


def _answer(message: AssistantMessage, reasoning_field: str) -> Json:
    text = mended(message.text)
    if not message.tool_calls:
        return {"role": "assistant", "content": text}
    answer: Json = {"role": "assistant", "content": text or None}
    if message.reasoning:  # providers that think between calls answer 400 when their thought does not come back
        answer[reasoning_field] = mended(message.reasoning)
    answer["tool_calls"] = [_call(call) for call in message.tool_calls]
    return answer


def _call(call: ToolCall) -> Json:
    """A name that the model made up becomes one that providers take back: one bad one would refuse all later calls."""
    name = _FOREIGN_TO_NAMES.sub("_", call.name)[:LONGEST_NAME] or "unknown"
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": mended(call.arguments)}}


def error_in(chunk: Mapping[str, Any]) -> Any:
    """The error that a chunk or a body reports in place of an answer, None where it reports none."""
    if chunk.get("error"):
        return chunk["error"]
    return _choice(chunk).get("error") or None


class AnswerReader:
    """Reads one answer, chunk by chunk (``chat.completion.chunk``) or as a whole (``chat.completion``)."""

    def __init__(self, request: Request) -> None:
        taken = {c.id for m in request.messages if isinstance(m, AssistantMessage) for c in m.tool_calls}
        self._calls = CallAssembler(taken)
        self._thinking = ThinkFilter()
        self._text, self._reasoning = SurrogateMender(), SurrogateMender()
        self._reason: Reason | None = None
        self._usage = Usage()

    @property
    def is_complete(self) -> bool:
        """Whether the provider said why it ended; what may still come is the usage."""
        return self._reason is not None

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[TextDelta | ReasoningDelta]:
        if isinstance(chunk.get("usage"), Mapping):
            self._usage = _usage(chunk["usage"])
        choice = _choice(chunk)
        delta, whole = choice.get("delta"), choice.get("message")
        delta = delta if isinstance(delta, Mapping) else whole
        if isinstance(delta, Mapping):
            text, reasoning = _parts(delta)
            if reasoning := self._reasoning.feed(reasoning):
                yield ReasoningDelta(reasoning)
            yield from self._thinking.feed(self._text.feed(text))
            for position, piece in enumerate(_entries(delta.get("tool_calls"))):
                self._calls.add({"index": position, **piece} if delta is whole else piece)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = _REASONS.get(reason, "stop")

    def end(self) -> Iterator[ModelEvent]:
        """What was held back, then ``Finished``. Only for an answer that is known to be whole."""
        if reasoning := self._reasoning.end():
            yield ReasoningDelta(reasoning)
        yield from self._thinking.feed(self._text.end())
        yield from self._thinking.end()
        calls, reason = self._calls.calls(), self._reason or "stop"
        if reason in ("stop", "tools"):  # several servers say "stop" after calls, or "tool_calls" without one
            reason = "tools" if calls else "stop"
        yield Finished(reason, calls, self._usage)


def _choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(iter(_entries(chunk.get("choices"))), {})


def _entries(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list; anything else a server may put there is passed over."""
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, Sequence) else []


def _parts(delta: Mapping[str, Any]) -> tuple[str, str]:
    """Text and reasoning of a delta: strings, or Mistral's lists of typed parts."""
    content = delta.get("content")
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    thought = reasoning if isinstance(reasoning, str) else ""
    if isinstance(content, str):
        return content, thought
    text = ""
    for part in _entries(content):
        if isinstance(part.get("text"), str):
            text += part["text"]
        for thinking in _entries(part.get("thinking")):
            thought += thinking["text"] if isinstance(thinking.get("text"), str) else ""
    return text, thought


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Tokens; the cached ones are told apart in OpenAI's form or in DeepSeek's."""
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else usage.get("prompt_cache_hit_tokens")
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
    return Usage(*(count if isinstance(count, int) and count > 0 else 0 for count in counts))
