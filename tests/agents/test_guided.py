"""Models that can't call tools, and no model at all: the program drives the memory."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agents.budget import estimate, tokens
from agents.events import Answered, Delta, Notice, Recalled
from agents.guided import MOST_NOTES
from agents.model import UserMessage
from agents.notebook import (
    ALL_IS_YOURS,
    ASK_THE_OWNER,
    NO_TALK,
    NOT_FOR_A_GUEST,
    NOT_IN_MEMORY,
    NOT_JUST_NOTED,
    NOTHING_ABOUT_IT,
    NOTHING_NOTED,
    NOTHING_TO_KEEP,
    STILL_THERE,
)
from agents.quoting import Quotation
from agents.taking_back import LEADS_OUT, LEAST_AMONG_OTHERS, NOTHING_TO_TAKE_BACK, STAYS
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


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        (
            "Your locker code is 4411.",
            QUOTED := "From my notes:\n\n- 13:00 my locker is on the 3rd floor (memory/2026-11-30.md#L1)",
        ),
        ("It is 1234.", QUOTED),
        ("Your sister Ruth lives in Oslo.", QUOTED),
        ("Your locker is on the 3rd floor.", None),
        ("On the 3rd floor, of the 7 there are.", QUOTED),
    ],
)
async def test_what_is_in_no_note_is_not_said(
    make_agent: MakeAgent, memory: Memory, said: str, answered: str | None
) -> None:
    """A number that the model made up, or took from the examples: the notes are said in its place."""
    await memory.append("my locker is on the 3rd floor", scope=Scope.home())
    text, events = await answer(make_agent(small(said)), question("What is the code of my locker?"))
    assert re.sub(r"#L\d+", "#L1", text) == (answered or said)
    assert not any(isinstance(event, Delta) for event in events), "and nothing was shown of it before"


async def test_a_secret_is_not_kept_and_that_is_said(make_agent: MakeAgent, tmp_path: Path) -> None:
    """G-MEM-35: neither on disk nor in silence."""
    text, _ = await answer(make_agent(None), question("remember that my key is sk-test-AAAAAAAAAAAAAAAAAAAAAAAA"))
    assert "left a password or key out" in text
    assert "sk-test-AAAA" not in (tmp_path / "home" / "memory" / "2026-11-30.md").read_text()


async def test_what_can_not_be_written_is_not_said_to_be_noted(make_agent: MakeAgent, tmp_path: Path) -> None:
    agent = make_agent(None)
    text, _ = await answer(agent, question("remember " + "word " * 20_000, turn="t0"))
    assert text.startswith("I could not note that, and have not.")
    (tmp_path / "home" / "memory").rmdir()
    (tmp_path / "home" / "memory").write_text("no folder")
    text, events = await answer(agent, question("remember that I like tea", turn="t1"))
    assert text.startswith("I could not note that, and have not.")
    assert isinstance(events[-1], Answered)
    assert not events[-1].complete


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


async def test_notes_mode_quotes_what_fits_and_nothing_else(make_agent: MakeAgent, memory: Memory) -> None:
    """The answer is what a script reads: how to get a model is said elsewhere."""
    await memory.append("my dog is called Biscuit", scope=Scope.home())
    text, events = await answer(make_agent(None), question("What is my dog called?", turn="t0"))
    assert text == "From my notes:\n\n- 13:00 my dog is called Biscuit (memory/2026-11-30.md#L3)"
    assert isinstance(events[-1], Answered)
    assert events[-1].complete
    text, events = await answer(make_agent(None), question("sing me a song", turn="t1"))
    assert text == NO_TALK
    assert isinstance(events[-1], Answered)
    assert not events[-1].complete


# Questions about the person

PROFILE = "# User\n\n- Name: Ann\n- Language: English\n- Time zone: Europe/Berlin\n- Lives in: Graz\n- Likes: tea\n"
ABOUT_ME = [
    ("What is my name?", "Name: Ann", "my name is Ann"),
    ("who am I?", "Name: Ann", "please call me Ann"),
    ("Do you know my name?", "Name: Ann", "my first name is Ann"),
    ("Where do I live?", "Lives in: Graz", "I live in Graz since May"),
    ("What is my address?", "Lives in: Graz", "my address is Lendplatz 1"),
    ("What do I like?", "Likes: tea", "I like tea"),
    ("what do I enjoy doing?", "Likes: tea", "I love to hike"),
    ("which languages do I speak?", "Language: English", "I speak English and Dutch"),
    ("How old am I?", None, "my birthday is 3 May 1990"),
]


@pytest.mark.parametrize(("asked", "line", "note"), ABOUT_ME)
@pytest.mark.parametrize("uses_a_model", [True, False])
async def test_a_question_about_the_person_finds_what_they_told(
    make_agent: MakeAgent, memory: Memory, asked: str, line: str | None, note: str, uses_a_model: bool
) -> None:
    """ "name" and "like" are in every second question, so that no search takes them for a find."""
    for told in ("my dog's name is Rex", "Ruth likes opera", note, "the car looks like new", "Tom lives in Bonn"):
        await memory.append(told, scope=Scope.home())
    model = small("ok")
    text, events = await answer(make_agent(model if uses_a_model else None), question(asked))
    (recalled,) = [event for event in events if isinstance(event, Recalled)]
    assert recalled.citations[0] == "memory/2026-11-30.md#L5"
    assert (note in text) is not uses_a_model


@pytest.mark.parametrize(("asked", "line", "note"), ABOUT_ME)
async def test_user_md_answers_before_any_note(
    make_agent: MakeAgent, memory: Memory, tmp_path: Path, asked: str, line: str | None, note: str
) -> None:
    agent = make_agent(None)
    (tmp_path / "home" / "USER.md").write_text(PROFILE)
    await memory.append(note, scope=Scope.home())
    text, _ = await answer(agent, question(asked))
    first = text.splitlines()[2]
    assert first.startswith(f"- {line} (USER.md#L" if line else f"- 13:00 {note} (memory/")


async def test_a_small_model_is_told_whose_name_it_is(make_agent: MakeAgent, memory: Memory, tmp_path: Path) -> None:
    model = small("Your name is Ann.")
    agent = make_agent(model)
    (tmp_path / "home" / "USER.md").write_text(PROFILE)
    for told in ("my dog's name is Rex", "my cat's name is Tom", "the name of the boat is Sea Thrift"):
        await memory.append(told, scope=Scope.home())
    await answer(agent, question("What is my name?"))
    last = model.requests[0].messages[-1]
    assert isinstance(last, UserMessage)
    notes = [line for line in last.text.splitlines() if line.startswith("- ")]
    assert len(notes) <= MOST_NOTES
    assert notes[-1] == "- Your name is Ann"


@pytest.mark.parametrize("asked", [asked for asked, _, _ in ABOUT_ME])
async def test_an_empty_profile_answers_nothing(make_agent: MakeAgent, memory: Memory, asked: str) -> None:
    """ "Name:" with nothing behind it is no name: a small model would make one up."""
    model = small()
    text, _ = await answer(make_agent(model), question(asked))
    assert (text, model.requests) == (NOT_IN_MEMORY, [])


async def test_user_md_is_homes_alone(make_agent: MakeAgent, memory: Memory, tmp_path: Path) -> None:
    agent = make_agent(None)
    (tmp_path / "home" / "USER.md").write_text(PROFILE)
    guest = Scope.chat("x", Level.GUEST)
    text, _ = await answer(agent, question("What is my name?", scope=guest, turn="t0"))
    assert text == NOT_IN_MEMORY
    await memory.append("my name is Bob", scope=guest)
    text, _ = await answer(agent, question("What is my name?", scope=guest, turn="t1"))
    assert "Bob" in text
    assert "Ann" not in text


# Forgetting

MODES = pytest.mark.parametrize("uses_a_model", [True, False])


@MODES
@pytest.mark.parametrize("asked", ["forget that", "Forget that my dog is called Biscuit", "delete that note", "undo"])
async def test_what_was_noted_a_moment_ago_is_taken_back(
    make_agent: MakeAgent, tmp_path: Path, asked: str, uses_a_model: bool
) -> None:
    model = small()
    agent = make_agent(model if uses_a_model else None)
    await answer(agent, question("remember that I like tea", turn="t0"))
    await answer(agent, question("remember that my dog is called Biscuit", turn="t1"))
    text, _ = await answer(agent, question(asked, turn="t2"))
    assert text == "Taken back from memory/2026-11-30.md: 13:00 my dog is called Biscuit"
    notes = (tmp_path / "home" / "memory" / "2026-11-30.md").read_text()
    assert "Biscuit" not in notes
    assert "I like tea" in notes
    assert model.requests == []


@MODES
@pytest.mark.parametrize(
    "asked", ["forget that my dog is called Biscuit", "delete the note about Biscuit", "please forget my dog's name"]
)
async def test_an_older_note_is_shown_and_not_claimed_to_be_gone(
    make_agent: MakeAgent, memory: Memory, tmp_path: Path, asked: str, uses_a_model: bool
) -> None:
    for told in ("my dog is called Biscuit", "I like tea"):
        await memory.append(told, scope=Scope.home())
    model = small("I have forgotten it!")
    text, _ = await answer(make_agent(model if uses_a_model else None), question(asked))
    assert text.startswith(STILL_THERE)
    assert "my dog is called Biscuit (memory/2026-11-30.md#L3)" in text
    assert "limpet memory path" in text
    assert "Biscuit" in (tmp_path / "home" / "memory" / "2026-11-30.md").read_text()
    assert model.requests == []


@MODES
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("forget it", NOT_JUST_NOTED),
        ("take that back", NOT_JUST_NOTED),
        ("forget my shoe size", NOTHING_ABOUT_IT),
        ("forget everything", ALL_IS_YOURS),
        ("remember this", NOTHING_TO_KEEP),
    ],
)
async def test_nothing_is_taken_out_or_kept_that_was_not_meant(
    make_agent: MakeAgent, memory: Memory, tmp_path: Path, asked: str, said: str, uses_a_model: bool
) -> None:
    await memory.append("I like tea", scope=Scope.home())
    before = (tmp_path / "home" / "memory" / "2026-11-30.md").read_bytes()
    model = small("Done!")
    text, _ = await answer(make_agent(model if uses_a_model else None), question(asked))
    assert text == said
    assert (tmp_path / "home" / "memory" / "2026-11-30.md").read_bytes() == before
    assert model.requests == []


async def test_an_undo_that_a_crash_cut_off_takes_back_no_second_note(
    make_agent: MakeAgent, memory: Memory, tmp_path: Path
) -> None:
    for told in ("first", "second"):
        await memory.append(told, scope=Scope.home())
    await memory.undo(scope=Scope.home(), by="t1")  # and the process died before the answer was in the transcript
    text, _ = await answer(make_agent(None), question("undo", turn="t1"))
    assert text == "Taken back from memory/2026-11-30.md: 13:00 second"
    assert "first" in (tmp_path / "home" / "memory" / "2026-11-30.md").read_text()


async def test_a_note_that_was_edited_since_stays(make_agent: MakeAgent, memory: Memory, tmp_path: Path) -> None:
    await memory.append("I like tea", scope=Scope.home())
    file = tmp_path / "home" / "memory" / "2026-11-30.md"
    file.write_text(file.read_text().replace("tea", "coffee"))
    text, _ = await answer(make_agent(None), question("forget the last note", turn="t0"))
    assert text.startswith(STAYS.format(path="memory/2026-11-30.md", reason=""))
    assert len(text) > len(STAYS), "the reason is in it"
    assert "coffee" in file.read_text()
    text, _ = await answer(make_agent(None), question("undo", turn="t1"))
    assert text == NOTHING_TO_TAKE_BACK


async def test_a_guest_is_told_whom_to_ask(make_agent: MakeAgent, memory: Memory) -> None:
    guest = Scope.chat("x", Level.GUEST)
    await memory.append("I like tea", scope=guest)
    text, _ = await answer(make_agent(None), question("forget that I like tea", scope=guest))
    assert text.startswith(STILL_THERE)
    assert text.endswith(ASK_THE_OWNER)
    assert "limpet memory" not in text


@MODES
@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize(
    "asked", ["undo", "undo that", "forget that", "delete the last note", "forget that I like tea", "forget everything"]
)
async def test_among_others_a_guest_takes_nothing_back(
    make_agent: MakeAgent, memory: Memory, tmp_path: Path, asked: str, level: Level, uses_a_model: bool
) -> None:
    """Neither in words nor by /undo: the last note may be anybody's. Alone with us it is the guest's own."""
    group = Scope.chat("group", level)
    agent = make_agent(small() if uses_a_model else None)
    told = replace(question("remember that I like tea", turn="t0", scope=group), sender="Ann")
    await answer(agent, told)
    (note,) = (tmp_path / "home" / "memory" / "chats").rglob("*.md")
    before = note.read_bytes()
    text, _ = await answer(agent, replace(question(asked, turn="t1", scope=group), sender="Bob"))
    if level < LEAST_AMONG_OTHERS:
        assert text == NOT_FOR_A_GUEST
        assert note.read_bytes() == before
        text, _ = await answer(agent, question("undo", turn="t2", scope=group))
        assert text.startswith("Taken back")
    else:
        assert text.startswith("Taken back") or (asked == "forget everything" and text == ASK_THE_OWNER)


@MODES
async def test_a_note_that_cant_be_taken_back_is_not_said_to_be(
    make_agent: MakeAgent, tmp_path: Path, uses_a_model: bool
) -> None:
    agent = make_agent(small() if uses_a_model else None)
    await answer(agent, question("remember that I like tea", turn="t0"))
    folder = tmp_path / "home" / "memory"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    text, events = await answer(agent, question("undo", turn="t1"))
    assert text == LEADS_OUT.format(path="memory/2026-11-30.md")
    assert isinstance(events[-1], Answered)
    assert not events[-1].complete
    assert "tea" in (folder / "2026-11-30.md").read_text()


# What came with a question

PIPED = Quotation("the gate code is 4411\nthe key is under the pot", "quoted from standard input", below=True)


async def test_what_a_pipe_brought_follows_the_question_as_data(make_agent: MakeAgent, memory: Memory) -> None:
    await memory.append("whales sing", scope=Scope.home())
    for uses_tools in (True, False):
        model = FakeModel([says("ok")], uses_tools=uses_tools)
        asked = replace(question("What is it about?", turn=f"t{uses_tools}"), quotations=(PIPED,))
        await answer(make_agent(model), asked)
        last = model.requests[0].messages[-1]
        assert isinstance(last, UserMessage)
        assert last.text.endswith(
            'What is it about?\n\n<note source="quoted from standard input">\n'
            "the gate code is 4411\nthe key is under the pot\n</note>"
        )


async def test_a_pipe_that_is_too_long_for_a_small_model_is_cut_and_that_is_said(make_agent: MakeAgent) -> None:
    model = small()
    asked = replace(question("summarise"), quotations=(Quotation("word " * 100_000, "standard input", below=True),))
    _, events = await answer(make_agent(model), asked)
    assert sum(map(estimate, model.requests[0].messages)) < model.limits.context // 4
    (notice,) = [event.text for event in events if isinstance(event, Notice)]
    assert re.fullmatch(r"Too long for fake/model: 48\d,\d\d\d characters at the end were left out\.", notice)


@MODES
async def test_what_came_with_remember_this_is_kept(make_agent: MakeAgent, tmp_path: Path, uses_a_model: bool) -> None:
    quote = Quotation("we meet at nine", "quoted from Bob")
    for turn, came in (("t0", PIPED), ("t1", quote)):
        asked = replace(question("remember this", turn=turn), quotations=(came,))
        await answer(make_agent(small() if uses_a_model else None), asked)
    notes = (tmp_path / "home" / "memory" / "2026-11-30.md").read_text()
    assert "- 13:00 the gate code is 4411\n  the key is under the pot\n" in notes
    assert "- 13:00 we meet at nine (quoted from Bob)\n" in notes
