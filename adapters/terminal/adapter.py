"""The hub's side of the terminal: an adapter like any other, whose platform is the line protocol of ``wire``.

All consoles of one agent share the chat "local". An answer goes to each of them and counts as sent when one has shown
it; where none is connected ``send`` raises Absent and the hub keeps the part until ``arrived`` tells of a console.
Knows no agent (``greet`` answers for the hub) and no screen.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from adapters.adapter import Accept, Capabilities, Health, TurnReport
from adapters.errors import Absent, AuthFailed, Rejected, Unreachable
from adapters.message import Address, Message, Part, Quote, Receipt, Sender
from adapters.terminal.endpoint import bind, shut
from adapters.terminal.wire import (
    STOP_PREFIX,
    VERSION,
    Accepted,
    Answer,
    Delta,
    Done,
    Failure,
    FrameError,
    FromClient,
    FromHub,
    Goodbye,
    Got,
    Hello,
    Hindered,
    Notice,
    OversizeError,
    Ready,
    Say,
    Stop,
    encode,
    from_client,
)
from adapters.text import FormattedText, sanitize

Greet: TypeAlias = Callable[[Hello], Awaitable[Ready | Failure]]
"""The hub's word to a console that says hello: which agent answers it, or why none does (an unknown name)."""

PATIENCE_SECONDS = 10.0
"""How long a console may take to read, or to show an answer, before it is held for stuck (suspended, paused)."""

PIPED = "standard input"
"""Whose words a pipe's are, as the author of a quote."""

_USAGE = 2
_TEMPORARY = 75


