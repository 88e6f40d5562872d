"""The network: the Web API, the web sockets of Socket Mode, signed requests to an address of the app's, and faults."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import quote_plus

import aiohttp
from aiohttp import web

from tests.fakes.slack_api.checks import Json, RefusalError
from tests.fakes.slack_api.methods import Methods

TOKEN = "xoxb-000000000001-000000000002-FakeFakeFakeFakeFake"
APP_TOKEN = "xapp-1-A0LIMPET1-000000000003-fakefakefakefake"
SIGNING_SECRET = "0123456789abcdef0123456789abcdef"

REDELIVERY_SECONDS = 3.0
"""Until what was not acknowledged is brought again."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call.

    ``error`` is Slack's word for it and ``fields`` what comes with it; ``status`` is HTTP's, of an answer that is not
    Slack's where there is no ``error``. ``after`` lets the call have its effect first; ``drop`` closes the connection
    instead of answering. ``delay`` is in seconds.
    """

    error: str = ""
    status: int = 200
    fields: tuple[tuple[str, Any], ...] = ()
    retry_after: int | None = None
    after: bool = False
    drop: bool = False
    delay: float = 0.0


class SlackApi(Methods):
    """One app in one workspace. ``calls`` are all calls with their arguments, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Json]] = []
        self.responses: list[Json] = []
        """What was said at the address that comes with a command."""
        self.revoked: dict[str, str] = {}
        """By token, the error that it gets."""
        self.acknowledged: list[str] = []
        """The ids of the envelopes that were acknowledged, in order."""
        self.links: list[web.WebSocketResponse] = []
        self.opened = 0
        """How many connections there were."""
        self.greets = True
        """Whether it says hello on a new connection."""
        self.redelivery_seconds = REDELIVERY_SECONDS
        self.leads_to = ""
        """Where requests to the app's address are taken on this machine; "" for Socket Mode."""
        self.deliveries: list[int] = []
        """The HTTP status of each request there; 0 where nobody answered."""
        self._tickets: set[str] = set()
        self._next_ticket = count(1)
        self._faults: dict[str, list[Fault]] = {}
        self._told: dict[str, float] = {}
        """By envelope, when it was brought last."""

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/api/{method}", self._answer)
        router.add_post("/upload/{file}", self._uploaded)
        router.add_get("/files/{file}", self._download)
        router.add_get("/link", self._link)
        router.add_post("/response", self._responded)

    async def stop(self) -> None:
        await self.cut()
        await super().stop()
        await asyncio.sleep(0.01)  # whoever is at the other end of a connection hears that it is gone

    # What a test does -------------------------------------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        return f"{self.url}/api/"

    def fail(self, method: str, *faults: Fault, times: int = 1) -> None:
        """Let the next calls of ``method`` meet ``faults`` in order, ``times`` over."""
        self._faults.setdefault(method, []).extend(faults * times)

    async def wait_called(self, method: str, number: int = 1, seconds: float = 10) -> list[Json]:
        """The arguments of every call of ``method``, once there are ``number`` of them."""
        await self.until(lambda: len(self.called(method)) >= number, seconds)
        return self.called(method)

    async def wait_linked(self, number: int = 1, seconds: float = 10) -> None:
        """Returns once the app has connected ``number`` times."""
        await self.until(lambda: self.opened >= number, seconds)

    async def wait_delivered(self, number: int, seconds: float = 10) -> list[int]:
        await self.until(lambda: len(self.deliveries) >= number, seconds)
        return self.deliveries

    def called(self, method: str) -> list[Json]:
        return [given for name, given in self.calls if name == method]

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask the app to connect anew, as the server does every few hours."""
        for link in list(self.links):
            await link.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "loopback"}})

    async def cut(self) -> None:
        """Every connection breaks, without a word."""
        for link in list(self.links):
            self.links.remove(link)
            if link._req is not None and link._req.transport is not None:
                link._req.transport.abort()

    def repeat(self, envelope_id: str) -> None:
        """Bring what was acknowledged once more, as the server does that missed it."""
        assert envelope_id in self.acknowledged
        self._told.pop(envelope_id, None)

    # Calls ------------------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.Response:
        method, given = request.match_info["method"], await _arguments(request)
        token = given.pop("token", None) or request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.calls.append((method, given))
        self.change()
        faults = self._faults.get(method)
        fault = faults.pop(0) if faults else Fault()
        if fault.delay and not fault.after:
            await self.pause(fault.delay)
        if not fault.after and _is_trouble(fault):
            return _faulty(request, fault)
        try:
            self._check_token(token, method)
            if method == "apps.connections.open":
                said: Json = {"url": self._new_link()}
            elif handler := self.methods.get(method):
                self.check_scope(method)
                said = handler(given)
            else:
                raise RefusalError("unknown_method")
        except RefusalError as refusal:
            return web.json_response({"ok": False, "error": refusal.error} | refusal.fields, status=refusal.status)
        if fault.after:
            await self.pause(fault.delay)
            return _faulty(request, fault)
        return web.json_response({"ok": True} | said, headers={"x-oauth-scopes": ",".join(sorted(self.scopes))})

    def _check_token(self, token: str, method: str) -> None:
        if token in self.revoked:
            raise RefusalError(self.revoked[token])
        if token not in (TOKEN, APP_TOKEN):
            raise RefusalError("invalid_auth")
        if (token == APP_TOKEN) != (method == "apps.connections.open"):
            raise RefusalError("not_allowed_token_type")

    async def _uploaded(self, request: web.Request) -> web.Response:
        file = request.match_info["file"]
        if file not in self.files:
            raise web.HTTPNotFound
        data = await request.read()
        if len(data) != self.files[file]["size"]:
            raise web.HTTPBadRequest
        self.contents[file] = data
        return web.Response(text=f"OK - {len(data)}")

    async def _responded(self, request: web.Request) -> web.Response:
        self.responses.append(await request.json())
        self.change()
        return web.Response(text="ok")

    async def _download(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}" or "files:read" not in self.scopes:
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        file = request.match_info["file"]
        if file not in self.contents:
            raise web.HTTPNotFound
        return web.Response(body=self.contents[file], content_type=self.files[file]["mimetype"])

    # Socket Mode ------------------------------------------------------------------------------------------------------

    def _new_link(self) -> str:
        ticket = f"ticket-{next(self._next_ticket)}"
        self._tickets.add(ticket)
        return f"{self.url.replace('http', 'ws', 1)}/link?ticket={ticket}&app_id=A0LIMPET1"

    async def _link(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            raise web.HTTPForbidden
        self._tickets.remove(ticket)  # each opens one connection
        link = web.WebSocketResponse()
        await link.prepare(request)
        self._told.clear()
        self.links.append(link)
        info = {"app_id": "A0LIMPET1"}
        if self.greets:
            await link.send_json({"type": "hello", "num_connections": len(self.links), "connection_info": info})
        self.opened += 1
        self.change()
        try:
            async for frame in link:
                if frame.type is aiohttp.WSMsgType.TEXT:
                    self._acknowledge(json.loads(frame.data))
        finally:
            if link in self.links:
                self.links.remove(link)
        return link

    def _acknowledge(self, said: Json) -> None:
        envelope = said["envelope_id"]
        self.acknowledged.append(envelope)
        self.waiting = [one for one in self.waiting if one["envelope_id"] != envelope]
        self.change()

    # Bringing events --------------------------------------------------------------------------------------------------

    async def work(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                changed = self._changed
                if self.leads_to:
                    await self._post_next(session)
                elif self.links:
                    await self._push_due()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05 if self.waiting else None):
                        await changed.wait()

    async def _push_due(self) -> None:
        """Everything that waits, over the newest connection, and again after a while."""
        now = time.monotonic()
        for envelope in list(self.waiting):
            name = envelope["envelope_id"]
            if now - self._told.get(name, -1e9) < self.redelivery_seconds:
                continue
            if name in self._told and "retry_attempt" in envelope:
                envelope |= {"retry_attempt": envelope["retry_attempt"] + 1, "retry_reason": "timeout"}
            self._told[name] = now
            with suppress(ConnectionError, IndexError, aiohttp.ClientError):
                await self.links[-1].send_json(envelope)

    async def _post_next(self, session: aiohttp.ClientSession) -> None:
        """The oldest that waits, to the app's address; the next one once it was taken."""
        if not self.waiting:
            return
        envelope = self.waiting[0]
        status = await self.posts(session, envelope)
        self.deliveries.append(status)
        if status == 200:
            self._acknowledge(envelope)
        else:
            await asyncio.sleep(0.02)
        self.change()

    async def posts(self, session: aiohttp.ClientSession, envelope: Json, *, secret: str = SIGNING_SECRET) -> int:
        """A signed request to the app's address; its status, 0 where nobody answers."""
        payload = envelope["payload"]
        match envelope["type"]:
            case "events_api":
                body, content_type = json.dumps(payload), "application/json"
            case "interactive":
                body, content_type = f"payload={quote_plus(json.dumps(payload))}", "application/x-www-form-urlencoded"
            case _:
                body = "&".join(f"{name}={quote_plus(str(value))}" for name, value in payload.items())
                content_type = "application/x-www-form-urlencoded"
        headers = {"Content-Type": content_type, **signed(body, secret)}
        try:
            async with session.post(self.leads_to, data=body.encode(), headers=headers) as answer:
                return answer.status
        except aiohttp.ClientError:
            return 0


def signed(body: str, secret: str = SIGNING_SECRET, at: float | None = None) -> dict[str, str]:
    """The headers that prove who posts ``body``; ``at`` is in seconds since 1970, None for now."""
    when = str(int(time.time() if at is None else at))
    proof = hmac.new(secret.encode(), f"v0:{when}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": when, "X-Slack-Signature": f"v0={proof}"}


async def _arguments(request: web.Request) -> Json:
    """From the query, a form or JSON."""
    body: Json = {}
    if request.content_type == "application/json":
        body = await request.json()
    elif request.can_read_body:
        body = dict((await request.post()).items())
    return {**request.query, **body}


def _is_trouble(fault: Fault) -> bool:
    return bool(fault.error or fault.drop or fault.status != 200 or fault.retry_after is not None)


def _faulty(request: web.Request, fault: Fault) -> web.Response:
    if fault.drop:
        if request.transport is not None:
            request.transport.close()
        raise asyncio.CancelledError
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    if fault.error:
        said = {"ok": False, "error": fault.error, **dict(fault.fields)}
        return web.json_response(said, status=fault.status, headers=headers)
    page = "<html>Bad Gateway</html>"
    return web.Response(status=fault.status, text=page, content_type="text/html", headers=headers)
