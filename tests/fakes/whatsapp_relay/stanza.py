"""Stanzas, and the binary XML that they travel as.

Read with the words of the library under test; written without any, which every client takes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tests.fakes.whatsapp_relay.library import Words

PHONES, LIDS, GROUPS = "s.whatsapp.net", "lid", "g.us"

_LIST_EMPTY, _LIST_8, _LIST_16 = 0, 248, 249
_BINARY_8, _BINARY_20, _BINARY_32 = 252, 253, 254
_NIBBLES, _HEX = 255, 251
_JID, _DEVICE_JID = 250, 247
_DICTIONARY = 236
_IS_DEFLATED = 2
_DOMAINS = {0: PHONES, 1: LIDS}


@dataclass(frozen=True, slots=True)
class Jid:
    """An id: of a person (by phone number or LID), of one device of theirs (from 1), of a group, of the server."""

    user: str
    server: str = PHONES
    device: int = 0

    @property
    def bare(self) -> Jid:
        return replace(self, device=0)

    def __str__(self) -> str:
        device = f":{self.device}" if self.device else ""
        return f"{self.user}{device}@{self.server}" if self.user else self.server


SERVER = Jid("")

Attr: TypeAlias = str | Jid


@dataclass(frozen=True, slots=True)
class Node:
    """``content`` is a list of nodes, bytes, or None."""

    tag: str
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    content: list[Node] | bytes | None = None

    def children(self, tag: str = "") -> list[Node]:
        """Those named ``tag``, all for ""."""
        inside = self.content if isinstance(self.content, list) else []
        return [node for node in inside if tag in ("", node.tag)]

    def child(self, *path: str) -> Node:
        """The first at ``path``; an empty node where there is none."""
        node = self
        for tag in path:
            node = next(iter(node.children(tag)), Node(""))
        return node

    def text(self, attr: str) -> str:
        """ "" where it is not there."""
        return str(self.attrs.get(attr, ""))

    def jid(self, attr: str) -> Jid:
        value = self.attrs[attr]
        assert isinstance(value, Jid), f"{attr} of <{self.tag}> is no id: {value}"
        return value

    @property
    def data(self) -> bytes:
        assert isinstance(self.content, bytes), f"<{self.tag}> holds no bytes"
        return self.content

    def having(self, **attrs: Attr) -> Node:
        """The same with more attributes."""
        return replace(self, attrs={**self.attrs, **attrs})


def node(tag: str, content: list[Node] | bytes | None = None, /, **attrs: Attr | None) -> Node:
    """Attributes that are None are left out; ``from_`` is "from"."""
    return Node(tag, {name.rstrip("_"): value for name, value in attrs.items() if value is not None}, content)


# Reading --------------------------------------------------------------------------------------------------------------


def read(frame: bytes, words: Words) -> Node:
    """The stanza in a frame, after its decryption."""
    body = zlib.decompress(frame[1:]) if frame[0] & _IS_DEFLATED else frame[1:]
    return _Reader(body, words).node()


class _Reader:
    def __init__(self, data: bytes, words: Words) -> None:
        self._data = data
        self._place = 0
        self._words = words

    def node(self) -> Node:
        token = self._integer(1)
        size = self._integer(1 if token == _LIST_8 else 2)
        tag = self._string()
        attrs: dict[str, Attr] = {}
        for _ in range((size - 1) // 2):
            name = self._string()
            attrs[name] = self._attr(self._integer(1))
        return Node(tag, attrs, self._content() if size % 2 == 0 else None)

    def _content(self) -> list[Node] | bytes | None:
        token = self._integer(1)
        if token in (_LIST_EMPTY, _LIST_8, _LIST_16):
            number = 0 if token == _LIST_EMPTY else self._integer(1 if token == _LIST_8 else 2)
            return [self.node() for _ in range(number)]
        raw = self._binary(token)
        return str(self._attr(token)).encode() if raw is None else raw

    def _string(self) -> str:
        return str(self._attr(self._integer(1)))

    def _attr(self, token: int) -> Attr:
        raw = self._binary(token)
        if raw is not None:
            return raw.decode()
        if token == _LIST_EMPTY:
            return ""
        if token == _JID:
            user = self._string()
            return Jid(user, self._string())
        if token == _DEVICE_JID:
            domain, device = self._integer(1), self._integer(1)
            return Jid(self._string(), _DOMAINS[domain], device)
        if token in (_NIBBLES, _HEX):
            return self._packed("0123456789-." if token == _NIBBLES else "0123456789ABCDEF")
        if _DICTIONARY <= token < _DICTIONARY + len(self._words.double):
            return self._words.double[token - _DICTIONARY][self._integer(1)]
        if token < len(self._words.single):
            return self._words.single[token]
        raise ValueError(f"no string begins with the byte {token}")

    def _packed(self, alphabet: str) -> str:
        head = self._integer(1)
        digits = [digit for byte in self._take(head & 127) for digit in (byte >> 4, byte & 15)]
        return "".join(alphabet[digit] for digit in (digits[:-1] if head >> 7 else digits))

    def _binary(self, token: int) -> bytes | None:
        if token == _BINARY_8:
            return self._take(self._integer(1))
        if token == _BINARY_20:
            return self._take(self._integer(3) & 0xFFFFF)
        return self._take(self._integer(4)) if token == _BINARY_32 else None

    def _take(self, size: int) -> bytes:
        taken = self._data[self._place : self._place + size]
        self._place += size
        return taken

    def _integer(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")


# Writing --------------------------------------------------------------------------------------------------------------


def written(stanza: Node) -> bytes:
    """The frame of a stanza, before its encryption."""
    return b"\0" + b"".join(_pieces(stanza))


def _pieces(stanza: Node) -> Iterator[bytes]:
    yield _list_of(1 + 2 * len(stanza.attrs) + (stanza.content is not None))
    yield _bytes(stanza.tag.encode())
    for name, value in stanza.attrs.items():
        yield _bytes(name.encode())
        yield _jid(value) if isinstance(value, Jid) else _bytes(value.encode())
    if isinstance(stanza.content, bytes):
        yield _bytes(stanza.content)
    elif stanza.content is not None:
        yield _list_of(len(stanza.content))
        for inside in stanza.content:
            yield from _pieces(inside)


def _jid(jid: Jid) -> bytes:
    if jid.device:
        return bytes([_DEVICE_JID, int(jid.server == LIDS), jid.device]) + _bytes(jid.user.encode())
    user = _bytes(jid.user.encode()) if jid.user else bytes([_LIST_EMPTY])
    return bytes([_JID]) + user + _bytes(jid.server.encode())


def _list_of(size: int) -> bytes:
    return bytes([_LIST_8, size]) if size < 256 else bytes([_LIST_16]) + struct.pack(">H", size)


def _bytes(data: bytes) -> bytes:
    if len(data) < 256:
        return bytes([_BINARY_8, len(data)]) + data
    return bytes([_BINARY_32]) + struct.pack(">I", len(data)) + data
