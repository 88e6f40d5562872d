"""Who there is: accounts with their phones and devices, and groups. All of it can be copied, to begin from again.

It holds the public keys that devices left for others; what is said it never sees.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tests.fakes.whatsapp_relay.curve import KeyPair, new_key_pair
from tests.fakes.whatsapp_relay.stanza import GROUPS, LIDS, Jid, Node

Addressing: TypeAlias = Literal["lid", "pn"]
"""Whether people are named by LID, as today, or by phone number, as before."""


@dataclass
class Device:
    """``noise`` is the key that it logs in with; the others are for those who want to write to it."""

    noise: bytes
    identity: bytes
    registration: bytes = b""
    signed_key: Node = field(default_factory=lambda: Node(""))
    keys: list[Node] = field(default_factory=list)
    """Each is given away once."""


@dataclass
class Account:
    """One person's. ``identity`` is the key of the phone, which vouches for the devices and is not one of them."""

    phone: str
    lid: str
    name: str
    identity: KeyPair = field(default_factory=new_key_pair)
    devices: dict[int, Device] = field(default_factory=dict)

    @property
    def by_phone(self) -> Jid:
        return Jid(self.phone)

    @property
    def by_lid(self) -> Jid:
        return Jid(self.lid, LIDS)

    def named(self, addressing: Addressing, device: int = 0) -> Jid:
        return Jid(self.lid, LIDS, device) if addressing == "lid" else Jid(self.phone, device=device)


@dataclass
class Group:
    """``members`` are phone numbers; the first made it."""

    id: str
    subject: str
    members: list[str]

    @property
    def jid(self) -> Jid:
        return Jid(self.id, GROUPS)


class Directory:
    """Devices are named by phone number and device number throughout."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.groups: dict[str, Group] = {}
        self.addressing: Addressing = "lid"

    def open_account(self, phone: str, lid: str, name: str) -> Account:
        self.accounts[phone] = Account(phone, lid, name)
        return self.accounts[phone]

    def open_group(self, subject: str, *members: Account) -> Group:
        group = Group(str(120363000000000001 + len(self.groups)), subject, [account.phone for account in members])
        self.groups[group.id] = group
        return group

    def account(self, jid: Jid) -> Account | None:
        """Whose ``jid`` is, by phone number or LID."""
        return next((one for one in self.accounts.values() if jid.user in (one.phone, one.lid)), None)

    def device(self, jid: Jid) -> Device | None:
        owner = self.account(jid)
        return None if owner is None else owner.devices.get(jid.device)

    def name_of(self, jid: Jid) -> Jid:
        """The same device by its phone number."""
        owner = self.account(jid)
        assert owner is not None, f"nobody is {jid}"
        return Jid(owner.phone, device=jid.device)

    def devices_of(self, jid: Jid) -> list[Jid]:
        """All devices of a person, or of the members of a group."""
        if jid.server == GROUPS:
            return [device for phone in self.groups[jid.user].members for device in self.devices_of(Jid(phone))]
        owner = self.account(jid)
        return [Jid(owner.phone, device=number) for number in owner.devices] if owner else []

    def owner(self, device: Jid) -> Account:
        return self.accounts[device.user]


def now() -> str:
    """Seconds since 1970, as stanzas have them."""
    return str(int(time.time()))
