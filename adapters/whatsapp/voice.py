"""Sound that WhatsApp plays as a voice note: Opus in OGG, made so by ffmpeg where it is something else.

Knows no chat and no upload.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

log = logging.getLogger(__name__)

_SECONDS = 60.0
"""How long a conversion may take: an hour of speech takes about ten."""

_TO_OPUS = ("-vn", "-ac", "1", "-c:a", "libopus", "-b:a", "32k", "-f", "ogg")
_RATE = 48_000
"""Samples a second by which Opus counts its time, whatever was recorded."""


def is_voice(sound: bytes) -> bool:
    """Whether it is played as it is."""
    return sound.startswith(b"OggS") and b"OpusHead" in sound[:80]


def seconds(sound: bytes) -> int:
    """How long a voice note plays: the last page of an OGG says it."""
    page = sound.rfind(b"OggS")
    return max(1, round(int.from_bytes(sound[page + 6 : page + 14], "little") / _RATE)) if page >= 0 else 1


class Converter:
    """ffmpeg; where it is missing that is said once, with the mend."""

    def __init__(self) -> None:
        self._told = False

    async def opus(self, sound: Path) -> bytes | None:
        """The file ``sound`` as Opus in OGG; None where that can't be had."""
        ffmpeg = shutil.which("ffmpeg")
        if ffmpeg is None:
            if not self._told:
                log.warning("voice notes are sent as audio files, because ffmpeg is missing: install it to mend that")
                self._told = True
            return None
        try:
            with sound.open("rb") as content, tempfile.TemporaryFile() as converted:
                trouble = await _run(ffmpeg, content, converted)
                if trouble is None:
                    converted.seek(0)
                    return converted.read()
        except OSError as error:
            trouble = str(error)
        log.warning("a voice note is sent as an audio file, because ffmpeg could not convert it: %s", trouble)
        return None


async def _run(ffmpeg: str, sound: IO[bytes], converted: IO[bytes]) -> str | None:
    """What went wrong, None for nothing. It sees pipes only: nothing in a file can make it open another, or a URL."""
    quiet = ("-hide_banner", "-loglevel", "error", "-protocol_whitelist", "pipe")
    process = await asyncio.create_subprocess_exec(
        *(ffmpeg, *quiet, "-i", "pipe:0", *_TO_OPUS, "pipe:1"),
        stdin=sound,
        stdout=converted,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            _, errors = await process.communicate()
    except TimeoutError:
        return f"it took more than {_SECONDS:g} s"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode or not converted.seek(0, 2):
        return (errors.decode(errors="replace").strip().splitlines() or ["it gave nothing"])[-1][:200]
    return None
