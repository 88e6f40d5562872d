"""The server: logins, what connected devices ask and say, and how all of it can go wrong.

It only carries: what people write is encrypted between their devices, and it never sees it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import aiohttp
from aiohttp import web

from tests.fakes.loopback import Loopback
from tests.fakes.whatsapp_relay import protobuf
from tests.fakes.whatsapp_relay.directory import Account, Directory, now
from tests.fakes.whatsapp_relay.library import Words
from tests.fakes.whatsapp_relay.media import Media
from tests.fakes.whatsapp_relay.messages import Post
from tests.fakes.whatsapp_relay.noise import Channel, Frames, RefusedServerError, open_channel
from tests.fakes.whatsapp_relay.pairing import Candidate, Pairing
from tests.fakes.whatsapp_relay.proxy import Proxy
from tests.fakes.whatsapp_relay.queries import MEDIA_HOST, Queries
from tests.fakes.whatsapp_relay.stanza import SERVER, Jid, Node, node
from tests.fakes.whatsapp_relay.trust import Trust

CHAT_HOST = "web.whatsapp.com"

_USERNAME, _DEVICE, _REGISTRATION = 1, 18, 19
"""Of what a client logs in with; a device without a session sends its registration."""


_FAREWELL_SECONDS = 0.2
"""From the word why a connection ends to its end: a client that sees the end first comes again, and knows nothing."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one stanza.

    ``error`` is the code that it is answered with, 0 for none. ``silent`` answers nothing, ``drop`` breaks the
    connection instead. ``after`` lets the stanza have its effect first. ``delay`` of the answer is in seconds; what
    comes behind it is not held up.
    """

    error: int = 0
    silent: bool = False
    drop: bool = False
    after: bool = False
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Of a login: ``reason`` is WhatsApp's code (401 unlinked, 402 banned for a while, 405 too old, 503 not now).

    ``code`` and ``expire`` come with a ban: its kind, and how many seconds it lasts.
    """

    reason: int
    code: int = 0
    expire: int = 0


@dataclass(frozen=True, slots=True)
class Heard:
    """What ``device`` said; None before it is linked."""

    device: Jid | None
    stanza: Node


@dataclass(eq=False)
class Link:
    """A connection, of a device or of one that wants to be linked."""

    channel: Channel
    device: Jid | None = None
    candidate: Candidate | None = None

    async def send(self, stanza: Node) -> None:
        """A connection that is gone is no error: nobody is there."""
        with suppress(ConnectionError, aiohttp.ClientError):
            await self.channel.send(stanza)


