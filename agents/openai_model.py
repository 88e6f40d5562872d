"""The lean client for OpenAI-compatible servers: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio.

One streamed POST on aiohttp, which costs a thirtieth of the CPU of the general library. It makes one call and tells
how it ended; trying again is the agent's. Knows no provider's table and reads no configuration.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from functools import partial
from typing import TYPE_CHECKING

from agents import connection, failures
from agents.failures import Endpoint
from agents.model import Limits, ModelEvent, Request
from agents.sse import EventParser
from agents.wire import AnswerReader, body_of, error_in, joined, written

if TYPE_CHECKING:
    import aiohttp

SILENCE_SECONDS = 120.0
"""How long a server may say nothing, before its first byte and between two: a large local model reads a long prompt."""

_WANTED = "chat completion"


class OpenAIModel:
    """``name`` is what people call it ("openai/gpt-5"), ``model`` what the server calls it ("gpt-5").

    ``base_url`` ends before "/chat/completions". ``key_place`` says in messages where ``api_key`` comes from.
    ``temperature`` and ``max_output`` (tokens) hold where a request leaves them open, None for the server's default.
    ``silence`` is in seconds. The connection is made at the first call and kept.
    """

    def __init__(
        self,
        name: str,
        *,
        model: str,
        base_url: str,
        limits: Limits,
        api_key: str | None = None,
        key_place: str = "",
        uses_tools: bool = True,
        sees_images: bool = False,
        temperature: float | None = None,
        max_output: int | None = None,
        silence: float = SILENCE_SECONDS,
        output_field: str = "max_tokens",
        reasoning_field: str = "reasoning_content",
        marks_cache: bool = False,
    ) -> None:
        self.name, self.limits = name, limits
        self.uses_tools, self.sees_images = uses_tools, sees_images
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._endpoint = Endpoint(model=name, url=base_url, key_place=key_place, key=api_key)
        self._body = partial(
            body_of,
            name=name,
            model=model,
            temperature=temperature,
            max_output=max_output,
            output_field=output_field,
            reasoning_field=reasoning_field,
            sees_images=sees_images,
            marks_cache=marks_cache,
            kept={},
        )
        self._silence = silence
        self._session: aiohttp.ClientSession | None = None

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        import aiohttp

        answer = Answer(request, self._endpoint)
        data = written(self._body(request))
        try:
            async with self._connected().post(
                self._url, data=data, headers={"Content-Type": "application/json"}, allow_redirects=False
            ) as response:
                if response.status != 200:
                    yield await connection.refusal(self._endpoint, response, _WANTED)
                    return
                async for chunk in response.content.iter_any():
                    for event in joined(answer.feed(chunk)):
                        yield event
                    if answer.is_over:
                        break
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if not answer.is_complete:
                too_slow = f"it said nothing for {self._silence:g} seconds"
                yield connection.failure(self._endpoint, error, too_slow=too_slow, begun=answer.has_begun)
                return
        for event in joined(answer.end()):
            yield event

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = connection.session(self._endpoint, accept="text/event-stream", silence=self._silence)
        return self._session


class Answer:
    """The body of one answer, from bytes to events, without any I/O.

    A server may answer a streamed request with one JSON object: that is told by its first byte, since the content
    type is often wrong.
    """

    def __init__(self, request: Request, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._events = EventParser()
        self._reader = AnswerReader(request)
        self._whole: bytearray | None = None
        self.has_begun = False
        self.is_over = False
        """Nothing more is worth reading: the end was marked, or an error was reported."""
        self._failed = self._has_answer = False

    @property
    def is_complete(self) -> bool:
        """Whether a connection that breaks now takes nothing of the answer with it."""
        return self.is_over or self._reader.is_complete

    def feed(self, data: bytes) -> Iterator[ModelEvent]:
        if not self.has_begun:
            data = data.lstrip(b" \t\r\n")
            if not data:
                return
            self.has_begun = True
            self._whole = bytearray() if data.startswith(b"{") else None
        if self._whole is not None:
            self._whole += data
            return
        for event in self._events.feed(data):
            yield from self._read(event)

    def end(self) -> Iterator[ModelEvent]:
        """The last events: exactly one ``Finished`` or ``Failed``, unless ``feed`` already failed."""
        if self._whole is not None:
            yield from self._read(self._whole.decode("utf-8", "replace"))
            self.is_over = self.is_over or self._has_answer
        elif not self.is_over:
            for event in self._events.end():
                yield from self._read(event)
        if self._failed:
            return
        if self.is_complete:
            yield from self._reader.end()
        elif self.has_begun and not self._has_answer:
            yield failures.not_an_api(self._endpoint, 200, _WANTED)
        else:
            yield failures.broken_off(self._endpoint, "the connection ended")

    def _read(self, data: str) -> Iterator[ModelEvent]:
        if self.is_over:
            return
        if data.strip() == "[DONE]":
            self.is_over = self._has_answer
            return
        try:
            chunk = json.loads(data)
        except ValueError:  # a line that was cut with the connection: what is missing shows at the end
            return
        if not isinstance(chunk, dict):
            return
        if (error := error_in(chunk)) is not None:
            self.is_over = self._failed = True
            yield failures.answered_with(self._endpoint, None, {"error": error})
            return
        self._has_answer = self._has_answer or bool(chunk.get("choices"))
        yield from self._reader.feed(chunk)
