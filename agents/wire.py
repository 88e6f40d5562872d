"""OpenAI's chat completions format, both ways: a ``Request`` as a JSON body, and the chunks of an answer as events.

It is what the lean client speaks over HTTP, what litellm translates every provider to, and what the embedded engine
takes in process; so all three share one reader. Knows no transport and no provider's name.
"""

from __future__ import annotations

import itertools
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, assert_never

from agents.call_ids import with_own_ids
from agents.model import (
    AssistantMessage,
    ChatMessage,
    Finished,
    Image,
    ModelEvent,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
)
from agents.provider_state import FIELDS, StateAssembler, field_of
from agents.surrogates import SurrogateMender, mended
from agents.thinking import ThinkFilter
from agents.tool_calls import CallAssembler

Json: TypeAlias = dict[str, Any]
Reason: TypeAlias = Literal["stop", "tools", "length", "filtered"]

LONGEST_NAME = 64
"""Characters of a tool's name, by OpenAI's reference; letters, digits, "_" and "-" are taken."""

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""What every provider that takes images can read."""

MOST_KEPT = 2048
"""Messages and tools whose JSON is kept; when there are more, all are forgotten."""

_encoded = json.JSONEncoder(ensure_ascii=False).encode

_EPHEMERAL: Mapping[str, str] = {"type": "ephemeral"}

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
    name: str,
    temperature: float | None = None,
    max_output: int | None = None,
    output_field: str = "max_tokens",
    reasoning_field: str = "reasoning_content",
    sees_images: bool = False,
    marks_cache: bool = False,
    kept: Kept | None = None,
) -> Json:
    """The body of a streamed call. ``temperature`` and ``max_output`` (tokens) hold where the request says nothing.

    ``name`` is what the model is called in the conversation: only its own reasoning and ids go back to it.
    ``marks_cache`` sets Anthropic's marks, for a provider that caches only what it is told to. ``kept`` has what was
    made before: always the same one, of a caller that changes nothing in a body.

    Keys come in a fixed order and what changes from turn to turn comes last within the messages, so that the prefix
    of two bodies of one session is the same bytes.
    """
    known: Kept = {} if kept is None else kept

    def sent(source: str | ChatMessage | ToolSpec) -> Json:
        if (made := known.get(id(source))) is None:  # its id is nobody else's while it is held here
            made = source, Sent(_sent(source, name, reasoning_field, sees_images))
            if len(known) >= MOST_KEPT:
                known.clear()
            if not (isinstance(source, UserMessage) and source.images):
                known[id(source)] = made
        return made[1]

    messages = [sent(request.system)] if request.system else []
    messages += map(sent, with_own_ids(request.messages, name))
    tools = list(map(sent, request.tools))
    if marks_cache:
        _mark(messages, tools)
    body: Json = {"model": model, "messages": messages}
    if tools:
        body["tools"] = tools
    most = request.max_output if request.max_output is not None else max_output
    if most is not None:
        body[output_field] = most
    warmth = request.temperature if request.temperature is not None else temperature
    if warmth is not None:
        body["temperature"] = warmth
    return body | {"stream": True, "stream_options": {"include_usage": True}}


class Sent(dict[str, Any]):
    """A part of a body that is sent again with each call. ``text`` is its JSON, None until it was first asked for."""

    text: str | None = None


Kept: TypeAlias = dict[int, tuple[object, Sent]]
"""What was made of messages and tools, by the ``id`` of each, which is held beside it."""


def written(body: Json) -> bytes:
    """``body`` as JSON."""

    def text(part: Json) -> str:
        if not isinstance(part, Sent):
            return _encoded(part)
        if part.text is None:
            part.text = _encoded(part)
        return part.text

    fields = [
        f"[{', '.join(map(text, value))}]" if key in ("messages", "tools") else _encoded(value)
        for key, value in body.items()
    ]
    pairs = (f'"{key}": {field}' for key, field in zip(body, fields, strict=True))
    return f"{{{', '.join(pairs)}}}".encode()


def _sent(source: str | ChatMessage | ToolSpec, name: str, reasoning_field: str, sees_images: bool) -> Json:
    match source:
        case str():
            return {"role": "system", "content": mended(source)}
        case UserMessage():
            return {"role": "user", "content": _said(source, sees_images)}
        case ToolResult():
            return {"role": "tool", "tool_call_id": source.call_id, "content": mended(source.text)}
        case AssistantMessage():
            return _answer(source, name, reasoning_field)
        case ToolSpec():
            about = {"name": source.name, "description": source.description, "parameters": dict(source.parameters)}
            return {"type": "function", "function": about}
        case _:
            assert_never(source)


def _said(message: UserMessage, sees_images: bool) -> str | list[Json]:
    """The text, or parts with the images that the model can look at; the others are named where they lie."""
    if not message.images:
        return mended(message.text)
    shown = [i for i in message.images if sees_images and _is_readable(i)]
    text = mended(message.naming(i for i in message.images if i not in shown))
    if not shown:
        return text
    parts: list[Json] = [{"type": "text", "text": text}] if text else []
    return parts + [{"type": "image_url", "image_url": {"url": _data_url(image)}} for image in shown]


def _is_readable(image: Image) -> bool:
    return image.data is not None and image.media_type in IMAGE_TYPES


def _data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{b64encode(image.data or b'').decode('ascii')}"


def _answer(message: AssistantMessage, name: str, reasoning_field: str) -> Json:
    text = mended(message.text)
    if not message.tool_calls:
        return {"role": "assistant", "content": text}
    answer: Json = {"role": "assistant", "content": text or None}
    if message.model == name:  # providers that think between calls answer 400 when their thought does not come back
        for block in message.state:
            answer.setdefault(field_of(block), []).append(dict(block))
        if message.reasoning and not message.state:
            answer[reasoning_field] = mended(message.reasoning)
    answer["tool_calls"] = [_call(call) for call in message.tool_calls]
    return answer


def _mark(messages: list[Json], tools: list[Json]) -> None:
    """Marks how far a prefix may be cached: four at most, by Anthropic's reference.

    Tools and system text are the same for a session. In the conversation the newest words of a person come with notes
    that the next turn doesn't repeat, so the mark is on what precedes them; within a turn, where calls and results
    follow them, also on the last result.
    """
    asked = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=0)
    marked = [i for i, m in enumerate(messages[:1]) if m["role"] == "system"]
    marked += [i for i in range(len(marked), asked) if _is_markable(messages[i])][-1:]
    marked += [len(messages) - 1 for m in messages[-1:] if m["role"] == "tool" and _is_markable(m)]
    for at in marked:
        messages[at] = _marked(messages[at])
    if tools:
        tools[-1] = tools[-1] | {"cache_control": dict(_EPHEMERAL)}


def _is_markable(message: Json) -> bool:
    """An empty text takes no mark, and on a call it would have to stand elsewhere."""
    return bool(message["content"]) and "tool_calls" not in message


def _marked(message: Json) -> Json:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return message | {"content": [*parts[:-1], parts[-1] | {"cache_control": dict(_EPHEMERAL)}]}


def _call(call: ToolCall) -> Json:
    """A name that the model made up becomes one that providers take back: one bad one would refuse all later calls."""
    name = _FOREIGN_TO_NAMES.sub("_", call.name)[:LONGEST_NAME] or "unknown"
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": _arguments(call.arguments)}}


def _arguments(text: str) -> str:
    """The arguments as the model wrote them. Of a call that was cut or broken, "{}": whoever translates them parses
    them first, and what is no JSON object would refuse all later calls. Its result says that it wasn't run.
    """
    try:
        arguments = json.loads(text)
        written = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return "{}"
    if not isinstance(arguments, dict):
        return "{}"
    return text if mended(written) == written else mended(written)


def error_in(chunk: Mapping[str, Any]) -> Any:
    """The error that a chunk or a body reports in place of an answer, None where it reports none."""
    if chunk.get("error"):
        return chunk["error"]
    choice = _choice(chunk)
    if choice.get("error"):
        return choice["error"]
    return "the provider broke off the answer" if choice.get("finish_reason") == "error" else None


def joined(events: Iterable[ModelEvent]) -> Iterator[ModelEvent]:
    """``events`` with neighbouring deltas of a kind as one: what came together is handed on together."""
    for kind, group in itertools.groupby(events, type):
        if kind is TextDelta or kind is ReasoningDelta:
            yield kind("".join(event.text for event in group if isinstance(event, TextDelta | ReasoningDelta)))
        else:
            yield from group


class AnswerReader:
    """Reads one answer, chunk by chunk (``chat.completion.chunk``) or as a whole (``chat.completion``)."""

    def __init__(self, request: Request) -> None:
        self._state = StateAssembler()
        self._calls = CallAssembler(
            c.id for m in request.messages if isinstance(m, AssistantMessage) for c in m.tool_calls
        )
        self._thinking = ThinkFilter()
        self._text, self._reasoning = SurrogateMender(), SurrogateMender()
        self._reason: Reason | None = None
        self._usage = Usage()

    @property
    def is_complete(self) -> bool:
        """Whether the provider said why it ended; what may still come is the usage."""
        return self._reason is not None

    @property
    def is_counted(self) -> bool:
        """Whether it is complete, and the usage came too."""
        return self.is_complete and self._usage != Usage()

    def feed(self, chunk: Json) -> Iterator[TextDelta | ReasoningDelta]:
        if isinstance(chunk.get("usage"), dict):
            self._usage = _usage(chunk["usage"])
        choice = _choice(chunk)
        delta, whole = choice.get("delta"), choice.get("message")
        delta = delta if isinstance(delta, dict) else whole
        if isinstance(delta, dict):
            text, reasoning = _parts(delta)
            if reasoning := self._reasoning.feed(reasoning):
                yield ReasoningDelta(reasoning)
            yield from self._thinking.feed(self._text.feed(text))
            for field in FIELDS:
                self._state.add(_entries(delta.get(field)))
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
        yield Finished(reason, calls, self._usage, state=self._state.blocks())


def _choice(chunk: Mapping[str, Any]) -> Json:
    return next(iter(_entries(chunk.get("choices"))), {})


def _entries(value: object) -> list[Json]:
    """The objects in a list; anything else a server may put there is passed over."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _parts(delta: Json) -> tuple[str, str]:
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


def _usage(usage: Json) -> Usage:
    """Tokens, those read from the cache and those written into it being parts of the input.

    They are told in OpenAI's form, in Anthropic's or in DeepSeek's. A part that is larger than the whole was counted
    beside it, as Anthropic does it.
    """
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached = _count(
        details.get("cached_tokens"), usage.get("cache_read_input_tokens"), usage.get("prompt_cache_hit_tokens")
    )
    written = _count(
        details.get("cache_write_tokens"),
        details.get("cache_creation_tokens"),
        usage.get("cache_creation_input_tokens"),
    )
    given, made = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if cached + written > given:
        given += cached + written
    return Usage(given, made, cached, written)


def _count(*values: object) -> int:
    """The first of several fields that holds a number, 0 where none does."""
    return next((value for value in values if isinstance(value, int) and value > 0), 0)
