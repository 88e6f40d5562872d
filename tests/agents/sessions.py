"""A session whose transcript is a file, and what keeps it, over a scripted model server or any other model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.budget import Meter
from agents.completion import Spent
from agents.conversation import View, body, view
from agents.events import Notice
from agents.model import AssistantMessage, ChatMessage, Limits, Model, ToolCall, ToolResult, UserMessage
from agents.openai_model import OpenAIModel
from agents.upkeep import Kept, Mark, Occasion, ResetWhy, Upkeep
from agents.window import Window
from tests.agents.conftest import NOW, ZONE
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply, Script
from workspaces.memory import Memory
from workspaces.scope import Scope
from workspaces.transcript import Entry, Transcript

SUMMARY = """## Decisions
- the roof is to be blue
## Open to-dos
- none
## Constraints
- none
## Pending requests
- none
## Identifiers
- none"""


def is_flush(request: Recorded) -> bool:
    return "You keep the notes" in request.messages[0]["content"]


def is_summary(request: Recorded) -> bool:
    return "You sum up" in request.messages[0]["content"]


def keeps(*texts: str) -> Reply:
    """A flush that notes down each text."""
    return Reply(calls=[Call("memory_append", f'{{"text": "{text}"}}', f"c{i}") for i, text in enumerate(texts)])


SILENT = Reply("NO_REPLY")


def by_kind(flush: Callable[[Recorded], Reply], summary: Callable[[Recorded], Reply]) -> Script:
    """One answer for a flush and another for a summary, whatever their order."""
    return lambda request: flush(request) if is_flush(request) else summary(request)


def quiet(request: Recorded) -> Reply:
    """Nothing is worth a note, and every summary is the same."""
    return SILENT if is_flush(request) else Reply(SUMMARY)


@asynccontextmanager
async def serving(script: Script, *, context: int = 32_000) -> AsyncIterator[tuple[ModelServer, OpenAIModel]]:
    """A model server and the real client that talks to it."""
    async with ModelServer(script) as server:
        model = OpenAIModel(
            "test/fake", model="fake", base_url=server.url, limits=Limits(context, context // 4), silence=5
        )
        try:
            yield server, model
        finally:
            await model.close()


@dataclass
class Session:
    """One session. ``fixed`` is what a call sends beside the view, in estimated tokens."""

    path: Path
    memory: Memory
    model: Model | None
    context: int = 8_000
    fixed: int = 500
    meter: Meter = field(default_factory=Meter)
    clock: Callable[[], datetime] = lambda: NOW
    scope: Scope = field(default_factory=Scope.home)
    more: Mapping[str, Any] = field(default_factory=dict)
    turns: int = 0
    waited: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reopen()

    def reopen(self) -> None:
        """As after a restart: whatever is known is on disk."""
        self.transcript = Transcript(self.path, "s")

    @property
    def window(self) -> Window:
        return Window(self.context)

    @property
    def view(self) -> View:
        return view(self.transcript.entries())

    @property
    def kinds(self) -> list[str]:
        """The marks in the transcript."""
        kinds = (entry.kind for entry in self.transcript.entries())
        return [kind for kind in kinds if kind not in ("user", "assistant", "tool")]

    def upkeep(self) -> Upkeep:
        async def sleep(seconds: float) -> None:
            self.waited.append(seconds)

        return Upkeep(
            self.model,
            self.window,
            self.memory,
            self.scope,
            self.transcript.entries,
            self.clock,
            ZONE,
            sleep,
            **self.more,
        )

    def write(self, message: ChatMessage, turn: str) -> Entry:
        kind, fields = body(message)
        return self.transcript.append(turn=turn, kind=kind, at=NOW.isoformat(), body=fields)

    def say(self, asked: str, answered: str = "All right.", *, results: tuple[str, ...] = ()) -> None:
        """A whole turn, with a step of one tool call for each result."""
        self.turns += 1
        turn = f"t{self.turns}"
        self.write(UserMessage(asked), turn)
        for at, result in enumerate(results):
            call = ToolCall(f"{turn}-{at}", "read", "{}")
            self.write(AssistantMessage("", (call,)), turn)
            self.write(ToolResult(call.id, "read", result), turn)
        self.write(AssistantMessage(answered), turn)

    async def keep(self, occasion: Occasion = "turn", focus: str = "") -> list[Kept]:
        return await self._carried_out(self.upkeep().keep(occasion, self.meter, self.fixed, focus))

    async def reset(self, why: ResetWhy = "new") -> list[Kept]:
        return await self._carried_out(self.upkeep().reset(why))

    async def _carried_out(self, steps: AsyncIterator[Kept]) -> list[Kept]:
        done: list[Kept] = []
        async for kept in steps:
            if isinstance(kept, Mark):
                self.transcript.append(turn="upkeep", kind=kept.kind, at=self.clock().isoformat(), body=kept.body)
            done.append(kept)
        return done


def marks(done: list[Kept]) -> list[str]:
    return [kept.kind for kept in done if isinstance(kept, Mark)]


def notices(done: list[Kept]) -> list[str]:
    return [kept.text for kept in done if isinstance(kept, Notice)]


def spent(done: list[Kept]) -> list[Spent]:
    return [kept for kept in done if isinstance(kept, Spent)]
