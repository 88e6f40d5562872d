"""One connection of the library, from its start to its end: what it reports, and the calls that are made of it.

Its Go side knows its clients by name in a table without a lock, and falls over one that is not there: so every start
has a name of its own, nothing is called before it is there nor after its end began, and an end waits for calls that
just begin. Every call has a time limit of ours. Knows no account and no message.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

from adapters.errors import AdapterError, Ambiguous, Unreachable
from adapters.whatsapp import refusals
from adapters.whatsapp.bridge import Bridge, Journal
from adapters.whatsapp.calls import in_thread
from adapters.whatsapp.heard import Unread
from adapters.whatsapp.identity import Jid
from adapters.whatsapp.library import load

T = TypeVar("T")
Take = Callable[[str, Any], Coroutine[Any, Any, None]]

log = logging.getLogger(__name__)

_PLACE = "web.whatsapp.com", 443

_KINDS = (
    *("QR", "PairStatus", "Connected", "KeepAliveTimeout", "KeepAliveRestored", "LoggedOut", "StreamReplaced"),
    *("TemporaryBan", "ConnectFailure", "ClientOutdated", "StreamError", "Disconnected", "Message", "JoinedGroup"),
    *("GroupInfoEvent", "OfflineSyncCompleted", "UndecryptableMessage"),
)
"""The events that are asked for. What the phone sends of earlier talks is not: nobody waits for an answer to it."""

_SHORT_SECONDS = 10.0
"""For what is only shown, and for what the library has at hand."""
_DIAL_SECONDS = 10.0
_END_TRIES = 5
_END_SECONDS = 1.0
_BEGIN_SECONDS = 0.05
"""How long a call may take to find its client, and an event to be reported."""
_DRAIN_LOOKS = 20


async def probe(proxy: str | None) -> None:
    """Raises Unreachable where nobody answers at the other end, or at the proxy.

    The library leaves an open file behind for each start that fails, so it is not started then.
    """
    where = _PLACE
    if proxy:
        url = urlsplit(proxy)
        where = url.hostname or "", url.port or {"http": 80, "https": 443}.get(url.scheme, 1080)
    elif getproxies().get("https"):
        return  # the system's own proxy is the library's to find
    try:
        async with asyncio.timeout(_DIAL_SECONDS):
            _, writer = await asyncio.open_connection(*where)
    except (OSError, ValueError) as error:
        what = "the proxy of proxy_url" if proxy else where[0]
        raise Unreachable(f"{what} can't be reached ({_reason(error)}): is the network there?") from None
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def _reason(error: Exception) -> str:
    """asyncio's own words for a refused connection hold its address, in place of what is wrong."""
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return str(getattr(error, "strerror", None) or error)


