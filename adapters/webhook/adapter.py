"""The webhook adapter: the contract of ``adapters.adapter`` for one program at the other end.

It listens, holds the health, and makes the client on first use. Knows no JSON and no signature.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from adapters.adapter import Accept, Capabilities, Health, State
from adapters.errors import AdapterError, AuthFailed, Rejected, Unreachable
from adapters.listening import listen
from adapters.message import Address, Inbound, Part, Receipt
from adapters.text import FormattedText
from adapters.webhook.inbound import event_of, is_at
from adapters.webhook.outbound import payload_of
from adapters.webhook.refusal import Refusal
from adapters.webhook.settings import WebhookIdentity, WebhookSettings, web_address
from adapters.webhook.signing import verify

if TYPE_CHECKING:
    from aiohttp import web
    from yarl import URL

    from adapters.webhook.client import Client

log = logging.getLogger(__name__)

MOST_BYTES = 1_000_000
"""Of one request: the text of a long novel. Files are fetched by their URL, never posted."""

_GRACE_SECONDS = 1.0
"""For what is being stored when the adapter has to stop; who is not answered then sends it again."""


def _now() -> datetime:
    return datetime.now(UTC)


async def check_receiver(settings: WebhookSettings) -> WebhookIdentity:
    """Whether the program at ``callback_url`` is there and takes our signature: it is posted a "check".

    Raises AuthFailed for a wrong secret and Unreachable where nobody answers.
    """
    from adapters.webhook.client import Client

    client = Client(settings, _now)
    try:
        await client.post({"type": "check"}, "check")
    finally:
        await client.close()
    place = _callback(settings).authority
    return WebhookIdentity(place, f"The program at {place}", f"http://{settings.host}:{settings.port}")


def _callback(settings: WebhookSettings) -> URL:
    url = web_address(settings.callback_url)
    assert url is not None, "the settings were checked"
    return url


async def _stored(event: Inbound, accept: Accept) -> None:
    """Returns once ``event`` is stored. Raises Refusal where it could not be, so that its sender keeps it."""
    try:
        await accept(event)
    except Exception as error:
        raise Refusal(503, f"it could not be stored ({type(error).__name__})", "send the same again") from error


class WebhookAdapter:
    """One program at the other end; ``clock`` tells the time that is signed and checked."""

    settings_model = WebhookSettings
    check = staticmethod(check_receiver)

    channel = "webhook"

    def __init__(self, account: str, settings: WebhookSettings, *, clock: Callable[[], datetime] = _now) -> None:
        self.account = account
        self.capabilities = Capabilities(
            text_limit=settings.text_limit,
            caption_limit=settings.text_limit or MOST_BYTES,
            file_limit=settings.file_limit,
            threads=True,
            buttons=settings.buttons,
            idempotent=True,
        )
        self.health = Health()
        self._settings = settings
        self._files = _callback(settings).origin()
        self._clock = clock
        self._opened: Client | None = None
        self._is_running = False
        self._logged: set[int] = set()

    # In

    async def run(self, accept: Accept) -> None:
        """Listen until cancelled; raises AuthFailed where the port can't be had."""
        from aiohttp import web

        application = web.Application(client_max_size=MOST_BYTES)
        application.router.add_route("*", "/{path:.*}", partial(self._answer, accept))
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_GRACE_SECONDS)
        await runner.setup()
        self._is_running = True
        try:
            await self._listen(runner)
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self._report("stopped")
            raise
        finally:
            self._is_running = False
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        host, port = self._settings.host, self._settings.port
        try:
            await listen(runner, host, port)
        except OSError as error:
            reason = error.strerror or str(error)
            detail = f"can't listen on {host}:{port} ({reason}): stop what does, or set another port or host"
            self._report("failed", detail)
            raise AuthFailed(f"webhook/{self.account} {detail}") from None
        self._report("connected", self._listens)

    async def _answer(self, accept: Accept, request: web.Request) -> web.Response:
        """200 says that the event is stored, or was before; anything else that its sender still has it."""
        from aiohttp import web

        try:
            await _stored(await self._read(request), accept)
        except Refusal as refusal:
            self._log_once(refusal.status, f"refused a request of {request.remote}: {refusal.error}")
            said = {"error": refusal.error, "mend": refusal.mend}
            return web.json_response(said, status=refusal.status)
        self._logged.clear()
        return web.json_response({"ok": True})

    async def _read(self, request: web.Request) -> Inbound:
        from aiohttp.web import HTTPRequestEntityTooLarge

        if request.method != "POST":
            raise Refusal(405, f"a {request.method} is not taken", "POST an event")
        try:
            async with asyncio.timeout(self._settings.answer_seconds):
                body = await request.read()
        except HTTPRequestEntityTooLarge:
            mend = "give a file by its url, and a long text in pieces"
            raise Refusal(413, f"the body is larger than {MOST_BYTES:,} bytes", mend) from None
        except TimeoutError:
            raise Refusal(408, "the body did not come in time", "send it again") from None
        now = self._clock()
        verify(self._settings.secret.get_secret_value(), request.headers, body, now)
        self.health = replace(self.health, heard_at=now)
        return event_of(body, self.account, self._files, now)

    def _log_once(self, status: int, what: str) -> None:
        """Whoever finds the port can't fill the log: each kind of refusal is told once between two good requests."""
        log.log(logging.DEBUG if status in self._logged else logging.WARNING, "webhook/%s: %s", self.account, what)
        self._logged.add(status)

    # Out

    async def send(self, part: Part, key: str) -> Receipt:
        """Post ``part`` once. Whatever gets no answer is Unreachable: the receiver knows it again by ``key``."""
        can = self.capabilities
        if not part.text and not part.files:
            raise Rejected("a blank message: there is nothing to show")
        limit = can.caption_limit if part.files else can.text_limit
        if limit and self.measure(part.text) > limit:
            raise Rejected(f"the text is longer than the {limit} characters that the other program takes")
        if len(part.files) > can.album:
            raise Rejected(f"a message holds at most {can.album} file here")
        payload = await asyncio.to_thread(payload_of, part, key, can.file_limit)
        try:
            message_id = await self._client().post(payload, key)
        except AuthFailed as error:
            self._found("failed", error)
            raise
        except Unreachable as error:
            self._found("retrying", error)
            raise
        self._found("connected")
        return Receipt(message_id)

    async def edit(self, part: Part, message_id: str) -> None:
        raise Rejected(f"what {part.address.chat} was given stays as it is (message {message_id})")

    async def typing(self, address: Address) -> None:
        """Nothing: a request every few seconds costs the other program more than it tells."""

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        if not is_at(ref, self._files):
            raise Rejected(f"only files at {self._files} are fetched")
        async for chunk in self._client().download(ref, limit):
            yield chunk

    def measure(self, text: FormattedText) -> int:
        """Code points of the plain text."""
        return len(text.plain)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    def _client(self) -> Client:
        if self._opened is None:
            from adapters.webhook.client import Client

            self._opened = Client(self._settings, self._clock)
        return self._opened

    # Health

    @property
    def _listens(self) -> str:
        return f"listens on http://{self._settings.host}:{self._settings.port}"

    def _found(self, state: State, error: AdapterError | None = None) -> None:
        """The other program answered, or did not; while nobody listens that is not the state of the channel."""
        was = self.health.state
        if error is None:
            self.health = replace(self.health, heard_at=self._clock())
        if not self._is_running or was == state == "connected":
            return
        if was != state:
            level = logging.INFO if error is None else logging.WARNING
            log.log(level, "webhook/%s: %s", self.account, error or "the other program answers again")
        back = error is None and was in ("retrying", "failed")
        self.health = replace(self.health, reconnects=self.health.reconnects + back)
        self._report(state, str(error) if error else self._listens)

    def _report(self, state: State, detail: str = "") -> None:
        self.health = replace(self.health, state=state, detail=detail)
