"""The first-run interview: once, one question at a time, and nobody is held up by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.agent import Agent
from agents.interview import Interview, is_greeting
from tests.agents.conftest import MakeAgent, answer, question
from tests.fakes.model import FakeModel, says
from workspaces.profile import Profile, read_profile
from workspaces.scope import Level, Scope
from workspaces.workspace import INTERVIEW, Workspace


@pytest.fixture
def new_agent(make_agent: MakeAgent, tmp_path: Path) -> Agent:
    """An agent whose interview was not held."""
    agent = make_agent(FakeModel([says("from the model")]))
    (tmp_path / "home" / INTERVIEW).write_text("# First\n")
    return agent


async def test_three_answers_are_written_down_and_it_is_over(new_agent: Agent, tmp_path: Path) -> None:
    opening = new_agent.opening("s", Scope.home())
    assert opening is not None
    assert "What should I call you?" in opening
    said = []
    for number, text in enumerate(["I'm Ann", "English", "new york"]):
        said.append((await answer(new_agent, question(text, turn=f"t{number}")))[0])
    assert [part in reply for part, reply in zip(("Ann", "time zone", "USER.md"), said, strict=True)] == [True] * 3
    assert read_profile(tmp_path / "home") == Profile("Ann", "English", "America/New_York")
    assert not (tmp_path / "home" / INTERVIEW).exists()
    assert new_agent.opening("s", Scope.home()) is None
    text, _ = await answer(new_agent, question("hello", turn="t9"))
    assert text == "from the model"


@pytest.mark.parametrize(
    "text",
    [
        "Remember that my dog is called Biscuit",
        "What is the weather like?",
        "no thanks",
        "tell me a joke",
        "I would rather talk about the garden, which is full of weeds",
        "/status",
        "12345",
    ],
)
async def test_whoever_would_rather_talk_is_answered_and_not_asked_again(
    new_agent: Agent, tmp_path: Path, text: str
) -> None:
    assert new_agent.opening("s", Scope.home())
    said, _ = await answer(new_agent, question(text))
    assert said == "from the model"
    assert not (tmp_path / "home" / INTERVIEW).exists()
    assert read_profile(tmp_path / "home").name == ""


async def test_a_greeting_on_a_channel_opens_it_for_the_owner_only(new_agent: Agent) -> None:
    guest, _ = await answer(new_agent, question("hello", session="g", scope=Scope.chat("x", Level.GUEST)))
    assert guest == "from the model"
    owner, _ = await answer(new_agent, question("Hello!", turn="t2"))
    assert "What should I call you?" in owner


async def test_what_the_person_filled_in_is_not_asked(tmp_path: Path) -> None:
    workspace = Workspace.open(tmp_path / "w")
    interview = Interview(workspace, "Europe/Berlin")
    (tmp_path / "w" / "USER.md").write_text("- Name: Ann\n- Language: English\n- Time zone:\n")
    opening = interview.opening()
    assert "time zone" in opening
    assert interview.reply(opening, "yes") is not None
    assert read_profile(tmp_path / "w").time_zone == "Europe/Berlin"
    assert not interview.is_due


@pytest.mark.parametrize(
    ("text", "greets"),
    [
        ("hi", True),
        ("Good morning!", True),
        ("hello Limpet", True),
        ("hi, what is up with the car", False),
        ("high time", False),
    ],
)
def test_a_greeting_only_says_hello(text: str, greets: bool) -> None:
    assert is_greeting(text) is greets
