"""A program at the other end of a webhook: it takes answers, serves files, and says things until they are stored.

It signs and checks by itself, and refuses what the protocol (docs/channels/webhook.md) doesn't allow. Faults on demand.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import html.parser
import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from aiohttp import ClientConnectionError, ClientSession, web

from tests.fakes.loopback import Loopback, free_port

SECRET = "5f1d8c3e9a7b4d20-webhook-secret"

_KEYS = {"type", "key", "chat", "kind", "thread", "reply_to", "text", "html", "file", "buttons"}


@dataclass(frozen=True)
class Fault:
    """How one callback goes wrong. ``after``: the message is taken all the same; ``drop``: the connection is cut."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    after: bool = False
    stall: bool = False


def signed(body: bytes, secret: str = SECRET, at: float | None = None) -> dict[str, str]:
    """The headers of a request with ``body``, made ``at`` a time (None: now)."""
    timestamp = str(int(time.time() if at is None else at))
    mac = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return {"X-Limpet-Timestamp": timestamp, "X-Limpet-Signature": mac.hexdigest()}


class WebhookProgram(Loopback):
    """``bot`` is the address of the adapter. ``taken`` are the messages, each key once, in the order of arrival."""

    most_bytes = 100_000_000

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()
        self.bot = f"http://127.0.0.1:{free_port()}"
        self.files: dict[str, bytes] = {}
        self.faults: deque[Fault] = deque()
        self.taken: list[dict[str, Any]] = []
        self.requests: list[tuple[Mapping[str, str], dict[str, Any]]] = []
        """Headers and body of every callback that was signed, repetitions included."""
        self.refused: list[tuple[int, dict[str, Any]]] = []
        """What the adapter would not have."""
        self._ids = count(1)
        self._saying: deque[bytes] = deque()
        self._stalled = asyncio.Event()

    @property
    def url(self) -> str:
        return f"{super().url}/limpet?token=in-the-address"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/limpet", self._callback)
        router.add_get("/files/{name}", self._file)

    # What it says

    def message(self, text: str, **more: Any) -> dict[str, Any]:
        """A message as docs/channels/webhook.md has it."""
        ann = {"id": "ann", "name": "Ann"}
        return {"type": "message", "id": next(self._ids), "chat": "kitchen", "sender": ann, "text": text, **more}

    def say(self, event: Mapping[str, Any]) -> None:
        """Post it as often as is needed, in its turn."""
        self._saying.append(json.dumps(event).encode())
        self.change()

    def link(self, name: str, data: bytes) -> str:
        """The address of a file with ``data``."""
        self.files[name] = data
        return f"{super().url}/files/{name}"

    async def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """One request, as it is; status and JSON of the answer. Raises ClientConnectionError."""
        async with (
            ClientSession() as session,
            session.post(self.bot, data=body, headers=signed(body) if headers is None else headers) as answer,
        ):
            return answer.status, await answer.json()

    async def work(self) -> None:
        while True:
            while self._saying:
                try:
                    status, said = await self.post(self._saying[0])
                except ClientConnectionError:
                    status, said = 503, {}
                if status == 503:
                    await asyncio.sleep(0.01)
                    continue
                if status != 200:
                    self.refused.append((status, said))
                self._saying.popleft()
            await self._changed.wait()

    # What it is given

    async def wait_taken(self, number: int) -> list[dict[str, Any]]:
        """The messages, once there are ``number`` of them."""
        await self.until(lambda: len(self.taken) >= number, seconds=10)
        return self.taken

    async def stalled(self) -> None:
        """Returns once a callback with ``Fault.stall`` has come."""
        await self._stalled.wait()

    async def _callback(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if not _is_signed(request, body):
            return web.json_response({"error": "the signature is wrong"}, status=401)
        said = json.loads(body)
        key = request.headers["Idempotency-Key"]
        self.requests.append((dict(request.headers), said))
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and fault.stall:
            self._stalled.set()
            await asyncio.Event().wait()
        if fault is not None and not fault.after:
            return self._broken(request, fault)
        if said["type"] == "check":
            return web.Response()
        _validate(said)
        known = [number for number, message in enumerate(self.taken) if message["key"] == key]
        if not known:
            self.taken.append(said)
            self.change()
        if fault is not None:
            return self._broken(request, fault)
        return web.json_response({"id": f"m{known[0] if known else len(self.taken) - 1}"})

    def _broken(self, request: web.Request, fault: Fault) -> web.Response:
        if fault.drop and request.transport is not None:
            request.transport.abort()
        return web.Response(status=fault.status, body=fault.body, headers=fault.headers)

    async def _file(self, request: web.Request) -> web.Response:
        if not _is_signed(request, request.rel_url.raw_path_qs.encode()):
            return web.Response(status=401)
        data = self.files.get(request.match_info["name"])
        return web.Response(status=404) if data is None else web.Response(body=data)


def _is_signed(request: web.Request, body: bytes) -> bool:
    timestamp = request.headers.get("X-Limpet-Timestamp", "0")
    expected = signed(body, at=int(timestamp))["X-Limpet-Signature"]
    return request.headers.get("X-Limpet-Signature") == expected and abs(time.time() - int(timestamp)) < 300


def _validate(said: dict[str, Any]) -> None:
    """Raises AssertionError, which is a 500, for what docs/channels/webhook.md doesn't have."""
    assert said.keys() <= _KEYS
    assert said["type"] == "message"
    assert isinstance(said["text"], str)
    said["text"].encode()
    assert said["text"].strip() or said["file"]
    if "html" in said:
        reader = _Reader()
        reader.feed(said["html"])
        reader.close()
        assert reader.opened == []
        assert reader.text == said["text"]
    if "file" in said:
        base64.b64decode(said["file"]["data"], validate=True)


class _Reader(html.parser.HTMLParser):
    """The text of an HTML fragment, whose tags have to be nested."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
