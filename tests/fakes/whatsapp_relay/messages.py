"""Between devices: messages, receipts and signs of typing, from one to all whom they are for.

It holds what a device has not confirmed, and brings it when the device is there again: all that is said while nobody
is connected, and what was on its way when a connection broke.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from tests.fakes.whatsapp_relay.directory import Directory, now
from tests.fakes.whatsapp_relay.stanza import GROUPS, SERVER, Attr, Jid, Node, node

Send: TypeAlias = Callable[[Node], Awaitable[None]]

_ARRIVED = {"", "inactive", "sender", "peer_msg", "hist_sync", "retry"}
"""Receipts that say that a device has a message, or wants it in another form."""
_FOR_OTHERS = {"", "inactive", "read", "played", "retry"}


class Post:
    """``waiting`` are by device, and by id, the messages that it has not confirmed, oldest first."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._reached: dict[Jid, Send] = {}
        self.waiting: dict[Jid, dict[str, Node]] = defaultdict(dict)

    async def arrive(self, device: Jid, send: Send) -> None:
        """``device`` is connected: it is brought what waits for it."""
        self._reached[device] = send
        held = list(self.waiting[device].values())
        size = str(len(held))
        preview = node("offline_preview", count=size, message=size, appdata="0", notification="0", receipt="0")
        await send(node("ib", [preview], from_=SERVER))
        for message in held:
            await send(message.having(offline="1"))
        await send(node("ib", [node("offline", count=size)], from_=SERVER))

    def leave(self, device: Jid, send: Send) -> None:
        """That connection of ``device`` is over."""
        if self._reached.get(device) == send:
            del self._reached[device]

    async def take(self, device: Jid, stanza: Node) -> None:
        """Carry what ``device`` says to whom it is for."""
        match stanza.tag:
            case "message":
                await self._message(device, stanza)
            case "receipt":
                await self._receipt(device, stanza)
            case "ack" if stanza.text("class") == "message":
                self._confirm(device, stanza.text("id"))
            case "chatstate":
                await self._chatstate(device, stanza)

    def _confirm(self, device: Jid, message: str) -> None:
        self.waiting[device].pop(message, None)

    async def _bring(self, device: Jid, stanza: Node, *, keep: bool = False) -> None:
        if keep:
            self.waiting[device][stanza.text("id")] = stanza
        if send := self._reached.get(device):
            await send(stanza)

    # ------------------------------------------------------------------------------------------------------------------

    async def _message(self, device: Jid, message: Node) -> None:
        to, shared = message.jid("to"), [*message.children("enc"), *message.children("device-identity")]
        single = {self._directory.name_of(one.jid("jid")): one for one in message.child("participants").children("to")}
        if to.server == GROUPS:
            targets = [one for one in self._directory.devices_of(to) if one != device]
            if "participant" in message.attrs:  # once more, for the one who could not read it
                targets = [self._directory.name_of(message.jid("participant"))]
        else:
            targets = [*single] or [self._directory.name_of(to)]
        sent = {"id": message.text("id"), "t": now(), "type": message.text("type")}
        for name in ("edit", "category"):
            if name in message.attrs:
                sent[name] = message.text(name)
        for target in targets:
            own = single[target].children("enc") if target in single else []
            attrs = {**sent, **self._from(device, to, target)}
            await self._bring(target, Node("message", attrs, [*own, *shared]), keep=True)

    def _from(self, device: Jid, to: Jid, target: Jid) -> Mapping[str, Attr]:
        """Who says it, and where, as ``target`` is told."""
        me, addressing = self._directory.owner(device), self._directory.addressing
        by, beside = ("pn", me.by_phone) if addressing == "lid" else ("lid", me.by_lid)
        name: dict[str, Attr] = {"notify": me.name}
        if to.server == GROUPS:
            who = me.named(addressing, device.device)
            mode = {"addressing_mode": addressing}
            return {"from": to, "participant": who, f"participant_{by}": beside, **mode, **name}
        own: dict[str, Attr] = {"recipient": to.bare} if target.user == device.user else {}
        return {"from": me.named(addressing, device.device), f"sender_{by}": beside, **own, **name}

    async def _receipt(self, device: Jid, receipt: Node) -> None:
        kind, to = receipt.text("type"), receipt.jid("to")
        if kind in _ARRIVED:
            self._confirm(device, receipt.text("id"))
        if kind not in _FOR_OTHERS or (to.server == GROUPS and "participant" not in receipt.attrs):
            return
        me = self._directory.owner(device).named(self._directory.addressing, device.device)
        whom = receipt.jid("participant") if to.server == GROUPS else to
        place: dict[str, Attr] = {"from": to, "participant": me} if to.server == GROUPS else {"from": me}
        attrs = {"id": receipt.text("id"), "t": now(), **place, **({"type": kind} if kind else {})}
        told = [self._directory.name_of(whom)] if whom.device else self._directory.devices_of(whom)
        for target in told:
            await self._bring(target, Node("receipt", attrs, receipt.content))

    async def _chatstate(self, device: Jid, state: Node) -> None:
        me, to = self._directory.owner(device).named(self._directory.addressing), state.jid("to")
        for target in self._directory.devices_of(to):
            if target != device:
                place = {"from": to, "participant": me} if to.server == GROUPS else {"from": me}
                await self._bring(target, Node("chatstate", place, state.content))
