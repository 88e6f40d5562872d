"""What the hub and the process of an adapter say to each other: numbered values over a stream socket.

A frame is the length of what follows (4 bytes), its number, the name of the value's type, a line end, and the value as
JSON, or the bytes themselves. Each side numbers what it asks for, and an answer has the number of what it answers; 0
where there is none. No side reads a type that isn't meant for it: nothing here runs what it reads. Knows no process.
"""

from __future__ import annotations

import functools
from asyncio import IncompleteReadError, StreamReader
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import Field, TypeAdapter

from adapters.adapter import Health, Offered
from adapters.errors import (
    Absent,
    Ambiguous,
    AuthFailed,
    ChatMoved,
    MissingExtra,
    RateLimited,
    Rejected,
    Unreachable,
)
from adapters.message import Address, Inbound, Part, Receipt

LIMIT = 4 << 20
"""Bytes in a frame: several times what the longest message with all that stands above it takes."""

PIECE = 1 << 18
"""Bytes of an attachment in a frame; the next goes out when they were asked for."""


_TEXT_LIMIT = 10_000
"""Characters of an error on its way, and of a line of the log."""

_TOLD_LIMIT = 1000
"""Characters of an error, and of what is told of a channel, where people read it."""


class FrameError(ValueError):
    """What can't be said, or can't be read."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The first frame: which adapter to make. ``place`` is "package.module:Class", ``settings`` its model as JSON.

    ``paths`` are those of the options that are one, and ``level`` is the lowest that is logged.
    """

    place: str
    account: str
    settings: str
    options: Mapping[str, bool | int | float | str | None]
    paths: Mapping[str, Path]
    level: int


@dataclass(frozen=True, slots=True)
class Run:
    """Begin to receive, after an ``offer`` and a ``resume`` where the adapter has them."""

    commands: Sequence[Offered] = ()
    newest: Mapping[str, str] = field(default_factory=dict)
    heard_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """To the child: "halt" ends ``run``, "close" the process, "stored" says that the event of this number is durable.

    Of a call: "taken" comes before the work on it begins, "more" asks for the next piece. "cancel" takes back a call or
    an event, "pong" answers a "ping".
    """

    word: Literal["halt", "close", "stored", "taken", "more", "cancel", "ping", "pong"]


@dataclass(frozen=True, slots=True)
class Send:
    part: Part
    key: str


@dataclass(frozen=True, slots=True)
class Edit:
    part: Part
    message_id: str


@dataclass(frozen=True, slots=True)
class Typing:
    address: Address


@dataclass(frozen=True, slots=True)
class React:
    address: Address
    message_id: str
    emoji: str


@dataclass(frozen=True, slots=True)
class Erase:
    address: Address
    message_id: str


@dataclass(frozen=True, slots=True)
class Leave:
    address: Address


@dataclass(frozen=True, slots=True)
class Draft:
    part: Part
    turn: str


@dataclass(frozen=True, slots=True)
class Settle:
    part: Part
    key: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Fetch:
    """Answered by pieces of bytes, then ``Done``."""

    ref: str
    limit: int


Call: TypeAlias = Send | Edit | Typing | React | Erase | Leave | Draft | Settle | Fetch
"""Each is a method of the adapter and its arguments."""


@dataclass(frozen=True, slots=True)
class Done:
    """The call was made, and there is no receipt. ``seconds`` is what ``drafts`` says after a draft."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error. ``name`` is that of its class in ``adapters.errors``, "" where it is none of them."""

    name: str
    text: str
    formatting: bool = False
    gone: bool = False
    to_chat: str = ""
    retry_after: Annotated[float, Field(ge=0, le=10**7)] = 0
    extra: str = ""

    @classmethod
    def of(cls, error: Exception) -> Trouble:
        known = (kind.__name__ for kind in type(error).__mro__ if kind in _KNOWN)
        name = next(known, "")
        text = written(str(error) if name else f"{type(error).__name__}: {error}")[:_TEXT_LIMIT]
        more = {key: getattr(error, key) for key in _FIELDS if hasattr(error, key)} if name else {}
        return cls(name, text, **more)

    def error(self, other: Callable[[str], Exception]) -> Exception:
        """The error again; ``other`` makes the one that isn't of ``adapters.errors``."""
        text = cut(self.text)
        match self.name:
            case "Rejected":
                return Rejected(text, formatting=self.formatting, gone=self.gone)
            case "ChatMoved":
                return ChatMoved(text, self.to_chat)
            case "RateLimited":
                return RateLimited(text, self.retry_after)
            case "MissingExtra":
                return MissingExtra(text.partition(" ")[0], self.extra)
        plain = {kind.__name__: kind for kind in _PLAIN}
        return plain[self.name](text) if self.name in plain else other(text)


_PLAIN = (Absent, Unreachable, Ambiguous, AuthFailed)
_KNOWN: tuple[type[Exception], ...] = (*_PLAIN, Rejected, ChatMoved, RateLimited, MissingExtra)
_FIELDS = ("formatting", "gone", "to_chat", "retry_after", "extra")


@dataclass(frozen=True, slots=True)
class Ended:
    """``run`` ended: with an error, or by "halt"."""

    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """A line of the child's log, with its traceback."""

    logger: str
    level: int
    text: str


TO_CHILD = (Begin, Run, Signal, Trouble, *get_args(Call))
FROM_CHILD = (Signal, Trouble, Health, Receipt, Done, Ended, Log, bytes, *get_args(Inbound))


def encode(number: int, value: object) -> bytes:
    """Raises FrameError for what is too long, or holds text that isn't Unicode."""
    try:
        kind: Any = type(value)
        body = value if isinstance(value, bytes) else _form(kind).dump_json(value)
    except ValueError as error:
        raise FrameError(f"a {type(value).__name__} can't be written: {error}") from None
    frame = f"{number} {type(value).__name__}\n".encode() + body
    if len(frame) > LIMIT:
        raise FrameError(f"a {type(value).__name__} of {len(frame)} bytes is longer than {LIMIT}")
    return len(frame).to_bytes(4) + frame


async def frames(reader: StreamReader, kinds: Sequence[type]) -> AsyncIterator[tuple[int, object]]:
    """What the other side says, until it is gone. Raises FrameError for what isn't one of ``kinds``."""
    names = {kind.__name__: kind for kind in kinds}
    while True:
        try:
            length = int.from_bytes(await reader.readexactly(4))
            if length > LIMIT:
                raise FrameError(f"a frame of {length} bytes is longer than {LIMIT}")
            frame = await reader.readexactly(length)
        except (IncompleteReadError, ConnectionError):
            return
        yield _decoded(frame, names)


def _decoded(frame: bytes, names: Mapping[str, type]) -> tuple[int, object]:
    head, _, body = frame.partition(b"\n")
    number, _, name = head[:100].decode("ascii", "replace").partition(" ")
    if not (number.isascii() and number.isdecimal() and name in names):
        raise FrameError(f"a frame begins with {head[:40]!r}")
    try:
        return int(number), body if names[name] is bytes else _form(names[name]).validate_json(body)
    except ValueError as error:
        raise FrameError(f"a {name} can't be read ({type(error).__name__})") from None


@functools.cache
def _form(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def cut(text: str) -> str:
    """What the other side says of itself, on one line that people may be shown."""
    return "".join(sign if sign.isprintable() else " " for sign in text[:_TOLD_LIMIT])


def written(text: str) -> str:
    """``text`` as any side can write it."""
    return text.encode("utf-8", "replace").decode()
