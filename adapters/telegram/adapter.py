"""The Telegram adapter: the contract of ``adapters.adapter`` for one bot.

It holds the settings, the health and the client, which is made on first use because the library takes half a second
to import. Knows nothing of the network, of updates or of entities.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from adapters.adapter import Accept, Capabilities, Health
from adapters.errors import AdapterError, AuthFailed, Rejected
from adapters.message import Address, Part, Receipt
from adapters.telegram.settings import BotIdentity, TelegramSettings
from adapters.text import FormattedText, utf16_length

if TYPE_CHECKING:
    from adapters.telegram.client import Client

log = logging.getLogger(__name__)

TEXT_LIMIT = 4096
"""UTF-16 code units, after entities were parsed: the limit of sendMessage."""


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

    channel = "telegram"
    capabilities = Capabilities(text_limit=TEXT_LIMIT, edits=True, threads=True, typing=True)

    def __init__(
        self,
        account: str,
        settings: TelegramSettings,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        self.account = account
        self.health = Health()
        self._settings = settings
        self._sleep = sleep
        self._random = random
        self._menu: tuple[tuple[str, str], ...] = ()
        self._opened: Client | None = None

    def offer(self, commands: Sequence[tuple[str, str]]) -> None:
        """Shown by Telegram beside the input; names of at most 32 of a-z, 0-9 and _."""
        self._menu = tuple(commands)

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled; raises AuthFailed when Telegram doesn't know the token."""
        from adapters.telegram.polling import Poller

        try:
            poller = Poller(
                self._client(),
                self.account,
                accept,
                menu=self._menu,
                poll_seconds=self._settings.poll_seconds,
                report=self._report,
                sleep=self._sleep,
                random=self._random,
            )
            await poller.run()
        except AuthFailed as error:
            self.health = Health("failed", str(error))
            raise
        except asyncio.CancelledError:
            self.health = Health("stopped")
            raise

    async def send(self, part: Part, key: str) -> Receipt:  # noqa: ARG002  # Telegram knows no idempotency key
        """Send ``part`` once. A reply to a message that is gone is sent without the reply."""
        if not part.text:
            raise Rejected("a blank message: Telegram takes none")
        return Receipt(await self._client().send(part))

    async def edit(self, part: Part, message_id: str) -> None:
        """Replace the text of an own message; the text it has already is no error."""
        try:
            await self._client().edit(part, message_id)
        except Rejected as error:
            if "message is not modified" not in str(error):
                raise

    async def typing(self, address: Address) -> None:
        try:
            await self._client().show_typing(address)
        except AdapterError as error:
            log.debug("telegram/%s: typing was not shown: %s", self.account, error)

    async def preview(self, address: Address, turn: str, delta: str) -> None:
        """Shows nothing: ``capabilities.streams`` is false, an answer comes whole."""

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

    def _client(self) -> Client:
        if self._opened is None:
            from adapters.telegram.client import Client

            self._opened = Client(self._settings)
        return self._opened

    def _report(self, health: Health) -> None:
        self.health = health
