"""The HTTP of the Bot API: calls, long polling, webhooks and downloads, and how they can go wrong.

It keeps updates until an offset (or the webhook's 200) confirms them, and can fail, stall, hang up and lie on demand.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

from tests.fakes.telegram_api.chats import User
from tests.fakes.telegram_api.checks import Json, RefusalError
from tests.fakes.telegram_api.methods import Methods
from tests.fakes.telegram_api.uploads import Upload

TOKEN = "123456789:AAFakeFakeFakeFakeFakeFakeFakeFakeXYZ"

_WEBHOOK_IS_SET = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
_OTHER_POLLER = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"

_ON_REQUEST = {"message_reaction", "message_reaction_count", "chat_member"}
"""Updates that only come to a bot that asked for them."""

_REDELIVERY_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call.

    ``status`` 0 answers as if nothing were wrong. ``after`` lets the call have its effect first; ``drop`` closes the
    connection instead of answering. ``delay`` is in seconds. ``body`` replaces the answer byte for byte, and
    ``as_http`` its HTTP status (a proxy that says 200).
    """

    status: int = 0
    description: str = ""
    retry_after: int | None = None
    migrate_to_chat_id: int | None = None
    after: bool = False
    drop: bool = False
    delay: float = 0.0
    body: bytes | None = None
    as_http: int | None = None


class TelegramApi(Methods):
    """One bot's Bot API. ``calls`` are all calls with their parameters, in order."""

    def __init__(self, *, token: str = TOKEN, username: str = "limpet_bot") -> None:
        super().__init__(User(int(token.partition(":")[0]), "Limpet", username, is_bot=True))
        self.token = token
        self.calls: list[tuple[str, Json]] = []
        self.leads_to = ""
        """Where the way from the webhook's address ends on this machine, as a root: what a proxy would be set to."""
        self.deliveries: list[int] = []
        """The HTTP status of each update that was taken there; 0 where nobody answered."""
        self._faults: dict[str, list[Fault]] = {}
        self._poll: object = None

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/bot{token}/{method}", self._answer)
        router.add_get("/file/bot{token}/{path:.*}", self._download)

    # What a test does -------------------------------------------------------------------------------------------------

    def fail(self, method: str, *faults: Fault, times: int = 1) -> None:
        """Let the next calls of ``method`` meet ``faults`` in order, ``times`` over."""
        self._faults.setdefault(method.lower(), []).extend(faults * times)

    async def wait_called(self, method: str, number: int = 1, seconds: float = 10) -> list[Json]:
        """The parameters of every call of ``method``, once there are ``number`` of them."""
        await self.until(lambda: len(self.called(method)) >= number, seconds)
        return self.called(method)

    async def wait_delivered(self, number: int, seconds: float = 10) -> list[int]:
        """What the webhook answered, once it was called ``number`` times."""
        await self.until(lambda: len(self.deliveries) >= number, seconds)
        return self.deliveries

    def called(self, method: str) -> list[Json]:
        return [parameters for name, parameters in self.calls if name.lower() == method.lower()]

    # Calls ------------------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.token:
            looks_right = re.fullmatch(r"\d+:[\w-]{30,}", request.match_info["token"])
            return _refused(RefusalError(401, "Unauthorized") if looks_right else RefusalError(404, "Not Found"))
        method = request.match_info["method"]
        parameters = await _parameters(request)
        self.calls.append((method, parameters))
        self.change()
        faults = self._faults.get(method.lower())
        fault = faults.pop(0) if faults else Fault()
        if fault.delay and not fault.after:
            await self.pause(fault.delay)
        if not fault.after and (fault.drop or fault.status or fault.body is not None):
            return _faulty(request, fault)
        try:
            if method.lower() == "getupdates":
                result = await self._get_updates(parameters)
            elif handler := self.methods.get(method.lower()):
                result = handler(parameters)
            else:
                raise RefusalError(404, "Not Found")
        except RefusalError as refusal:
            return _refused(refusal)
        self.change()
        if fault.after:
            await self.pause(fault.delay)
            return _faulty(request, fault)
        return web.json_response({"ok": True, "result": result})

    async def _get_updates(self, parameters: Json) -> list[Json]:
        if self.webhook:
            raise RefusalError(409, _WEBHOOK_IS_SET)
        self._allow(parameters)
        offset, limit = int(parameters.get("offset", 0)), int(parameters.get("limit", 100))
        self.waiting = [update for update in self.waiting if update["update_id"] >= offset]
        self._poll = me = object()
        self.change()
        deadline = time.monotonic() + float(parameters.get("timeout", 0))
        while not self._wanted() and self._poll is me and not self._stopping.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return []
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()
        if self._poll is not me:
            raise RefusalError(409, _OTHER_POLLER)
        return self.waiting[:limit]

    def _wanted(self) -> list[Json]:
        """The updates that wait, after those are gone that the bot has not asked for."""
        unwanted = _ON_REQUEST - (self.allowed or set())
        if any(unwanted & update.keys() for update in self.waiting):
            self.waiting = [update for update in self.waiting if not unwanted & update.keys()]
            self.change()
        return self.waiting

    async def _download(self, request: web.Request) -> web.Response:
        file_id = request.match_info["path"].rpartition("/")[2]
        if request.match_info["token"] != self.token or file_id not in self.files:
            raise web.HTTPNotFound
        return web.Response(body=self.files[file_id])

    # The webhook ------------------------------------------------------------------------------------------------------

    async def work(self) -> None:
        """Take the updates to the webhook, one after the other, each again and again until it is taken."""
        async with aiohttp.ClientSession() as session:
            while True:
                changed = self._changed
                if not (self.webhook and self.leads_to and self._wanted()):
                    await changed.wait()
                    continue
                update = self.waiting[0]
                status = await self._delivered(session, update)
                self.deliveries.append(status)
                if 200 <= status < 300 and update in self.waiting:
                    self.waiting.remove(update)
                elif not 200 <= status < 300:
                    said = f"Wrong response from the webhook: {status}" if status else "Connection refused"
                    self.webhook_error = {"last_error_date": int(time.time()) + 1, "last_error_message": said}
                    await asyncio.sleep(_REDELIVERY_SECONDS)
                self.change()

    async def _delivered(self, session: aiohttp.ClientSession, update: Json) -> int:
        headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook_secret} if self.webhook_secret else {}
        address = self.leads_to + urlsplit(self.webhook).path
        try:
            async with session.post(address, json=update, headers=headers) as answer:
                return answer.status
        except aiohttp.ClientError:
            return 0


