"""An account's connection over time: made, watched, made again, and what an operator is told of it.

The library makes a lost connection again by itself, later and later each time; where that takes long it is begun anew.
Knows how the link can end, and hands on what is said. Knows no message.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.errors import AdapterError, AuthFailed, Unreachable
from adapters.rounds import Rounds, StoreError
from adapters.whatsapp import session, states
from adapters.whatsapp.client import Client, probe
from adapters.whatsapp.intake import SAID, Intake
from adapters.whatsapp.library import load
from adapters.whatsapp.notebook import Notebook
from adapters.whatsapp.settings import BotIdentity, WhatsAppSettings

log = logging.getLogger(__name__)

_BEAT_SECONDS = 30.0
_PATIENCE_SECONDS = 120.0
"""How long the library may take to make a connection, the first time or again."""

_CATCH_UP_SECONDS = 20.0
"""Where WhatsApp doesn't say that all of it has come."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What a line has at its ends: ``folder`` is the account's own, ``begin`` reads for the account that is linked.

    ``opened`` is told of each client, None once it is gone, and ``caught_up`` whether all has come that was written
    meanwhile; None while there is no connection.
    """

    folder: Path
    settings: WhatsAppSettings
    notebook: Notebook
    begin: Callable[[BotIdentity], Intake]
    opened: Callable[[Client | None], None]
    caught_up: Callable[[bool | None], None]


class Line:
    """One connection, from its start to its end. It is to be closed, however it ended."""

    def __init__(self, ends: Ends, rounds: Rounds) -> None:
        self._ends = ends
        self._rounds = rounds
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._down_since: float | None = self._loop.time()
        self._client: Client | None = None
        self._intake: Intake | None = None
        self._me: BotIdentity | None = None
        self._catching_up: asyncio.TimerHandle | None = None
        self._is_connected = False
        self._has_all = False
        """Since the connection was made: that may be told before the connection itself is."""
        self._link = ExitStack()

    async def hold(self) -> None:
        """Until it breaks for good: raises ``adapters.errors``, or StoreError.

        Cancelled it hears nothing more, but until it is closed what there is to say can leave by it.
        """
        ends = self._ends
        self._become(await asyncio.to_thread(session.identity, ends.folder))
        used = Unreachable("another process uses this link just now: it is tried again")
        self._link.enter_context(session.held(ends.folder, used))
        await asyncio.to_thread(load)  # the first time it takes a second
        await self._catch_up()
        await probe(ends.settings.proxy_url)
        path = await asyncio.to_thread(session.prepare, ends.folder)
        self._client = client = Client(path, ends.settings.proxy_url, ends.settings.answer_seconds)
        try:
            running = await client.start(self._take, self._failed, show=self._shown, journal=ends.notebook, kept=SAID)
            ends.opened(client)
            await self._watch(running)
        except asyncio.CancelledError:
            client.deafen()
            raise

    async def close(self) -> None:
        """End the connection, and let go of the link."""
        self._ends.opened(None)
        self._disconnected()
        self._ended.cancel()
        if self._client is not None:
            await asyncio.shield(asyncio.ensure_future(self._client.stop()))
        self._link.close()

    def _become(self, me: BotIdentity) -> None:
        self._me = me
        self._intake = self._ends.begin(me)

    async def _catch_up(self) -> None:
        """What was reported to an earlier run, and not stored before that ended."""
        assert self._intake is not None
        events = {number: event for event, number in load().kinds.EVENT_TO_INT.items()}
        notebook = self._ends.notebook
        try:
            for number, kind, data in await asyncio.to_thread(notebook.left):
                try:
                    if not await asyncio.to_thread(notebook.tried, number):
                        log.error("%s: an event was skipped, the start failed on it again and again", self._rounds.name)
                    elif (said := _read(events.get(kind), data)) is not None:
                        await self._intake.take(type(said).__name__, said)
                except BaseException:
                    await asyncio.to_thread(notebook.untried, number)
                    raise
                await asyncio.to_thread(notebook.done, number)
        except sqlite3.Error as error:
            raise StoreError(f"what was said before the start can't be read now ({error})") from error

    async def _watch(self, running: asyncio.Task[None]) -> None:
        while True:
            done, _ = await asyncio.wait({running, self._ended}, timeout=_BEAT_SECONDS, return_when="FIRST_COMPLETED")
            if self._ended in done:
                self._ended.result()
            if running in done:
                running.result()
                raise Unreachable("the connection to WhatsApp ended: it is made again")
            if self._down_since is None:
                self._well()
            elif self._loop.time() - self._down_since > _PATIENCE_SECONDS:
                raise Unreachable("WhatsApp can't be reached: the connection is begun anew")

    # What is reported -------------------------------------------------------------------------------------------------

    async def _take(self, kind: str, event: Any) -> None:
        assert self._intake is not None
        if kind in SAID:
            await self._intake.take(kind, event, self._client)
            if self._down_since is None:
                self._well()
            return
        trouble = states.trouble_of(kind, event, self._rounds.times.now())
        if trouble is not None:
            self._end(trouble)
        elif kind == "Connected":
            self._connected()
            await self._look_again()
            self._well()
        elif kind == "KeepAliveRestored":
            if self._is_connected:  # it may be told late
                self._well()
        elif kind in ("Disconnected", "StreamError"):
            self._disconnected()
            self._lost(Unreachable(states.LOST))
        elif kind == "KeepAliveTimeout":
            self._has_all = False  # the library makes another connection, without a word of its end
            self._lost(Unreachable(states.SILENT))
        elif kind == "OfflineSyncCompleted":
            self._intake.summed_up()
            self._caught_up()
        elif kind == "UndecryptableMessage":
            log.warning("%s: a message could not be decrypted: its sender is asked for it again", self._rounds.name)

    def _connected(self) -> None:
        """What was written meanwhile comes now, if it has not come already."""
        self._wait_no_more()
        self._is_connected = True
        if not self._has_all:
            self._catching_up = self._loop.call_later(_CATCH_UP_SECONDS, self._caught_up)
        self._ends.caught_up(self._has_all)

    def _caught_up(self) -> None:
        self._wait_no_more()
        self._has_all = True
        if self._is_connected:
            self._ends.caught_up(True)

    def _disconnected(self) -> None:
        self._wait_no_more()
        self._is_connected = self._has_all = False
        self._ends.caught_up(None)

    def _wait_no_more(self) -> None:
        if self._catching_up is not None:
            self._catching_up.cancel()
            self._catching_up = None

    async def _look_again(self) -> None:
        """Who we are, if that was not all known when the account was linked."""
        if self._me is None or self._me.lid == "":
            with suppress(AdapterError):  # it is the same account, whatever keeps the file from being read now
                self._become(await asyncio.to_thread(session.identity, self._ends.folder))

    async def _shown(self, _: str) -> None:
        """A code to scan: the link is no more."""
        self._end(AuthFailed(f"not linked to an account: {session.LOGIN}"))

    def _well(self) -> None:
        assert self._me is not None
        me, self._down_since = self._me, None
        self._rounds.well(me.name if me.name == me.id else f"{me.name} ({me.id})", has_all=True)

    def _lost(self, trouble: Unreachable) -> None:
        if self._down_since is None:
            self._down_since = self._loop.time()
        self._rounds.failed(trouble)

    def _end(self, trouble: AdapterError) -> None:
        if not self._ended.done():
            self._ended.set_exception(trouble)

    def _failed(self, error: Exception) -> None:
        """Told by a thread of the library's: what was said could not be stored, and is kept for the next try."""
        trouble = error if isinstance(error, StoreError) else StoreError(f"a message could not be kept ({error})")
        self._loop.call_soon_threadsafe(self._rounds.failed, trouble)


def _read(event: Any, data: bytes) -> Any:
    """None for what is no event of this release of the library."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it has no types

    try:
        return None if event is None else event.FromString(data)
    except DecodeError:
        log.warning("whatsapp: something that was said before the start was skipped, it can't be read")
        return None
