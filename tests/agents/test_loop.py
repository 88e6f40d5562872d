"""The loop: a closed set of events, tools that can't end it, failures that are events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

import pytest

from agents.events import Answered, Broken, Delta, Event, Noted, Notice, Stepped, ToolStarted
from agents.loop import EMPTY, MOST_STEPS, TOO_MANY_STEPS, TRIES, Turn, run
from agents.model import (
    AssistantMessage,
    Finished,
    ModelEvent,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolResult,
    Usage,
    UserMessage,
)
from agents.tools.tool import Outcome, Tool, ToolError, tool
from tests.fakes.model import FakeModel, calls, fails, says

WAITED: list[float] = []


async def add(left: int, right: int = 1, kind: Literal["int", "text"] = "int") -> Outcome:
    """Add two numbers.
    They may be negative.

    left: the first
    right: the second
    kind: how to say it
    """
    return Outcome(str(left + right), noted=((f"{left}+{right}", "sums.md#L1"),))


async def refuse(what: str) -> Outcome:
    """Never works.

    what: anything
    """
    raise ToolError(f"{what} is not possible; try add.")


async def crash() -> Outcome:
    """Has a fault."""
    raise ZeroDivisionError


async def events(model: FakeModel, *tools: Tool) -> list[Event]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    turn = Turn(model, Request("system", (UserMessage("hi"),)), tools, sleep)
    got = [event async for event in run(turn)]
    assert isinstance(got[-1], Answered | Broken)
    assert not any(isinstance(event, Answered | Broken) for event in got[:-1])
    WAITED[:] = waited
    return got


def results(got: Sequence[Event]) -> list[ToolResult]:
    return [e.message for e in got if isinstance(e, Stepped) and isinstance(e.message, ToolResult)]


async def test_an_answer_is_streamed_made_durable_and_given() -> None:
    got = await events(FakeModel([says("Hello Ann", usage=Usage(10, 3, 2))]))
    assert got == [
        Delta("Hell"),
        Delta("o Ann"),
        Stepped(AssistantMessage("Hello Ann")),
        Answered("Hello Ann", "fake/model", Usage(10, 3, 2)),
    ]


async def test_a_tool_is_run_and_its_result_goes_back() -> None:
    model = FakeModel([calls(("add", '{"left": 2}')), says("Three.")])
    got = await events(model, tool(add))
    assert [type(e) for e in got] == [Stepped, ToolStarted, Noted, Stepped, Delta, Delta, Stepped, Answered]
    assert results(got) == [ToolResult("call-0", "add", "3")]
    assert Noted("2+1", "sums.md#L1") in got
    assert [m for m in model.requests[1].messages if isinstance(m, ToolResult)] == results(got)
    assert got[-1] == Answered("Three.", "fake/model", Usage(20, 10))


def test_a_schema_comes_from_the_signature() -> None:
    spec = tool(add).spec
    assert spec.description == "Add two numbers. They may be negative."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "left": {"type": "integer", "description": "the first"},
            "right": {"type": "integer", "description": "the second"},
            "kind": {"type": "string", "enum": ["int", "text"], "description": "how to say it"},
        },
        "required": ["left"],
        "additionalProperties": False,
    }
    json.dumps(spec.parameters)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("add", '{"left": 2', "not valid JSON"),
        ("add", "[1]", "must be a JSON object"),
        ("add", '{"left": "two"}', "'left' must be of type integer, not \"two\""),
        ("add", '{"left": true}', "must be of type integer"),
        ("add", "{}", "'left' is missing"),
        ("add", '{"left": 1, "up": 2}', "no argument is called 'up'. There are: left, right, kind."),
        ("add", '{"left": 1, "kind": "roman"}', "must be one of int, text"),
        ("subtract", "{}", "There is no tool 'subtract'. There are: add, crash, refuse."),
        ("refuse", '{"what": "That"}', "That is not possible; try add."),
        ("crash", "{}", "ZeroDivisionError"),
    ],
)
async def test_what_is_wrong_with_a_call_is_told_to_the_model(name: str, arguments: str, said: str) -> None:
    """G-MOD-02: broken arguments are never run, and the model learns why."""
    got = await events(FakeModel([calls((name, arguments)), says("ok")]), tool(add), tool(refuse), tool(crash))
    (result,) = results(got)
    assert result.is_error
    assert said in result.text


async def test_arguments_that_were_cut_are_not_run() -> None:
    """G-MOD-01: finish_reason length."""
    got = await events(FakeModel([calls(("add", '{"left": 2}'), reason="length"), says("ok")]), tool(add))
    (result,) = results(got)
    assert result.is_error
    assert "cut off" in result.text
    assert not any(isinstance(event, Noted) for event in got)


async def test_parallel_calls_all_get_their_result_in_order() -> None:
    got = await events(FakeModel([calls(("add", '{"left": 1}'), ("add", '{"left": 5}')), says("ok")]), tool(add))
    assert [(r.call_id, r.text) for r in results(got)] == [("call-0", "2"), ("call-1", "6")]


async def test_a_passing_failure_is_tried_again_with_a_notice() -> None:
    got = await events(FakeModel([fails(), fails("overload", "busy"), says("Here.")]))
    assert [e.text for e in got if isinstance(e, Notice)] == ["retry 1/2: no route to 127.0.0.1:9", "retry 2/2: busy"]
    assert got[-1] == Answered("Here.", "fake/model", Usage(10, 5))
    assert WAITED == [1.0, 2.0]


async def test_it_gives_up_after_three_tries() -> None:
    model = FakeModel([fails()])
    got = await events(model)
    assert len(model.requests) == TRIES
    assert isinstance(got[-1], Broken)


@pytest.mark.parametrize("kind", ["auth", "billing", "refused", "overflow", "filtered"])
async def test_a_lasting_failure_is_not_tried_again(kind: str) -> None:
    model = FakeModel([fails(kind)])
    got = await events(model)
    assert len(model.requests) == 1
    assert isinstance(got[-1], Broken)


async def test_a_stream_that_dies_after_text_was_shown_is_not_begun_again() -> None:
    """G-MOD-13: what a person saw is not written a second time."""
    script: list[ModelEvent] = [TextDelta("Half an ans"), *fails()]
    model = FakeModel([script])
    got = await events(model)
    assert len(model.requests) == 1
    assert isinstance(got[-1], Broken)


async def test_a_stream_without_an_end_is_a_failure() -> None:
    got = await events(FakeModel([[TextDelta("cut")]]))
    assert isinstance(got[-1], Broken)


async def test_reasoning_is_kept_and_never_shown() -> None:
    """G-MOD-08: an answer of thoughts only is apologised for."""
    script: list[ModelEvent] = [ReasoningDelta("The user wants..."), Finished("stop")]
    got = await events(FakeModel([script]))
    assert got == [
        Stepped(AssistantMessage("", reasoning="The user wants...")),
        Answered(EMPTY, "fake/model", Usage()),
    ]


async def test_a_model_that_goes_in_circles_is_stopped() -> None:
    model = FakeModel([calls(("add", '{"left": 1}'))])
    got = await events(model, tool(add))
    assert len(model.requests) == MOST_STEPS
    assert got[-1] == Answered(TOO_MANY_STEPS, "fake/model", Usage(200, 100), complete=False)
