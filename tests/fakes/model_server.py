"""A scripted OpenAI-compatible model server on loopback: real HTTP, no model.

It answers ``/v1/chat/completions`` (streamed or whole), ``/v1/embeddings``, ``/v1/audio/transcriptions`` and
``/v1/models``, records what it was sent, and can fail, stall, cut, hang up, wait or dawdle in every way that real
servers do. It speaks for itself: it shares no code with the clients that it tests.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a reply. ``arguments`` is what is sent, valid JSON or not; ``id`` None sends none."""

    name: str
    arguments: str = "{}"
    id: str | None = "call_1"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. The text is streamed in ``pieces`` (None: word by word).

    ``finish`` None means "tool_calls" or "stop", as fits. ``usage`` is prompt, completion and cached tokens, None to
    leave it out. ``status`` other than 200 sends ``body`` (JSON or text) with ``headers``. ``deltas``, when given, are
    sent in place of what text, reasoning and calls would make. ``raw`` are the very bytes of the body, piece by piece.
    ``whole`` answers with one JSON object even to a streamed request. The troubles: ``wait`` blocks before the first
    byte until ``ModelServer.release``; after ``stall_after`` or ``cut_after`` pieces the stream stalls until the client
    leaves, or ends by a closed connection; ``drop`` closes it before any answer; ``pause`` seconds pass before each
    piece. For embeddings and transcripts ``body`` is the whole answer, None for the vectors that ``vector_of`` gives
    and for ``text`` as what was heard.
    """

    text: str = ""
    calls: Sequence[Call] = ()
    reasoning: str = ""
    pieces: Sequence[str] | None = None
    finish: str | None = None
    usage: tuple[int, int, int] | None = (10, 5, 0)
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    deltas: Sequence[Json] | None = None
    raw: Sequence[bytes] | None = None
    whole: bool = False
    wait: bool = False
    stall_after: int | None = None
    cut_after: int | None = None
    drop: bool = False
    pause: float = 0

    @property
    def reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")

    @property
    def counts(self) -> Json | None:
        if self.usage is None:
            return None
        given, made, cached = self.usage
        return {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was sent to the server. Header names are in lower case.

    ``data`` are the bytes of the body; of a form the fields are in ``body`` and ``data`` are the bytes of its file.
    """

    body: Json
    data: bytes
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[Json]:
        messages: list[Json] = self.body["messages"]
        return messages

    @property
    def text(self) -> str:
        """Every character of the request, for asking what is and what isn't in it."""
        return json.dumps(self.body, ensure_ascii=False)


Script: TypeAlias = Iterable[Reply] | Callable[[Recorded], Reply]


class ModelServer:
    """Serves ``script``: replies in order, or a function of the request.

    A script that has run out answers 500 "the script has run out", so that a call too many is seen. ``requests`` may be
    read from any thread.
    """

    def __init__(self, script: Script = (), *, models: Sequence[str] = ("fake",)) -> None:
        self.requests: list[Recorded] = []
        self.url = ""
        """The base URL, ending in /v1; set by ``start``."""
        self._next = script if callable(script) else _in_order(script)
        self._models = models
        self._released = asyncio.Event()
        self._stopping = asyncio.Event()
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> ModelServer:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        app.router.add_get("/v1/models", self._list)
        self._loop = asyncio.get_running_loop()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def stop(self) -> None:
        self._stopping.set()
        self._released.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> ModelServer:
        return await self.start()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    async def arrived(self, count: int = 1) -> None:
        """Returns once ``count`` requests have come in."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    def wait_for(self, count: int = 1, seconds: float = 10) -> None:
        """The same for a test that has no loop, with ``serving``; raises TimeoutError after ``seconds``."""
        assert self._loop is not None, "the server was not started"
        asyncio.run_coroutine_threadsafe(self.arrived(count), self._loop).result(timeout=seconds)

    def release(self) -> None:
        """Let every waiting reply go on, and those to come; may be called from any thread."""
        assert self._loop is not None, "the server was not started"
        self._loop.call_soon_threadsafe(self._released.set)

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": m, "object": "model"} for m in self._models]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        recorded, reply = await self._taken(request)
        if reply.status != 200:
            return _refusal(reply)
        if reply.raw is None and (reply.whole or not recorded.body.get("stream")):
            return web.json_response(_whole(reply, recorded.body["model"]), headers=reply.headers)
        return await self._stream(request, reply, recorded.body)

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        recorded, reply = await self._taken(request)
        if reply.status != 200:
            return _refusal(reply)
        if reply.raw is not None:
            return await self._stream(request, reply, recorded.body)
        return _answer(reply, embeddings(recorded.body))

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        fields = await request.post()
        file = fields["file"]
        assert isinstance(file, web.FileField), "the recording is no file of the form"
        named: Json = {name: value for name, value in fields.items() if isinstance(value, str)}
        with file.file as recording:
            form = (named | {"file": file.filename, "type": file.content_type}, recording.read())
        _, reply = await self._taken(request, form)
        if reply.status != 200:
            return _refusal(reply)
        ending = file.filename.rpartition(".")[2]
        if ending not in HEARD:
            told = f"Unrecognized file format. Supported formats: {list(HEARD)}"
            return _refusal(Reply(status=400, body={"error": {"message": told, "type": "invalid_request_error"}}))
        return _answer(reply, transcript(reply))

    async def _taken(self, request: web.Request, form: tuple[Json, bytes] | None = None) -> tuple[Recorded, Reply]:
        """Record a request and choose its reply, after the wait that the reply asks for."""
        if form is None:
            data = await request.read()
            form = json.loads(data), data
        recorded = Recorded(*form, {k.lower(): v for k, v in request.headers.items()})
        async with self._arrived:
            self.requests.append(recorded)
            self._arrived.notify_all()
        reply = self._next(recorded)
        if reply.wait:
            await self._released.wait()
        if reply.drop or request.transport is None:
            _hang_up(request)
        return recorded, reply

    async def _stream(self, request: web.Request, reply: Reply, body: Json) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **reply.headers})
        await response.prepare(request)
        for count, piece in enumerate(reply.raw if reply.raw is not None else _events(reply, body)):
            if count == reply.stall_after:
                await self._stopping.wait()
                _hang_up(request)
            if count == reply.cut_after:
                _hang_up(request)
            if reply.pause:
                await asyncio.sleep(reply.pause)
            await response.write(piece)
        if reply.cut_after is not None:
            _hang_up(request)
        await response.write_eof()
        return response


@contextmanager
def serving(script: Script = (), *, models: Sequence[str] = ("fake",)) -> Iterator[ModelServer]:
    """A server in a thread of its own, for tests that have no loop (a process driven through a terminal)."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="model-server")
    thread.start()
    try:
        server = ModelServer(script, models=models)
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(timeout=10)
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result(timeout=10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _in_order(replies: Iterable[Reply]) -> Callable[[Recorded], Reply]:
    rest = iter(replies)
    ran_out = Reply(status=500, body={"error": {"message": "the script has run out"}})
    return lambda _: next(rest, ran_out)


def _refusal(reply: Reply) -> web.Response:
    text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
    return web.Response(status=reply.status, text=text, headers=reply.headers)


def _answer(reply: Reply, usual: Json) -> web.Response:
    body = usual if reply.body is None else reply.body
    text = body if isinstance(body, str) else json.dumps(body)
    return web.Response(text=text, content_type="application/json", headers=reply.headers)


HEARD = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "ogg", "wav", "webm")
"""The endings that OpenAI's reference names; what a file holds is not looked at."""


