"""The WhatsApp adapter: the contract of ``adapters.adapter`` for one account, linked as a device of a phone.

It holds the settings, the health, and what the account knows, which is kept in a folder of its own. What is sent goes
through here; what is heard goes through a ``Line``. Knows nothing of the library.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from adapters.adapter import Accept, Capabilities, Health
from adapters.errors import AdapterError, AuthFailed, Rejected, Unreachable
from adapters.message import Address, Part, Receipt
from adapters.opus import Converter
from adapters.rounds import Rounds, Times
from adapters.text import FormattedText
from adapters.whatsapp import outbound, session, uploads
from adapters.whatsapp.acquaintances import Acquaintances
from adapters.whatsapp.client import Client
from adapters.whatsapp.content import file_of
from adapters.whatsapp.findings import inspect
from adapters.whatsapp.heard import Heard
from adapters.whatsapp.identity import PHONE, Identities, Jid, normalized
from adapters.whatsapp.inbound import Me, Reader
from adapters.whatsapp.intake import Intake
from adapters.whatsapp.library import load
from adapters.whatsapp.line import Ends, Line
from adapters.whatsapp.linking import link
from adapters.whatsapp.notebook import Notebook
from adapters.whatsapp.ours import Ours
from adapters.whatsapp.pacing import Pace, Pacing
from adapters.whatsapp.settings import BotIdentity, WhatsAppSettings

log = logging.getLogger(__name__)

CAPTION_LIMIT = 1000
"""UTF-16 code units below a file."""

_EDITABLE = timedelta(minutes=14)
"""WhatsApp lets a message be changed for 15 minutes, and says nothing to who comes too late."""

_CATCH_UP_SECONDS = 30.0
"""How long a message waits for what was written while we were away."""

_GRACE = timedelta(minutes=2)
"""What clocks may differ by."""

_CAPABILITIES = Capabilities(
    text_limit=outbound.TEXT_LIMIT,
    caption_limit=CAPTION_LIMIT,
    file_limit=uploads.FILE_LIMIT,
    album=1,
    buttons=True,
    typing=True,
)


async def check_link(settings: WhatsAppSettings, folder: Path) -> BotIdentity:  # noqa: ARG001  # as the others have it
    """Whose account is linked, by its file: asking WhatsApp would take the connection away from a running hub.

    Raises AuthFailed where none is.
    """
    try:
        return await asyncio.to_thread(session.identity, folder)
    except AuthFailed as error:
        raise session.named(error, folder.name) from error


@dataclass(frozen=True, slots=True)
class _Memory:
    """What the account knows, from its folder."""

    notebook: Notebook
    acquaintances: Acquaintances
    identities: Identities
    ours: Ours


class WhatsAppAdapter:
    """One account. ``folder`` is its own, and kept; ``sleep`` and ``random`` (numbers in [0, 1)) time all pauses."""

    settings_model = WhatsAppSettings
    keeps_folder = True
    is_isolated = True
    chatter = ("Press Ctrl+C to exit", "Login event: success")
    check = staticmethod(check_link)
    inspect = staticmethod(inspect)
    link = staticmethod(link)
    canonical_id = staticmethod(normalized)

    channel = "whatsapp"

    def __init__(
        self,
        account: str,
        settings: WhatsAppSettings,
        folder: Path,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.account = account
        self.health = Health()
        self.capabilities = _CAPABILITIES
        if settings.stream_edits:
            self.capabilities = replace(_CAPABILITIES, edits=True, edit_seconds={"direct": 3.0, "group": 4.0})
        self._settings = settings
        self._folder = folder
        self._times = Times(sleep, random, now, monotonic)
        most = Pace(a_minute=settings.messages_a_minute, an_hour=settings.messages_an_hour)
        self._pacing = Pacing(self._times, most)
        self._edits = Pacing(self._times, replace(most, first=0.0, longest=0.0))
        self._converter = Converter()
        self._heard = Heard()
        self._memory: _Memory | None = None
        self._me: frozenset[Jid] = frozenset()
        self._line: Line | None = None
        self._client: Client | None = None
        self._is_connected = False
        self._caught_up = asyncio.Event()
        self._marking: set[asyncio.Task[None]] = set()

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled; raises AuthFailed when the account is not, or no longer, linked."""
        rounds = Rounds(f"whatsapp/{self.account}", self._times, self._report)
        try:
            memory = await asyncio.to_thread(self._remember)
            ends = Ends(
                self._folder,
                self._settings,
                memory.notebook,
                lambda me: self._begin(me, accept),
                self._opened,
                self._is_caught_up,
            )
            await rounds.keep(lambda: self._hold(Line(ends, rounds)))
        except AuthFailed as error:
            told = session.named(error, self.account)
            self.health = replace(self.health, state="failed", detail=str(told))
            raise told from error
        except asyncio.CancelledError:
            self.health = replace(self.health, state="stopped", detail="")
            raise

    async def _hold(self, line: Line) -> None:
        """Until it breaks. One whose run was cancelled stays for what there is to say, until ``close`` or a new one."""
        await self._hang_up()
        self._line = line
        try:
            await line.hold()
        except asyncio.CancelledError:
            raise
        except BaseException:
            await self._hang_up()
            raise

    async def _hang_up(self) -> None:
        if self._line is not None:
            await self._line.close()
            self._line = None

    def _remember(self) -> _Memory:
        """From the folder, once."""
        if self._memory is None:
            session.prepare(self._folder)
            acquaintances = Acquaintances(self._folder)
            try:
                notebook = Notebook(self._folder)
                with suppress(AuthFailed, Unreachable):  # which is told of elsewhere
                    notebook.belongs_to(session.identity(self._folder).id)
                self._memory = _Memory(notebook, acquaintances, acquaintances.load(), Ours(notebook))
            except (OSError, sqlite3.Error) as error:
                raise AuthFailed(f"what WhatsApp needs to know can't be kept ({error}): mend or remove it") from None
        return self._memory

    def _begin(self, me: BotIdentity, accept: Accept) -> Intake:
        """What reads for the account that is linked."""
        memory = self._remember()
        jids = frozenset(jid for text in (me.id, me.lid) if (jid := Jid.of_id(text)))
        self._me = jids
        reader = Reader(
            self.account,
            Me(jids, me.name, me.device),
            memory.identities,
            self._settings.self_chat,
            memory.ours.echoes,
            memory.ours.choices,
        )
        since = self._times.now() - timedelta(hours=self._settings.history_hours) - _GRACE
        now = self._times.now
        return Intake(reader, accept, memory.ours, self._heard, memory.acquaintances, since=since, now=now)

    def _opened(self, client: Client | None) -> None:
        self._client = client

    def _is_caught_up(self, is_so: bool | None) -> None:
        self._is_connected = is_so is not None
        if is_so:
            self._caught_up.set()
        else:
            self._caught_up.clear()

    # Sending ----------------------------------------------------------------------------------------------------------

    async def send(self, part: Part, key: str) -> Receipt:  # noqa: ARG002  # the library gives messages ids of its own
        """Send ``part`` once. Where the answer is lost nobody can find out whether it arrived."""
        chat, memory = self._chat(part.address), self._remember()
        client = await self._writing()
        self._check_may_write(part.address, memory)
        text = outbound.text_of(part) if part.text or part.buttons or not part.files else ""
        upload = await self._upload(part, text)
        called: tuple[Jid, ...] = ()
        if part.address.kind == "group":
            text, called = outbound.with_mentions(text, self._known)
        context = outbound.context_of(self._answered(part, chat), called)
        await self._pacing.wait(part.address.chat, len(text))
        self._mark_read(part.address)
        body: Any
        if upload is None:
            body = outbound.body_of(text, context)
        else:
            with self._named():
                handed_over = await client.upload(upload.data, upload.form)
            body = uploads.body_of(upload, handed_over, text, context)
        client = await self._writing()  # once more: what comes before took its time
        with self._named(), memory.ours.echoes.sending(part.address.chat, text):
            message = await client.send(chat, body)
        buttons = [button for row in part.buttons for button in row]
        await memory.ours.sent(part.address.chat, message, buttons, self._times.now())
        return Receipt(message)

    async def _upload(self, part: Part, text: str) -> uploads.Upload | None:
        if not part.files:
            return None
        if len(part.files) > 1:
            raise Rejected(f"{len(part.files)} files in one message: WhatsApp shows one")
        if self.measure(part.text) > CAPTION_LIMIT:
            raise Rejected(f"the text is longer than the {CAPTION_LIMIT} characters below a file")
        return await uploads.read(part.files[0], has_text=bool(text), converter=self._converter)

    async def edit(self, part: Part, message_id: str) -> None:
        """Replace the text and the choices of an own message; the same again is no error."""
        if not self.capabilities.edits:
            raise Rejected("messages are not changed in WhatsApp, unless stream_edits is set")
        if part.files:
            raise Rejected("the words below a file stay as they are in WhatsApp")
        chat, client, ours = self._chat(part.address), await self._writing(), self._remember().ours
        text, place = outbound.text_of(part), (part.address.chat, message_id)
        sent_at = ours.sent_at(*place)
        if sent_at is None:
            raise Rejected("the message is no longer there", gone=True)
        now = self._times.now()
        if now - sent_at > _EDITABLE:
            raise Rejected("WhatsApp lets a message be changed for 15 minutes", gone=True)
        await self._edits.wait(part.address.chat, 0)
        client = await self._writing()
        with self._named(), ours.echoes.sending(part.address.chat, text):
            await client.send(chat, outbound.edit_of(text, chat, message_id, round(now.timestamp() * 1000)))
        if ours.sent_at(*place) is None:
            raise Rejected("the message was taken back", gone=True)
        await ours.sent(*place, [button for row in part.buttons for button in row], now)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """What is refused for want of a link names this account in its mend."""
        try:
            yield
        except AuthFailed as error:
            raise session.named(error, self.account) from None

    def _chat(self, address: Address) -> Jid:
        chat = Jid.of_id(address.chat)
        if chat is None:
            raise Rejected(f"{address.chat!r} is no chat of WhatsApp: it is a phone number such as +15550001234")
        return chat

    def _connected(self) -> Client:
        if self._client is None:
            raise Unreachable("there is no connection to WhatsApp")
        return self._client

    async def _writing(self) -> Client:
        """The client, once all that was written meanwhile has come.

        Who writes while it reads uses a key twice now and then, and that message is lost without a word.
        """
        client = self._connected()
        if not self._is_connected:
            raise Unreachable("there is no connection to WhatsApp")
        try:
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                await self._caught_up.wait()
        except TimeoutError:
            raise Unreachable("WhatsApp still brings what was written meanwhile") from None
        return client

    def _check_may_write(self, address: Address, memory: _Memory) -> None:
        """Raises Rejected where nobody ever wrote: an account is banned for that."""
        chat = Jid.of_id(address.chat)
        if self._settings.write_first or chat is None or chat in self._me:
            return
        person = memory.identities.person(chat)
        if not memory.ours.has_written((address.chat, person.id, *person.aliases)):
            raise Rejected(
                "nobody wrote there since this account is linked, and WhatsApp bans accounts that write first: say "
                "something there once, or set write_first"
                if address.kind != "direct"
                else "they never wrote to this account, and WhatsApp bans accounts that write first: ask them to write "
                "once, or set write_first"
            )

    def _answered(self, part: Part, chat: Jid) -> outbound.Answered | None:
        """What ``part`` answers, where it is known by whom that was said."""
        if part.reply_to is None:
            return None
        said = self._heard.said(part.address.chat, part.reply_to)
        text = part.question or (said.text if said else "")
        author = said.author if said else chat if chat.is_person else None
        return outbound.Answered(part.reply_to, author, text) if author and text else None

    def _known(self, number: str) -> Jid | None:
        """The person of a phone number, if the account has met them."""
        identities = self._remember().identities
        person = identities.person(Jid(number, PHONE))
        return Jid.of_id(person.id) if person.aliases or number in identities.met else None

    # What is only shown -----------------------------------------------------------------------------------------------

    async def typing(self, address: Address) -> None:
        self._mark_read(address)
        await self._shown(lambda client, chat: client.compose(chat), address, is_message=False)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        said = self._heard.said(address.chat, message_id)
        if address.kind != "direct" and said is None:
            log.debug("whatsapp/%s: a reaction was not shown: nobody knows whose message it is", self.account)
            return
        if emoji and not (self._caught_up.is_set() and self._pacing.spend(address.chat)):
            return
        self._mark_read(address)
        by = said.author if said is not None and address.kind != "direct" else None
        now_ms = round(self._times.now().timestamp() * 1000)
        await self._shown(
            lambda client, chat: client.send(chat, outbound.reaction_of(emoji, chat, message_id, by, now_ms)), address
        )

    async def erase(self, address: Address, message_id: str) -> None:
        if self._memory is None or self._memory.ours.sent_at(address.chat, message_id) is None:
            return
        await self._memory.ours.gone(address.chat, message_id)
        await self._shown(lambda client, chat: client.send(chat, outbound.revoke_of(chat, message_id)), address)

    async def leave(self, address: Address) -> None:
        if address.kind != "direct":
            await self._shown(lambda client, chat: client.leave(chat), address, is_message=False)

    async def _shown(
        self, call: Callable[[Client, Jid], Awaitable[object]], address: Address, *, is_message: bool = True
    ) -> None:
        """``is_message``: it is encrypted for people as a message is, and has to wait like one; but it doesn't wait."""
        if is_message and not self._caught_up.is_set():
            return
        try:
            await call(self._connected(), self._chat(address))
        except AdapterError as error:
            log.debug("whatsapp/%s: something was not shown: %s", self.account, error)

    def _mark_read(self, address: Address) -> None:
        """What is answered there was read. Nobody waits for it."""
        unread = self._heard.take_unread(address.chat) if self._settings.read_receipts and self._client else []
        if unread:
            marking = asyncio.create_task(self._read(self._connected(), unread))
            self._marking.add(marking)
            marking.add_done_callback(self._marking.discard)

    async def _read(self, client: Client, unread: list[Any]) -> None:
        try:
            for messages in unread:
                await client.read(messages)
        except AdapterError as error:
            log.debug("whatsapp/%s: a message was not marked as read: %s", self.account, error)

    # The rest ---------------------------------------------------------------------------------------------------------

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        said = file_of(ref, load().bodies.Message)
        if said.own.fileLength > limit:
            raise Rejected(f"the file has {said.own.fileLength} bytes: {limit} at most are taken")
        data = await self._connected().download(said.body)
        if len(data) > limit:
            raise Rejected(f"the file has {len(data)} bytes: {limit} at most are taken")
        yield data

    def measure(self, text: FormattedText) -> int:
        return outbound.measure(text)

    async def close(self) -> None:
        for marking in self._marking:
            marking.cancel()
        await self._hang_up()
        if self._memory is not None:
            await asyncio.to_thread(self._memory.notebook.close)
            self._memory = None

    def _report(self, health: Health) -> None:
        self.health = health
