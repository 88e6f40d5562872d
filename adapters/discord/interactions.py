"""Commands that were chosen and buttons that were pressed, while Discord waits to hear that we know.

It waits three seconds, and never says again what was not answered: so it is told once the event is stored, or when half
of that has passed. The answer to a command takes the place of what Discord shows meanwhile, and on a server only who
gave the command sees it. After a quarter of an hour, or a restart, it is a message like any other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.discord.inbound import COMMAND, PRESS
from adapters.errors import AdapterError

if TYPE_CHECKING:
    from adapters.discord.client import Client
    from adapters.discord.content import Json
    from adapters.message import Part

log = logging.getLogger(__name__)

_STORED_SECONDS = 1.5
_VALID_SECONDS = 14 * 60.0


@dataclass(slots=True, eq=False)
class Waiting:
    """A command whose answer Discord awaits. ``known`` ends once Discord was told.

    ``turn`` is what answers it, and ``first`` the key of the part that takes the place of what Discord shows meanwhile:
    the same again changes nothing, while every other part is a message of its own each time.
    """

    interaction: str
    application: str
    token: str
    chat: str
    private: bool
    until: float
    known: asyncio.Task[bool]
    turn: str = ""
    first: str = ""


class Interactions:
    """Those of one bot. ``monotonic`` gives seconds."""

    def __init__(self, client: Client, account: str, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._account = account
        self._monotonic = monotonic
        self._waiting: list[Waiting] = []
        self._tasks: set[asyncio.Task[bool]] = set()

    def begin(self, data: Json, stored: asyncio.Event) -> None:
        """It came; ``stored`` is set once it is durable."""
        kind = data.get("type")
        if kind not in (COMMAND, PRESS):
            return
        private = kind == COMMAND and "guild_id" in data
        known = asyncio.create_task(self._tell(data, stored, is_press=kind == PRESS, private=private))
        self._tasks.add(known)
        known.add_done_callback(self._tasks.discard)
        now = self._monotonic()
        self._waiting = [one for one in self._waiting if one.until > now]
        if kind == COMMAND:
            ids = (str(data["id"]), str(data["application_id"]), str(data["token"]), str(data["channel_id"]))
            self._waiting.append(Waiting(*ids, private, now + _VALID_SECONDS, known))

    async def _tell(self, data: Json, stored: asyncio.Event, *, is_press: bool, private: bool) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(_STORED_SECONDS):
                await stored.wait()
        try:
            await self._client.defer(str(data["id"]), str(data["token"]), is_press=is_press, private=private)
        except AdapterError as error:
            log.debug("discord/%s: an interaction was not confirmed: %s", self._account, error)
            return False
        return True

    async def of(self, part: Part, key: str) -> Waiting | None:
        """The command that ``part`` answers; None for a usual message.

        In a direct chat, where an answer doesn't name what it answers, it is the command given first.
        """
        now, turn = self._monotonic(), key.rpartition("/")[0]
        for waiting in self._waiting:
            is_meant = waiting.interaction == part.reply_to if waiting.private else waiting.chat == part.address.chat
            if waiting.until <= now or not (waiting.turn == turn or (not waiting.turn and is_meant)):
                continue
            if await waiting.known:
                waiting.turn, waiting.first = turn, waiting.first or key
                return waiting
            self.drop(waiting)
            return None
        return None

    def drop(self, waiting: Waiting) -> None:
        """Discord takes no answer to it any more."""
        with suppress(ValueError):
            self._waiting.remove(waiting)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
