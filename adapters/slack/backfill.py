"""Looks up what was said while nobody listened: Slack brings an event again for some minutes only.

What is known already is known by its id, so that too much does no harm: all chats of the bot are asked for what is
newer than the last thing we know of, bounded in age and number. Best effort: what Slack doesn't tell now is asked for
after the next gap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from adapters.errors import AdapterError, AuthFailed, RateLimited, Rejected
from adapters.rounds import StoreError
from adapters.slack.refusals import MissingScope

if TYPE_CHECKING:
    from adapters.slack.client import Client, Json
    from adapters.slack.intake import Intake

T = TypeVar("T")

log = logging.getLogger(__name__)

_MARGIN_SECONDS = 120.0
"""How long before the last thing we know of there may be something that we don't: Slack brings things out of order."""

_MOST_WAITS = 5
"""How often a call is made again that Slack wants to be made later."""


class Backfill:
    """For one bot. ``now`` gives seconds since 1970; ``since`` is when something was last known, None for never."""

    def __init__(
        self,
        client: Client,
        intake: Intake,
        *,
        since: float | None,
        hours: float,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._client = client
        self._intake = intake
        self._since = since
        self._seconds = hours * 3600
        self._now = now
        self._sleep = sleep
        self.is_whole = since is None
        """Whether nothing is left to look up."""
        self._gaps = 0

    def known_until(self, heard: float) -> None:
        """The server was last heard at ``heard``, in seconds of the loop (0 for never): what it had, we had then."""
        if heard and self.is_whole:
            self._since = self._now() - (asyncio.get_running_loop().time() - heard)

    def gap(self) -> None:
        """Something may have been said that nobody brings any more: ``run`` is to look it up."""
        self.is_whole = False
        self._gaps += 1

    async def run(self) -> None:
        """Hand on what was missed, oldest first in each chat. Raises nothing."""
        while True:
            gaps = self._gaps
            has_all = await self._look()
            if gaps == self._gaps:  # else there was another one meanwhile
                self.is_whole = has_all
                return

    async def _look(self) -> bool:
        """Whether that is all now."""
        if self._since is None or not self._seconds:
            return True
        now = self._now()
        oldest = now - self._seconds
        since = max(self._since - _MARGIN_SECONDS, oldest)
        try:
            for chat in await self._patiently(self._client.conversations):
                await self._chat(chat, oldest=oldest, since=since)
        except (AdapterError, StoreError) as error:
            log.warning("slack/%s: not all that was missed could be read: %s", self._intake.reader.account, error)
            return False
        self._since = now
        return True

    async def _chat(self, chat: Json, *, oldest: float, since: float) -> None:
        name = str(chat.get("id") or "")
        try:
            said = await self._patiently(lambda: self._client.history(name, oldest=f"{oldest:.6f}"))
            missed = [message for message in said if _at(message) > since]
            for parent in said:
                if _seconds(parent.get("latest_reply")) > since:
                    missed += await self._thread(name, str(parent.get("ts")), since)
        except AuthFailed:
            raise
        except MissingScope as error:
            log.info("slack/%s: %s", self._intake.reader.account, error)
            return
        except Rejected:  # a chat that can't be read any more
            return
        for message in sorted(missed, key=_at):
            if self._intake.has(name, str(message.get("ts"))):
                continue  # it was heard before the gap, whatever became of it
            event = {**message, "type": "message", "channel": name, "channel_type": _type(chat)}
            await self._intake.take({"type": "event_callback", "event": event})

    async def _thread(self, chat: str, thread: str, since: float) -> list[Json]:
        replies = await self._patiently(lambda: self._client.replies(chat, thread, oldest=f"{since:.6f}"))
        return [message for message in replies if _at(message) > since and message.get("ts") != thread]

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        for _ in range(_MOST_WAITS):
            try:
                return await call()
            except RateLimited as error:
                await self._sleep(error.retry_after)
        return await call()


def _at(message: Json) -> float:
    return _seconds(message.get("ts"))


def _seconds(ts: Any) -> float:
    try:
        return float(ts)
    except (TypeError, ValueError):
        return 0.0


def _type(chat: Json) -> str:
    return "im" if chat.get("is_im") else "mpim" if chat.get("is_mpim") else "channel"
