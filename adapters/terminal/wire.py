"""The line protocol between the hub and a terminal: one JSON object a line, in UTF-8, over a stream socket.

A client says Hello and is told Ready (or Failure and Goodbye). Each Say and Stop is confirmed by Accepted once it is
durable and each Answer by Got once it was shown, so that after a break either side can repeat itself: ids and keys tell
a repetition. A turn ends with one Done or one Failure that names it. Knows no socket, no screen and no hub.
"""

from __future__ import annotations

import json
from asyncio import StreamReader
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, TypeAlias, TypeVar, cast

from adapters.adapter import TurnReport

VERSION = 1

LIMIT = 1 << 20
"""Bytes in a line, its end not counted. What is longer is refused whole, before it is kept in memory."""

STOP_PREFIX = "stop-"

_CHUNK = 1 << 16


class FrameError(ValueError):
    """A line that is no frame; the connection can go on after it."""


class OversizeError(ValueError):
    """A frame of more than ``LIMIT`` bytes: it is not sent."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame. ``agent`` None leaves the choice to the bindings; ``once``: one question, then it leaves.

    ``interactive``: a person sits there, who can be asked something in turn.
    """

    version: int
    agent: str | None = None
    once: bool = False
    interactive: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """A message. ``id`` is unique for all time and the same when it is said again.

    ``quote`` is text that came with it and is not the person's own words: what a pipe brought beside a question.
    """

    id: str
    text: str
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """Give up the answer that is being written. ``id`` begins with ``STOP_PREFIX`` and is unique like that of a Say."""

    id: str


@dataclass(frozen=True, slots=True)
class Got:
    """The answer with this key was shown."""

    key: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The hub listens. ``model`` is None where none answers; ``commands`` are lines such as "/new  start afresh"."""

    agent: str
    model: str | None = None
    notices: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Accepted:
    """The message with this id is durable: it will be answered, whatever happens."""

    id: str


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of an answer that comes whole later."""

    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as the agent wrote it, Markdown. ``in_reply_to`` is None for what nobody asked.

    ``late`` is true when whoever asked is not connected any more. ``question`` is what was asked, shortened to a line;
    "" where that isn't known.
    """

    text: str
    in_reply_to: str | None
    key: str
    late: bool = False
    question: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence that is not part of an answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, and the exit code it means. ``in_reply_to`` is None when it is about the connection itself."""

    text: str
    code: int
    in_reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Hindered:
    """Nothing can be answered now; what was accepted is kept. ``code`` is the exit code of a question that waits."""

    text: str
    code: int


@dataclass(frozen=True, slots=True)
class Done:
    """The turn ended; its answers came before or come after."""

    in_reply_to: str
    meta: TurnReport


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The last frame of the hub."""

    reason: str


FromClient: TypeAlias = Hello | Say | Stop | Got
FromHub: TypeAlias = Ready | Accepted | Delta | Answer | Notice | Failure | Hindered | Done | Goodbye

_F = TypeVar("_F")


def _by_name(*kinds: type[_F]) -> Mapping[str, type[_F]]:
    return {kind.__name__.lower(): kind for kind in kinds}


_FROM_CLIENT: Mapping[str, type[FromClient]] = _by_name(Hello, Say, Stop, Got)
_FROM_HUB: Mapping[str, type[FromHub]] = _by_name(
    Ready, Accepted, Delta, Answer, Notice, Failure, Hindered, Done, Goodbye
)


def encode(frame: FromClient | FromHub) -> bytes:
    """The line of ``frame``, its end included; what has its default is left out. Raises OversizeError.

    A lone surrogate passes both ways unharmed, as Python's own JSON reader takes it.
    """
    usual = {field.name: field.default for field in fields(frame)}
    said = {name: value for name, value in asdict(frame).items() if value != usual[name]}
    text = json.dumps({"type": type(frame).__name__.lower(), **said}, ensure_ascii=False)
    line = text.encode("utf-8", "surrogatepass")
    if len(line) > LIMIT:
        raise OversizeError(f"{len(line):,} bytes are too many for one message; the limit is {LIMIT:,}")
    return line + b"\n"


async def from_client(reader: StreamReader) -> AsyncIterator[FromClient | FrameError]:
    """What a client says until it leaves. A line that is no frame comes as a FrameError. Raises OSError."""
    async for line in _lines(reader):
        yield _frame(line, _FROM_CLIENT)


async def from_hub(reader: StreamReader) -> AsyncIterator[FromHub | FrameError]:
    """What the hub says until it leaves. A line that is no frame comes as a FrameError. Raises OSError."""
    async for line in _lines(reader):
        yield _frame(line, _FROM_HUB)


async def _lines(reader: StreamReader) -> AsyncIterator[bytes | None]:
    """Whole lines; None for one that was too long. A last line without an end is torn (its writer died): dropped."""
    held, skipping = b"", False
    while chunk := await reader.read(_CHUNK):
        *lines, held = (held + chunk).split(b"\n")
        for line in lines:
            yield None if skipping or len(line) > LIMIT else line
            skipping = False
        if len(held) > LIMIT:
            held, skipping = b"", True


def _frame(line: bytes | None, kinds: Mapping[str, type[_F]]) -> _F | FrameError:
    if line is None:
        return FrameError(f"a line is longer than {LIMIT:,} bytes")
    try:
        value = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return FrameError("a line is not JSON")
    if not isinstance(value, dict):
        return FrameError("a line is not a JSON object")
    name = value.get("type")
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        return FrameError(f"there is no frame {name!r:.40}")
    try:
        return _read(kind, value)
    except FrameError as bad:
        return FrameError(f"{name}: {bad}")


def _read(kind: type[_F], value: object) -> _F:
    """A dataclass from its JSON form. Unknown keys are passed over: a newer peer may say more."""
    if not isinstance(value, dict):
        raise FrameError("it is not an object")
    known: dict[str, Any] = {}
    for field in fields(cast(Any, kind)):
        if field.name in value:
            try:
                known[field.name] = _READERS[str(field.type)](value[field.name])
            except FrameError as bad:
                raise FrameError(f"{field.name}: {bad}") from None
        elif field.default is MISSING:
            raise FrameError(f"{field.name} is missing")
    return kind(**known)


def _one_of(*kinds: type) -> Callable[[object], object]:
    def read(value: object) -> object:
        if type(value) not in kinds:  # not isinstance: true is no number here
            raise FrameError(f"{value!r:.40} is of the wrong type")
        return value

    return read


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise FrameError("it is not a list of texts")
    return tuple(value)


_READERS: Mapping[str, Callable[[object], object]] = {
    "str": _one_of(str),
    "int": _one_of(int),
    "bool": _one_of(bool),
    "str | None": _one_of(str, type(None)),
    "int | None": _one_of(int, type(None)),
    "float | None": _one_of(float, int, type(None)),
    "tuple[str, ...]": _texts,
    "TurnReport": lambda value: _read(TurnReport, value),
}
"""How to read a field, by its annotation as it is written above: the frames are their own schema."""
