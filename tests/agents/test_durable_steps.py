"""Each step of a turn is on the disk before the next begins, and the last one before the turn counts as answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agents.agent import Agent
from agents.events import Answered, Broken
from agents.model import Model, ModelEvent, Request
from agents.tools.tool import Outcome, tool
from tests.agents.conftest import MakeAgent, answer, question
from tests.fakes.model import FakeModel, calls, fails, says
from workspaces import disk
from workspaces.transcript import Transcript


@dataclass
class Disk:
    """What of a transcript is on the disk: what was in the file at the end of the last flush."""

    path: Path
    kept: list[str] = field(default_factory=list)
    flushes: int = 0

    def flush(self, descriptor: int) -> None:
        self.flushes += 1
        self.kept = [entry.kind for entry in Transcript(self.path, "s").entries()]


@pytest.fixture
def on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk(tmp_path / "sessions" / "s.jsonl")
    monkeypatch.setattr(disk, "flush", found.flush)
    return found


def with_tool(agent: Agent, on_disk: Disk, seen: list[list[str]]) -> Agent:
    """``agent`` with one tool, which acts on the world: ``seen`` is what the disk had then."""

    async def act() -> Outcome:
        """Do it."""
        seen.append(list(on_disk.kept))
        return Outcome("done")

    return replace(agent, toolbox=(tool(act),))


async def test_a_plain_answer_is_flushed_once_with_the_question(make_agent: MakeAgent, on_disk: Disk) -> None:
    agent = make_agent(FakeModel([says("Hello.")]))
    async for event in agent.answer(question("Hi")):
        if isinstance(event, Answered):
            assert on_disk.kept == ["user", "assistant"]
    assert on_disk.flushes == 1


async def test_a_tool_acts_on_what_is_on_the_disk(make_agent: MakeAgent, on_disk: Disk) -> None:
    seen: list[list[str]] = []
    model = FakeModel([calls(("act", "{}")), calls(("act", "{}")), says("Done.")])
    await answer(with_tool(make_agent(model), on_disk, seen), question("Do it twice"))
    assert seen == [["user", "assistant"], ["user", "assistant", "tool", "assistant"]]
    assert on_disk.kept == ["user", "assistant", "tool", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("has_model", [True, False])
async def test_what_was_said_is_there_however_the_turn_ends(
    make_agent: MakeAgent, on_disk: Disk, has_model: bool
) -> None:
    """The inbox lets go of a message whose turn has ended: the transcript is the only copy then."""
    agent = make_agent(FakeModel([fails("auth", "no key")]) if has_model else None)
    async for event in agent.answer(question("Hi there")):
        if isinstance(event, Answered | Broken):
            assert on_disk.kept[0] == "user"


async def test_the_words_of_a_turn_that_was_stopped_stay(make_agent: MakeAgent, on_disk: Disk) -> None:
    asked = asyncio.Event()

    class Slow(FakeModel):
        async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
            asked.set()
            await asyncio.Event().wait()
            yield  # type: ignore[misc]  # never

    turn = asyncio.create_task(answer(make_agent(Slow([])), question("Hi there")))
    await asked.wait()
    turn.cancel()
    await asyncio.wait([turn])
    assert on_disk.kept == ["user"]


async def test_an_answer_that_a_dead_process_left_in_memory_is_flushed_before_it_is_given(
    make_agent: MakeAgent, on_disk: Disk
) -> None:
    await answer(make_agent(FakeModel([says("Hello.")])), question("Hi"))
    on_disk.kept, on_disk.flushes = [], 0
    again: Model = FakeModel([says("never")])
    assert (await answer(make_agent(again), question("Hi")))[0] == "Hello."
    assert on_disk.kept == ["user", "assistant"]


async def test_a_new_beginning_is_on_the_disk_before_it_is_told(make_agent: MakeAgent, on_disk: Disk) -> None:
    for model in (FakeModel([says("Hello."), says("NO_REPLY")]), None):
        agent = make_agent(model)
        await answer(agent, question("Hi", turn=f"t{bool(model)}"))
        [_ async for _ in agent.reset(question("/new").thread, "new")]
        assert on_disk.kept[-1] == "reset"
