"""What was said while nobody listened: Discord's gateway keeps nothing, so the newest messages of each chat are read.

Where to begin is what was taken last in a chat, else when Discord was last heard; both may be somewhat old, because
what is handed on twice is a replay. Bounded in age and number. Direct chats can't be listed: known ones are read.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from adapters.discord.inbound import snowflake
from adapters.errors import AdapterError, AuthFailed, RateLimited, Rejected

if TYPE_CHECKING:
    from adapters.discord.client import Client
    from adapters.discord.content import Json
    from adapters.discord.places import Place, Places
    from adapters.discord.settings import DiscordSettings

T = TypeVar("T")

log = logging.getLogger(__name__)

_MARGIN = timedelta(minutes=2)
"""How far the time of this machine may be from Discord's, and the note of it behind."""

_CHATS = 100
"""Of those that have to be read to know whether there is anything new: the ones used last."""

_TRIES = 3


class Backfill:
    """Reads for one bot. ``sleep`` is given seconds."""

    def __init__(
        self,
        client: Client,
        places: Places,
        settings: DiscordSettings,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._client = client
        self._places = places
        self._settings = settings
        self._sleep = sleep

    async def missed(
        self, newest: Mapping[str, str], heard_at: datetime | None, now: datetime
    ) -> AsyncIterator[tuple[Place, Json]]:
        """The messages that may have been missed, each with its place, oldest first in a chat."""
        if not self._settings.backfill_messages:
            return
        members: dict[tuple[str, str], Json] = {}
        for chat, after in self._chats(newest, heard_at, now).items():
            try:
                place = await self._patient(partial(self._places.of, chat))
                said = await self._patient(partial(self._client.history, chat, self._settings.backfill_messages))
            except AuthFailed:
                raise
            except AdapterError as error:
                log.debug("the chat %s could not be read up: %s", chat, error)
                continue
            for message in sorted(said, key=lambda one: int(one["id"])):
                if int(message["id"]) > after:
                    yield place, await self.whole(message, place, members)

    def _chats(self, newest: Mapping[str, str], heard_at: datetime | None, now: datetime) -> dict[str, int]:
        """The chats to read, each with the id after which something is new."""
        floor = snowflake(now - self._settings.backfill_age)
        known = {chat: int(message) for chat, message in newest.items() if message.isdecimal() and chat.isdecimal()}
        found: dict[str, int] = {}
        unread = self._places.unread()
        for chat, last in unread.items():
            since = known.get(chat)
            if since is None and heard_at is not None:
                since = snowflake(heard_at - _MARGIN)
            if since is not None and int(last) > max(floor, since):
                found[chat] = max(floor, since)
        others = sorted((chat for chat in known if chat not in unread), key=lambda chat: -known[chat])
        return found | {chat: max(floor, known[chat]) for chat in others[:_CHATS]}

    async def whole(self, message: Json, place: Place, members: dict[tuple[str, str], Json]) -> Json:
        """With what the gateway would have said of its sender on that server: the name there, and the roles.

        ``members`` are those that are known, by server and id; one that is looked up is added.
        """
        author = message.get("author") or {}
        if place.space is None or author.get("bot") or "webhook_id" in message or "id" not in author:
            return message
        who = (place.space, str(author["id"]))
        if who not in members:
            try:
                members[who] = await self._patient(partial(self._client.member, *who))
            except Rejected:  # they have left
                members[who] = {}
        return message | {"member": members[who]}

    async def _patient(self, call: Callable[[], Awaitable[T]]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                return await call()
            except AdapterError as error:
                if isinstance(error, AuthFailed | Rejected) or not left:
                    raise
                await self._sleep(error.retry_after if isinstance(error, RateLimited) else 1.0)
        raise AssertionError("the last try returns or raises")
