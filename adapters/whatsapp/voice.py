"""How long a voice note plays, which WhatsApp wants to be told."""

from __future__ import annotations

_RATE = 48_000
"""Samples a second by which Opus counts its time, whatever was recorded."""


def seconds(sound: bytes) -> int:
    """Of Opus in OGG: the last page says it."""
    page = sound.rfind(b"OggS")
    return max(1, round(int.from_bytes(sound[page + 6 : page + 14], "little") / _RATE)) if page >= 0 else 1
