"""The lean client for OpenAI-compatible servers: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio.

One streamed POST on aiohttp, which costs a thirtieth of the CPU of the general library. It makes one call and tells
how it ended; trying again is the agent's. Knows no provider's table and reads no configuration.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from functools import partial
from typing import TYPE_CHECKING

from agents import failures
from agents.failures import Endpoint
from agents.model import Failed, Limits, ModelEvent, Request
from agents.sse import EventParser
from agents.wire import AnswerReader, body_of, error_in

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 120.0
"""How long a server may say nothing, before its first byte and between two: a large local model reads a long prompt."""

_LONGEST_ERROR = 64 * 1024
"""Bytes of an error's body that are read."""


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
        )
        self._silence = silence
        self._session: aiohttp.ClientSession | None = None

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        import aiohttp

        answer = Answer(request, self._endpoint)
        data = json.dumps(self._body(request), ensure_ascii=False).encode("utf-8")
        try:
            # A redirect would turn the POST into a GET, and could carry the key to another host.
            async with self._connected().post(self._url, data=data, allow_redirects=False) as response:
                if response.status != 200:
                    yield await self._refusal(response)
                    return
                async for chunk in response.content.iter_any():
                    for event in answer.feed(chunk):
                        yield event
                    if answer.is_over:
                        break
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if not answer.is_complete:
                yield self._failure(error, begun=answer.has_begun)
                return
        for event in answer.end():
            yield event

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _connected(self) -> aiohttp.ClientSession:
        """The session, made when the loop that it belongs to is running."""
        import aiohttp

        if self._session is None:
            headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "User-Agent": "limpet"}
            if self._endpoint.key:
                headers["Authorization"] = f"Bearer {self._endpoint.key}"
            self._session = aiohttp.ClientSession(
                headers=headers,
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=self._silence),
                trust_env=not self._endpoint.is_local,  # a proxy is on the way to the network, not to this machine
            )
        return self._session

    async def _refusal(self, response: aiohttp.ClientResponse) -> Failed:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) >= _LONGEST_ERROR:
                break
        if response.status < 400:
            return failures.not_an_api(self._endpoint, response.status)
        return failures.answered_with(self._endpoint, response.status, bytes(body), response.headers)

    def _failure(self, error: Exception, *, begun: bool) -> Failed:
        import aiohttp

        if isinstance(error, aiohttp.InvalidURL):
            return Failed("refused", f"base_url under [models] is no URL: {self._endpoint.url!r}.")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return failures.unreachable(self._endpoint, f"no connection within {CONNECT_SECONDS:g} seconds")
        if isinstance(error, TimeoutError):
            reason = f"it said nothing for {self._silence:g} seconds"
            return failures.broken_off(self._endpoint, reason)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return failures.unreachable(self._endpoint, f"its certificate is not valid: {error.certificate_error}")
        if isinstance(error, aiohttp.ClientConnectorError):
            return failures.unreachable(self._endpoint, _reason(error.os_error))
        return failures.broken_off(self._endpoint, "the connection ended" if begun else "it gave no answer")


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
            yield failures.not_an_api(self._endpoint, 200)
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


def _reason(error: OSError) -> str:
    """What the system said, without the address that the message names anyway."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return error.strerror or str(error) or type(error).__name__
