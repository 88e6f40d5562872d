"""One update on its way in: read, stored, and only then confirmed.

The same for an update that was asked for and one that was brought. Knows no network but for a pressed button, which
waits until somebody answers it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from telegram import Update

from adapters.adapter import Accept
from adapters.errors import AdapterError
from adapters.message import Pressed
from adapters.rounds import StoreError
from adapters.telegram.inbound import event_of, reduced

if TYPE_CHECKING:
    from adapters.message import Inbound
    from adapters.telegram.client import Client
    from adapters.telegram.settings import BotIdentity

log = logging.getLogger(__name__)


async def begin(
    client: Client, account: str, accept: Accept, now: Callable[[], datetime], menu: Sequence[tuple[str, str]]
) -> Intake:
    """Ask Telegram who we are, and show ``menu`` there. A menu that can't be shown is no reason not to answer."""
    me = await client.identity()
    if menu:
        try:
            await client.show_commands(menu)
        except AdapterError as error:
            log.warning("telegram/%s: the menu of commands was not set: %s", account, error)
    return Intake(client, me, account, accept, now)


class Intake:
    """Hands the updates of one bot to ``accept``. ``now`` is aware."""

    def __init__(
        self, client: Client, me: BotIdentity, account: str, accept: Accept, now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._me = me
        self._account = account
        self._accept = accept
        self._now = now

    @property
    def name(self) -> str:
        """What people call the bot."""
        return f"@{self._me.username}"

    async def take(self, raw: Any) -> int | None:
        """The number of the update, once all that has to be kept of it is; None for one that has none.

        Raises StoreError, after which nothing may be confirmed.
        """
        number = raw.get("update_id") if isinstance(raw, dict) else None
        if not isinstance(number, int):
            log.warning("telegram/%s: skipped an update without a number", self._account)
            return None
        event = self._read(raw, number)
        if event is None:
            log.debug("telegram/%s: update %d says nothing to us: %s", self._account, number, ", ".join(raw))
        else:
            try:
                await self._accept(event)
            except Exception as error:
                raise StoreError(
                    f"a message could not be stored ({type(error).__name__}): it will be read again"
                ) from error
        if "callback_query" in raw:
            await self._confirm(raw["callback_query"], event)
        return number

    def _read(self, raw: dict[str, Any], number: int) -> Inbound | None:
        """The event of one update; one that can't be read must not hold up those behind it."""
        try:
            return self._event(raw)
        except Exception as error:
            trouble = error
        try:
            frame = reduced(raw)
            event = self._event(frame) if frame else None
        except Exception:
            event = None
        what = "read without what is in it" if event else "skipped"
        log.warning("telegram/%s: update %d was %s, it can't be read: %r", self._account, number, what, trouble)
        return event

    def _event(self, raw: dict[str, Any]) -> Inbound | None:
        return event_of(Update.de_json(raw), self._me, self._account, self._now())

    async def _confirm(self, query: Any, event: Inbound | None) -> None:
        """The button stops waiting. Telegram takes that for some minutes only, and nothing depends on it."""
        query_id = event.id if isinstance(event, Pressed) else query.get("id") if isinstance(query, dict) else None
        if not isinstance(query_id, str):
            return
        try:
            await self._client.confirm_press(query_id)
        except AdapterError as error:
            log.debug("telegram/%s: a pressed button was not confirmed: %s", self._account, error)
