"""The files that came with a message: fetched into the workspace, and told to the agent in words.

They lie in the ``media`` folder of the chat's own scope, under the turn they came with: fetched again after a crash
they take the same place. What can't be had is said, with the reason. A picture is for the agent to see, and what is
said in a voice note it reads, where there is a model that listens. Knows no platform and no model.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import structlog

from adapters.adapter import Adapter
from adapters.errors import AdapterError, RateLimited, Rejected
from adapters.message import Attachment, Message
from agents.model import Image
from agents.pictures import Picture, picture
from agents.quoting import one_line
from agents.transcription import TranscriptionFailed
from workspaces.confined import Confined
from workspaces.incoming import Incoming
from workspaces.names import portable_name
from workspaces.paths import OutOfReach
from workspaces.scope import Level

if TYPE_CHECKING:
    from pathlib import Path

    from bot.tables import MediaSettings
    from workspaces.scope import Scope

log = structlog.get_logger(__name__)

T = TypeVar("T")

LARGEST_PICTURE = 10_000_000
"""Bytes of a picture that is shown; providers take no larger one."""

PIECE = 1 << 18
"""Bytes that are gathered before they are written."""

TRIES = 2
PAUSE = 1.0
"""Downloads of a file that a passing trouble broke off, and the seconds between them."""

VIDEO_NOTE_SECONDS = 60
"""A video without a name that is no longer is taken for a spoken note: platforms end those at a minute."""

_PICTURED = ("image", "sticker", "document")

_LABELS = {"voice": "voice note"}

_ENDINGS = {
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "image/jpeg": "jpg",
    "text/markdown": "md",
    "text/plain": "txt",
    "video/quicktime": "mov",
}
"""Of types whose second half is not the usual ending."""

NO_LISTENER = "no model for it is set"
SET_LISTENER = "limpet config set voice.model openai/whisper-1"

Transcribe: TypeAlias = Callable[[str, bytes], Awaitable[str]]
"""What is said in a recording, for an agent by its name. Raises TranscriptionFailed."""


@dataclass(frozen=True, slots=True)
class Received:
    """What came of an attachment.

    ``words`` is what the agent reads in its place, "" where another's words speak for it. ``path`` is the file in the
    workspace, None where it was not fetched, and ``image`` what the agent sees of it, None where it is no picture.
    """

    attachment: Attachment
    words: str
    path: str | None = None
    image: Image | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """``size`` is in bytes; ``flaw`` is why a picture can't be shown, "" where it can or is none."""

    path: str
    size: int
    image: Image | None = None
    flaw: str = ""


class _NotFetched(Exception):
    """The reason, as a clause."""


@dataclass(frozen=True, slots=True)
class _Parcel:
    """A message with files, and where they go to. ``is_private``: only the owner reads along."""

    message: Message
    adapter: Adapter
    turn: str
    reach: Confined
    is_private: bool

    def label(self, attachment: Attachment, number: int) -> str:
        """How a file is called in words: nobody's name for it can end the brackets that it stands in."""
        which = f" {number}" if len(self.message.attachments) > 1 else ""
        name = one_line(attachment.name, 80).translate(str.maketrans("[]", "()"))
        return f"{_LABELS.get(attachment.kind, attachment.kind)}{which} {name}".rstrip()


