"""The one interface between the hub and a platform. A new channel is one module that satisfies it.

The contract, tested over every adapter by tests/contracts:

- ``run`` hands each inbound event to ``accept`` and acknowledges it to the platform only after ``accept`` returned.
  It ends by cancellation, or raises ``AuthFailed`` when a person has to mend something; every other trouble of the
  network it outlives by itself.
- ``send`` makes one platform call and never retries: the outbox decides that, by the class of the error.
- Only errors of ``adapters.errors`` leave an adapter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from adapters.message import Address, Inbound, Kind, Part, Receipt
from adapters.text import FormattedText

Accept: TypeAlias = Callable[[Inbound], Awaitable[None]]
"""Returns once the event is durable (or known to be a duplicate, or refused); raises when it could not be stored."""

State: TypeAlias = Literal["starting", "connected", "retrying", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform can do. ``text_limit`` is in the unit of ``Adapter.measure``; 0 means no limit.

    ``caption_limit`` is the same for the text of a part with files, 0 where files go without one; ``file_limit`` is the
    size of the largest file in bytes, 0 where none can be sent, and ``album`` how many of them one part can hold.
    """

    text_limit: int
    caption_limit: int = 0
    file_limit: int = 0
    album: int = 1
    edits: bool = False
    edit_seconds: Mapping[Kind, float] = field(default_factory=dict)
    """The shortest time between two edits of a message, by the kind of chat: an answer is streamed by edits only where
    there is one."""
    threads: bool = False
    buttons: bool = False
    typing: bool = False
    markup: bool = True
    """False: parts hold the Markdown source unparsed, without spans."""
    idempotent: bool = False
    """A part that is sent again under its key is shown once."""


@dataclass(frozen=True, slots=True)
class Health:
    """What an operator sees of a channel; ``detail`` is one sentence, with the mend where there is one.

    ``reconnects`` is how often the connection was lost and found again since the start; ``heard_at`` when the platform
    last answered, be it that there is nothing new: aware, None for never.
    """

    state: State = "starting"
    detail: str = ""
    reconnects: int = 0
    heard_at: datetime | None = None


class Adapter(Protocol):
    """One account on one platform."""

    channel: str
    account: str
    capabilities: Capabilities
    health: Health

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled. It may be run again after it ended."""

    async def send(self, part: Part, key: str) -> Receipt:
        """Send ``part`` once. ``key`` is the same on every try of the same part (an idempotency key)."""

    async def edit(self, part: Part, message_id: str) -> None:
        """Replace the text and the buttons of an own message; the same ones again are no error.

        Raises ``Rejected``, ``gone`` where the message is no longer there; everywhere if ``capabilities.edits`` is
        false.
        """

    async def typing(self, address: Address) -> None:
        """Show that an answer is being written, for about five seconds; failures are swallowed."""

    def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of an attachment, at most ``limit`` of them: one more raises ``Rejected``."""

    def measure(self, text: FormattedText) -> int:
        """The length of ``text`` as this platform counts it, after rendering."""

    async def close(self) -> None:
        """Let go of connections; called once, after ``run`` ended."""


@dataclass(frozen=True, slots=True)
class TurnReport:
    """How a turn ended, for whoever asked. None means that nobody counted, never zero.

    ``parts`` is how many parts the answer has (0 for silence): they may arrive after the report. ``memories`` are the
    notes it was built on, as citations, and ``remembered`` is how many were written, less those taken
    back (it may be below zero). ``cost`` is in US dollars.
    ``code`` is the exit code of a single question: 0 when it was answered. ``advice`` is what the owner can do about an
    answer that is less than it could be; it is no part of it.
    """

    parts: int
    code: int = 0
    model: str | None = None
    session: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    memories: tuple[str, ...] = ()
    remembered: int = 0
    advice: str = ""


@runtime_checkable
class Narrator(Protocol):
    """An adapter that also shows how an answer comes about (the terminal); the others only ever get parts.

    All are best effort: nobody there is no error, and nothing is raised. ``in_reply_to`` is the id of the message
    that was answered. A turn ends with one ``done`` or one ``fail``.
    """

    def is_attended(self, address: Address, message_id: str) -> bool:
        """Whether a person who said this message sits there and can be asked something in turn."""

    def is_one_screen(self, address: Address, message_id: str, other_id: str) -> bool:
        """Whether who said the one message sees what is told of the other."""

    async def notice(self, address: Address, text: str) -> None:
        """One sentence that is not part of the answer, shown at once."""

    async def preview(self, address: Address, turn: str, delta: str) -> None:
        """Show a piece of an answer that ``send`` will later send whole; failures are swallowed."""

    async def done(self, address: Address, in_reply_to: str, report: TurnReport) -> None:
        """The turn ended; its parts were or will be given to ``send``."""

    async def fail(self, address: Address, in_reply_to: str, text: str, code: int) -> None:
        """The turn ended without an answer: ``text`` is one sentence with the mend, ``code`` the exit code."""

    async def hindered(self, text: str, code: int) -> None:
        """No turn can go on now, and what was accepted is kept: whoever waits hears ``text`` and waits no longer."""


@runtime_checkable
class Drafter(Protocol):
    """An adapter whose platform can show an answer that is being written without a message (Telegram)."""

    def drafts(self, address: Address) -> float | None:
        """The shortest time in seconds between two drafts there; None where the platform shows none."""

    async def draft(self, part: Part, turn: str) -> None:
        """Show ``part`` as what is being written in ``turn``; the message takes its place. Failures are swallowed."""


@runtime_checkable
class Reactor(Protocol):
    """An adapter that can put a sign on somebody's message."""

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """Put ``emoji`` on it in the place of ours that is there; "" takes ours away. Failures are swallowed."""


@runtime_checkable
class Eraser(Protocol):
    """An adapter whose platform lets us take back a message of ours: an answer that was shown longer than it became."""

    async def erase(self, address: Address, message_id: str) -> None:
        """Delete an own message; one that is gone is no error. Failures are swallowed."""


@runtime_checkable
class Leaver(Protocol):
    """An adapter that can leave a chat by itself."""

    async def leave(self, address: Address) -> None:
        """Leave a chat that is not direct, or the space around it. Failures are swallowed."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A command: its name without the slash, a line about it, and what may stand behind it, "" for nothing."""

    name: str
    summary: str
    usage: str = ""


@runtime_checkable
class Menu(Protocol):
    """An adapter whose platform shows people a list of commands while they write (Telegram, Discord)."""

    def offer(self, commands: Sequence[Offered]) -> None:
        """What to show from the next ``run`` on. Best effort."""


@runtime_checkable
class Backfiller(Protocol):
    """An adapter whose platform keeps nothing for who is away: what was said meanwhile it has to read up itself."""

    def resume(self, newest: Mapping[str, str], heard_at: datetime | None) -> None:
        """Where the next ``run`` goes on, told before it.

        ``newest`` is by chat the id of the last message there that the hub took as said to it; ``heard_at`` when the
        platform was last heard, None for never. What is handed on once more is a replay, and no harm.
        """


@runtime_checkable
class Settler(Protocol):
    """An adapter whose platform can be asked whether a part that may have arrived did."""

    async def settle(self, part: Part, key: str, since: datetime) -> Receipt | None:
        """The receipt of ``part`` where it was sent under ``key`` at ``since`` or later; None where it is not there.

        Raises ``adapters.errors`` where that can't be found out now.
        """
