"""Stays connected to Discord's gateway: resumes what was cut off, logs in anew where that can't be, outlives the rest.

The library keeps the heartbeat and speaks the protocol; when to connect again is decided here, because its own pauses
grow to a quarter of an hour. Knows no message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket

from adapters.discord.refusals import closed
from adapters.discord.transport import unheard
from adapters.errors import AdapterError, AuthFailed, RateLimited, Unreachable

if TYPE_CHECKING:
    from adapters.discord.client import Client
    from adapters.discord.pulse import Pulse
    from adapters.rounds import Times

_FIRST_PAUSE = 1.0
_GROWTH = 1.5
_LONGEST_PAUSE = 30.0
_CONNECT_SECONDS = 30.0
_CLOSE_SECONDS = 1.0

_RESUMABLE = 4000
"""A close code after which Discord keeps the session for a while."""

_FOR_GOOD = 1000

_RESUMES = 3
"""Tries to resume where Discord wants it, before it is tried where new sessions begin."""


class Gateway:
    """The connection of one bot. ``receive`` takes each frame, at once; ``room`` ends when it can take one more."""

    def __init__(
        self,
        client: Client,
        receive: Callable[[str], None],
        room: Callable[[], Awaitable[None]],
        pulse: Pulse,
        times: Times,
    ) -> None:
        self._client = client
        self._receive = receive
        self._room = room
        self._pulse = pulse
        self._times = times
        self._pause = _FIRST_PAUSE
        self._socket: DiscordWebSocket | None = None
        self._url: yarl.URL | None = None
        self._resume: dict[str, Any] = {}
        """What a session that was cut off is resumed with; empty where there is none."""
        self._has_begun = False
        self._failures = 0
        """How often in a row the connection could not be made."""
        self._well_before = 0
        """How often the connection had been well when it was last cut off."""

    async def run(self) -> NoReturn:
        """Raises AuthFailed where a person has to mend something; nothing else ends it."""
        await self._client.open()
        self._client.session.receive = self._receive
        try:
            while True:
                try:
                    await self._connected()
                except ReconnectWebSocket as request:
                    await self._cut_off(resume=request.resume)
                except discord.ConnectionClosed as error:
                    if failure := closed(error.code):
                        raise failure from None
                    await self._cut_off(Unreachable(f"Discord closed the connection with {error.code}"))
                except AuthFailed:
                    raise
                except AdapterError as error:
                    await self._cut_off(error)
                except (OSError, aiohttp.ClientError, discord.DiscordException) as error:
                    await self._cut_off(Unreachable(f"no connection to Discord's gateway ({type(error).__name__})"))
        finally:
            await self._close()

    async def _connected(self) -> NoReturn:
        """Connect, and listen until something ends it."""
        is_lost = self._failures >= _RESUMES
        if self._url is None or is_lost:
            self._url = yarl.URL(await self._client.gateway())
        given: dict[str, Any] = {"gateway": self._url, **self._resume}
        given |= {"gateway": self._url} if is_lost else {}
        session = self._client.session
        async with asyncio.timeout(_CONNECT_SECONDS):
            socket = await DiscordWebSocket.from_client(session, initial=not self._has_begun, **given)
        self._socket = session.ws = socket
        self._has_begun = True
        while True:
            await self._room()
            await socket.poll_event()

    async def _cut_off(self, error: AdapterError | None = None, *, resume: bool = True) -> None:
        """Keep what the session is resumed with, and wait where connecting at once would not help.

        None is no trouble: Discord wants it so now and then. Without ``resume`` it wants a new session.
        """
        self._pulse.lost() if error is None else self._pulse.failed("connection", error)
        socket = self._socket
        if not resume:
            self._resume = {}
        elif socket is not None and socket.session_id:
            place = {"session": socket.session_id, "sequence": socket.sequence}
            self._resume = {**place, "gateway": socket.gateway, "resume": True}
        await self._let_go()
        if self._was_well() and error is None:
            return  # the first try to make it again is made at once
        if isinstance(error, RateLimited):
            await self._times.sleep(max(error.retry_after, _FIRST_PAUSE))
            return
        await self._times.sleep(self._pause * (0.5 + self._times.random() / 2))
        self._pause = min(self._pause * _GROWTH, _LONGEST_PAUSE)

    def _was_well(self) -> bool:
        """Whether the connection had been well since it was last cut off."""
        was_well = self._pulse.connections > self._well_before
        self._well_before = self._pulse.connections
        self._failures = 0 if was_well else self._failures + 1
        if was_well:
            self._pause = _FIRST_PAUSE
        return was_well

    async def _let_go(self, code: int = _RESUMABLE) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            with suppress(Exception):  # whatever became of it, it is of no more use
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await socket.close(code=code)

    async def _close(self) -> None:
        self._client.session.receive = unheard
        await self._let_go(_FOR_GOOD)
