"""One event on its way in: read, stored, and only then acknowledged.

The same for one that came over a socket, one that was posted here, and one that was looked up. One after the other, so
that what is said in a chat stays in order. Knows no network.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adapters.adapter import Accept
from adapters.errors import AdapterError, AuthFailed
from adapters.message import Message
from adapters.rounds import StoreError

if TYPE_CHECKING:
    from adapters.message import Inbound
    from adapters.slack.inbound import Reader

log = logging.getLogger(__name__)

_MOST = 5000
"""Messages that are remembered as handed on."""

_ENDS = {
    "tokens_revoked": "the bot's token was revoked: install the app again (api.slack.com/apps, the app, OAuth & "
    "Permissions) and set token",
    "app_uninstalled": "the app was removed from the workspace: install it again (api.slack.com/apps, the app, "
    "Install App) and set token",
}


def kind_of(body: Mapping[str, Any]) -> str:
    """What an envelope of this body is called in Socket Mode."""
    if body.get("type") == "event_callback":
        return "events_api"
    return "slash_commands" if "command" in body else "interactive"


class Intake:
    """Hands the events of one bot to ``accept``. ``now`` is aware."""

    def __init__(self, reader: Reader, accept: Accept, now: Callable[[], datetime]) -> None:
        self.reader = reader
        self._accept = accept
        self._now = now
        self._taking = asyncio.Lock()
        self._taken: dict[tuple[str, str], None] = {}

    @property
    def name(self) -> str:
        """What people call the bot."""
        return f"@{self.reader.me.username} in {self.reader.me.workspace}"

    async def take(self, body: Mapping[str, Any]) -> None:
        """Returns once all that has to be kept of it is.

        Raises StoreError, after which it may not be acknowledged, and AuthFailed where it says that this is the end.
        """
        event = body.get("event")
        if isinstance(event, Mapping) and (why := _ENDS.get(str(event.get("type")))):
            if event.get("type") == "tokens_revoked" and not (event.get("tokens") or {}).get("bot"):
                return  # a person's, who had given the app one
            raise AuthFailed(f"slack/{self.reader.account}: {why}")
        async with self._taking:
            said = await self._read(body)
            if said is None:
                return
            try:
                await self._accept(said)
            except Exception as error:
                what = f"a message could not be stored ({type(error).__name__}): Slack brings it again"
                raise StoreError(what) from error
            if isinstance(said, Message):
                self._note(said)

    def has(self, chat: str, message: str) -> bool:
        """Whether this run handed on that message lately."""
        return (chat, message) in self._taken

    def _note(self, said: Message) -> None:
        self._taken[said.address.chat, said.id] = None
        while len(self._taken) > _MOST:
            del self._taken[next(iter(self._taken))]
        if said.mentions_me and said.address.thread:
            self.reader.threads.join(said.address.chat, said.address.thread)

    async def _read(self, body: Mapping[str, Any]) -> Inbound | None:
        """The event of one envelope; one that can't be read must not hold up those behind it."""
        try:
            return await self.reader.event_of(kind_of(body), body, self._now())
        except AuthFailed:
            raise
        except AdapterError as error:
            if error.may_retry:  # where it belongs can't be found out now
                raise StoreError(f"a message could not be read: {error}") from None
            log.warning("slack/%s: an event was skipped: %s", self.reader.account, error)
            return None
        except Exception as error:
            log.warning("slack/%s: an event was skipped, it can't be read: %r", self.reader.account, error)
            return None
