"""What clients ask the server (iq): keys, who has which devices, where files go, settings, groups.

A query that it does not know is answered with an empty result, and remembered in ``unknown``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from tests.fakes.whatsapp_relay.directory import Directory, Group
from tests.fakes.whatsapp_relay.stanza import LIDS, Jid, Node, node

Answer: TypeAlias = list[Node] | None
"""What is in the result; None for nothing."""

MEDIA_HOST = "mmg.whatsapp.net"

_HARMLESS = {"passive", "w:p", "urn:xmpp:ping"}
_PRIVACY = ("last", "online", "profile", "status", "groupadd", "calladd", "readreceipts")
_DJB = b"\x05"
"""The kind of the keys: Curve25519."""


class Queries:
    """Answers of what ``directory`` holds; ``media_host`` is where clients bring and fetch files."""

    def __init__(self, directory: Directory, media_host: str = MEDIA_HOST) -> None:
        self._directory = directory
        self._media_host = media_host
        self.unknown: Counter[str] = Counter()
        self._answers: dict[str, Callable[[Jid, Node], Answer]] = {
            "encrypt": self._keys,
            "usync": self._people,
            "w:m": self._media,
            "privacy": self._privacy,
            "w:g2": self._groups,
        }

    def answer(self, device: Jid, query: Node) -> Answer:
        """Of ``device``, which is logged in."""
        space = query.text("xmlns")
        if found := self._answers.get(space):
            return found(device, query)
        if space not in _HARMLESS:
            self.unknown[space] += 1
        return None

    def _keys(self, device: Jid, query: Node) -> Answer:
        own = self._directory.device(device)
        assert own is not None
        if query.text("type") == "set":
            own.registration = query.child("registration").data
            own.identity = query.child("identity").data
            own.signed_key = query.child("skey")
            own.keys += query.child("list").children()
            return None
        if query.children("count"):
            return [node("count", value=str(len(own.keys)))]
        return [node("list", [self._bundle(wanted.jid("jid")) for wanted in query.child("key").children()])]

    def _bundle(self, jid: Jid) -> Node:
        device = self._directory.device(jid)
        if device is None:
            return node("user", [node("error", code="404", text="item-not-found")], jid=jid)
        once = [device.keys.pop(0)] if device.keys else []
        known = [node("registration", device.registration), node("type", _DJB), node("identity", device.identity)]
        return node("user", [*known, *once, device.signed_key], jid=jid)

    def _people(self, _: Jid, query: Node) -> Answer:
        asked = {wanted.tag for wanted in query.child("usync", "query").children()}
        users = [self._person(user, asked) for user in query.child("usync", "list").children()]
        return [node("usync", [node("list", users)])]

    def _person(self, user: Node, asked: set[str]) -> Node:
        number = user.child("contact").content
        jid = Jid(number.decode().lstrip("+").partition("@")[0]) if isinstance(number, bytes) else user.jid("jid")
        account, known = self._directory.account(jid), []
        if "contact" in asked:
            known.append(node("contact", type="in" if account else "out"))
        if "devices" in asked:
            listed = [node("device", id=str(device.device)) for device in self._directory.devices_of(jid)]
            known.append(node("devices", [node("device-list", listed)]))
        if "lid" in asked and account:
            known.append(node("lid", val=account.by_lid))
        return node("user", known, jid=jid)

    def _media(self, *_: object) -> Answer:
        host = node("host", hostname=self._media_host)
        return [node("media_conn", [host], auth="a", ttl="3600", auth_ttl="3600", max_buckets="12")]

    def _privacy(self, _: Jid, query: Node) -> Answer:
        return [node("privacy", [node("category", name=name, value="all") for name in _PRIVACY])]

    # Groups -----------------------------------------------------------------------------------------------------------

    def _groups(self, device: Jid, query: Node) -> Answer:
        if query.children("leave"):
            left = [group.jid("id") for group in query.child("leave").children("group")]
            for group in left:
                self._directory.groups[group.user].members.remove(device.user)
            return [node("leave", [node("group", id=group) for group in left])]
        if query.children("query"):
            return [self._described(self._directory.groups[query.jid("to").user])]
        self.unknown["w:g2"] += 1
        return None

    def _described(self, group: Group) -> Node:
        addressing = self._directory.addressing
        members = [self._directory.accounts[phone] for phone in group.members]
        listed = [
            node("participant", jid=one.named(addressing), phone_number=one.by_phone, lid=one.by_lid) for one in members
        ]
        return node(
            "group",
            listed,
            id=group.id,
            subject=group.subject,
            creation="1700000000",
            creator=members[0].named(addressing),
            addressing_mode="lid" if addressing == LIDS else "pn",
        )
