"""The first-run interview: once, one question at a time, and nobody is held up by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.agent import Agent
from agents.events import Broken
from agents.interview import Interview, Said, is_greeting
from tests.agents.conftest import MakeAgent, answer, question
from tests.fakes.model import FakeModel, fails, says
from workspaces.profile import Profile, read_profile
from workspaces.scope import Level, Scope
from workspaces.workspace import INTERVIEW, Workspace

AGAIN = "By the way, what should I call you?"


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


async def said(agent: Agent, *texts: str) -> list[str]:
    """The answers to messages of one person at a prompt, one after the other."""
    return [(await answer(agent, question(text, turn=f"turn-{n}-{text}")))[0] for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    "text",
    [
        "Remember that my dog is called Biscuit",
        "What is the weather like?",
        "What can you do?",
        "tell me a joke",
        "I would rather talk about the garden, which is full of weeds",
        "12345",
    ],
)
async def test_whoever_would_rather_talk_is_answered_and_asked_once_more(
    new_agent: Agent, tmp_path: Path, text: str
) -> None:
    assert new_agent.opening("s", Scope.home())
    first, second, third = await said(new_agent, text, text, "hello")
    assert first == f"from the model\n\n{AGAIN}"
    assert (second, third) == ("from the model", "from the model"), "never a third time, not even for a greeting"
    assert not (tmp_path / "home" / INTERVIEW).exists()
    assert read_profile(tmp_path / "home").name == ""


async def test_what_is_put_below_an_answer_is_in_the_transcript_with_it(new_agent: Agent) -> None:
    """So a crash repeats the same answer, and the next message is known to be asked for."""
    new_agent.opening("s", Scope.home())
    (first,) = await said(new_agent, "What can you do?")
    again, _ = await answer(new_agent, question("What can you do?", turn="turn-0-What can you do?"))
    assert again == first


async def test_the_question_that_came_after_the_answer_can_be_answered(new_agent: Agent, tmp_path: Path) -> None:
    new_agent.opening("s", Scope.home())
    _, second = await said(new_agent, "What can you do?", "Ann")
    assert second == "Nice to meet you, Ann. Which language shall we speak?"
    assert read_profile(tmp_path / "home").name == "Ann"


@pytest.mark.parametrize("text", ["hi", "Hello there!", "good evening", "hey Limpet", "Guten Tag", "hola"])
async def test_a_greeting_is_answered_with_the_question(new_agent: Agent, tmp_path: Path, text: str) -> None:
    """The first word of most people is "hi": it must not be the end of the interview."""
    new_agent.opening("s", Scope.home())
    first, second, third, fourth = await said(new_agent, text, text, "What can you do?", "I'm Ann")
    assert first == second == "Hello! What should I call you? (Or just start talking.)"
    assert third == f"from the model\n\n{AGAIN}", "it doesn't count as talk, either"
    assert "Ann" in fourth
    assert read_profile(tmp_path / "home").name == "Ann"


@pytest.mark.parametrize("text", ["no thanks", "skip", "later", "No.", "I'd rather not", "please don't ask again"])
async def test_a_refusal_ends_it_with_a_word_and_no_model_call(new_agent: Agent, tmp_path: Path, text: str) -> None:
    new_agent.opening("s", Scope.home())
    (first,) = await said(new_agent, text)
    assert "don't ask again" in first
    assert not (tmp_path / "home" / INTERVIEW).exists()


@pytest.mark.parametrize(
    ("texts", "profile"),
    [
        (["Ann", "Berlin", "English"], Profile("Ann", "English", "Europe/Berlin")),
        (["German", "Ann", "yes"], Profile("Ann", "German", "Europe/Berlin")),
        (["I live in New York", "let's speak French", "call me Bo"], Profile("Bo", "French", "America/New_York")),
        (["hi, I'm Ann", "in English please", "I'm in Vienna"], Profile("Ann", "English", "Europe/Vienna")),
        (["Ann, English, Berlin"], Profile("Ann", "English", "Europe/Berlin")),
        (["I'm Ann, I speak English and I live in Tokyo."], Profile("Ann", "English", "Asia/Tokyo")),
        (["Europe/Rome", "My name is Ann Maria Bell", "Italian"], Profile("Ann Maria Bell", "Italian", "Europe/Rome")),
        (["Paris", "Klingon", "Paris, France"], Profile("Paris", "Klingon", "Europe/Paris")),
    ],
)
async def test_the_answers_may_come_in_any_order(
    new_agent: Agent, tmp_path: Path, texts: list[str], profile: Profile
) -> None:
    new_agent.opening("s", Scope.home())
    last = (await said(new_agent, *texts))[-1]
    assert read_profile(tmp_path / "home") == profile
    assert last.startswith("Thank you.")
    assert not (tmp_path / "home" / INTERVIEW).exists()


@pytest.mark.parametrize(
    ("typed", "near", "then", "zone"),
    [
        ("Mars/Phobos", None, "Berlin", "Europe/Berlin"),
        ("Europe/Viena", "Europe/Vienna", "yes", "Europe/Vienna"),
        ("Viena", "Europe/Vienna", "Rome", "Europe/Rome"),
        ("I'm in Atlantis", None, "skip", ""),
        ("UTC+25", None, "Moon/Base", ""),
    ],
)
async def test_a_zone_that_there_is_none_of_is_said_once_with_the_mend(
    new_agent: Agent, tmp_path: Path, typed: str, near: str | None, then: str, zone: str
) -> None:
    agent = replace(new_agent, zone_like=lambda name: "Europe/Vienna" if "iena" in name else None)
    agent.opening("s", Scope.home())
    *_, unknown, last = await said(agent, "Ann", "English", typed, then)
    assert unknown.startswith(f"I know no time zone called {typed}.")
    assert ("Did you mean" in unknown) is (near is not None)
    assert near is None or near in unknown
    assert read_profile(tmp_path / "home") == Profile("Ann", "English", zone)
    assert not (tmp_path / "home" / INTERVIEW).exists()
    assert ("don't ask again" in last) is (zone == "")


async def test_a_zone_in_user_md_that_there_is_none_of_is_a_misgiving(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = replace(make_agent(None), zone_like=lambda name: "Europe/Vienna" if "iena" in name else None)
    user = tmp_path / "home" / "USER.md"
    assert agent.misgiving() is None
    user.write_text("- Time zone: Europe/Viena\n")
    assert agent.misgiving() == (
        "USER.md gives the time zone as Europe/Viena, but there is none of that name: I go by Europe/Berlin. "
        "Did you mean Europe/Vienna?"
    )
    user.write_text("- Time zone: Mars/Phobos\n")
    assert "A name such as Europe/Berlin is known." in str(agent.misgiving())
    user.write_text("- Time zone: Europe/Vienna\n")
    assert agent.misgiving() is None


async def test_a_single_question_has_no_part_in_it(new_agent: Agent, tmp_path: Path) -> None:
    """Where one answer is all that is wanted, nothing is asked, and nothing is over."""
    opening = new_agent.opening("s", Scope.home())
    alone = replace(question("hello", turn="t1"), may_interview=False)
    assert (await answer(new_agent, alone))[0] == "from the model"
    assert (tmp_path / "home" / INTERVIEW).exists()
    assert new_agent.opening("s", Scope.home()) == opening
    (first,) = await said(new_agent, "Ann")
    assert first.startswith("Nice to meet you, Ann.")


async def test_who_comes_again_is_greeted_again_but_never_a_third_time(new_agent: Agent, tmp_path: Path) -> None:
    opening = new_agent.opening("s", Scope.home())
    assert new_agent.opening("s", Scope.home()) == opening
    assert len(new_agent.transcript("s").entries()) == 1, "unanswered, it is in the talk once"
    await said(new_agent, "What can you do?")
    assert new_agent.opening("s", Scope.home()) is None
    assert not (tmp_path / "home" / INTERVIEW).exists()


async def test_a_model_that_is_down_does_not_end_it(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(FakeModel([fails("auth", "401"), says("from the model")]))
    (tmp_path / "home" / INTERVIEW).write_text("# First\n")
    agent.opening("s", Scope.home())
    assert isinstance([event async for event in agent.answer(question("What can you do?"))][-1], Broken)
    assert agent.opening("s", Scope.home())
    (first,) = await said(agent, "Ann")
    assert first.startswith("Nice to meet you, Ann.")


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
    assert opening is not None
    assert "time zone" in opening
    assert isinstance(interview.reply(opening, "yes"), Said)
    assert read_profile(tmp_path / "w").time_zone == "Europe/Berlin"
    assert not workspace.awaits_interview


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
