"""What a phone does when it links a device: scan its QR code, or have its pairing code typed in.

The phone vouches for the device with the key of its account (an ADV identity), under a secret that the two share: it is
in the QR code, or comes from an exchange that the pairing code protects.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.fakes.whatsapp_relay import protobuf
from tests.fakes.whatsapp_relay.curve import KeyPair, new_key_pair
from tests.fakes.whatsapp_relay.directory import Account, Device, Directory, now
from tests.fakes.whatsapp_relay.stanza import SERVER, Jid, Node, node

Send: TypeAlias = Callable[[Node], Awaitable[None]]

QR_CODES = 6
"""That a client is given at once; it shows one after the other, for about two minutes in all."""

_CODE_ROUNDS = 2 << 16
_RAW_ID, _TIMESTAMP, _KEY_INDEX = 1, 2, 3
_DETAILS, _ACCOUNT_KEY, _ACCOUNT_SIGNATURE = 1, 2, 3
_HMAC_DETAILS, _HMAC = 1, 2
_SIGNED_BY_ACCOUNT = b"\x06\x00"


class WrongCodeError(Exception):
    """No device waits for this code."""


@dataclass
class Candidate:
    """A device that is not linked yet; ``send`` reaches it. ``asks_for`` is the phone that it named, None for none.

    ``wrapped`` is the key that it made for that phone, and ``agreed`` the secret that the two then had.
    """

    noise: bytes
    send: Send
    refs: list[str]
    asks_for: Jid | None = None
    wrapped: bytes = b""
    agreed: bytes = b""
    becomes: Jid | None = None


class Pairing:
    """The devices that wait to be linked, and the phones that link them."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._candidates: list[Candidate] = []
        self._numbers = count(1)
        self.failed = 0
        """How many wrong codes were typed in."""

    async def welcome(self, noise: bytes, send: Send) -> Candidate:
        """A device without a session: it is given what it makes its QR codes of."""
        refs = [f"ref{os.urandom(8).hex()}" for _ in range(QR_CODES)]
        candidate = Candidate(noise, send, refs)
        self._candidates.append(candidate)
        content = [node("pair-device", [node("ref", ref.encode()) for ref in refs])]
        await send(node("iq", content, from_=SERVER, type="set", id=self._id(), xmlns="md"))
        return candidate

    def gone(self, candidate: Candidate) -> None:
        self._candidates.remove(candidate)

    async def scan(self, qr: str, account: Account) -> None:
        """The phone of ``account`` sees ``qr``. Raises WrongCodeError."""
        parts = qr.rpartition("#")[2].split(",")
        candidate = next((one for one in self._candidates if parts[0] in one.refs), None)
        if candidate is None:
            raise WrongCodeError(f"no device shows {qr}")
        identity, secret = base64.b64decode(parts[2]), base64.b64decode(parts[3])
        await self._vouch(candidate, account, identity, secret)

    # By phone number --------------------------------------------------------------------------------------------------

    def says_hello(self, candidate: Candidate, request: Node) -> list[Node]:
        """The device asks for a phone number; it shows its code once it has this answer."""
        candidate.asks_for = request.jid("jid")
        candidate.wrapped = request.child("link_code_pairing_wrapped_companion_ephemeral_pub").data
        return [node("link_code_companion_reg", [node("link_code_pairing_ref", candidate.refs[0].encode())])]

    async def enter(self, code: str, account: Account) -> None:
        """``code`` is typed into the phone of ``account``. Raises WrongCodeError where none asked for its number.

        A wrong code is seen by none of the two: the device will not understand what the phone says.
        """
        candidate = next((one for one in self._candidates if one.asks_for == account.by_phone), None)
        if candidate is None:
            raise WrongCodeError(f"no device asked for {account.phone}")
        ephemeral, salt, counter = new_key_pair(), os.urandom(32), os.urandom(16)
        wrapped = salt + counter + _veiled(ephemeral.public, _code_key(code, salt), counter)
        candidate.agreed = _agreed(ephemeral, candidate.wrapped, code)
        content = [
            node("link_code_pairing_ref", candidate.refs[0].encode()),
            node("link_code_pairing_wrapped_primary_ephemeral_pub", wrapped),
            node("primary_identity_pub", account.identity.public),
        ]
        said = node("link_code_companion_reg", content, stage="primary_hello")
        kind = "link_code_companion_reg"
        await candidate.send(node("notification", [said], from_=SERVER, type=kind, id=self._id(), t=now()))

    async def finishes(self, candidate: Candidate, request: Node) -> None:
        """The device answers the phone, which vouches for it if that can be read: if the code was the right one."""
        assert candidate.asks_for is not None
        account, agreed = self._directory.account(candidate.asks_for), candidate.agreed
        assert account is not None
        bundle = request.child("link_code_pairing_wrapped_key_bundle").data
        salt, nonce, sealed = bundle[:32], bundle[32:44], bundle[44:]
        key = _expanded(agreed, salt, b"link_code_pairing_key_bundle_encryption_key")
        try:
            opened = AESGCM(key).decrypt(nonce, sealed, None)
        except InvalidTag:
            self.failed += 1
            return
        identity, of_phone, seed = opened[:32], opened[32:64], opened[64:]
        assert of_phone == account.identity.public, "the device speaks of another phone"
        secret = _expanded(agreed + account.identity.agree(identity) + seed, None, b"adv_secret")
        await self._vouch(candidate, account, identity, secret)

    # ------------------------------------------------------------------------------------------------------------------

    async def _vouch(self, candidate: Candidate, account: Account, identity: bytes, secret: bytes) -> None:
        number = max(account.devices, default=0) + 1
        account.devices[number] = Device(candidate.noise, identity)
        candidate.becomes = Jid(account.phone, device=number)
        details = protobuf.encoded({_RAW_ID: 1, _TIMESTAMP: int(time.time()), _KEY_INDEX: number})
        signature = account.identity.sign(_SIGNED_BY_ACCOUNT + details + identity)
        public = account.identity.public
        signed = protobuf.encoded({_DETAILS: details, _ACCOUNT_KEY: public, _ACCOUNT_SIGNATURE: signature})
        proof = hmac.new(secret, signed, hashlib.sha256).digest()
        content = [
            node("device-identity", protobuf.encoded({_HMAC_DETAILS: signed, _HMAC: proof})),
            node("device", jid=candidate.becomes, lid=account.named("lid", number)),
            node("platform", name="android"),
        ]
        success = [node("pair-success", content)]
        await candidate.send(node("iq", success, from_=SERVER, type="set", id=self._id(), t=now()))

    def _id(self) -> str:
        return f"pairing-{next(self._numbers)}"


def _agreed(phone: KeyPair, wrapped: bytes, code: str) -> bytes:
    salt, counter, veiled = wrapped[:32], wrapped[32:48], wrapped[48:]
    return phone.agree(_veiled(veiled, _code_key(code, salt), counter))


def _code_key(code: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", code.replace("-", "").encode(), salt, _CODE_ROUNDS, 32)


def _veiled(key: bytes, code_key: bytes, counter: bytes) -> bytes:
    """And back again."""
    cipher = Cipher(algorithms.AES(code_key), modes.CTR(counter)).encryptor()
    return cipher.update(key) + cipher.finalize()


def _expanded(secret: bytes, salt: bytes | None, purpose: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt, purpose).derive(secret)