async def _parameters(request: web.Request) -> Json:
    """The parameters from the query, a form or JSON; those that hold JSON are read, and files are ``Upload``."""
    body: Json = {}
    if request.content_type == "application/json":
        body = await request.json()
    elif request.can_read_body:
        body = {name: _field(value) for name, value in (await request.post()).items()}
    parameters: Json = {**request.query, **body}
    for name, value in parameters.items():
        if isinstance(value, str) and value[:1] in ("[", "{") and name not in ("text", "caption"):
            parameters[name] = json.loads(value)
    return parameters


def _field(value: Any) -> Any:
    if isinstance(value, web.FileField):
        with value.file as content:
            return Upload(value.filename, value.content_type, content.read())
    return value


def _refused(refusal: RefusalError, http_status: int | None = None) -> web.Response:
    answer = {"ok": False, "error_code": refusal.status, "description": refusal.description}
    if refusal.parameters:
        answer["parameters"] = refusal.parameters
    return web.json_response(answer, status=http_status or refusal.status)


def _faulty(request: web.Request, fault: Fault) -> web.Response:
    if fault.drop or not fault.status:
        if request.transport is not None:
            request.transport.close()
        raise asyncio.CancelledError
    if fault.body is not None:
        return web.Response(status=fault.as_http or fault.status, body=fault.body)
    wanted = {"retry_after": fault.retry_after, "migrate_to_chat_id": fault.migrate_to_chat_id}
    parameters = {name: value for name, value in wanted.items() if value is not None}
    return _refused(RefusalError(fault.status, fault.description or "fault", **parameters), fault.as_http)
