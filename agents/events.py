"""What a turn says of itself while it runs: a closed union, matched with ``assert_never``.

The consumer handles each event before it asks for the next: what has to be durable before the turn goes on is
durable when the generator is resumed. Failures are events, never exceptions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from agents.enclosing import Enclosed
from agents.model import AssistantMessage, Failed, ToolCall, ToolResult, Usage, UserMessage


@dataclass(frozen=True, slots=True)
class MessageStarted:
    """The model is asked; what it says follows."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer as it is being written."""

    text: str


@dataclass(frozen=True, slots=True)
class Stepped:
    """The model spoke or a tool ended: a message that must be on disk before the next step begins."""

    message: AssistantMessage | ToolResult


@dataclass(frozen=True, slots=True)
class Steered:
    """The person said more during the turn: it enters before the next call, and must be on disk first.

    ``source`` is the turn that the message would have been by itself.
    """

    message: UserMessage
    source: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The tool begins; it ends with the ``Stepped`` that has its result."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolUpdated:
    """How far a tool that takes long has come: a few words."""

    call: ToolCall
    text: str


@dataclass(frozen=True, slots=True)
class Used:
    """What one call of ``model`` took."""

    model: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Noted:
    """Something was written to the memory. ``text`` is what, ``citation`` where ("memory/2026-11-30.md#L4").

    ``is_told``: the answer says so itself.
    """

    text: str
    citation: str
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The last thing that was written to the memory is out of it again."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Notes that were laid before the model, best first, as citations."""

    citations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence for the person that is not part of the answer ("retry 1/3: …")."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a turn. ``text`` is Markdown; ``model`` is None when the program answered by itself. ``enclosed`` are
    the files that go with it.

    ``complete`` is False where notes mode or the program had to say that it could not answer.
    """

    text: str
    model: str | None
    usage: Usage = field(default_factory=Usage)
    complete: bool = True
    enclosed: tuple[Enclosed, ...] = ()


@dataclass(frozen=True, slots=True)
class Broken:
    """The end of a turn that could not be answered: the model failed for good."""

    failure: Failed


Event: TypeAlias = (
    MessageStarted
    | Delta
    | Stepped
    | Steered
    | ToolStarted
    | ToolUpdated
    | Used
    | Noted
    | TakenBack
    | Recalled
    | Notice
    | Answered
    | Broken
)
