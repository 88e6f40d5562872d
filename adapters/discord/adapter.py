"""The Discord adapter: the contract of ``adapters.adapter`` for one bot.

It holds the settings, the health and the client, which is made on first use because the library takes half a second
to import. Knows nothing of the network, of events or of markup.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from adapters.adapter import Accept, Capabilities, Health, Offered
from adapters.discord.findings import inspect
from adapters.discord.settings import BotIdentity, DiscordSettings
from adapters.discord.uploads import ALBUM, FILE_LIMIT, opened
from adapters.errors import AdapterError, Ambiguous, AuthFailed, Rejected, Unreachable
from adapters.message import Address, Kind, Part, Receipt
from adapters.rounds import Times
from adapters.text import FormattedText

if TYPE_CHECKING:
    import discord

    from adapters.discord.client import Client
    from adapters.discord.interactions import Interactions
    from adapters.discord.places import Places

log = logging.getLogger(__name__)

TEXT_LIMIT = 2000
"""Code points, markup included, of a message and of a caption."""

_EDIT_SECONDS: Mapping[Kind, float] = MappingProxyType({"direct": 1.5, "group": 2.0, "channel": 2.0})

_NONCE_SECONDS = 120.0
"""How long Discord surely knows a part by its key ("a few minutes")."""

_CLOCK = timedelta(seconds=2)
"""How far the time of this machine may be from Discord's."""

_PAGE = 100
_MOST_PAGES = 20
"""Of the messages among which a part is looked for."""

_MOST_SIGNS = 500


@dataclass(frozen=True, slots=True)
class _Door:
    """What is made on first use."""

    client: Client
    places: Places
    interactions: Interactions


async def check_token(settings: DiscordSettings) -> BotIdentity:
    """Who the token belongs to, asked of Discord once.

    Raises AuthFailed for a wrong token and Unreachable (or Ambiguous) when there was no answer.
    """
    client = client_of(settings)
    try:
        return await client.identity()
    finally:
        await client.close()


