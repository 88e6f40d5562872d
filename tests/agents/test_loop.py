"""The loop: a closed set of events, tools that can't end it, failures that are events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest

from agents.calling import BROKEN_OFF, CUT_OFF, GO_ON, TRIES
from agents.events import (
    Answered,
    Broken,
    Delta,
    Event,
    MessageStarted,
    Noted,
    Notice,
    Steered,
    Stepped,
    ToolStarted,
    ToolUpdated,
    Used,
)
from agents.loop import (
    CONCLUDE,
    EMPTY,
    MOST_CUT,
    MOST_STEPS,
    NUDGE,
    TOO_LONG,
    TOO_MANY_STEPS,
    WITHHELD,
    Arrival,
    Fitted,
    Turn,
    run,
)
from agents.model import (
    AssistantMessage,
    ChatMessage,
    Failed,
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


async def events(model: FakeModel, *tools: Tool, **changes: Any) -> list[Event]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    turn = Turn(model, Request("system", (UserMessage("hi"),)), tools, sleep=sleep, **changes)
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
        MessageStarted(),
        Delta("Hell"),
        Delta("o Ann"),
        Used("fake/model", Usage(10, 3, 2)),
        Stepped(AssistantMessage("Hello Ann", model="fake/model")),
        Answered("Hello Ann", "fake/model", Usage(10, 3, 2)),
    ]


async def test_a_tool_is_run_and_its_result_goes_back() -> None:
    model = FakeModel([calls(("add", '{"left": 2}')), says("Three.")])
    got = await events(model, tool(add))
    quiet = [type(e) for e in got if not isinstance(e, MessageStarted | Used)]
    assert quiet == [Stepped, ToolStarted, Noted, Stepped, Delta, Delta, Stepped, Answered]
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


@pytest.mark.parametrize(
    ("shown", "then", "answer"),
    [
        ("", says("Here it is."), "Here it is."),
        ("Half an ans", says("wer."), "Half an answer."),
    ],
)
async def test_a_stream_that_dies_is_gone_on_from(shown: str, then: list[ModelEvent], answer: str) -> None:
    """G-MOD-13: what a person saw is not written a second time, and nothing of it is lost."""
    script: list[ModelEvent] = [*([TextDelta(shown)] if shown else []), *fails()]
    model = FakeModel([script, then])
    got = await events(model)
    assert "".join(e.text for e in got if isinstance(e, Delta)) == answer
    assert got[-1] == Answered(answer, "fake/model", Usage(10, 5))
    added = model.requests[1].messages[1:]
    assert added == ((AssistantMessage(shown), UserMessage(GO_ON)) if shown else ())


async def test_a_text_whose_end_never_comes_is_kept_and_marked() -> None:
    model = FakeModel([[TextDelta("Half an answer"), *fails()], fails()])
    got = await events(model)
    assert len(model.requests) == TRIES
    assert got[-1] == Answered("Half an answer" + BROKEN_OFF, "fake/model", Usage(), complete=False)
    assert Stepped(AssistantMessage("Half an answer" + BROKEN_OFF, model="fake/model")) in got


async def test_a_stream_that_dies_inside_a_call_runs_nothing() -> None:
    """G-MOD-13: half a call is no call; the model is asked again."""
    got = await events(FakeModel([fails(), calls(("add", '{"left": 2}')), says("Three.")]), tool(add))
    assert len(results(got)) == 1


async def test_a_stream_without_an_end_is_a_failure() -> None:
    got = await events(FakeModel([[]]))
    assert isinstance(got[-1], Broken)


async def test_an_answer_at_its_limit_says_that_it_is_cut() -> None:
    got = await events(FakeModel([[TextDelta("a very long"), Finished("length")]]))
    assert got[-1] == Answered("a very long" + CUT_OFF, "fake/model", complete=False)
    assert Delta(CUT_OFF) in got


async def test_reasoning_is_kept_and_never_shown() -> None:
    """G-MOD-08: an answer of thoughts only is asked for once more, then apologised for."""
    model = FakeModel([[ReasoningDelta("The user wants..."), Finished("stop")]])
    got = await events(model)
    assert [m.text for m in model.requests[1].messages[1:] if isinstance(m, UserMessage)] == [NUDGE]
    assert len(model.requests) == 2
    assert got[-1] == Answered(EMPTY, "fake/model", complete=False)
    assert not any(isinstance(event, Delta | Stepped) for event in got)
    script: list[ModelEvent] = [ReasoningDelta("Hm."), TextDelta("Hi"), Finished("stop", state=({"signed": "x"},))]
    assert Stepped(AssistantMessage("Hi", (), "Hm.", "fake/model", ({"signed": "x"},))) in await events(
        FakeModel([script])
    )


async def test_an_empty_answer_after_a_tool_is_nudged() -> None:
    model = FakeModel([calls(("add", '{"left": 1}')), [Finished("stop")], says("Two.")])
    got = await events(model, tool(add))
    assert got[-1] == Answered("Two.", "fake/model", Usage(20, 10))
    kept = [e.message.text for e in got if isinstance(e, Stepped)]
    assert kept == ["", "2", "Two."], "the nudge is no part of the transcript"


@pytest.mark.parametrize("text", ["", "Well, "])
async def test_what_the_provider_withholds_is_said(text: str) -> None:
    got = await events(FakeModel([[TextDelta(text), Finished("filtered")]]))
    assert got[-1] == (Answered("Well,", "fake/model", complete=False) if text else Broken(WITHHELD))


async def test_a_model_that_goes_in_circles_is_stopped() -> None:
    """G-MOD-07: the same call with the same result runs three times, then the model has to answer."""
    model = FakeModel([calls(("add", '{"left": 1}')), *[calls(("add", '{ "left":1 }'))] * 4, says("Two.")])
    got = await events(model, tool(add))
    ran = [e for e in got if isinstance(e, Noted)]
    assert len(ran) == 3
    assert [r.is_error for r in results(got)] == [False] * 3 + [True] * 2
    assert model.requests[-1].tools == ()
    assert model.requests[-1].messages[-1] == UserMessage(CONCLUDE)
    assert isinstance(got[-1], Answered)
    assert got[-1].text == "Two."


async def test_equal_calls_of_one_message_are_counted_as_well() -> None:
    got = await events(
        FakeModel([calls(*[("look", "{}")] * 5), says("ok")]), tool(Looks(waits_for=3).look, read_only=True)
    )
    assert [r.is_error for r in results(got)] == [False] * 3 + [True] * 2


async def test_a_call_whose_result_changes_is_no_circle() -> None:
    count = iter(range(100))

    async def poll() -> Outcome:
        """Look again."""
        return Outcome(str(next(count)))

    got = await events(FakeModel([*[calls(("poll", "{}"))] * 8, says("Done.")]), tool(poll))
    assert [r.text for r in results(got)] == [str(n) for n in range(8)]


async def test_too_many_steps_end_in_an_answer() -> None:
    count = iter(range(100))
    model = FakeModel([calls(("add", json.dumps({"left": next(count)}))) for _ in range(MOST_STEPS + 5)])
    got = await events(model, tool(add))
    assert len(model.requests) == MOST_STEPS
    assert model.requests[-1].tools == ()
    assert got[-1] == Answered(TOO_MANY_STEPS, "fake/model", Usage(200, 100), complete=False)


async def test_calls_that_are_cut_again_and_again_end_the_turn() -> None:
    """G-MOD-01: at most two more tries."""
    model = FakeModel([calls(("add", '{"left": 2'), reason="length")])
    got = await events(model, tool(add))
    assert len(results(got)) == MOST_CUT
    assert got[-1] == Answered(TOO_LONG, "fake/model", Usage(40, 20), complete=False)
    assert not any(isinstance(event, Noted) for event in got)


class Looks:
    """A tool that returns only when ``waits_for`` of its calls run at once."""

    def __init__(self, waits_for: int) -> None:
        self._barrier = asyncio.Barrier(waits_for)

    async def look(self, *, tell: Callable[[str], None]) -> Outcome:
        """Look."""
        tell("looking")
        async with asyncio.timeout(5):
            await self._barrier.wait()
        return Outcome("seen")


async def test_calls_that_only_read_run_together() -> None:
    got = await events(
        FakeModel([calls(*[("look", "{}")] * 3), says("ok")]), tool(Looks(waits_for=3).look, read_only=True)
    )
    assert [r.text for r in results(got)] == ["seen"] * 3
    assert [e.text for e in got if isinstance(e, ToolUpdated)] == ["looking"] * 3


async def test_calls_that_write_run_one_after_the_other_in_order() -> None:
    order: list[str] = []

    async def write(name: str) -> Outcome:
        """Write.

        name: what
        """
        order.append(f"+{name}")
        await asyncio.sleep(0)
        order.append(f"-{name}")
        return Outcome(name)

    got = await events(
        FakeModel([calls(("write", '{"name": "a"}'), ("write", '{"name": "b"}')), says("ok")]), tool(write)
    )
    assert order == ["+a", "-a", "+b", "-b"]
    assert [r.text for r in results(got)] == ["a", "b"]


async def test_a_turn_that_is_left_leaves_no_tool_running() -> None:
    ended = asyncio.Event()

    async def hang() -> Outcome:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    task = asyncio.ensure_future(events(FakeModel([calls(("hang", "{}"))]), tool(hang)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_what_arrives_meanwhile_enters_between_two_calls() -> None:
    waiting = [[Arrival(UserMessage("and tea"), "turn-2")], []]

    async def arrivals() -> Sequence[Arrival]:
        return waiting.pop(0)

    model = FakeModel([calls(("add", '{"left": 1}')), says("ok")])
    got = await events(model, tool(add), arrivals=arrivals)
    assert Steered(UserMessage("and tea"), "turn-2") in got
    assert model.requests[1].messages[-1] == UserMessage("and tea")


async def test_messages_are_fitted_before_each_call_and_once_more_when_they_overflow() -> None:
    """G-CMP-26: one compaction, one retry, then a clear error."""
    asked: list[tuple[int, bool]] = []

    async def fit(messages: tuple[ChatMessage, ...], *, overflowed: bool) -> Fitted | None:
        asked.append((len(messages), overflowed))
        return Fitted(messages[-1:], (Notice("shortened"),)) if overflowed else Fitted(messages)

    model = FakeModel([calls(("add", '{"left": 1}')), fails("overflow"), says("ok")])
    got = await events(model, tool(add), fit=fit)
    assert asked == [(1, False), (3, False), (3, True)]
    assert [len(request.messages) for request in model.requests] == [1, 3, 1]
    assert Notice("shortened") in got
    assert isinstance(got[-1], Answered)
    broken = await events(FakeModel([fails("overflow", "too long")]), fit=fit)
    assert broken[-1] == Broken(Failed("overflow", "too long"))
