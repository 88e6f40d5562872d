"""How an account is linked by a person: what they are shown, and what came of it. Knows no platform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class QrCode:
    """To be photographed by the phone, until the next one is shown.

    ``text`` is what it holds, a secret; ``how`` is one sentence on where to do that.
    """

    text: str
    how: str


@dataclass(frozen=True, slots=True)
class PairingCode:
    """To be typed on the phone. ``text`` is a secret; ``how`` is one sentence on where to do that."""

    text: str
    how: str


Shown: TypeAlias = QrCode | PairingCode