def client_of(
    settings: DiscordSettings,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> Client:
    """Made inside of a running event loop. Raises AuthFailed for a token that can't be one."""
    from adapters.discord.client import Client

    return Client(settings, sleep, monotonic)


class DiscordAdapter:
    """One bot. ``sleep`` and ``random`` (numbers in [0, 1)) time the pauses after trouble."""

    settings_model = DiscordSettings
    check = staticmethod(check_token)
    inspect = staticmethod(inspect)

    channel = "discord"
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
        idempotent=True,
    )

    def __init__(
        self,
        account: str,
        settings: DiscordSettings,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.account = account
        self.health = Health()
        self._settings = settings
        self._times = Times(sleep, random, now, monotonic)
        self._menu: tuple[Offered, ...] = ()
        self._newest: Mapping[str, str] = {}
        self._heard_at: datetime | None = None
        self._titles: Mapping[str, str] = {}
        self._unanswered: dict[str, datetime] = {}
        """Parts whose sending got no answer, by key, and when that began."""
        self._unseen: set[str] = set()
        """Such parts that only who gave the command could see: no history shows them."""
        self._signs: OrderedDict[str, str] = OrderedDict()
        """Our reaction to a message."""
        self._opened: _Door | None = None

    def offer(self, commands: Sequence[Offered]) -> None:
        """Registered as slash commands."""
        self._menu = tuple(commands)

    def resume(self, newest: Mapping[str, str], heard_at: datetime | None) -> None:
        """What was said after that is read up, within the bounds of the settings."""
        self._newest, self._heard_at = dict(newest), heard_at

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled; raises AuthFailed where a person has to mend something at Discord."""
        from adapters.discord.gateway import Gateway
        from adapters.discord.intake import Intake
        from adapters.discord.pulse import Pulse

        intake: Intake | None = None
        worker: asyncio.Task[None] | None = None
        pulse = Pulse(self.account, self._times.now, self._report)
        try:
            door = self._door()
            intake = Intake(
                door.client,
                self._settings,
                self.account,
                accept,
                places=door.places,
                interactions=door.interactions,
                pulse=pulse,
                times=self._times,
                menu=self._menu,
                newest=self._newest,
                heard_at=self._heard_at,
            )
            self._titles = intake.titles
            worker = asyncio.create_task(intake.work(), name=f"discord/{self.account}")
            await Gateway(door.client, intake.receive, intake.room, pulse, self._times).run()
        except AuthFailed as error:
            self.health = replace(self.health, state="failed", detail=str(error))
            raise
        except asyncio.CancelledError:
            self.health = replace(self.health, state="stopped", detail="")
            raise
        finally:
            if worker is not None:
                worker.cancel()
                await asyncio.wait([worker])
            if intake is not None:
                self._newest, self._heard_at = intake.newest, intake.heard_at

    async def send(self, part: Part, key: str) -> Receipt:
        """Send ``part`` once. A reply to a message that is gone is sent without the reply."""
        if not (part.text or part.files):
            raise Rejected("a blank message: Discord takes none")
        async with opened(part.files) as files:
            message = await self._answer(part, key, files)
            return Receipt(message if message is not None else await self._send(part, key, files))

    async def settle(self, part: Part, key: str, since: datetime) -> Receipt | None:
        """Looks among what was said there since then, because Discord forgets keys after some minutes.

        Raises Rejected where that may not be read, or is too much, or can't show what only one person sees.
        """
        from adapters.discord.client import is_same
        from adapters.discord.inbound import snowflake

        if key in self._unseen:
            raise Rejected("whether the answer arrived, which only one person can see, is not told by Discord")
        client, chat, after = self._door().client, part.address.chat, snowflake(since - _CLOCK) - 1
        me = (await client.identity()).id
        part = self._placed(part)
        for _ in range(_MOST_PAGES):
            said = await client.history(chat, _PAGE, after)
            for message in said:
                if str(message["author"]["id"]) == me and is_same(message, part, key):
                    return Receipt(str(message["id"]))
            if len(said) < _PAGE:
                return None
            after = max(int(message["id"]) for message in said)
        raise Rejected(f"too much was said in {chat} since then to look whether the answer is there")

    async def edit(self, part: Part, message_id: str) -> None:
        """Replace the text (or the caption) and the buttons of an own message; the same again is no error."""
        if not (part.text or part.files):
            raise Rejected("a blank message: Discord takes none")
        await self._door().client.edit(part.address.chat, part, message_id)

    async def erase(self, address: Address, message_id: str) -> None:
        try:
            await self._door().client.erase(address.chat, message_id)
        except AdapterError as error:
            log.debug("discord/%s: a message was not deleted: %s", self.account, error)

    async def leave(self, address: Address) -> None:
        """Leave the server: a bot can't leave one channel of it."""
        if address.space is None:
            return
        try:
            await self._door().client.leave(address.space)
        except AdapterError as error:
            log.debug("discord/%s: a server was not left: %s", self.account, error)

    async def typing(self, address: Address) -> None:
        try:
            await self._door().client.show_typing(self._there(address))
        except AdapterError as error:
            log.debug("discord/%s: typing was not shown: %s", self.account, error)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """Any emoji of Unicode; ours is taken away only if it was put there since the start."""
        channel = address.parent if message_id == address.thread and self._settings.auto_thread else address.chat
        assert channel is not None
        before = self._signs.pop(message_id, "")
        try:
            client = self._door().client
            if before and before != emoji:
                await client.react(channel, message_id, before, put=False)
            if emoji:
                await client.react(channel, message_id, emoji, put=True)
                self._signs[message_id] = emoji
                while len(self._signs) > _MOST_SIGNS:
                    self._signs.popitem(last=False)
        except AdapterError as error:
            log.debug("discord/%s: a reaction was not shown: %s", self.account, error)

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file."""
        async for chunk in self._door().client.download(ref, limit):
            yield chunk

    def measure(self, text: FormattedText) -> int:
        from adapters.discord.markup import rendered

        return len(rendered(text))

    async def close(self) -> None:
        if self._opened:
            await self._opened.interactions.close()
            await self._opened.client.close()
            self._opened = None

    # Sending ----------------------------------------------------------------------------------------------------------

    async def _answer(self, part: Part, key: str, files: Sequence[discord.File]) -> str | None:
        """Send it as the answer to a command; None where Discord waits for none, or takes it no more."""
        door = self._door()
        waiting = await door.interactions.of(part, key)
        if waiting is None:
            return None
        is_first, began = waiting.first == key, self._times.now()
        try:
            message = await door.client.answer(waiting, part, files, more=not is_first)
        except Ambiguous as error:
            if waiting.private:
                self._unseen.add(key)
            if not is_first:  # nothing tells a repetition
                raise
            self._unanswered.setdefault(key, began)
            raise Unreachable(str(error)) from None
        except Rejected as error:
            log.debug("discord/%s: a command is answered by a message: %s", self.account, error)
            door.interactions.drop(waiting)
            for file in files:
                file.reset()
            return None
        self._settled(key)
        return message

    async def _send(self, part: Part, key: str, files: Sequence[discord.File]) -> str:
        """Send it as a message, which Discord tells from a repetition by its key for some minutes."""
        if self._is_old(key):
            try:
                receipt = await self.settle(part, key, self._unanswered[key])
            except Rejected as error:
                del self._unanswered[key]  # whoever sends it again knows that it may be shown twice
                raise Ambiguous(f"it may have arrived: {error}") from None
            if receipt is not None and receipt.message_id is not None:
                self._settled(key)
                return receipt.message_id
        began = self._times.now()
        try:
            await self._open_thread(part)
            message = await self._door().client.send(part.address.chat, self._placed(part), key, files)
        except Ambiguous as error:
            self._unanswered.setdefault(key, began)
            raise Unreachable(str(error)) from None
        self._settled(key)
        return message

    def _settled(self, key: str) -> None:
        self._unanswered.pop(key, None)
        self._unseen.discard(key)

    async def _open_thread(self, part: Part) -> None:
        """The thread of an answer, where it is to have one of its own and there is none yet."""
        from adapters.discord.places import Place

        address, places = part.address, self._door().places
        if not self._settings.auto_thread or address.parent is None or places.known(address.chat) is not None:
            return
        words = self._titles.get(address.chat) or part.text.plain
        title = next((line.strip() for line in words.splitlines() if line.strip()), "Answer")
        try:
            await self._door().client.open_thread(address.parent, address.chat, title)
        except Rejected as error:  # a thread that hangs on no message, or none: sending there tells
            log.debug("discord/%s: no thread was opened: %s", self.account, error)
            return
        places.remember(Place(address.chat, "channel", address.space, address.parent, is_mine=True, name=title))

    def _placed(self, part: Part) -> Part:
        """A message can't be answered from inside of the thread that hangs on it."""
        is_above = part.reply_to is not None and part.reply_to == part.address.thread
        return replace(part, reply_to=None) if is_above else part

    def _there(self, address: Address) -> str:
        """The channel, or the one above a thread that is still to be opened."""
        is_open = address.parent is None or self._door().places.known(address.chat) is not None
        return address.chat if is_open or not self._settings.auto_thread else address.parent or address.chat

    def _is_old(self, key: str) -> bool:
        """Whether Discord may have forgotten the key of a part that may have arrived."""
        since = self._unanswered.get(key)
        return since is not None and (self._times.now() - since).total_seconds() > _NONCE_SECONDS

    def _door(self) -> _Door:
        if self._opened is None:
            from adapters.discord.interactions import Interactions
            from adapters.discord.places import Places

            client = client_of(self._settings, self._times.sleep, self._times.monotonic)
            interactions = Interactions(client, self.account, self._times.monotonic)
            self._opened = _Door(client, Places(client), interactions)
        return self._opened

    def _report(self, health: Health) -> None:
        self.health = health
