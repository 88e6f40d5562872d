"""The one interface between an agent and a language model, and the neutral conversation that passes it.

Each client turns these values into its provider's wire format and the provider's stream into ``ModelEvent``s. A
failure is an event, never an exception. Knows no provider, no workspace and no chat platform.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class ToolCall:
    """``arguments`` is the JSON text as the model wrote it: it may be cut or broken, and is parsed where it is run."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that came with a message: the file ``path``, relative to the workspace.

    ``data`` are its bytes for this call, None where the model is only told of the file.
    """

    path: str
    media_type: str
    data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class UserMessage:
    text: str
    images: tuple[Image, ...] = ()

    def naming(self, images: Iterable[Image]) -> str:
        """The text, with the places of those ``images`` that it doesn't name itself."""
        named = (f"[image: {image.path}]" for image in images if image.path not in self.text)
        return "\n".join(line for line in (self.text, *named) if line)


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """``reasoning`` and ``state`` are sent back to the same ``model`` only, and never shown to a person.

    ``state`` is what the provider wants back unchanged, such as signed thinking. ``model`` "" is the program itself.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    model: str = ""
    state: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """``is_foreign``: the text came from outside the notes of the turn's own scope. ``awaits_owner``: nothing was done,
    the call may run once the owner says so."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    is_foreign: bool = False
    awaits_owner: bool = False


ChatMessage: TypeAlias = UserMessage | AssistantMessage | ToolResult


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One call. ``system`` comes first and stays the same bytes within a session, so that a prefix cache holds.

    ``max_output`` is in tokens, None for the model's own limit; ``temperature`` None for the provider's default.
    """

    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them.

    ``cached`` is the part of ``input`` that was read from its cache, ``written`` the part that was written into it.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.written + other.written,
        )


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a call that worked. ``calls`` are whole, their ids present and unique.

    ``reason`` "length" means that the output was cut: its calls must not be run. ``model`` and ``state`` are as in
    ``AssistantMessage``; ``model`` "" means the one that was asked.
    """

    reason: Literal["stop", "tools", "length", "filtered"]
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    state: tuple[Mapping[str, Any], ...] = ()


FailureKind: TypeAlias = Literal[
    "rate_limit", "overload", "overflow", "auth", "billing", "filtered", "network", "refused"
]


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of a call that didn't work.

    ``message`` is one sentence for a person: what failed (host and port for a network error) and the mend; never a key.
    ``retry_after`` is in seconds, None when the provider doesn't say. ``network``, ``overload`` and ``rate_limit`` may
    be tried again.
    """

    kind: FailureKind
    message: str
    retry_after: float | None = None

    @property
    def may_retry(self) -> bool:
        return self.kind in ("network", "overload", "rate_limit")


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | Finished | Failed


@dataclass(frozen=True, slots=True)
class Limits:
    """``context`` is the window and ``output`` the longest answer, both in tokens."""

    context: int
    output: int


class Model(Protocol):
    """A language model. What it can do is asked of these fields, never of its name."""

    name: str
    limits: Limits
    uses_tools: bool
    """False for a model that can't be trusted to call a tool: the program then drives the memory itself."""
    sees_images: bool
    """False for a model that is only told where an image lies."""

    def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """One call: deltas, then exactly one ``Finished`` or ``Failed``. Closing the iterator ends the call."""

    async def close(self) -> None:
        """Let go of connections and weights."""
