"""The Telegram adapter: the contract of ``adapters.adapter`` for one bot.

It holds the settings, the health and the client, which is made on first use because the library takes half a second
to import. Knows nothing of the network, of updates or of entities.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from adapters.adapter import Accept, Capabilities, Health, Offered
from adapters.errors import AdapterError, AuthFailed, RateLimited, Rejected
from adapters.message import Address, Kind, Part, Receipt
from adapters.opus import Converter
from adapters.telegram.findings import inspect
from adapters.telegram.limits import Pace
from adapters.telegram.refusals import UnknownMethod
from adapters.telegram.settings import BotIdentity, TelegramSettings
from adapters.telegram.uploads import ALBUM, FILE_LIMIT, opened
from adapters.text import FormattedText, utf16_length

if TYPE_CHECKING:
    from adapters.telegram.client import Client

T = TypeVar("T")

log = logging.getLogger(__name__)

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
"""UTF-16 code units, after entities were parsed: the limits of sendMessage and of captions."""

_EDIT_SECONDS: Mapping[Kind, float] = MappingProxyType({"direct": 1.0, "group": 3.0, "channel": 3.0})
_DRAFT_SECONDS = 0.5
_NO_DRAFTS_SECONDS = 60.0
"""How long a chat is left alone that takes no drafts; Telegram says nowhere how many it takes."""


async def check_token(settings: TelegramSettings) -> BotIdentity:
    """Who the token belongs to, asked of Telegram once.

    Raises AuthFailed for a wrong token and Unreachable (or Ambiguous) when there was no answer.
    """
    from adapters.telegram.client import Client

    client = Client(settings)
    try:
        return await client.identity()
    finally:
        await client.close()


class TelegramAdapter:
    """One bot. ``sleep`` and ``random`` (numbers in [0, 1)) time the pauses after trouble."""

    settings_model = TelegramSettings
    check = staticmethod(check_token)
    inspect = staticmethod(inspect)

    channel = "telegram"
    capabilities = Capabilities(
        text_limit=TEXT_LIMIT,
        caption_limit=CAPTION_LIMIT,
        file_limit=FILE_LIMIT,
        album=ALBUM,
        edits=True,
        edit_seconds=_EDIT_SECONDS,
        threads=True,
        buttons=True,
        typing=True,
    )

    def __init__(
        self,
        account: str,
        settings: TelegramSettings,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.account = account
        self.health = Health()
        self._settings = settings
        self._sleep = sleep
        self._random = random
        self._now = now
        self._pace = Pace(monotonic)
        self._converter = Converter()
        self._has_drafts = True
        self._menu: tuple[tuple[str, str], ...] = ()
        self._opened: Client | None = None

    def offer(self, commands: Sequence[Offered]) -> None:
        """Shown by Telegram beside the input; names of at most 32 of a-z, 0-9 and _."""
        self._menu = tuple((command.name, command.summary) for command in commands)

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled; raises AuthFailed when Telegram doesn't know the token."""
        from adapters.rounds import Rounds, Times
        from adapters.telegram.intake import begin
        from adapters.telegram.refusals import Conflict

        times = Times(self._sleep, self._random, self._now)
        rounds = Rounds(f"telegram/{self.account}", times, self._report, rival=Conflict)
        try:
            client = self._client()
            beginning = partial(begin, client, self.account, accept, self._now, self._menu)
            if self._settings.webhook_url:
                from adapters.telegram.webhook import Webhook

                await Webhook(client, rounds, self._settings, times, beginning).run()
            else:
                from adapters.telegram.polling import Poller

                await Poller(client, rounds, self._settings.poll_seconds, beginning).run()
        except AuthFailed as error:
            self.health = replace(self.health, state="failed", detail=str(error))
            raise
        except asyncio.CancelledError:
            self.health = replace(self.health, state="stopped", detail="")
            raise

    async def send(self, part: Part, key: str) -> Receipt:  # noqa: ARG002  # Telegram knows no idempotency key
        """Send ``part`` once. A reply to a message that is gone is sent without the reply."""
        if part.files:
            return Receipt(await self._send_files(part))
        if not part.text:
            raise Rejected("a blank message: Telegram takes none")
        return Receipt(await self._paced(part.address, self._client().send(part)))

    async def _send_files(self, part: Part) -> str | None:
        if len(part.files) > 1 and part.buttons:
            raise Rejected("an album of Telegram holds no buttons: send them with a text of their own")
        async with opened(part.files, self._converter) as uploads:
            return await self._paced(part.address, self._client().send_files(part, uploads), len(uploads))

    async def edit(self, part: Part, message_id: str) -> None:
        """Replace the text (or the caption) and the buttons of an own message; the same again is no error."""
        if not (part.text or part.files):
            raise Rejected("a blank message: Telegram takes none")
        self._pace.check(part.address)
        try:
            await self._paced(part.address, self._client().edit(part, message_id))
        except Rejected as error:
            if "message is not modified" not in str(error):
                raise

    async def typing(self, address: Address) -> None:
        try:
            await self._client().show_typing(address)
        except AdapterError as error:
            log.debug("telegram/%s: typing was not shown: %s", self.account, error)

    def drafts(self, address: Address) -> float | None:
        """In direct chats, as long as the server knows of drafts."""
        return _DRAFT_SECONDS if address.kind == "direct" and self._has_drafts else None

    async def draft(self, part: Part, turn: str) -> None:
        """Shown by Telegram for thirty seconds, or until the message is there; a blank one as "Thinking…"."""
        if self.drafts(part.address) is None or self._pace.wait(part.address):
            return
        try:
            await self._client().draft(part, _draft_number(turn))
        except AdapterError as error:
            log.debug("telegram/%s: a draft was not shown: %s", self.account, error)
            if isinstance(error, UnknownMethod):
                self._has_drafts = False
            elif isinstance(error, RateLimited):
                self._pace.hold(part.address, error.retry_after)
            elif isinstance(error, Rejected) and not error.formatting:
                self._pace.hold(part.address, _NO_DRAFTS_SECONDS)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """Telegram knows some seventy reactions; none of the others is shown."""
        try:
            await self._client().react(address, message_id, emoji)
        except AdapterError as error:
            log.debug("telegram/%s: a reaction was not shown: %s", self.account, error)

    async def erase(self, address: Address, message_id: str) -> None:
        try:
            await self._client().erase(address, message_id)
        except AdapterError as error:
            log.debug("telegram/%s: a message was not deleted: %s", self.account, error)

    async def leave(self, address: Address) -> None:
        try:
            await self._client().leave(address)
        except AdapterError as error:
            log.debug("telegram/%s: a chat was not left: %s", self.account, error)

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file; Telegram itself hands out at most 20 MB."""
        async for chunk in self._client().download(ref, limit):
            yield chunk

    def measure(self, text: FormattedText) -> int:
        return utf16_length(text.plain)

    async def close(self) -> None:
        if self._opened:
            await self._opened.close()
            self._opened = None

    async def _paced(self, address: Address, call: Awaitable[T], messages: int = 1) -> T:
        """The answer to a call that Telegram counts as ``messages``."""
        try:
            answer = await call
        except RateLimited as error:
            self._pace.hold(address, error.retry_after)
            raise
        self._pace.sent(address, messages)
        return answer

    def _client(self) -> Client:
        if self._opened is None:
            from adapters.telegram.client import Client

            self._opened = Client(self._settings)
        return self._opened

    def _report(self, health: Health) -> None:
        self.health = health


def _draft_number(turn: str) -> int:
    """The same for all drafts of a turn, never 0, within 31 bits."""
    return int.from_bytes(hashlib.sha256(turn.encode()).digest()[:4], "big") >> 1 or 1