def _nothing(_: Address) -> None:
    """Nobody wants to know."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(eq=False, slots=True)
class _Client:
    """A connected console. ``address`` is None until it said hello; ``asked`` are the ids it said here."""

    writer: StreamWriter
    address: Address | None = None
    once: bool = False
    interactive: bool = False
    asked: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    """Those of ``asked`` whose turn has not ended."""


@dataclass(eq=False, slots=True)
class _Delivery:
    """An answer on its way to ``clients``; ``shown`` turns out False when the last of them left without a Got."""

    clients: set[_Client]
    shown: asyncio.Future[bool]

    def settle(self, shown: bool) -> None:
        if not self.shown.done():
            self.shown.set_result(shown)


class TerminalAdapter:
    """Serves consoles on the Unix socket ``listen``, on the socket pair's end ``connected``, or on both.

    The caller holds the hub's lock when it gives ``listen``. ``user`` is the display name of whoever types, "" where
    nobody knows it: the system's name for its user (root) says little. ``arrived`` is called with a console's address
    once answers can reach it.
    """

    def __init__(
        self,
        account: str = "terminal",
        *,
        user: str = "",
        greet: Greet,
        listen: Path | None = None,
        connected: socket.socket | None = None,
        arrived: Callable[[Address], None] = _nothing,
        clock: Callable[[], datetime] = _now,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.channel = "terminal"
        self.account = account
        self.capabilities = Capabilities(text_limit=0, markup=False, idempotent=True)
        self.health = Health()
        self._sender = Sender(id="local", name=user)
        self._greet = greet
        self._listen = listen
        self._connected = connected
        self._arrived = arrived
        self._clock = clock
        self._patience = patience
        self._accept: Accept | None = None
        self._clients: set[_Client] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._deliveries: dict[str, _Delivery] = {}

    # The adapter's contract

    async def run(self, accept: Accept) -> None:
        """Take consoles and what they say until cancelled; those that are connected are still answered until ``close``.

        Raises AuthFailed when the socket can't be made: only a person can mend that.
        """
        self._accept = accept
        server: asyncio.Server | None = None
        try:
            if self._connected is not None:
                self._attend(*await asyncio.open_unix_connection(sock=self._connected))
            if self._listen is not None:
                server = await self._open(self._listen)
            self.health = replace(self.health, state="connected")
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.health = replace(self.health, state="stopped")
            raise
        finally:
            self._accept = None
            if server is not None and self._listen is not None:
                server.close()
                self._listen.unlink(missing_ok=True)

    async def send(self, part: Part, key: str) -> Receipt:
        """Returns once a console has shown the part.

        Raises Absent when none is connected (or the last one left), Unreachable when none said in time that it has
        shown it (a console tells a repetition by ``key``), and Rejected when it is blank or longer than a line may be.
        """
        if not part.text:
            raise Rejected("a blank message: there is nothing to show")
        late = not self._askers(part.address, part.reply_to)
        answer = Answer(part.text.plain, part.reply_to, key, late, part.question)
        try:
            encode(answer)
        except OversizeError as error:
            if part.reply_to is not None:
                await self.fail(part.address, part.reply_to, f"The answer can't be shown: {error}", 1)
            raise Rejected(str(error)) from None
        audience = self._audience(part)
        if not audience and (part.reply_to or "").startswith(STOP_PREFIX):
            return Receipt(None)  # whoever stopped a turn and left does not wait to read that it was stopped
        if not audience:
            raise Absent("no terminal is connected: `limpet chat` shows the answer")
        delivery = _Delivery(set(audience), asyncio.get_running_loop().create_future())
        self._deliveries[key] = delivery
        try:
            await self._tell(audience, answer)
            async with asyncio.timeout(self._patience):
                shown = await delivery.shown
        except TimeoutError:
            raise Unreachable("a terminal is connected but shows nothing: it may be suspended") from None
        finally:
            del self._deliveries[key]
        if not shown:
            raise Absent("the terminal left before it showed the answer")
        return Receipt(None)

    async def edit(self, part: Part, message_id: str) -> None:
        raise Rejected(f"the {part.address.channel} can't change what it has shown ({message_id})")

    async def typing(self, address: Address) -> None:
        """Nothing: a console shows by itself that it waits."""

    async def preview(self, address: Address, turn: str, delta: str) -> None:
        """Shown by the consoles that wait for an answer: by the asker alone where ``turn`` is its message's id."""
        waiting = [client for client in self._at(address) if client.waiting]
        await self._tell(self._askers(address, turn) or waiting, Delta(delta))

    def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        raise Rejected(f"a terminal has no attachments ({ref}, {limit} bytes)")

    def measure(self, text: FormattedText) -> int:
        """Code points; there is no limit to compare them with."""
        return len(text.plain)

    async def close(self) -> None:
        """Say goodbye to every console."""
        for client in self._clients:
            client.writer.write(encode(Goodbye("the hub has stopped")))
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        if self._connected is not None:
            self._connected.close()

    # What a narrator says

    async def notice(self, address: Address, text: str) -> None:
        await self._tell([c for c in self._at(address) if c.waiting or not c.once], Notice(text))

    async def done(self, address: Address, in_reply_to: str, report: TurnReport) -> None:
        await self._end(address, Done(in_reply_to, report))

    async def fail(self, address: Address, in_reply_to: str, text: str, code: int) -> None:
        await self._end(address, Failure(text, code, in_reply_to))

    async def hindered(self, text: str, code: int) -> None:
        await self._tell(list(self._clients), Hindered(text, code))

    def is_attended(self, address: Address, message_id: str) -> bool:
        return any(client.interactive for client in self._askers(address, message_id))

    def is_one_screen(self, address: Address, message_id: str, other_id: str) -> bool:
        return any(other_id in client.asked for client in self._askers(address, message_id))

    async def _end(self, address: Address, frame: Done | Failure) -> None:
        askers = self._askers(address, frame.in_reply_to)
        for client in askers:
            client.waiting.discard(frame.in_reply_to or "")
        await self._tell(askers, frame)

    # Who hears what

    def _at(self, address: Address) -> list[_Client]:
        return [client for client in self._clients if client.address == address]

    def _askers(self, address: Address, message_id: str | None) -> list[_Client]:
        return [client for client in self._at(address) if message_id in client.asked]

    def _audience(self, part: Part) -> list[_Client]:
        """Who is shown a part: not a single question that asked something else, unless nobody else is there.

        So an answer that nobody waits for any more can't hold up the ones behind it.
        """
        here = self._at(part.address)
        return [client for client in here if not client.once or part.reply_to in client.asked] or here

    async def _tell(self, clients: list[_Client], frame: FromHub) -> None:
        """Best effort. A console that is gone or doesn't read is cut off; it comes again by itself when it can."""
        await asyncio.gather(*(self._tell_one(client, frame) for client in clients))

    async def _tell_one(self, client: _Client, frame: FromHub) -> None:
        try:
            client.writer.write(encode(frame))
            async with asyncio.timeout(self._patience):
                await client.writer.drain()
        except (OSError, OversizeError):
            client.writer.transport.abort()

    # What consoles say

    async def _open(self, path: Path) -> asyncio.Server:
        try:
            listener = bind(path)
        except OSError as error:
            detail = (
                f"the terminal's socket {path} can't be made: {error.strerror}. "
                "Remove what lies there, or set LIMPET_HOME to a folder on a local disk."
            )
            self.health = Health("failed", detail)
            raise AuthFailed(detail) from error
        return await asyncio.start_unix_server(self._attend, sock=listener)

    def _attend(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer), name="terminal client")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        client = _Client(writer)
        self._clients.add(client)
        try:
            async for frame in from_client(reader):
                await self._hear(client, frame)
        except OSError:
            pass  # the console is gone; what it has not confirmed goes to the next one
        finally:
            self._clients.discard(client)
            self._left(client)
            await shut(writer)

    def _left(self, client: _Client) -> None:
        for delivery in self._deliveries.values():
            delivery.clients.discard(client)
            if not delivery.clients:
                delivery.settle(False)

    async def _hear(self, client: _Client, frame: FromClient | FrameError) -> None:
        self.health = replace(self.health, heard_at=self._clock())
        match frame:
            case FrameError():
                await self._tell_one(client, Failure(f"Not understood: {frame}.", _USAGE))
            case Hello() if client.address is None:
                await self._welcome(client, frame)
            case Got(key):
                if key in self._deliveries:
                    self._deliveries[key].settle(True)
            case Say(id, text, quote) if client.address is not None:
                await self._take(client, client.address, id, sanitize(text), sanitize(quote))
            case Stop(id) if client.address is not None:
                await self._take(client, client.address, id, "/stop")
            case _:
                await self._tell_one(client, Failure("Hello comes first, and once.", _USAGE))

    async def _welcome(self, client: _Client, hello: Hello) -> None:
        if hello.version == VERSION:
            word = await self._greet(hello)
        else:
            word = Failure(
                f"This terminal speaks version {hello.version} of the protocol and the running hub version {VERSION}: "
                "restart the hub (limpet run) so that both are the same release.",
                _USAGE,
            )
        await self._tell_one(client, word)
        if isinstance(word, Failure):
            await self._tell_one(client, Goodbye(word.text))
            client.writer.close()
            return
        client.address = Address(self.channel, self.account, "local", "direct", space=word.agent)
        client.once, client.interactive = hello.once, hello.interactive
        self._arrived(client.address)

    async def _take(self, client: _Client, address: Address, message_id: str, text: str, quote: str = "") -> None:
        """Hand a message to the hub and confirm it once it is durable. Said again, it is confirmed again."""
        if not message_id or not text.strip():
            await self._tell_one(client, Failure("An empty message was not taken.", _USAGE, message_id or None))
            return
        if self._accept is None:
            return  # the hub stops: unconfirmed, it is said again to the next one
        client.asked.add(message_id)
        client.waiting.add(message_id)
        piped = Quote(quote, PIPED, below=True) if quote else None
        try:
            await self._accept(Message(message_id, address, self._sender, text, self._clock(), quote=piped))
        except Exception as error:  # whatever kept the hub from storing it, the console must not hold it for stored
            await self.fail(address, message_id, f"Your message could not be stored: {error}", _TEMPORARY)
        else:
            await self._tell_one(client, Accepted(message_id))
