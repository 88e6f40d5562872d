"""Receives by being called: Telegram brings each update to an address of ours, and is told "taken" once it is stored.

What could not be stored is refused, so that Telegram brings it again. TLS is left to whatever stands before it (a
reverse proxy, a tunnel). Whether Telegram gets through, it is asked now and then.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from aiohttp import web

from adapters.errors import Unreachable
from adapters.listening import serving
from adapters.rounds import StoreError
from adapters.telegram.refusals import Conflict

if TYPE_CHECKING:
    from telegram import WebhookInfo

    from adapters.rounds import Rounds, Times
    from adapters.telegram.client import Client
    from adapters.telegram.intake import Intake
    from adapters.telegram.settings import TelegramSettings

LOOK_SECONDS = 60.0
"""How often Telegram is asked whether it gets through."""

_LARGEST_UPDATE = 1 << 20
"""Bytes; a message of the longest text in four-byte characters, quoted in another, has about 60,000."""

_PROOF = "X-Telegram-Bot-Api-Secret-Token"
_CLOSING_SECONDS = 1.0


class Webhook:
    """One bot's address. ``settings`` have a ``webhook_url``; ``begin`` asks who we are."""

    def __init__(
        self,
        client: Client,
        rounds: Rounds,
        settings: TelegramSettings,
        times: Times,
        begin: Callable[[], Awaitable[Intake]],
    ) -> None:
        assert settings.webhook_url is not None
        self._client = client
        self._rounds = rounds
        self._times = times
        self._begin = begin
        self._url = settings.webhook_url
        self._place = (settings.webhook_host, settings.webhook_port)
        given = settings.webhook_secret
        self._secret = given.get_secret_value() if given else secrets.token_urlsafe(32)
        self._intake: Intake | None = None
        self._taking = asyncio.Lock()
        self._server: web.AppRunner | None = None
        self._is_set = False
        self._got_through: datetime = times.now()

    async def run(self) -> NoReturn:
        """Raises AuthFailed for a token that is wrong or was revoked; nothing else ends it.

        The address stays set at Telegram, which keeps what comes until the next run.
        """
        try:
            await self._rounds.keep(self._round)
        finally:
            if self._server is not None:
                await self._server.cleanup()

    async def _round(self) -> None:
        if self._intake is None:
            self._intake = await self._begin()
        if self._server is None:
            self._server = await self._listening()
        if self._is_set:
            self._look(await self._client.webhook())
        else:
            await self._client.set_webhook(self._url, self._secret)
            self._is_set = True
        self._rounds.well(self._intake.name, has_all=True)
        await self._times.sleep(LOOK_SECONDS)

    def _look(self, state: WebhookInfo) -> None:
        """Raises where Telegram brings the updates elsewhere, or can't bring them here."""
        if state.url != self._url:
            self._is_set = False
            where = f"are taken to {urlsplit(state.url).netloc}" if state.url else "are asked for"
            raise Conflict(
                f"the bot's messages {where} by another program with the same token: "
                "stop it, or give it a bot of its own",
                webhook=True,
            )
        if state.pending_update_count and state.last_error_date and state.last_error_date > self._got_through:
            host, port = self._place
            raise Unreachable(
                f"Telegram can't bring {state.pending_update_count} messages to webhook_url: "
                f"{state.last_error_message}. It has to be an https address that leads to {host}:{port}"
            )

    # The server -------------------------------------------------------------------------------------------------------

    async def _listening(self) -> web.AppRunner:
        app = web.Application(client_max_size=_LARGEST_UPDATE)
        app.router.add_post(urlsplit(self._url).path, self._answer)
        host, port = self._place
        return await serving(
            app, host, port, closing=_CLOSING_SECONDS, whom="Telegram", mend="set another webhook_port or webhook_host"
        )

    async def _answer(self, request: web.Request) -> web.Response:
        """200 for what is stored, 503 for what Telegram is to bring again."""
        proof = request.headers.get(_PROOF, "").encode(errors="surrogateescape")
        if not hmac.compare_digest(proof, self._secret.encode()):
            raise web.HTTPForbidden
        try:
            update = json.loads(await request.read())
        except ValueError:
            raise web.HTTPBadRequest from None
        assert self._intake is not None
        async with self._taking:
            try:
                await self._intake.take(update)
            except StoreError as error:
                self._rounds.failed(error)
                raise web.HTTPServiceUnavailable from error
        self._got_through = self._times.now()
        self._rounds.well(self._intake.name, has_all=True)
        return web.Response()
