"""Receives by being called: Slack posts each event to an address of ours, signed, and hears 200 once it is stored.

What could not be stored is refused, so that Slack brings it again. TLS is left to whatever stands before it (a reverse
proxy, a tunnel). Whether the bot's token still works, Slack is asked now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn

from aiohttp import web

from adapters.errors import AuthFailed
from adapters.listening import serving

if TYPE_CHECKING:
    from adapters.rounds import Rounds
    from adapters.slack.backfill import Backfill
    from adapters.slack.client import Client
    from adapters.slack.dispatch import Dispatch
    from adapters.slack.settings import SlackSettings

LOOK_SECONDS = 60.0
"""How often it is asked whether the token still works."""

_LARGEST_REQUEST = 1 << 20
_CLOSING_SECONDS = 1.0
_TIMESTAMP = "X-Slack-Request-Timestamp"


class SignedHttp:
    """One app's address. ``settings`` have a ``signing_secret``; ``begin`` asks who we are."""

    def __init__(
        self,
        client: Client,
        rounds: Rounds,
        settings: SlackSettings,
        begin: Callable[[], Awaitable[tuple[Dispatch, Backfill]]],
    ) -> None:
        self._client = client
        self._rounds = rounds
        self._place = (settings.http_host, settings.http_port)
        self._begin = begin
        self._begun: tuple[Dispatch, Backfill] | None = None
        self._server: web.AppRunner | None = None
        self._filling: asyncio.Task[None] | None = None

    async def run(self) -> NoReturn:
        """Raises AuthFailed for a token that is wrong or was revoked; nothing else ends it."""
        try:
            await self._rounds.keep(self._round)
        finally:
            if self._filling is not None:
                self._filling.cancel()
                await asyncio.wait([self._filling])
            if self._server is not None:
                await self._server.cleanup()

    async def _round(self) -> None:
        if self._begun is None:
            self._begun = await self._begin()
        else:
            await self._client.identity()
        dispatch, backfill = self._begun
        if self._server is None:
            self._server = await self._listening()
        if not backfill.is_whole and (self._filling is None or self._filling.done()):
            self._filling = asyncio.create_task(backfill.run(), name=f"{self._rounds.name} backfill")
        self._rounds.well(dispatch.intake.name, has_all=backfill.is_whole)
        pause = asyncio.ensure_future(self._rounds.times.sleep(LOOK_SECONDS))
        try:
            await asyncio.wait([pause, dispatch.ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
        if dispatch.ended.done():
            dispatch.ended.result()

    async def _listening(self) -> web.AppRunner:
        app = web.Application(client_max_size=_LARGEST_REQUEST)
        app.router.add_post("/{path:.*}", self._answer)
        host, port = self._place
        return await serving(
            app, host, port, closing=_CLOSING_SECONDS, whom="Slack", mend="set another http_port or http_host"
        )

    async def _answer(self, request: web.Request) -> web.Response:
        """200 for what is stored, 401 for what is not Slack's, 503 for what Slack is to bring again."""
        assert self._begun is not None
        if not request.headers.get(_TIMESTAMP, "0").isdecimal():  # Bolt takes it for a number
            raise web.HTTPUnauthorized
        body = (await request.read()).decode(errors="replace")
        answer = await self._begun[0].answer(body, dict(request.headers), signed=True)
        content_type = answer.headers.get("content-type", ["text/plain"])[0].partition(";")[0]
        return web.Response(status=answer.status, text=answer.body, content_type=content_type)


def check_secret(settings: SlackSettings) -> str:
    """The signing secret. Raises AuthFailed where there is none."""
    if settings.signing_secret is None or not settings.signing_secret.get_secret_value().strip():
        raise AuthFailed(
            "the Slack signing_secret is not set, by which Slack's requests are known: copy it from "
            "api.slack.com/apps, the app, Basic Information, App Credentials"
        )
    return settings.signing_secret.get_secret_value().strip()
