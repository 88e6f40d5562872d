"""A scripted Anthropic server on loopback: ``/v1/messages``, streamed, and nothing else.

For what only that format has: signed thinking, marks for the cache, and a count of what was written into it. It speaks
for itself and shares no code with what it tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web

from tests.fakes.loopback import Loopback

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """``blocks`` are what the answer is made of, whole; each is streamed in two pieces. ``usage`` as Anthropic has it:
    ``input_tokens`` beside what was read from the cache and written into it."""

    blocks: Sequence[Json]
    usage: Mapping[str, int] = field(default_factory=lambda: {"input_tokens": 3, "output_tokens": 5})
    stop: str = "end_turn"


class AnthropicServer(Loopback):
    """Gives ``answers`` in order, the last one again and again. ``requests`` are the bodies it was sent."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__()
        self.requests: list[Json] = []
        self._answers = answers

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/messages", self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append(body)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(answer, body["model"]):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await response.write_eof()
        return response


def _events(answer: Answer, model: str) -> Iterator[Json]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    given = {**answer.usage, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "usage": given}}
    for index, block in enumerate(answer.blocks):
        start, deltas = _streamed(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    used = {"output_tokens": answer.usage["output_tokens"]}
    yield {"type": "message_delta", "delta": {"stop_reason": answer.stop, "stop_sequence": None}, "usage": used}
    yield {"type": "message_stop"}


def _streamed(block: Json) -> tuple[Json, list[Json]]:
    """The start of a block, and its deltas."""
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": t} for t in _halves(block["text"])]
        case "thinking":
            pieces = [{"type": "thinking_delta", "thinking": t} for t in _halves(block["thinking"])]
            seal = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*pieces, seal]
        case "tool_use":
            pieces = [{"type": "input_json_delta", "partial_json": t} for t in _halves(json.dumps(block["input"]))]
            return {**block, "input": {}}, pieces
        case _:  # redacted thinking comes whole
            return block, []


def _halves(text: str) -> list[str]:
    half = len(text) // 2
    return [text[:half], text[half:]]
