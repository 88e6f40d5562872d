"""The listening: HTTP with its tokens and rate limits, and faults on demand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from tests.fakes.discord_api.checks import RefusalError, unauthorized
from tests.fakes.discord_api.gateway import Gateway
from tests.fakes.discord_api.rest import Call
from tests.fakes.discord_api.world import Channel

TOKEN = "MTExMTExMTExMTExMTExMTEx.Fakefa.FakeFakeFakeFakeFakeFakeFakeFakeFakeFk"

_ROOT = "/api/v10"


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call.

    ``status`` 0 answers as if nothing were wrong. ``after`` lets the call have its effect first; ``drop`` closes the
    connection instead of answering. ``delay`` is in seconds, and ``retry_after`` too. ``body`` replaces the answer.
    """

    status: int = 0
    message: str = ""
    code: int = 0
    retry_after: float | None = None
    is_global: bool = False
    after: bool = False
    drop: bool = False
    delay: float = 0.0
    body: bytes | None = None


class DiscordApi(Gateway):
    """One bot's Discord. ``calls`` are all calls, in order."""

    most_bytes = 128 << 20

    def __init__(self, *, token: str = TOKEN) -> None:
        super().__init__(token)
        self.calls: list[Call] = []
        self.remaining: int | None = None
        """What is left of the bucket of every call, where a test wants it to run out."""
        self._faults: list[tuple[str, str, Fault]] = []

    @property
    def root(self) -> str:
        """For ``base_url``."""
        return f"{self.url}{_ROOT}"

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/gw", self.listen)
        router.add_get("/gw/", self.listen)
        router.add_get("/files/{number}", self._download)
        router.add_get(f"{_ROOT}/stickers/{{number}}", self._download)
        router.add_route("*", _ROOT + "/{path:.*}", self._answer)

    async def stop(self) -> None:
        self.cut(1001)
        await super().stop()

    def fail(self, method: str, ending: str, *faults: Fault, times: int = 1) -> None:
        """Let the next calls of ``method`` whose path ends so meet ``faults`` in order, ``times`` over."""
        self._faults += [(method, ending, fault) for _ in range(times) for fault in faults]

    def called(self, method: str, ending: str) -> list[Call]:
        return [call for call in self.calls if call.method == method and call.path.endswith(ending)]

    async def wait_called(self, method: str, ending: str, number: int = 1) -> list[Call]:
        """Every such call, once there are ``number`` of them."""
        await self.until(lambda: len(self.called(method, ending)) >= number)
        return self.called(method, ending)

    def hide(self, channel: Channel) -> None:
        """The bot can't see it."""
        del self.channels[channel.id]

    # Calls ------------------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        call = await _call(request)
        self.calls.append(call)
        self.change()
        fault = self._fault(call)
        if fault.delay and not fault.after:
            await self.pause(fault.delay)
        if not fault.after and (fault.drop or fault.status):
            return _faulty(request, fault)
        try:
            self._authorize(request, call)
            result = self.answer(call)
        except RefusalError as refusal:
            return _json(refusal.body, refusal.status, self._limits())
        self.change()
        if fault.after:
            await self.pause(fault.delay)
            return _faulty(request, fault)
        if result is None:
            return web.Response(status=204, headers=self._limits())
        return _json(result, 200, self._limits())

    def _authorize(self, request: web.Request, call: Call) -> None:
        """Routes of interactions carry their token in the path."""
        if not call.path.startswith(("/interactions/", "/webhooks/")) and (
            request.headers.get("Authorization") != f"Bot {self.token}" or self.revoked
        ):
            raise unauthorized()

    def _fault(self, call: Call) -> Fault:
        for number, (method, ending, fault) in enumerate(self._faults):
            if method == call.method and call.path.endswith(ending):
                del self._faults[number]
                return fault
        return Fault()

    def _limits(self) -> dict[str, str]:
        left = "4" if self.remaining is None else str(max(0, self.remaining))
        if self.remaining is not None:
            self.remaining -= 1
        known = {"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": left, "X-RateLimit-Reset-After": "0.3"}
        return known | {"X-RateLimit-Bucket": "bucket", "X-RateLimit-Reset": "0"}

    async def _download(self, request: web.Request) -> web.Response:
        """Addresses of files carry until when they are good."""
        data = self.files.get(request.match_info["number"])
        if data is None or (request.path.startswith("/files") and "ex" not in request.query):
            raise web.HTTPNotFound
        return web.Response(body=data)


async def _call(request: web.Request) -> Call:
    path = unquote(request.path.removeprefix(_ROOT))
    body: Any = None
    files: dict[str, tuple[str, bytes]] = {}
    if request.content_type == "application/json" and request.can_read_body:
        body = await request.json()
    elif request.content_type.startswith("multipart/"):
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                with value.file as content:
                    files[name] = (value.filename, content.read())
            elif name == "payload_json" and isinstance(value, str | bytes | bytearray):
                body = json.loads(value)
    return Call(request.method, path, dict(request.query), body, files)


def _json(body: Any, status: int, headers: dict[str, str]) -> web.Response:
    """The library reads JSON only where the type is this and nothing else."""
    return web.Response(
        body=json.dumps(body).encode(), status=status, headers={"Content-Type": "application/json", **headers}
    )


def _faulty(request: web.Request, fault: Fault) -> web.Response:
    if fault.drop or not fault.status:
        if request.transport is not None:
            request.transport.close()
        raise asyncio.CancelledError
    if fault.body is not None:
        return web.Response(status=fault.status, body=fault.body)
    if fault.status == 429:
        wait = fault.retry_after or 1.0
        body = {"message": "You are being rate limited.", "retry_after": wait, "global": fault.is_global}
        headers = {"Retry-After": str(int(wait + 1)), "Via": "1.1 google", "X-RateLimit-Remaining": "0"}
        return _json(body, 429, headers | ({"X-RateLimit-Scope": "global"} if fault.is_global else {}))
    return _json({"message": fault.message or "fault", "code": fault.code}, fault.status, {})
