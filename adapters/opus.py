"""Sound as a voice note: Opus in OGG, made so by ffmpeg where it is something else and that is installed.

Knows no platform, no chat and no upload.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from contextlib import ExitStack, suppress
from typing import IO

log = logging.getLogger(__name__)

_SECONDS = 60.0
"""How long a conversion may take: an hour of speech takes about ten."""

_TO_OPUS = ("-vn", "-ac", "1", "-c:a", "libopus", "-b:a", "32k", "-f", "ogg")


def is_opus(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is Opus in OGG, which every messenger plays as a voice note."""
    return head.startswith(b"OggS") and b"OpusHead" in head[:80]


class Converter:
    """ffmpeg; where it is missing that is said once, with the mend."""

    def __init__(self) -> None:
        self._told = False

    async def opus(self, sound: IO[bytes]) -> IO[bytes] | None:
        """``sound``, an open file on a disk, as Opus in OGG in a file that is gone once it is closed.

        None where it can't be had.
        """
        ffmpeg = shutil.which("ffmpeg")
        if ffmpeg is None:
            if not self._told:
                log.warning("voice notes are sent as audio files, because ffmpeg is missing: install it to mend that")
                self._told = True
            return None
        with ExitStack() as stack:
            try:
                converted = stack.enter_context(tempfile.TemporaryFile())
                trouble = await _run(ffmpeg, sound, converted)
            except OSError as error:
                trouble = str(error)
            if trouble is None:
                stack.pop_all()
                return converted
        log.warning("a voice note is sent as an audio file, because ffmpeg could not convert it: %s", trouble)
        return None


async def _run(ffmpeg: str, sound: IO[bytes], converted: IO[bytes]) -> str | None:
    """What went wrong, None for nothing. It sees pipes only: nothing in a file can make it open another, or a URL."""
    quiet = ("-hide_banner", "-loglevel", "error", "-protocol_whitelist", "pipe")
    sound.seek(0)
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