class Media:
    """``transcribe`` None: nobody listens. ``sleep`` is given the seconds that fetching may take, and pauses."""

    def __init__(
        self,
        settings: MediaSettings,
        transcribe: Transcribe | None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._transcribe = transcribe
        self._sleep = sleep
        self._has_told = False

    async def received(
        self, message: Message, turn: str, adapter: Adapter, *, agent: str, root: Path, scope: Scope
    ) -> tuple[Received, ...]:
        """Every attachment of ``message``, in order, for the agent of that name whose workspace is ``root``."""
        if not message.attachments:
            return ()
        is_private = scope.level is Level.OWNER and message.address.kind == "direct"
        parcel = _Parcel(message, adapter, turn, Confined(root, scope), is_private)
        timer = asyncio.ensure_future(self._sleep(self._settings.timeout))
        try:
            kept = [await self._kept(n, parcel, timer) for n in range(1, len(message.attachments) + 1)]
        finally:
            timer.cancel()
        return tuple([await self._told(n, each, parcel, agent) for n, each in enumerate(kept, 1)])

    async def _kept(self, number: int, parcel: _Parcel, timer: asyncio.Future[None]) -> _Kept | str:
        """The file of one attachment, or the reason why it is not there, "" where that was given already."""
        attachment = parcel.message.attachments[number - 1]
        most = self._settings.max_files
        if number > most:
            came = len(parcel.message.attachments)
            return "" if number > most + 1 else f"only the first {most} files of a message are, and {came} came"
        try:
            self._check(attachment)
            return await self._in_time(self._fetched(attachment, number, parcel), timer)
        except _NotFetched as error:
            reason = detail = str(error)
        except AdapterError as error:
            detail = one_line(str(error), 200)
            reason = detail if isinstance(error, Rejected) else "the platform did not hand it out"
        except (OSError, OutOfReach) as error:
            reason = "it can't be kept here"
            detail = f"{reason}: {error.strerror if isinstance(error, OSError) else error}"
        except Exception:  # an adapter's own fault: what was said with the file is answered all the same
            log.exception("media.failed", turn=parcel.turn, channel=parcel.adapter.channel)
            return "something is wrong in this program"
        log.warning("media.not_fetched", turn=parcel.turn, kind=attachment.kind, reason=detail)
        return detail if parcel.is_private else reason

    def _check(self, attachment: Attachment) -> None:
        if attachment.kind not in self._settings.kinds:
            raise _NotFetched(f"no {_LABELS.get(attachment.kind, attachment.kind)}s are taken here")
        if (attachment.size or 0) > self._settings.max_bytes:
            raise self._too_large()

    def _too_large(self) -> _NotFetched:
        return _NotFetched(f"it is larger than {self._settings.max_mb:g} MB")

    async def _in_time(self, work: Awaitable[T], timer: asyncio.Future[None]) -> T:
        """The result of ``work``, unless the time of the message is up before."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
        if task.cancelled():
            raise _NotFetched(f"it took longer than {self._settings.timeout:g} seconds")
        return task.result()

    async def _fetched(self, attachment: Attachment, number: int, parcel: _Parcel) -> _Kept:
        for left in reversed(range(TRIES)):
            try:
                return await self._stored(attachment, number, parcel)
            except AdapterError as error:
                if not left or not error.may_retry:
                    raise
                wait = error.retry_after if isinstance(error, RateLimited) else PAUSE
            await self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _stored(self, attachment: Attachment, number: int, parcel: _Parcel) -> _Kept:
        folder = f"{parcel.reach.scope.folder}media"
        at = parcel.reach.located(f"{folder}/{portable_name(parcel.turn)}-{number}", write=True)
        with parcel.reach.folder_of(at, make=True) as (opened, name), Incoming(opened, name) as file:
            await self._poured(parcel.adapter.fetch(attachment.ref, self._settings.max_bytes), file)
            seen, flaw = await _settled(_seen, attachment, file)
            ending = seen.ending if seen is not None else ending_of(attachment)
            await _settled(file.place, ending)
            path = f"{at}.{ending}"
            return _Kept(path, file.size, Image(path, seen.media_type) if seen is not None else None, flaw)

    async def _poured(self, chunks: AsyncIterator[bytes], file: Incoming) -> None:
        waiting = bytearray()
        try:
            async for chunk in chunks:
                waiting += chunk
                if file.size + len(waiting) > self._settings.max_bytes:  # an adapter may have let more through
                    raise self._too_large()
                if len(waiting) >= PIECE:
                    await _settled(file.add, bytes(waiting))
                    waiting.clear()
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
        await _settled(file.add, bytes(waiting))

    async def _told(self, number: int, kept: _Kept | str, parcel: _Parcel, agent: str) -> Received:
        attachment = parcel.message.attachments[number - 1]
        label = parcel.label(attachment, number)
        if isinstance(kept, str):
            return Received(attachment, f"[{label} was not fetched: {kept}; tell them]" if kept else "")
        detail = _size(kept.size) if attachment.seconds is None else f"{attachment.seconds:.0f} s"
        said, note = await self._heard(attachment, kept, parcel, agent)
        note = f", which can't be shown: {kept.flaw}" if kept.flaw else note
        words = f"[{label}, {detail}{', transcribed' if said else ''}: {kept.path}{note}]"
        return Received(attachment, f"{words} {said}" if said else words, kept.path, kept.image)

    async def _heard(self, attachment: Attachment, kept: _Kept, parcel: _Parcel, agent: str) -> tuple[str, str]:
        """What is said in the file, and what there is to say about that, "" for nothing."""
        is_voice = attachment.kind == "voice"
        is_note = attachment.kind == "video" and not attachment.name and attachment.seconds is not None
        if not is_voice and not (is_note and (attachment.seconds or 0) <= VIDEO_NOTE_SECONDS):
            return "", ""
        if self._transcribe is None:
            return "", self._unheard(parcel) if is_voice else ""
        try:
            recording = await asyncio.to_thread(_bytes, parcel.reach, kept.path)
            said = await self._transcribe(agent, recording)
        except (TranscriptionFailed, OSError, OutOfReach) as error:
            log.warning("media.not_transcribed", turn=parcel.turn, reason=str(error))
            reason = str(error).rstrip(".") if parcel.is_private else "that failed this time"
            return "", f", not transcribed ({reason}): tell them that you can't listen to it"
        return said, "" if said else ", in which no words were heard"

    def _unheard(self, parcel: _Parcel) -> str:
        if not self._has_told:
            log.warning("media.no_transcription", reason=NO_LISTENER, mend=SET_LISTENER)
            self._has_told = True
        mend = f"; the mend: {SET_LISTENER}" if parcel.is_private else ""
        return f", not transcribed ({NO_LISTENER}{mend}): tell them that you can't listen to it"


def ending_of(attachment: Attachment) -> str:
    """The ending of a file by its name, else by its type: letters and digits, "bin" where neither has any."""
    _, dot, ending = attachment.name.rpartition(".")
    if dot and re.fullmatch(r"[a-z0-9]{1,8}", ending.lower()):
        return ending.lower()
    plain = (attachment.media_type or "").partition(";")[0].strip().lower()
    ending = _ENDINGS.get(plain) or plain.partition("/")[2]
    return ending if re.fullmatch(r"[a-z0-9]{1,8}", ending) else "bin"


async def _settled(call: Callable[..., T], *given: object) -> T:
    """A call in a thread. A cancellation waits for its end: what it works on is closed right after."""
    task = asyncio.ensure_future(asyncio.to_thread(call, *given))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise


def _seen(attachment: Attachment, file: Incoming) -> tuple[Picture | None, str]:
    """What kind of picture a file is, None for none, and why one that should be is not shown."""
    if attachment.kind not in _PICTURED:
        return None, ""
    try:
        if file.size > LARGEST_PICTURE:
            raise ValueError(f"it is larger than {LARGEST_PICTURE / 1_000_000:g} MB")
        return picture(file.read()), ""
    except ValueError as error:
        return None, str(error) if attachment.kind == "image" else ""


def _bytes(reach: Confined, path: str) -> bytes:
    return reach.read(reach.located(path))


def _size(size: int) -> str:
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1_000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