def transcript(reply: Reply) -> Json:
    """What was heard, with the tokens that it took; a model that is paid by the second counts none."""
    if reply.usage is None:
        return {"text": reply.text, "usage": {"type": "duration", "seconds": 12}}
    given, made, _ = reply.usage
    counts = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    return {"text": reply.text, "usage": {"type": "tokens", **counts}}


DIMS = 8


def vector_of(text: str) -> list[float]:
    """How often each eighth of the letters is in ``text``; not of length 1."""
    vector = [0.0] * DIMS
    for ch in text:
        vector[ord(ch) % DIMS] += 1
    return vector


def embeddings(request: Json) -> Json:
    """The answer to a request for embeddings, last vector first: the order of the entries means nothing."""
    entries = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)}
        for index, text in enumerate(request["input"])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": entries[::-1], "model": request["model"], "usage": usage}


def _hang_up(request: web.Request) -> None:
    """Close the connection as it stands. The client sees it end; the handler's task is cancelled with it."""
    if request.transport is not None:
        request.transport.close()
    raise asyncio.CancelledError


def _whole(reply: Reply, model: str) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_call(c) for c in reply.calls]
    choice = {"index": 0, "message": message, "finish_reason": reply.reason}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}
    return whole if reply.counts is None else whole | {"usage": reply.counts}


def _call(call: Call) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _events(reply: Reply, body: Json) -> Iterator[bytes]:
    """The stream as OpenAI sends it: a role, the deltas, the reason, the usage if it was asked for, the end mark."""
    chunk: Json = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}

    def event(delta: Json, reason: str | None = None) -> bytes:
        return _event(chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    for delta in _deltas(reply) if reply.deltas is None else reply.deltas:
        yield event(delta)
    yield event({}, reply.reason)
    if reply.counts is not None and body.get("stream_options", {}).get("include_usage"):
        yield _event(chunk | {"choices": [], "usage": reply.counts})
    yield b"data: [DONE]\n\n"


def _event(value: Json) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _deltas(reply: Reply) -> Iterator[Json]:
    yield {"role": "assistant", "content": None if reply.calls else ""}
    if reply.reasoning:
        yield {"reasoning_content": reply.reasoning}
    for piece in _words(reply.text) if reply.pieces is None else reply.pieces:
        yield {"content": piece}
    for index, call in enumerate(reply.calls):
        yield {"tool_calls": [{"index": index, **_call(call), "function": {"name": call.name, "arguments": ""}}]}
        for start in range(0, len(call.arguments), 8):
            yield {"tool_calls": [{"index": index, "function": {"arguments": call.arguments[start : start + 8]}}]}


def _words(text: str) -> list[str]:
    """Cut before each space, so that the pieces joined are the text again."""
    words = text.split(" ")
    return [w for w in [words[0], *(f" {w}" for w in words[1:])] if w]
