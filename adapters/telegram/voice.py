"""Sound that Telegram plays as a voice note as it is. Knows no chat and no upload."""

from __future__ import annotations

from adapters.opus import is_opus


def is_voice(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is played as it is: Opus in OGG, MP3 or M4A."""
    if head[4:8] == b"ftyp":
        return head[8:11] in (b"M4A", b"M4B")
    return is_opus(head) or head.startswith(b"ID3") or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2)
