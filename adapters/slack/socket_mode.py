"""Receives over Socket Mode: a connection that is opened from here, on which each envelope is acknowledged once stored.

The library's client is used for one connection each time. By itself it would open the next one for ever and tell nobody
why it can't; so that is done in rounds here, where a revoked token ends it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http.client import SERVICE_UNAVAILABLE
from typing import TYPE_CHECKING, Any, NoReturn

from aiohttp import ClientError
from slack_sdk.socket_mode.aiohttp import SocketModeClient

from adapters.errors import AuthFailed, Unreachable

if TYPE_CHECKING:
    from adapters.rounds import Rounds
    from adapters.slack.backfill import Backfill
    from adapters.slack.client import Client
    from adapters.slack.dispatch import Dispatch

PING_SECONDS = 5.0
"""How often it is looked whether the connection still lives; it is dead after four times that."""

_LOOK_SECONDS = 1.0
_CONNECT_SECONDS = 10.0
_CLOSING_SECONDS = 1.0
_HOLD_SECONDS = 2.0
"""How long an envelope waits for what was missed before it: Slack wants an acknowledgement within three."""

Take = Callable[[dict[str, Any]], Awaitable[bool]]


class SocketMode:
    """One app's connection. ``begin`` asks who we are, ``backfill`` looks up what was missed."""

    def __init__(
        self,
        client: Client,
        rounds: Rounds,
        begin: Callable[[], Awaitable[tuple[Dispatch, Backfill]]],
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        self._client = client
        self._rounds = rounds
        self._begin = begin
        self._ping_seconds = ping_seconds
        self._begun: tuple[Dispatch, Backfill] | None = None
        self._has_gap = True
        self._filling: asyncio.Task[None] | None = None

    async def run(self) -> NoReturn:
        """Raises AuthFailed for a token that is wrong or was revoked; nothing else ends it."""
        try:
            await self._rounds.keep(self._round)
        finally:
            if self._filling is not None:
                self._filling.cancel()
                await asyncio.wait([self._filling])

    async def _round(self) -> None:
        if self._begun is None:
            self._begun = await self._begin()
        dispatch, backfill = self._begun
        has_gap, self._has_gap = self._has_gap, True
        if has_gap:
            backfill.gap()
        link = Link(await self._client.link(), self._client, self._take, self._ping_seconds)
        try:
            await link.open()
            self._rounds.well(dispatch.intake.name, has_all=False)
            if has_gap:
                self._fill(backfill)
            await self._live(link, dispatch, backfill)
        finally:
            backfill.known_until(link.heard)
            await link.end()
        if link.reason == "link_disabled":
            raise AuthFailed(
                "Slack says link_disabled: Socket Mode was switched off. "
                "Switch it on again: api.slack.com/apps, the app, Socket Mode"
            )
        if not link.reason:
            raise Unreachable("the connection to Slack broke")
        self._has_gap = False  # Slack said it beforehand, and keeps what comes meanwhile

    async def _live(self, link: Link, dispatch: Dispatch, backfill: Backfill) -> None:
        """Until the connection is over, or Slack says that it is the end of it all."""
        over: asyncio.Future[Any] = asyncio.ensure_future(link.over.wait())
        heard = link.last_ping_pong_time
        try:
            while not over.done():
                both: list[asyncio.Future[Any]] = [over, dispatch.ended]
                await asyncio.wait(
                    both, timeout=min(_LOOK_SECONDS, self._ping_seconds), return_when=asyncio.FIRST_COMPLETED
                )
                if dispatch.ended.done():
                    dispatch.ended.result()
                if link.is_broken:
                    return
                if link.last_ping_pong_time != heard and not over.done():
                    heard = link.last_ping_pong_time
                    if not link.is_busy:
                        link.hears()
                    self._rounds.well(dispatch.intake.name, has_all=backfill.is_whole and not link.is_busy)
        finally:
            over.cancel()

    def _fill(self, backfill: Backfill) -> None:
        if self._filling is None or self._filling.done():
            self._filling = asyncio.create_task(backfill.run(), name=f"{self._rounds.name} backfill")

    async def _take(self, envelope: dict[str, Any]) -> bool:
        """True once it may be acknowledged, however long that takes."""
        assert self._begun is not None
        if self._filling is not None:
            await asyncio.wait([self._filling], timeout=_HOLD_SECONDS)
        payload = envelope.get("payload")
        if not isinstance(payload, dict):
            return True
        while (await self._begun[0].answer(payload, {}, signed=False)).status == SERVICE_UNAVAILABLE:
            await self._rounds.pause()  # Slack would bring it again too, but not often, and not in order
        return True


class Link(SocketModeClient):
    """One connection to ``url``; ``over`` once there is nothing more to come, and ``reason`` where Slack says why."""

    def __init__(self, url: str, client: Client, take: Take, ping_seconds: float) -> None:
        super().__init__(app_token="", web_client=client.web, logger=client.web.logger, ping_interval=ping_seconds)
        self.wss_uri = url
        self.over = asyncio.Event()
        self.reason = ""
        self.heard = 0.0
        """When the server was last heard, and nothing it had said waited, in seconds of the loop; 0 for never."""
        self._greeted = asyncio.Event()
        self._take = take
        self._is_taking = False

    async def open(self) -> None:
        """Returns once Slack has said hello. Raises Unreachable."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self.connect()  # type: ignore[no-untyped-call]  # the library's
                await self._greeted.wait()
        except TimeoutError:
            raise Unreachable("Slack opened no connection: is it let through (wss)?") from None

    async def end(self) -> None:
        """Close what is open, and end what runs; nothing is acknowledged after it."""
        self.closed = True
        tasks = [task for task in (self.message_processor, self.current_session_monitor, self.message_receiver) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(TimeoutError, ClientError, OSError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                if self.current_session is not None:
                    await self.current_session.close()
        await self.aiohttp_client_session.close()

    @property
    def is_broken(self) -> bool:
        """At once, where the library would look after its next ping."""
        return self.current_session is None or self.current_session.closed

    @property
    def is_busy(self) -> bool:
        """Whether something that the server said is not stored yet."""
        return self._is_taking or not self.message_queue.empty()

    def hears(self) -> None:
        self.heard = asyncio.get_running_loop().time()

    async def connect_to_new_endpoint(self, force: bool = False) -> None:  # noqa: ARG002  # the library's signature
        """The library found the connection dead."""
        self.over.set()

    async def process_message(self) -> None:
        """One after the other, where the library would begin all at once."""
        raw = await self.message_queue.get()
        try:
            envelope = json.loads(raw)
        except ValueError:
            return
        match envelope.get("type"):
            case "hello":
                self.hears()
                self._greeted.set()
            case "disconnect":
                self.reason = str(envelope.get("reason") or "unknown")
                self.over.set()
                self._greeted.set()
            case _ if isinstance(envelope.get("envelope_id"), str) and await self._takes(envelope):
                self.hears()
                with suppress(ClientError, OSError):  # it is brought again, and known by then
                    await self.send_socket_mode_response({"envelope_id": envelope["envelope_id"]})

    async def _takes(self, envelope: dict[str, Any]) -> bool:
        self._is_taking = True
        try:
            return await self._take(envelope)
        finally:
            self._is_taking = False