class Relay(Loopback):
    """``heard`` is all that devices said, in order. ``directory`` holds the accounts, which outlive a server."""

    most_bytes: ClassVar[int] = 256 << 20

    def __init__(self, trust: Trust, words: Words, directory: Directory) -> None:
        super().__init__()
        self.context = trust.context
        self.trust = trust
        self.directory = directory
        self.proxy = Proxy((f"{CHAT_HOST}:443", f"{MEDIA_HOST}:443"), self.change)
        self.pairing = Pairing(directory)
        self.queries = Queries(directory)
        self.post = Post(directory)
        self.media = Media(MEDIA_HOST)
        self.heard: list[Heard] = []
        self.logins: list[Jid] = []
        self.errors: list[BaseException] = []
        """What clients said that the server did not understand; and faults of its own."""
        self._words = words
        self._links: list[Link] = []
        self._faults: dict[str, list[Fault]] = {}
        self._refusals: dict[str, list[Refusal]] = {}
        self._working_on: set[asyncio.Task[None]] = set()

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/ws/chat", self._connection)
        self.media.routes(router)

    async def start(self) -> Self:
        await super().start()
        await self.proxy.start(self.port)
        return self

    async def stop(self) -> None:
        for task in [*self._working_on]:
            task.cancel()
        for link in self._links:
            link.channel.frames.cut()
        if self._working_on:
            await asyncio.wait(self._working_on)
        await self.proxy.stop()
        await super().stop()

    # What a test does -------------------------------------------------------------------------------------------------

    def fail(self, kind: str, *faults: Fault, times: int = 1) -> None:
        """Let the next stanzas of ``kind`` (a tag, or the namespace of a query) meet ``faults``, ``times`` over."""
        self._faults.setdefault(kind, []).extend(faults * times)

    def refuse(self, account: Account, *refusals: Refusal) -> None:
        """Let the next logins of ``account`` end so."""
        self._refusals.setdefault(account.phone, []).extend(refusals)

    def online(self, account: Account) -> bool:
        return bool(self._links_of(account))

    def said(self, kind: str, account: Account | None = None, **attrs: str) -> list[Node]:
        """The stanzas with the tag ``kind`` and ``attrs``, of one account or of all."""
        return [
            one.stanza
            for one in self.heard
            if one.stanza.tag == kind
            and (account is None or (one.device is not None and one.device.user == account.phone))
            and all(one.stanza.text(name) == value for name, value in attrs.items())
        ]

    def held(self, account: Account) -> list[str]:
        """The ids of the messages that a device of ``account`` has not confirmed."""
        return [message for one in self.directory.devices_of(account.by_phone) for message in self.post.waiting[one]]

    async def cut(self, account: Account) -> None:
        """Its connections break, without a word."""
        for link in self._links_of(account):
            self._gone(link)
            link.channel.frames.cut()

    async def remove(self, account: Account) -> None:
        """A person takes the device off the list in their phone."""
        for link in self._links_of(account):
            assert link.device is not None
            account.devices.pop(link.device.device)
            await self._end(link, "401", "device_removed")

    async def restart(self, account: Account) -> None:
        """The server asks for a new connection."""
        for link in self._links_of(account):
            await self._end(link, "515")

    # Connections ------------------------------------------------------------------------------------------------------

    async def _connection(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=self.most_bytes)
        await socket.prepare(request)
        # What arrived is dealt with even if its sender is gone by then, and nobody to be answered.
        await asyncio.shield(self._later(self._serve(Frames(socket))))
        return socket

    async def _serve(self, frames: Frames) -> None:
        try:
            link = Link(await open_channel(frames, self.trust, self._words))
        except (RefusedServerError, ConnectionError):
            return
        self._links.append(link)
        try:
            await self._enter(link)
            while (stanza := await link.channel.receive()) is not None:
                self.heard.append(Heard(link.device, stanza))
                await self._meet(link, stanza)
                self.change()
        finally:
            self._gone(link)
            self.change()

    async def _enter(self, link: Link) -> None:
        """Let the client in, or tell it why not."""
        payload = link.channel.payload
        if _REGISTRATION in payload:
            link.candidate = await self.pairing.welcome(link.channel.device_key, link.send)
            return
        device = Jid(str(protobuf.integer(payload, _USERNAME)), device=protobuf.integer(payload, _DEVICE))
        known, refusals = self.directory.device(device), self._refusals.get(device.user)
        refusal = refusals.pop(0) if refusals else None
        if refusal is None and (known is None or known.noise != link.channel.device_key):
            refusal = Refusal(401)
        if refusal is not None:
            await link.send(_failure(refusal))
            self._later(self._hang_up(link))
            return
        for other in [one for one in self._links if one.device == device]:
            await self._end(other, "", "replaced")
        link.device = device
        self.logins.append(device)
        lid = self.directory.owner(device).named("lid", device.device)
        await link.send(node("success", t=now(), lid=lid, props="1", location="lo", creation="1700000000"))
        await self.post.arrive(device, link.send)
        self.change()

    def _gone(self, link: Link) -> None:
        if link not in self._links:
            return
        self._links.remove(link)
        if link.device is not None:
            self.post.leave(link.device, link.send)
        if link.candidate is not None:
            self.pairing.gone(link.candidate)

    async def _end(self, link: Link, code: str, conflict: str = "") -> None:
        why = [node("conflict", type=conflict)] if conflict else None
        await link.send(node("stream:error", why, code=code or None))
        self._gone(link)
        self._later(self._hang_up(link))
        self.change()

    async def _hang_up(self, link: Link) -> None:
        await self.pause(_FAREWELL_SECONDS)
        link.channel.frames.close()

    def _links_of(self, account: Account) -> list[Link]:
        return [link for link in self._links if link.device is not None and link.device.user == account.phone]

    # Stanzas ----------------------------------------------------------------------------------------------------------

    async def _meet(self, link: Link, stanza: Node) -> None:
        kind = stanza.text("xmlns") if stanza.tag == "iq" else stanza.tag
        faults = self._faults.get(kind)
        fault = faults.pop(0) if faults else Fault()
        if fault.delay:
            self._later(self._slowly(link, stanza, fault))
        else:
            await self._answer(link, stanza, fault)

    async def _slowly(self, link: Link, stanza: Node, fault: Fault) -> None:
        if not fault.after:
            await self.pause(fault.delay)
        await self._answer(link, stanza, fault)
        self.change()

    async def _answer(self, link: Link, stanza: Node, fault: Fault) -> None:
        is_well = not (fault.error or fault.silent or fault.drop)
        content = await self._effect(link, stanza) if is_well or fault.after else None
        if fault.after:
            self.change()
            await self.pause(fault.delay)
        if fault.drop:
            self._gone(link)
            link.channel.frames.cut()
        elif not fault.silent and (answer := _answer_to(stanza, content, fault.error)):
            await link.send(answer)

    async def _effect(self, link: Link, stanza: Node) -> list[Node] | None:
        if link.candidate is not None:
            return await self._link_up(link, link.candidate, stanza)
        if link.device is None:  # it was refused, and has not heard of it yet
            return None
        if stanza.tag != "iq":
            await self.post.take(link.device, stanza)
            return None
        if removed := stanza.children("remove-companion-device"):
            self.directory.owner(link.device).devices.pop(removed[0].jid("jid").device, None)
            return None
        return self.queries.answer(link.device, stanza) if stanza.text("type") in ("get", "set") else None

    async def _link_up(self, link: Link, candidate: Candidate, stanza: Node) -> list[Node] | None:
        if stanza.children("pair-device-sign"):
            await self._end(link, "515")  # it is to come again, as the device that it is now
        request = stanza.child("link_code_companion_reg")
        if request.text("stage") == "companion_hello":
            return self.pairing.says_hello(candidate, request)
        if request.text("stage") == "companion_finish":
            self._later(self.pairing.finishes(candidate, request))
        return None

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._working_on.add(task)
        task.add_done_callback(self._worked)
        return task

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._working_on.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.errors.append(error)


def _answer_to(stanza: Node, content: list[Node] | None, error: int) -> Node | None:
    """None where the protocol has no answer."""
    ident = stanza.text("id")
    if stanza.tag == "iq" and stanza.text("type") in ("get", "set"):
        if error:
            return node("iq", [node("error", code=str(error), text="refused")], from_=SERVER, type="error", id=ident)
        return node("iq", content, from_=SERVER, type="result", id=ident)
    if stanza.tag in ("message", "receipt"):
        code = str(error) if error else None
        return node("ack", class_=stanza.tag, id=ident, from_=stanza.jid("to"), t=now(), error=code)
    return None


def _failure(refusal: Refusal) -> Node:
    ban = {name: str(value) for name, value in (("code", refusal.code), ("expire", refusal.expire)) if value}
    return node("failure", reason=str(refusal.reason), location="lo", **ban)
