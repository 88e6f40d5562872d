"""The encrypted channel: a Noise handshake (XX, X25519, AES-GCM, SHA-256) over a web socket, then frames of stanzas.

A frame is its length in three bytes and its body. The client presents the key of its device, the server the chain of
certificates of its own (``trust``).
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.fakes.whatsapp_relay import protobuf
from tests.fakes.whatsapp_relay.curve import new_key_pair
from tests.fakes.whatsapp_relay.library import Words
from tests.fakes.whatsapp_relay.stanza import Node, read, written
from tests.fakes.whatsapp_relay.trust import Trust

_PROTOCOL = b"Noise_XX_25519_AESGCM_SHA256\0\0\0\0"
_CLIENT_HELLO, _SERVER_HELLO, _CLIENT_FINISH = 2, 3, 4
_EPHEMERAL, _STATIC, _PAYLOAD = 1, 2, 3
_FINISH_STATIC, _FINISH_PAYLOAD = 1, 2


class RefusedServerError(Exception):
    """The client hung up before it was let in, as at the sight of our certificates."""


class Frames:
    """The frames of one web socket. The first one stands behind a header of four bytes."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._buffer = b""

    async def header(self) -> bytes:
        message = await self._socket.receive()
        if message.type is not WSMsgType.BINARY or message.data[:2] != b"WA":
            raise RefusedServerError("what was opened is no connection of WhatsApp's")
        self._buffer = message.data[4:]
        return bytes(message.data[:4])

    async def receive(self) -> bytes | None:
        """None at the end of the connection."""
        while len(self._buffer) < 3 or len(self._buffer) < 3 + int.from_bytes(self._buffer[:3], "big"):
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                return None
            self._buffer += message.data
        end = 3 + int.from_bytes(self._buffer[:3], "big")
        frame, self._buffer = self._buffer[3:end], self._buffer[end:]
        return frame

    async def send(self, frame: bytes) -> None:
        await self._socket.send_bytes(len(frame).to_bytes(3, "big") + frame)

    def cut(self) -> None:
        """The connection breaks, without a word."""
        if transport := self._transport():
            transport.abort()

    def close(self) -> None:
        """The connection ends behind what was sent."""
        if transport := self._transport():
            transport.close()

    def _transport(self) -> asyncio.Transport | None:
        request = self._socket._req
        return None if request is None else request.transport


@dataclass
class Cipher:
    """One direction; each frame has the next number as its nonce."""

    key: bytes
    number: int = 0

    def encrypt(self, data: bytes, beside: bytes = b"") -> bytes:
        return AESGCM(self.key).encrypt(self._nonce(), data, beside)

    def decrypt(self, data: bytes, beside: bytes = b"") -> bytes:
        return AESGCM(self.key).decrypt(self._nonce(), data, beside)

    def _nonce(self) -> bytes:
        self.number += 1
        return (self.number - 1).to_bytes(12, "big")


@dataclass
class Channel:
    """An encrypted connection; ``device_key`` is what the client proved to hold, ``payload`` what it logs in with."""

    frames: Frames
    words: Words
    device_key: bytes
    payload: dict[int, int | bytes]
    _incoming: Cipher
    _outgoing: Cipher
    _sending: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def receive(self) -> Node | None:
        """None at the end of the connection."""
        frame = await self.frames.receive()
        return None if frame is None else read(self._incoming.decrypt(frame), self.words)

    async def send(self, stanza: Node) -> None:
        async with self._sending:
            await self.frames.send(self._outgoing.encrypt(written(stanza)))


class _Handshake:
    def __init__(self) -> None:
        self._hash = self._chain = _PROTOCOL
        self._cipher = Cipher(_PROTOCOL)

    def mix(self, data: bytes) -> None:
        self._hash = hashlib.sha256(self._hash + data).digest()

    def mix_secret(self, secret: bytes) -> None:
        self._chain, key = self._expand(secret)
        self._cipher = Cipher(key)

    def encrypt(self, data: bytes) -> bytes:
        secret = self._cipher.encrypt(data, self._hash)
        self.mix(secret)
        return secret

    def decrypt(self, secret: bytes) -> bytes:
        data = self._cipher.decrypt(secret, self._hash)
        self.mix(secret)
        return data

    def split(self) -> tuple[Cipher, Cipher]:
        """What the client sends with, and what we do."""
        theirs, ours = self._expand(b"")
        return Cipher(theirs), Cipher(ours)

    def _expand(self, secret: bytes) -> tuple[bytes, bytes]:
        both = HKDF(hashes.SHA256(), 64, self._chain, b"").derive(secret)
        return both[:32], both[32:]


async def open_channel(frames: Frames, trust: Trust, words: Words) -> Channel:
    """Raises RefusedServerError where the client does not trust ``trust``."""
    handshake, ephemeral = _Handshake(), new_key_pair()
    handshake.mix(await frames.header())
    frame = await frames.receive()
    if frame is None:
        raise RefusedServerError("the client is gone")
    theirs = protobuf.raw(protobuf.inner(protobuf.decoded(frame), _CLIENT_HELLO), _EPHEMERAL)
    handshake.mix(theirs)
    handshake.mix(ephemeral.public)
    handshake.mix_secret(ephemeral.agree(theirs))
    static = handshake.encrypt(trust.static.public)
    handshake.mix_secret(trust.static.agree(theirs))
    chain = handshake.encrypt(trust.chain)
    answer = {_EPHEMERAL: ephemeral.public, _STATIC: static, _PAYLOAD: chain}
    await frames.send(protobuf.encoded({_SERVER_HELLO: answer}))
    frame = await frames.receive()
    if frame is None:
        raise RefusedServerError("the client does not trust the server's certificates")
    finish = protobuf.inner(protobuf.decoded(frame), _CLIENT_FINISH)
    device_key = handshake.decrypt(protobuf.raw(finish, _FINISH_STATIC))
    handshake.mix_secret(ephemeral.agree(device_key))
    payload = protobuf.decoded(handshake.decrypt(protobuf.raw(finish, _FINISH_PAYLOAD)))
    incoming, outgoing = handshake.split()
    return Channel(frames, words, device_key, payload, incoming, outgoing)