class Client:
    """For one account. ``session`` is the file it is linked by; ``proxy`` is an address, None for none."""

    def __init__(self, session: Path, proxy: str | None, answer_seconds: float) -> None:
        self._session = session
        self._proxy = proxy
        self._answer_seconds = answer_seconds
        self._library = load()
        self._name = f"{session}#{secrets.token_hex(8)}"
        props = self._library.client.DeviceProps(os="Limpet", platformType="CHROME")  # among the phone's linked devices
        self._client = self._library.client.NewAClient(str(session), props=props, uuid=self._name)
        self._library.kept.append(self._client)
        self._bridge: Bridge | None = None
        self._running: asyncio.Task[None] | None = None
        self._stage: Literal["new", "there", "ended"] = "new"
        self._shows_codes = False
        self._calls = 0

    # From start to end ------------------------------------------------------------------------------------------------

    async def start(
        self,
        take: Take,
        report: Callable[[Exception], None],
        *,
        show: Callable[[str], Coroutine[Any, Any, None]],
        journal: Journal | None = None,
        kept: tuple[str, ...] = (),
    ) -> asyncio.Task[None]:
        """Begin to connect. The task ends, with one of ``adapters.errors``, only where that fails, or after ``stop``.

        ``take`` is given each event with its kind; ``show`` the code to scan, where no account is linked.
        """
        library, loop = self._library, asyncio.get_running_loop()
        numbers = {event.__name__: number for event, number in library.kinds.EVENT_TO_INT.items()}
        self._bridge = Bridge(
            loop, self._taker(take), report, journal=journal, kept=frozenset(numbers[kind] for kind in kept)
        )
        self._client.event.execute = self._bridge.execute
        self._client.event.list_func = dict.fromkeys((numbers[kind] for kind in _KINDS), None)

        async def scanned(_: object, code: bytes) -> None:
            self._is_there()
            self._shows_codes = True
            await show(code.decode())

        self._client.event.qr(scanned)
        library.dispatch.event_global_loop = loop  # type: ignore[attr-defined]  # it would keep the first loop that ever was
        proxy = library.client.ProxySettings(proxy_address=self._proxy) if self._proxy else None
        running = await self._client.connect(proxy)
        self._running = asyncio.create_task(self._watch(running))
        return self._running

    def _taker(self, take: Take) -> Callable[[int, bytes], Coroutine[Any, Any, None]]:
        events = {number: event for event, number in self._library.kinds.EVENT_TO_INT.items()}

        async def taken(number: int, data: bytes) -> None:
            self._is_there()
            self._shows_codes = False
            event = events.get(number)
            if event is None or event.__name__ not in _KINDS:
                return
            try:
                read = event.FromString(data)
            except Exception as error:  # it is no better the next time
                log.warning("whatsapp: a %s was skipped, it can't be read: %s", event.__name__, type(error).__name__)
                return
            await take(event.__name__, read)

        return taken

    def _is_there(self) -> None:
        """Go's side said something, so that it has the client."""
        if self._stage == "new":
            self._stage = "there"

    async def _watch(self, running: asyncio.Task[None]) -> None:
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            running.add_done_callback(_looked_at)
            raise
        if (error := running.exception()) is not None:
            raise refusals.of_connect(str(error)) from None

    def deafen(self) -> None:
        """Hear nothing more: what is said from now on is noted for the next run. What is sent still leaves."""
        if self._bridge is not None:
            self._bridge.close()

    async def stop(self) -> None:
        """End it, and wait for it, for some seconds at most. What is called from now on is Unreachable."""
        was_there, self._stage = self._stage == "there", "ended"
        self.deafen()
        if self._running is None:
            return
        if self._calls:
            await asyncio.sleep(_BEGIN_SECONDS)
        if was_there and self._bridge is not None:
            await self._drain(self._bridge)
        for _ in range(1 if self._shows_codes else _END_TRIES):  # it goes on until its codes are no longer good
            await self._end()
            if (await asyncio.wait([self._running], timeout=_END_SECONDS))[0]:
                break
        else:
            if not self._shows_codes:
                log.warning("whatsapp: the library did not end its connection in time, and is left to itself")
            self._running.cancel()
        _looked_at(self._running)
        await self._end()  # one that was told before it was there goes on without a word

    async def _drain(self, bridge: Bridge) -> None:
        """Let the library report what it still holds, which nobody brings again: it is noted for the next run."""
        await self._tell("Disconnect")
        for _ in range(_DRAIN_LOOKS):
            seen = bridge.seen
            await asyncio.sleep(_BEGIN_SECONDS)
            if bridge.seen == seen:
                return

    async def _end(self) -> None:
        await self._tell("Stop")

    async def _tell(self, what: str) -> None:
        try:
            async with asyncio.timeout(_END_SECONDS):
                await in_thread(getattr(self._library.client.gocode, what), self._name.encode())
        except TimeoutError:
            log.debug("whatsapp: the library takes its time to %s", what)

    # What is sent -----------------------------------------------------------------------------------------------------

    async def send(self, chat: Jid, body: Any) -> str:
        """The id of the message that ``body`` became. Raises Ambiguous where nobody answered."""
        with self._calling():
            call = self._client.send_message(self._jid(chat), body)
            try:
                async with asyncio.timeout(self._answer_seconds):
                    sent = await call
            except TimeoutError:
                raise Ambiguous("WhatsApp did not say whether it arrived") from None
            except self._failures as error:
                raise refusals.of_send(str(error)) from None
            return str(sent.ID)

    async def upload(self, data: bytes, kind: str) -> Any:
        """Hand over a file that nobody sees yet: what it takes to show it. ``kind`` is that of a ``MediaType``."""
        media = getattr(self._library.enums.MediaType, f"Media{kind.capitalize()}")
        return await self._call(self._client.upload, data, media, of=refusals.of_upload, seconds=self._answer_seconds)

    async def download(self, body: Any) -> bytes:
        """The bytes of the file in a message."""
        call = self._client.download_any
        return bytes(await self._call(call, body, of=refusals.of_download, seconds=self._answer_seconds))

    async def compose(self, chat: Jid) -> None:
        """Show that an answer is being written."""
        enums = self._library.enums
        how = enums.ChatPresence.CHAT_PRESENCE_COMPOSING, enums.ChatPresenceMedia.CHAT_PRESENCE_MEDIA_TEXT
        await self._call(self._client.send_chat_presence, self._jid(chat), *how)

    async def read(self, unread: Unread) -> None:
        """Mark messages as read."""
        chat, author, receipt = self._jid(unread.chat), self._jid(unread.author), self._library.enums.ReceiptType.READ

        async def mark() -> None:
            await self._client.mark_read(*unread.messages, chat=chat, sender=author, receipt=receipt)

        await self._call(mark)

    async def leave(self, group: Jid) -> None:
        await self._call(self._client.leave_group, self._jid(group))

    async def pair(self, phone: str) -> str:
        """The code to link by that ``phone`` asks for."""
        return str(await self._call(self._client.PairPhone, phone, True, of=refusals.of_pair, seconds=30.0))

    # Who is who -------------------------------------------------------------------------------------------------------

    async def phone_of(self, lid: Jid) -> Jid | None:
        """As far as the library has been told; None where it has not, or where it can't be asked."""
        return await self._known(self._client.get_pn_from_lid, lid)

    async def lid_of(self, phone: Jid) -> Jid | None:
        """The same the other way round."""
        return await self._known(self._client.get_lid_from_pn, phone)

    async def _known(self, call: Callable[..., Coroutine[Any, Any, Any]], jid: Jid) -> Jid | None:
        try:
            return Jid.of(await self._call(call, self._jid(jid)))
        except AdapterError:
            return None

    # How --------------------------------------------------------------------------------------------------------------

    async def _call(
        self,
        call: Callable[..., Coroutine[Any, Any, T]],
        *args: Any,
        of: Callable[[str], AdapterError] = refusals.of_upload,
        seconds: float = _SHORT_SECONDS,
    ) -> T:
        """What may be called twice. Raises what ``of`` makes of a refusal, and Unreachable where nobody answers."""
        with self._calling():
            try:
                async with asyncio.timeout(seconds):
                    return await call(*args)
            except TimeoutError:
                raise Unreachable(f"WhatsApp did not answer within {seconds:g} s") from None
            except self._failures as error:
                raise of(str(error)) from None

    @contextmanager
    def _calling(self) -> Iterator[None]:
        if self._stage != "there":
            raise Unreachable("there is no connection to WhatsApp")
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    @property
    def _failures(self) -> tuple[type[Exception], ...]:
        """What the library raises: its own, and the protobuf's for an answer that it can't read."""
        from google.protobuf.message import Error  # type: ignore[import-untyped]  # it has no types

        return (self._library.client.NeonizeError, Error)

    def _jid(self, jid: Jid) -> Any:
        return self._library.events.JID(
            User=jid.user, Server=jid.server, RawAgent=0, Device=0, Integrator=0, IsEmpty=False
        )


def _looked_at(task: asyncio.Task[None]) -> None:
    """Its end is known: nobody has to be told of it."""
    if task.done() and not task.cancelled():
        task.exception()
