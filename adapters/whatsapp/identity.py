"""Who is who on WhatsApp: one person has a hidden id (LID) and a phone number, and a device suffix on either.

Here a person is ``<digits>@lid`` where that is known and ``+<digits>`` where it is not, and the other one is an alias.
A LID is never read as a phone number. Pure: it is told what belongs together, and keeps it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

LID = "lid"
PHONE = "s.whatsapp.net"
GROUP = "g.us"

_SERVERS = {"c.us": PHONE, "hosted": PHONE, "hosted.lid": LID}
"""Other names of the same: the one that older clients use, and those of numbers that a company hosts."""

_USER = re.compile(r"(?P<user>[^.:@]+)(?:\.\d+)?(?::\d+)?@(?P<server>[\w.-]+)")
_NUMBER = re.compile(r"[1-9]\d{4,14}")
"""E.164 has at most 15 digits, and no country code begins with 0."""

_PREFIX = re.compile(r"(?:whatsapp:|tel:|(?:https?://)?wa\.me/)+", re.IGNORECASE)
_AT_HOME = re.compile(r"\(0\)")
"""A zero that is dialled at home only, and no part of the number."""
_BETWEEN = re.compile(r"[\s().\-/\u2010-\u2015\u200b-\u200f\u202a-\u202e\u2060]+")
"""What people write between the digits."""


class ProtoJid(Protocol):
    """An address as the library's events hold it."""

    User: str
    Server: str


@dataclass(frozen=True, slots=True)
class Jid:
    """An address without its device. ``server`` is LID, PHONE, GROUP, or something that is no chat to us."""

    user: str
    server: str

    @classmethod
    def of(cls, jid: ProtoJid) -> Jid | None:
        """None where it is empty."""
        return cls.parse(f"{jid.User}@{jid.Server}") if jid.User else None

    @classmethod
    def parse(cls, text: str) -> Jid | None:
        """None for what is no address."""
        found = _USER.fullmatch(text)
        return cls(found["user"], _SERVERS.get(found["server"], found["server"])) if found else None

    @classmethod
    def of_id(cls, own: str) -> Jid | None:
        """The address of an id of ours, to send to; None for what is none."""
        if own.startswith("+"):
            return cls(own[1:], PHONE) if _NUMBER.fullmatch(own[1:]) else None
        found = cls.parse(own)
        return found if found and found.server in (LID, GROUP) else None

    @property
    def id(self) -> str:
        return f"+{self.user}" if self.server == PHONE else str(self)

    @property
    def is_person(self) -> bool:
        return self.server in (LID, PHONE)

    def __str__(self) -> str:
        return f"{self.user}@{self.server}"


def normalized(written: str) -> str:
    """The id that a person meant who wrote a phone number in any writing, or an id of WhatsApp's own.

    Raises ValueError, with the mend, for what can't be told.
    """
    text = _PREFIX.sub("", unicodedata.normalize("NFKC", written).strip(), count=1).partition("?")[0]
    if "@" in text:
        jid = Jid.parse(text)
        if jid and jid.server in (LID, PHONE, GROUP):
            return jid.id
        raise ValueError(f"{written!r} is no id of WhatsApp: write a phone number such as +15550001234")
    digits = "".join(str(unicodedata.decimal(sign, sign)) for sign in _BETWEEN.sub("", _AT_HOME.sub("", text)))
    digits = digits.removeprefix("+") if digits.startswith("+") else digits.removeprefix("00")
    if not _NUMBER.fullmatch(digits):
        raise ValueError(f"{written!r} is no phone number: write it with its country code, such as +15550001234")
    return f"+{digits}"


@dataclass(frozen=True, slots=True)
class Person:
    """``id`` is the LID where it is known; ``aliases`` are the other ids of the same person."""

    id: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Learned:
    """``person`` is now known by both ids. ``was`` is the id that was theirs until now, None where nobody used it."""

    person: Person
    was: str | None


class Identities:
    """Which phone number belongs to which LID, as WhatsApp said. The newest word counts: numbers change hands."""

    def __init__(self, pairs: Mapping[str, str] | None = None, met: Iterable[str] = ()) -> None:
        """``pairs`` are LIDs and phone numbers, ``met`` the numbers of people without a LID; all without a server."""
        self._phones: dict[str, str] = {}
        self._lids: dict[str, str] = {}
        self._met = set(met)
        for lid, phone in (pairs or {}).items():
            self._note(lid, phone)

    @property
    def pairs(self) -> dict[str, str]:
        """LIDs and phone numbers, to be kept over a restart."""
        return dict(self._phones)

    @property
    def met(self) -> tuple[str, ...]:
        """The phone numbers of those who were met before their LID was known, to be kept over a restart."""
        return tuple(sorted(self._met))

    def learn(self, jids: Iterable[Jid | None]) -> Learned | None:
        """Two addresses of one person, in any order, are told together: None where nothing of it is new.

        That their id was another one until now is said again each time, until it is ``moved``.
        """
        known = {jid.server: jid.user for jid in jids if jid and jid.is_person}
        lid, phone = known.get(LID), known.get(PHONE)
        if lid is None or phone is None:
            return None
        is_new = self._phones.get(lid) != phone
        if is_new:
            self._note(lid, phone)
        was = Jid(phone, PHONE).id if phone in self._met else None
        return Learned(self.person(Jid(lid, LID)), was) if is_new or was else None

    def moved(self, was: str) -> None:
        """Whoever has to knows by now that ``was`` is nobody's id any more."""
        self._met.discard(was.removeprefix("+"))

    def meet(self, jid: Jid) -> Person:
        """Who has that address; their id is given out from now on."""
        person = self.person(jid)
        if jid.server == PHONE and person.id == jid.id:
            self._met.add(jid.user)
        return person

    def person(self, jid: Jid) -> Person:
        """Who has that address."""
        lid = jid.user if jid.server == LID else self._lids.get(jid.user) if jid.server == PHONE else None
        if lid is None:
            return Person(jid.id)
        phone = self._phones.get(lid)
        return Person(Jid(lid, LID).id, (Jid(phone, PHONE).id,) if phone else ())

    def _note(self, lid: str, phone: str) -> None:
        if (old := self._phones.pop(lid, None)) is not None:
            self._lids.pop(old, None)
        if (former := self._lids.get(phone)) is not None:
            self._phones.pop(former, None)
        self._phones[lid] = phone
        self._lids[phone] = lid
