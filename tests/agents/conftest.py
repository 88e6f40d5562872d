"""A real workspace and a real memory in a temporary folder, and an agent over a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agents.agent import Agent, Question
from agents.events import Answered, Event
from agents.model import Model
from agents.tools.registry import toolbox
from workspaces.copies import Copies
from workspaces.memory import Memory, MemorySettings
from workspaces.scope import Scope
from workspaces.workspace import INTERVIEW, Workspace

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Berlin")

MakeAgent = Callable[[Model | None], Agent]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(
        tmp_path / "home",
        tmp_path / "index.sqlite",
        settings=MemorySettings(),
        clock=lambda: NOW,
        zone=lambda: ZONE,
    ) as opened:
        yield opened


@pytest.fixture
def make_agent(tmp_path: Path, memory: Memory) -> MakeAgent:
    """Agents that share the memory; the interview was held."""
    workspace = Workspace.open(tmp_path / "home", clock=lambda: NOW, zone=lambda: ZONE)
    workspace.end_interview()

    def make(model: Model | None) -> Agent:
        return Agent(
            "main",
            workspace,
            memory,
            lambda: model,
            tmp_path / "sessions",
            lambda: ZONE,
            lambda: NOW,
            toolbox=toolbox(workspace.root, memory, Copies(tmp_path / "copies", lambda: NOW)),
            sleep=_at_once,
        )

    return make


async def _at_once(_: float) -> None:
    return


def question(text: str, *, turn: str = "t1", scope: Scope | None = None, session: str = "s") -> Question:
    return Question(turn=turn, session=session, scope=scope or Scope.home(), text=text, at=NOW)


async def answer(agent: Agent, asked: Question) -> tuple[str, list[Event]]:
    """The answer's text and all events of a turn that must end in one."""
    events = [event async for event in agent.answer(asked)]
    assert isinstance(events[-1], Answered), events[-1]
    return events[-1].text, events


__all__ = ["INTERVIEW", "MakeAgent", "answer", "question"]
