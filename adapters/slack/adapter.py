"""The Slack adapter: the contract of ``adapters.adapter`` for one app in one workspace.

It holds the settings, the health and the client, which is made on first use because the libraries take a while to
import. Knows nothing of the network, of events or of blocks.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from adapters.adapter import Accept, Capabilities, Health, Offered
from adapters.errors import AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected
from adapters.message import Address, Kind, Part, Receipt
from adapters.slack.blocks import rendered
from adapters.slack.commands import Commands, asker
from adapters.slack.emoji import name_of
from adapters.slack.findings import inspect
from adapters.slack.refusals import Lost, MissingScope, NotModified
from adapters.slack.sent import block_id, message_with
from adapters.slack.settings import BotIdentity, SlackSettings
from adapters.slack.uploads import ALBUM, FILE_LIMIT, opened, shown, uploaded
from adapters.text import FormattedText, utf16_length

if TYPE_CHECKING:
    from adapters.rounds import Rounds
    from adapters.slack.backfill import Backfill
    from adapters.slack.client import Client
    from adapters.slack.dispatch import Dispatch
    from adapters.slack.threads import Threads

log = logging.getLogger(__name__)

TEXT_LIMIT = 4000
"""UTF-16 code units of one message; Slack takes more, and cuts what it finds too long without a word."""

_EDIT_SECONDS: Mapping[Kind, float] = MappingProxyType({"direct": 1.5, "group": 2.0, "channel": 2.0})
"""Slack takes some fifty edits a minute, of all chats together."""

_STATUS = "is thinking…"
_NO_STATUS_SECONDS = 600.0
"""How long Slack is not asked again to show that an answer is being written, after it refused."""

_MOST_REACTIONS = 1000
_MOST_PRIVATE = 1000
"""Turns that are remembered as answered to one person only; the oldest are forgotten first."""


async def check_tokens(settings: SlackSettings) -> BotIdentity:
    """Who the tokens belong to, asked of Slack once.

    Raises AuthFailed for a wrong one and Unreachable (or Ambiguous) when there was no answer.
    """
    from adapters.slack.client import Client

    client = Client(settings)
    try:
        me = await client.identity()
        if settings.transport == "socket":
            await client.link()
        return me
    finally:
        await client.close()


class SlackAdapter:
    """One app. ``sleep`` and ``random`` (numbers in [0, 1)) time the pauses after trouble."""

    settings_model = SlackSettings
    check = staticmethod(check_tokens)
    inspect = staticmethod(inspect)

    channel = "slack"
    capabilities = Capabilities(
        text_limit=TEXT_LIMIT,
        caption_limit=TEXT_LIMIT,
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
        settings: SlackSettings,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        ping_seconds: float = 5.0,
    ) -> None:
        self.account = account
        self.health = Health()
        self._settings = settings
        self._sleep = sleep
        self._random = random
        self._monotonic = monotonic
        self._now = now
        self._ping_seconds = ping_seconds
        self._commands = Commands()
        self._heard_at: float | None = None
        self._no_status_until = 0.0
        self._reactions: dict[tuple[str, str], str] = {}
        """By chat and message, the sign of ours on it."""
        self._private: dict[str, str] = {}
        """By turn, who alone sees its answer."""
        self._me: BotIdentity | None = None
        self._threads: Threads | None = None
        self._opened: Client | None = None

    def offer(self, commands: Sequence[Offered]) -> None:
        """What the app's one slash command takes as subcommands."""
        self._commands = Commands(commands)

    def resume(self, newest: Mapping[str, str], heard_at: datetime | None) -> None:
        """What came after Slack was last heard is looked up.

        Where that is not known, what came after the newest message of the chat that was silent for longest: one that
        was taken in another chat says nothing of what was missed before it.
        """
        from adapters.slack.inbound import is_message_id

        known = [float(message) for message in newest.values() if is_message_id(message)]
        self._heard_at = min(known, default=None) if heard_at is None else heard_at.timestamp()

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled; raises AuthFailed when Slack doesn't know a token."""
        from adapters.rounds import Rounds, Times

        rounds = Rounds(f"slack/{self.account}", Times(self._sleep, self._random, self._now), self._report)
        try:
            client = self._client()

            async def begin() -> tuple[Dispatch, Backfill]:
                return await self._begin(client, accept, rounds)

            if self._settings.transport == "http":
                from adapters.slack.signed_http import SignedHttp

                await SignedHttp(client, rounds, self._settings, begin).run()
            else:
                from adapters.slack.socket_mode import SocketMode

                await SocketMode(client, rounds, begin, self._ping_seconds).run()
        except AuthFailed as error:
            self.health = replace(self.health, state="failed", detail=str(error))
            raise
        except asyncio.CancelledError:
            self.health = replace(self.health, state="stopped", detail="")
            raise

    async def _begin(self, client: Client, accept: Accept, rounds: Rounds) -> tuple[Dispatch, Backfill]:
        """Ask Slack who we are, and put together what reads and what looks up."""
        from adapters.slack.backfill import Backfill
        from adapters.slack.directory import Directory
        from adapters.slack.dispatch import Dispatch
        from adapters.slack.inbound import Reader
        from adapters.slack.intake import Intake
        from adapters.slack.signed_http import check_secret
        from adapters.slack.threads import Threads

        secret = check_secret(self._settings) if self._settings.transport == "http" else ""
        self._me = me = await client.identity()
        directory = Directory(client, me.id, self._monotonic)
        self._threads = threads = Threads(client, directory, me, self._settings.context_messages)
        reader = Reader(self.account, me, self._settings, client, directory, threads, self._commands)
        intake = Intake(reader, accept, self._now)
        backfill = Backfill(
            client,
            intake,
            since=self._heard_at,
            hours=self._settings.backfill_hours,
            now=lambda: self._now().timestamp(),
            sleep=self._sleep,
        )
        return Dispatch(client, intake, rounds, secret), backfill

    # Sending ----------------------------------------------------------------------------------------------------------

    async def send(self, part: Part, key: str) -> Receipt:
        """Send ``part`` once. Where its answer is lost, ``settle`` finds out whether it arrived."""
        limit = TEXT_LIMIT
        if not (part.text or part.files):
            raise Rejected("a blank message: Slack takes none")
        if self.measure(part.text) > limit:
            raise Rejected(f"the text is longer than the {limit} characters of one message")
        client, chat, thread = self._client(), part.address.chat, self._thread(part)
        try:
            user = self._only_for(part, key)
            if part.files and user is not None:
                raise Rejected(
                    "only you can see this answer, and Slack can't show a file to one person: "
                    "ask me in a direct message"
                )
            if part.files:
                message = await self._send_files(client, part, key)
            elif user is not None:
                text, blocks = rendered(part.text, part.buttons)
                await client.whisper(chat, user, text, blocks, thread=thread)
                message = None
            else:
                text, blocks = rendered(part.text, part.buttons)
                message = await client.post(chat, text, blocks, thread=thread, key=key)
        except Lost as error:
            raise Ambiguous(str(error)) from None
        if thread and self._threads is not None:
            self._threads.join(chat, thread)
        return Receipt(message)

    async def _send_files(self, client: Client, part: Part, key: str) -> str | None:
        if part.buttons:
            raise Rejected("a message with files holds no buttons in Slack: send them with a text of their own")
        chat = part.address.chat
        _, blocks = rendered(part.text)
        blocks = [{**block, "block_id": block_id(key)} for block in blocks]
        async with opened(part.files) as uploads:
            files = await uploaded(client, uploads)
        await client.share(chat, files, blocks, thread=self._thread(part))
        return await shown(client, files[0][0], chat, self._sleep)

    async def settle(self, part: Part, key: str, since: datetime) -> Receipt | None:
        """Read back what we said there. Raises Rejected where the bot may not read."""
        client, chat, thread = self._client(), part.address.chat, self._thread(part)
        if self._only_for(part, key) is not None:
            return None  # what is shown to one person only can't be read back, and does no harm twice
        oldest = f"{since.timestamp() - 60:.6f}"
        try:
            me = self._me = self._me or await client.identity()
            said = await (
                client.replies(chat, thread, oldest=oldest) if thread else client.history(chat, oldest=oldest)
            )
            async with opened(part.files) as uploads:
                files = [(one.name, one.size) for one in uploads]
        except MissingScope as error:
            raise Rejected(f"it may have arrived, and can't be looked for: {error}") from None

        def is_ours(message: Mapping[str, object]) -> bool:
            return message.get("user") == me.id or (bool(me.bot) and message.get("bot_id") == me.bot)

        found = message_with(key, said, is_ours, files)
        return Receipt(found) if found else None

    async def edit(self, part: Part, message_id: str) -> None:
        """Replace the text and the buttons of an own message; the same again is no error."""
        if not (part.text or part.files):
            raise Rejected("a blank message: Slack takes none")
        if self.measure(part.text) > TEXT_LIMIT:
            raise Rejected(f"the text is longer than the {TEXT_LIMIT} characters of one message")
        text, blocks = rendered(part.text, part.buttons)
        try:
            await self._client().edit(part.address.chat, message_id, text, blocks)
        except Lost as error:
            raise Ambiguous(str(error)) from None

    def _only_for(self, part: Part, key: str) -> str | None:
        """Who alone is to see it: whoever gave a slash command among others, with all parts of the turn of its answer.

        Only the first of them says what it answers, so the turn is remembered, for as long as the process lives.
        """
        turn, user = key.rpartition("/")[0], asker(part.reply_to or "")
        if part.address.kind == "direct":
            return None
        if user is None:
            return self._private.get(turn)
        if turn:
            self._private[turn] = user
            while len(self._private) > _MOST_PRIVATE:
                del self._private[next(iter(self._private))]
        return user

    def _thread(self, part: Part) -> str | None:
        """Where a new message belongs: the thread that it was asked in, else the one that it opens."""
        from adapters.slack.inbound import is_message_id

        address, answered = part.address, part.reply_to or ""
        if address.thread or address.kind == "direct" or not self._settings.reply_in_thread:
            return address.thread
        return answered if is_message_id(answered) else None

    # What is only shown -----------------------------------------------------------------------------------------------

    async def typing(self, address: Address) -> None:
        """A line below the thread, which goes with the next message there; Slack shows none anywhere else."""
        if address.thread is None or self._monotonic() < self._no_status_until:
            return
        try:
            await self._client().show_status(address.chat, address.thread, _STATUS)
        except AdapterError as error:
            seconds = error.retry_after if isinstance(error, RateLimited) else _NO_STATUS_SECONDS
            self._no_status_until = self._monotonic() + seconds
            log.debug("slack/%s: the status was not shown: %s", self.account, error)

    async def erase(self, address: Address, message_id: str) -> None:
        try:
            await self._client().delete(address.chat, message_id)
        except AdapterError as error:
            log.debug("slack/%s: a message was not taken back: %s", self.account, error)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """Slack has a name for each; one that is not known here is not shown."""
        place, name = (address.chat, message_id), name_of(emoji) if emoji else ""
        if name is None:
            log.debug("slack/%s: %s has no name in Slack", self.account, emoji)
            return
        try:
            if (was := self._reactions.pop(place, "")) and was != name:
                await self._react(*place, was, on=False)
            if name:
                await self._react(*place, name, on=True)
                self._reactions[place] = name
                while len(self._reactions) > _MOST_REACTIONS:
                    del self._reactions[next(iter(self._reactions))]
        except AdapterError as error:
            log.debug("slack/%s: a reaction was not shown: %s", self.account, error)

    async def _react(self, chat: str, message: str, name: str, *, on: bool) -> None:
        with suppress(NotModified):
            await self._client().react(chat, message, name, on=on)

    # The rest ---------------------------------------------------------------------------------------------------------

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
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
            from adapters.slack.client import Client

            self._opened = Client(self._settings)
        return self._opened

    def _report(self, health: Health) -> None:
        self.health = health
