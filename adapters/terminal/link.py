"""The person's end of the connection: says hello, and keeps what was said until its turn has ended.

When the connection breaks it dials again and says those messages again under their old ids, so that a hub that is
restarted answers each once. What happens comes out of one queue, in order. Knows no screen and no keyboard.
"""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import StreamWriter
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TypeAlias

from adapters.adapter import TurnReport
from adapters.terminal.endpoint import Dial, Streams, shut
from adapters.terminal.wire import (
    Accepted,
    Answer,
    Done,
    Failure,
    FrameError,
    FromClient,
    FromHub,
    Goodbye,
    Got,
    Hello,
    Ready,
    Say,
    Stop,
    encode,
    from_hub,
)

DELAYS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0)
"""Seconds between tries to reach the hub: a restart is noticed at once, and after half a minute it is given up."""

PATIENT = (*DELAYS, *(5.0,) * 175)
"""For a person who sits at a prompt and can leave at any time: a quarter of an hour."""

_TEMPORARY = 75


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection is gone; it is being tried again. The next event is Ready or Gone."""

    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The last event: the hub can't be reached (``code`` 75) or refuses us (``code`` as it said). In sentences."""

    reason: str
    code: int
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Ctrl-C; put into the queue by whoever handles signals."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """Ctrl-D while an answer is awaited; put into the queue by whoever reads the keys."""


Event: TypeAlias = FromHub | Lost | Gone | Interrupted | Leaving


class Link:
    """Open it with ``async with``; ``events`` then brings Ready or Gone, perhaps after a Lost, and all that follows."""

    def __init__(self, dial: Dial, hello: Hello, *, delays: Sequence[float] = DELAYS) -> None:
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self._dial = dial
        self._hello = hello
        self._delays = delays
        self._writer: StreamWriter | None = None
        self._said: set[str] = set()
        self._kept: set[str] = set()
        self._unfinished: dict[str, Say | Stop] = {}
        self._answered: set[str] = set()
        self._received: set[str] = set()
        self._shown: set[str] = set()

    async def __aenter__(self) -> Link:
        self._task = asyncio.create_task(self._run(), name="terminal link")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def said(self, message_id: str | None) -> bool:
        """Whether the message was said here."""
        return message_id in self._said

    def kept(self, message_id: str) -> bool:
        """Whether the hub has said that the message is durable."""
        return message_id in self._kept

    @property
    def is_up(self) -> bool:
        """Whether the hub listens now."""
        return self._writer is not None

    def unconfirmed(self) -> list[Say]:
        """What was said and the hub has not confirmed, in order: it is lost when the link is given up."""
        return [frame for frame in self._unfinished.values() if isinstance(frame, Say) and not self.kept(frame.id)]

    def take_back(self, message_id: str) -> None:
        """Don't say it again after a break."""
        self._unfinished.pop(message_id, None)

    async def say(self, frame: Say | Stop) -> None:
        """Say it now, or as soon as the connection is back. Raises OversizeError."""
        encode(frame)
        self._said.add(frame.id)
        self._unfinished[frame.id] = frame
        await self._write(frame)

    async def got(self, answer: Answer) -> None:
        """The answer was shown; from now on it is confirmed whenever it comes again."""
        self._shown.add(answer.key)
        await self._write(Got(answer.key))

    async def _write(self, frame: FromClient) -> None:
        if self._writer is None:
            return
        with contextlib.suppress(OSError):  # the reading side meets the same break and dials again
            self._writer.write(encode(frame))
            await self._writer.drain()

    async def _run(self) -> None:
        """Connect, follow, connect again; ends with Gone."""
        told = False
        delays = iter(self._delays)
        while True:
            try:
                streams = await self._dial()
            except OSError as error:
                reason = error.strerror or str(error)
            else:
                was_ready, word = await self._follow(streams)
                self._settle()
                if isinstance(word, Failure):
                    self.events.put_nowait(Gone(word.text, word.code))
                    return
                reason = word.reason if word else "the connection broke"
                if was_ready:
                    told, delays = False, iter(self._delays)
            if not told:
                told = True
                self.events.put_nowait(Lost(reason))
            delay = next(delays, None)
            if delay is None:
                gone = Gone(f"The hub can't be reached: {reason}.", _TEMPORARY, "Start it with: limpet run")
                self.events.put_nowait(gone)
                return
            await asyncio.sleep(delay)

    async def _follow(self, streams: Streams) -> tuple[bool, Goodbye | Failure | None]:
        """One connection: whether it came to Ready, and the last word (a Failure when the hub refused us)."""
        reader, writer = streams
        ready, word = False, None
        try:
            writer.write(encode(self._hello))
            async for frame in from_hub(reader):
                if isinstance(frame, FrameError):
                    continue  # a newer hub may say what we don't know
                if isinstance(frame, Goodbye):
                    word = frame
                elif not ready and isinstance(frame, Failure):
                    return False, frame
                elif isinstance(frame, Ready):
                    ready = True
                    await self._resume(frame, writer)
                else:
                    await self._receive(frame)
        except OSError:
            pass
        finally:
            self._writer = None
            await shut(writer)
        return ready, word

    async def _resume(self, ready: Ready, writer: StreamWriter) -> None:
        self._writer = writer
        self.events.put_nowait(ready)
        for frame in list(self._unfinished.values()):
            await self._write(frame)

    def _settle(self) -> None:
        """What was answered is over, though its Done was lost with the connection."""
        for message_id in self._answered & self._unfinished.keys():
            self._end(Done(message_id, TurnReport(parts=1)))

    async def _receive(self, frame: FromHub) -> None:
        match frame:
            case Answer(key=key) if key in self._received:
                if key in self._shown:
                    await self._write(Got(key))
            case Answer(in_reply_to=message_id, key=key):
                self._received.add(key)
                if message_id is not None:
                    self._answered.add(message_id)
                self.events.put_nowait(frame)
            case Accepted(id=message_id):
                self._kept.add(message_id)
                if isinstance(self._unfinished.get(message_id), Stop):
                    del self._unfinished[message_id]  # that it was heard is all there is to a Stop
            case Done() | Failure():
                self._end(frame)
            case _:
                self.events.put_nowait(frame)

    def _end(self, frame: Done | Failure) -> None:
        if frame.in_reply_to is not None:
            self._unfinished.pop(frame.in_reply_to, None)
        self.events.put_nowait(frame)


def ulid(milliseconds: int, noise: int) -> str:
    """An id that sorts by time: 48 bits of Unix time and 80 bits of ``noise``, in Crockford's base 32 (26 characters).

    The form of https://github.com/ulid/spec.
    """
    value = (milliseconds & ((1 << 48) - 1)) << 80 | noise & ((1 << 80) - 1)
    letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    return "".join(letters[value >> shift & 31] for shift in range(125, -1, -5))
