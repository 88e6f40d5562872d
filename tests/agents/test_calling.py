"""One call as a step of a turn: a picture that a provider doesn't take is no end of the conversation."""

from __future__ import annotations

import pytest

from agents.calling import TRIES, Step, called
from agents.events import Delta, Notice, Used
from agents.model import Failed, Finished, Image, ModelEvent, Request, TextDelta, Usage, UserMessage
from tests.fakes.model import FakeModel, fails, says

SEEN = Request("", (UserMessage("look", (Image("media/a.png", "image/png", b"x"),)), UserMessage("well?")))
NAMED = Request("", (UserMessage("look", (Image("media/a.png", "image/png"),)), UserMessage("well?")))


async def outcome(model: FakeModel, request: Request = SEEN) -> list[object]:
    async def sleep(_: float) -> None:
        return

    return [event async for event in called(model, request, sleep, marks_cut=True)]


@pytest.mark.parametrize(("kind", "tries"), [("refused", 1), ("filtered", 1), ("overload", TRIES)])
async def test_what_a_picture_may_have_caused_is_asked_again_without(kind: str, tries: int) -> None:
    model = FakeModel([*[fails(kind, "Could not process image.")] * tries, says("I can't see it.")])
    events = await outcome(model)
    assert model.requests == [SEEN] * tries + [NAMED]
    assert isinstance(events[-1], Step)
    assert events[-1].message.text == "I can't see it."
    assert [e.text for e in events if isinstance(e, Notice)][
        -1
    ] == "retry without the pictures: Could not process image."


@pytest.mark.parametrize("kind", ["auth", "billing", "overflow"])
async def test_what_no_picture_causes_is_not(kind: str) -> None:
    model = FakeModel([fails(kind)])
    assert isinstance((await outcome(model))[-1], Failed)
    assert model.requests == [SEEN]


@pytest.mark.parametrize("kind", ["refused", "filtered"])
async def test_it_is_asked_again_once(kind: str) -> None:
    model = FakeModel([fails(kind, "no"), fails(kind, "still no")])
    assert (await outcome(model))[-1] == Failed(kind, "still no")  # type: ignore[arg-type]  # a plain string
    assert model.requests == [SEEN, NAMED]


@pytest.mark.parametrize("request_", [NAMED, Request("", (UserMessage("hi"),))])
async def test_without_pictures_there_is_nothing_to_leave_out(request_: Request) -> None:
    model = FakeModel([fails("refused")])
    assert isinstance((await outcome(model, request_))[-1], Failed)
    assert len(model.requests) == 1


async def test_what_was_shown_already_is_not_asked_again() -> None:
    model = FakeModel([[TextDelta("A cat"), Failed("refused", "no")]])
    events = await outcome(model)
    assert len(model.requests) == 1
    assert isinstance(events[-1], Step)
    assert not events[-1].is_whole


async def test_the_answer_comes_once() -> None:
    script: list[ModelEvent] = [TextDelta("It is a cat."), Finished("stop", usage=Usage(7, 3))]
    events = await outcome(FakeModel([fails("refused"), script]))
    assert [e for e in events if isinstance(e, Delta)] == [Delta("It is a cat.")]
    assert [e for e in events if isinstance(e, Used)] == [Used("fake/model", Usage(7, 3))]
