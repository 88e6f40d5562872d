"""Models that can't call tools, and no model at all: the program drives the memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.budget import estimate, tokens
from agents.guided import MOST_NOTES
from agents.model import UserMessage
from agents.notebook import HOW_TO_ADD_A_MODEL, NOT_IN_MEMORY, NOTHING_NOTED
from tests.agents.conftest import MakeAgent, answer, question
from tests.fakes.model import FakeModel, says
from workspaces.memory import Memory
from workspaces.scope import Level, Scope


def small(*texts: str) -> FakeModel:
    return FakeModel([says(text) for text in texts] or [says("ok")], uses_tools=False)


async def test_an_explicit_remember_keeps_the_persons_words_without_a_model_call(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    model = small()
    text, _ = await answer(make_agent(model), question("Remember that my dog is called Biscuit"))
    assert text.startswith("Noted: my dog is called Biscuit (memory/2026-11-30.md")
    assert "- 13:00 my dog is called Biscuit\n" in (tmp_path / "home" / "memory" / "2026-11-30.md").read_text()
    assert model.requests == []


async def test_a_question_gets_the_best_notes_in_a_short_prompt(make_agent: MakeAgent, memory: Memory) -> None:
    for note in (
        "my dog is called Biscuit",
        "my dog eats at six",
        "my dog sleeps a lot",
        "my dog is brown",
        "I like tea",
    ):
        await memory.append(note, scope=Scope.home())
    model = small("Your dog is called Biscuit.")
    text, _ = await answer(make_agent(model), question("What is my dog called?"))
    assert text == "Your dog is called Biscuit."
    (request,) = model.requests
    last = request.messages[-1]
    assert isinstance(last, UserMessage)
    notes = [line for line in last.text.splitlines() if line.startswith("- ")]
    assert len(notes) == MOST_NOTES
    assert notes[-1] == "- Your dog is called Biscuit", "the best one last, said to the person"
    assert request.tools == ()
    assert request.temperature == 0.0
    assert tokens(request.system) + sum(map(estimate, request.messages)) < 500


async def test_a_secret_is_not_kept_and_that_is_said(make_agent: MakeAgent, tmp_path: Path) -> None:
    """G-MEM-35: neither on disk nor in silence."""
    text, _ = await answer(make_agent(None), question("remember that my key is sk-test-AAAAAAAAAAAAAAAAAAAAAAAA"))
    assert "left a password or key out" in text
    assert "sk-test-AAAA" not in (tmp_path / "home" / "memory" / "2026-11-30.md").read_text()


@pytest.mark.parametrize("uses_a_model", [True, False])
async def test_what_is_in_no_note_is_not_asked_of_a_model(
    make_agent: MakeAgent, memory: Memory, uses_a_model: bool
) -> None:
    """A small model invents answers to what it can't know: the program says that it doesn't know."""
    await memory.append("my dog is called Biscuit", scope=Scope.home())
    model = small("Your cat is called Tom.")
    text, _ = await answer(make_agent(model if uses_a_model else None), question("Where did I park the car?"))
    assert NOT_IN_MEMORY in text
    assert model.requests == []


async def test_small_talk_goes_to_the_model(make_agent: MakeAgent) -> None:
    model = small("I'm well!")
    text, _ = await answer(make_agent(model), question("hi there, how are you?"))
    assert text == "I'm well!"


async def test_the_newest_notes_can_be_listed(make_agent: MakeAgent, memory: Memory) -> None:
    agent = make_agent(None)
    text, _ = await answer(agent, question("what do you know about me?", turn="t0"))
    assert text == NOTHING_NOTED
    for note in ("first thing", "second thing"):
        await memory.append(note, scope=Scope.home())
    await memory.append("a guest's thing", scope=Scope.chat("x", Level.GUEST))
    text, _ = await answer(agent, question("list my notes", turn="t1"))
    assert "first thing" in text
    assert text.index("second thing") < text.index("first thing")
    assert "guest" not in text
    assert "- - " not in text


async def test_notes_mode_quotes_what_fits_and_says_how_to_add_a_model(make_agent: MakeAgent, memory: Memory) -> None:
    await memory.append("my dog is called Biscuit", scope=Scope.home())
    text, _ = await answer(make_agent(None), question("What is my dog called?"))
    assert "my dog is called Biscuit (memory/2026-11-30.md" in text
    assert text.endswith(HOW_TO_ADD_A_MODEL)
