"""What the gateway sends, on its way in: taken down at once, then read and stored one after the other.

The gateway awaits no word that something arrived, so here it waits: what could not be stored is tried again, and what
comes meanwhile stays behind it, in order. After each login what was missed is read up before anything new is handed on.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adapters.discord.backfill import Backfill
from adapters.discord.commands import table_of
from adapters.discord.inbound import INTERACTION, MESSAGES, REACTIONS, Reader, events_of, spoken
from adapters.discord.places import Place, Places
from adapters.discord.pulse import Pulse
from adapters.errors import AdapterError, RateLimited, Rejected
from adapters.message import Message, Reacted, Spoken
from adapters.rounds import StoreError

if TYPE_CHECKING:
    from adapters.adapter import Accept, Offered
    from adapters.discord.client import Client
    from adapters.discord.content import Json
    from adapters.discord.interactions import Interactions
    from adapters.discord.settings import DiscordSettings
    from adapters.message import Inbound
    from adapters.rounds import Times

log = logging.getLogger(__name__)

_HEARD = frozenset({*MESSAGES, *REACTIONS, INTERACTION})

_SERVERS_SECONDS = 3.0
"""How long after a login the servers are waited for, which Discord sends one by one."""

_HOLD_TRIES = 5
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
"""Seconds between two tries to store something, or to learn where it was said."""

_MOST_WAITING = 1000
"""Events that wait to be stored; while there are as many, no more are read."""

_MOST = 1000
"""People, threads and messages that are remembered."""


@dataclass(slots=True)
class _Item:
    kind: str
    data: Json
    stored: asyncio.Event = field(default_factory=asyncio.Event)


class Intake:
    """Hands what one bot hears to ``accept``.

    ``newest`` and ``heard_at`` say where an earlier run ended, and ``menu`` is what is registered as slash commands.
    """

    def __init__(
        self,
        client: Client,
        settings: DiscordSettings,
        account: str,
        accept: Accept,
        *,
        places: Places,
        interactions: Interactions,
        pulse: Pulse,
        times: Times,
        menu: Sequence[Offered],
        newest: Mapping[str, str],
        heard_at: datetime | None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._account = account
        self._accept = accept
        self._places = places
        self._interactions = interactions
        self._pulse = pulse
        self._times = times
        self._menu = menu
        self.newest = dict(newest)
        """By chat, the id of the last message there that was handed on."""
        self.heard_at = heard_at
        """When something was last handed on, in this run or, as far as it is known, before."""
        self._backfill = Backfill(client, places, settings, times.sleep)
        self._queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_busy = False
        self._awaited: set[str] = set()
        self._complete = asyncio.Event()
        self._me: Json = {}
        self._names: OrderedDict[str, str] = OrderedDict()
        self._introduced: OrderedDict[str, None] = OrderedDict()
        self._stored: OrderedDict[str, None] = OrderedDict()
        """Messages; one may come by the gateway, by a resumed session, and be read up."""
        self.titles: OrderedDict[str, str] = OrderedDict()
        """By message, what a thread below it would be called."""

    # Taking down ------------------------------------------------------------------------------------------------------

    async def room(self) -> None:
        """Wait until more can be taken down. Discord keeps it meanwhile; what it no longer keeps is read up later."""
        await self._has_room.wait()

    def receive(self, frame: str) -> None:
        """Take down one frame of the gateway."""
        try:
            payload = json.loads(frame)
        except ValueError:
            log.warning("discord/%s: skipped a frame that can't be read", self._account)
            return
        kind, data = payload.get("t"), payload.get("d")
        if payload.get("op") == 0 and isinstance(data, dict):
            self._take_down(str(kind), data)
        if self._queue.qsize() >= _MOST_WAITING:
            self._has_room.clear()
        if not self._is_busy and self._queue.empty():
            self._pulse.heard()

    def _take_down(self, kind: str, data: Json) -> None:
        match kind:
            case "READY":
                self._me = data["user"]
                self._awaited = {str(guild["id"]) for guild in data.get("guilds", ())}
                self._complete = asyncio.Event()
                self._arrived("")
                self._pulse.connected(f"@{self._me.get('username', '')}")
                self._queue.put_nowait(_Item(kind, data))
            case "RESUMED":
                self._pulse.connected(f"@{self._me.get('username', '')}")
            case "GUILD_CREATE":
                if str(data.get("id")) not in self._awaited and self._complete.is_set():
                    log.info("discord/%s: is on the server %s (%s)", self._account, data.get("name"), data.get("id"))
                self._arrived(str(data.get("id")))
            case "GUILD_DELETE":
                if not data.get("unavailable"):
                    log.info("discord/%s: is no longer on the server %s", self._account, data.get("id"))
                self._arrived(str(data.get("id")))
            case _ if kind in _HEARD:
                item = _Item(kind, data)
                if kind == INTERACTION:
                    self._interactions.begin(data, item.stored)
                self._queue.put_nowait(item)

    def _arrived(self, guild: str) -> None:
        self._awaited.discard(guild)
        if not self._awaited:
            self._complete.set()

    # Handing on -------------------------------------------------------------------------------------------------------

    async def work(self) -> None:
        """Hand on, until cancelled."""
        while True:
            item = await self._queue.get()
            self._has_room.set()
            self._is_busy = True
            try:
                if item.kind == "READY":
                    await self._begin(item.data)
                else:
                    await self._handle(item)
            except Exception:  # its own fault: it must not hold up what comes behind it
                log.exception("discord/%s: a %s was skipped", self._account, item.kind)
            item.stored.set()
            self._is_busy = False
            if self._queue.empty():
                self._pulse.heard()

    async def _begin(self, ready: Json) -> None:
        if self._menu:
            await self._register(str(ready["application"]["id"]))
        with suppress(TimeoutError):
            async with asyncio.timeout(_SERVERS_SECONDS):
                await self._complete.wait()
        number, began = 0, self._times.now()
        async for place, message in self._backfill.missed(self.newest, self.heard_at, began):
            number += await self._hand_on("MESSAGE_CREATE", message, place)
        self.heard_at = began
        if number:
            log.info("discord/%s: read up %d messages of the time away", self._account, number)

    async def _register(self, application: str) -> None:
        """Commands that can't be registered are no reason not to answer: they can be typed."""
        try:
            await self._client.register(application, table_of(self._menu))
        except AdapterError as error:
            log.warning("discord/%s: the slash commands were not registered: %s", self._account, error)
        else:
            self._menu = ()

    async def _handle(self, item: _Item) -> None:
        place = await self._place(item.data)
        if place is not None:
            await self._hand_on(item.kind, item.data, place)

    async def _place(self, data: Json) -> Place | None:
        """Where it was said; None where Discord keeps that to itself, so that nobody knows whose business it is."""
        channel = str(data["channel_id"])
        if "guild_id" not in data:
            place = Place(channel, "direct")
            self._places.remember(place)
            return place
        pause = _FIRST_PAUSE
        for left in reversed(range(_HOLD_TRIES)):
            try:
                return await self._places.of(channel)
            except AdapterError as error:
                trouble = error
                if isinstance(error, Rejected) or not left:
                    break
                await self._times.sleep(error.retry_after if isinstance(error, RateLimited) else pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        log.warning(
            "discord/%s: something in %s is left out, its place is not known: %s", self._account, channel, trouble
        )
        return None

    async def _hand_on(self, kind: str, data: Json, place: Place) -> int:
        """How many events were stored."""
        if kind == "MESSAGE_CREATE" and str(data.get("id")) in self._stored:
            return 0
        reader = Reader(
            str(self._me["id"]), self._account, self._places, self._settings.follow_threads, self._settings.auto_thread
        )
        try:
            events = events_of(reader, kind, data, place, self._times.now())
        except Exception as error:
            log.warning("discord/%s: a %s was skipped, it can't be read: %r", self._account, kind, error)
            return 0
        for event in events:
            await self._store(await self._completed(event, reader, place))
        return len(events)

    async def _completed(self, event: Inbound, reader: Reader, place: Place) -> Inbound:
        """With what Discord says only once: names, and what a thread is about."""
        if isinstance(event, Reacted) and not event.sender.name:
            event = replace(event, sender=replace(event.sender, name=self._names.get(event.sender.id, "")))
        if not isinstance(event, Message):
            return event
        _remember(self._names, event.sender.id, event.sender.name)
        if event.address.thread == event.id:
            _remember(self.titles, event.id, event.text)
        elif place.parent is not None and event.mentions_me and place.chat not in self._introduced:
            _remember(self._introduced, place.chat, None)
            return replace(event, context=await self._opening(reader, place))
        return event

    async def _opening(self, reader: Reader, place: Place) -> tuple[Spoken, ...]:
        """The message that a thread hangs on, or that opens a post of a forum; empty where there is none."""
        assert place.parent is not None
        for channel in (place.parent, place.chat):
            try:
                message = await self._client.message(channel, place.chat)
                said = spoken(reader, await self._backfill.whole(message, place, {}), place)
            except AdapterError as error:
                log.debug("discord/%s: no opening of the thread %s: %s", self._account, place.chat, error)
                continue
            return () if said is None else (said,)
        return ()

    async def _store(self, event: Inbound) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._accept(event)
            except Exception as error:
                trouble = StoreError(f"a message could not be stored ({type(error).__name__}): it is tried again")
                trouble.__cause__ = error
                self._pulse.failed("store", trouble)
                await self._times.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            break
        self._pulse.stored()
        self.heard_at = self._times.now()
        if isinstance(event, Message):
            _remember(self._stored, event.id, None)
            chat = event.address.parent if event.address.thread == event.id else event.address.chat
            self.newest[chat or event.address.chat] = event.id


def _remember(memory: OrderedDict[str, Any], key: str, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > _MOST:
        memory.popitem(last=False)
