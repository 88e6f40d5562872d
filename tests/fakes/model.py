"""A model without a provider: scripted events, and the requests it was sent.

Of the same rank as the real clients; for tests of the loop, which does no I/O of its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from agents.model import Failed, Finished, Limits, ModelEvent, Request, TextDelta, ToolCall, Usage


def says(text: str, *, usage: Usage | None = None) -> list[ModelEvent]:
    """The events of a plain answer, in two pieces."""
    half = len(text) // 2
    return [TextDelta(text[:half]), TextDelta(text[half:]), Finished("stop", usage=usage or Usage(10, 5))]


def calls(*wanted: tuple[str, str], reason: str = "tools") -> list[ModelEvent]:
    """The events of a step that asks for tools: (name, arguments) each."""
    made = tuple(ToolCall(f"call-{i}", name, arguments) for i, (name, arguments) in enumerate(wanted))
    return [Finished("length" if reason == "length" else "tools", made, Usage(10, 5))]


@dataclass
class FakeModel:
    """Gives one script after the other; the last one is repeated."""

    scripts: Sequence[Sequence[ModelEvent]]
    name: str = "fake/model"
    limits: Limits = field(default_factory=lambda: Limits(32_000, 4_000))
    uses_tools: bool = True
    sees_images: bool = False
    requests: list[Request] = field(default_factory=list)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        number = min(len(self.requests), len(self.scripts) - 1)
        self.requests.append(request)
        for event in self.scripts[number]:
            yield event

    async def close(self) -> None:
        return


def fails(kind: str = "network", message: str = "no route to 127.0.0.1:9") -> list[ModelEvent]:
    return [Failed(kind, message)]  # type: ignore[arg-type]  # tests name the kind as a plain string
