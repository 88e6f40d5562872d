"""Curve25519: key pairs, their agreement, and signatures made with a key for agreement (XEdDSA, as Signal has it).

The signature is the textbook one over integers (https://signal.org/docs/specifications/xeddsa/): slow, and not safe
against who can measure it, which nobody here can.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TypeAlias

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P

_Point: TypeAlias = tuple[int, int, int, int]
"""On the Edwards curve, in extended coordinates."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """32 bytes each, as they travel."""

    private: bytes
    public: bytes

    def agree(self, public: bytes) -> bytes:
        """The secret that is shared with the owner of ``public``."""
        return X25519PrivateKey.from_private_bytes(self.private).exchange(X25519PublicKey.from_public_bytes(public))

    def sign(self, message: bytes) -> bytes:
        """64 bytes; whoever has ``public`` can check them."""
        scalar = _clamped(self.private)
        point = _encoded(_times(scalar, _base()))
        seed = b"\xfe" + b"\xff" * 31 + scalar.to_bytes(32, "little") + message + os.urandom(64)
        nonce = int.from_bytes(hashlib.sha512(seed).digest(), "little") % _ORDER
        commitment = _encoded(_times(nonce, _base()))
        challenge = int.from_bytes(hashlib.sha512(commitment + point + message).digest(), "little") % _ORDER
        answer = bytearray(((nonce + challenge * scalar) % _ORDER).to_bytes(32, "little"))
        answer[31] |= point[31] & 0x80  # the sign of the point, which a key for agreement does not tell
        return commitment + bytes(answer)


def new_key_pair() -> KeyPair:
    private = X25519PrivateKey.generate()
    return KeyPair(private.private_bytes_raw(), private.public_key().public_bytes_raw())


def _clamped(private: bytes) -> int:
    raw = bytearray(private)
    raw[0] &= 248
    raw[31] = raw[31] & 127 | 64
    return int.from_bytes(raw, "little")


def _base() -> _Point:
    y = 4 * pow(5, _P - 2, _P) % _P
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if x & 1:
        x = _P - x
    return x, y, 1, x * y % _P


def _plus(left: _Point, right: _Point) -> _Point:
    x1, y1, z1, t1 = left
    x2, y2, z2, t2 = right
    a, b = (y1 - x1) * (y2 - x2) % _P, (y1 + x1) * (y2 + x2) % _P
    c, d = 2 * t1 * t2 * _D % _P, 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: _Point) -> _Point:
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = _plus(total, point)
        point = _plus(point, point)
        scalar >>= 1
    return total


def _encoded(point: _Point) -> bytes:
    inverse = pow(point[2], _P - 2, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | ((x & 1) << 255)).to_bytes(32, "little")
