"""Several models behind one interface, over real HTTP: who is asked, who rests, who answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

import pytest

from agents.chain import LONGEST_REST_SECONDS, REST_SECONDS, Chain
from agents.loop import Turn, run
from agents.model import Failed, Finished, Limits, ReasoningDelta, Request, TextDelta, ToolSpec, UserMessage
from agents.openai_model import OpenAIModel
from agents.tools.tool import Outcome, tool
from tests.agents.model_cases import ASKED, outcome_of
from tests.fakes.model import FakeModel
from tests.fakes.model_server import Call, ModelServer, Reply

DOWN = {
    "network": Reply(drop=True),
    "overload": Reply(
        status=529, body={"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
    "rate_limit": Reply(status=429, body={"error": {"message": "Rate limit reached"}}),
    "auth": Reply(status=401, body={"error": {"message": "Incorrect API key"}}),
    "billing": Reply(status=429, body={"error": {"message": "no", "code": "insufficient_quota"}}),
    "refused": Reply(status=404, body={"error": {"message": "no such model"}}),
}
FINAL = {
    "overflow": Reply(status=400, body={"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}),
    "filtered": Reply(status=400, body={"error": {"message": "x", "code": "content_filter"}}),
}
TOOLS = (ToolSpec("get", "Get.", {"type": "object", "properties": {}}),)


@dataclass
class Made:
    """A chain and the servers behind it; ``time`` is what its clock says, in seconds."""

    chain: Chain
    servers: list[ModelServer]
    time: list[float]

    @property
    def asked(self) -> list[int]:
        """How often each server was asked."""
        return [len(server.requests) for server in self.servers]


Make = Callable[..., Awaitable[Made]]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """A chain of the models a, b, c …, each with a server that has its own script."""
    running: list[ModelServer | Chain] = []

    async def start(*scripts: Sequence[Reply], contexts: Sequence[int] = (), tools: Sequence[bool] = ()) -> Made:
        servers = [await ModelServer(script).start() for script in scripts]
        models = [
            OpenAIModel(
                f"test/{name}",
                model=name,
                base_url=server.url,
                limits=Limits([*contexts, *[8192] * 9][index], 1024),
                uses_tools=[*tools, *[True] * 9][index],
            )
            for index, (name, server) in enumerate(zip("abcdef", servers, strict=False))
        ]
        time = [1000.0]
        chain = Chain(models, clock=lambda: time[0])
        running.extend([*servers, chain])
        return Made(chain, servers, time)

    yield start
    for each in reversed(running):
        await (each.stop() if isinstance(each, ModelServer) else each.close())


@pytest.mark.parametrize("kind", DOWN)
async def test_the_next_one_answers_in_the_same_call(make: Make, kind: str) -> None:
    """G-MOD-11."""
    made = await make([DOWN[kind]], [Reply("Hello")])
    events = [event async for event in made.chain.stream(ASKED)]
    assert events[:-1] == [TextDelta("Hello")]
    assert isinstance(events[-1], Finished)
    assert events[-1].model == "test/b", "who answered is told"
    assert made.asked == [1, 1]


@pytest.mark.parametrize("kind", FINAL)
async def test_what_is_wrong_with_the_request_is_not_passed_on(make: Make, kind: str) -> None:
    made = await make([FINAL[kind], Reply("again")], [Reply("Hello")])
    assert (await outcome_of(made.chain)).kind == kind
    assert made.asked == [1, 0]
    assert (await outcome_of(made.chain)).text == "again", "and the model does not rest for it"


@pytest.mark.parametrize("kind", DOWN)
async def test_a_model_that_failed_rests_and_comes_back(make: Make, kind: str) -> None:
    made = await make([DOWN[kind], Reply("I am back")], [Reply("one"), Reply("two")])
    assert [(await outcome_of(made.chain)).text for _ in range(2)] == ["one", "two"]
    assert made.asked == [1, 2], "it is not asked while it rests"
    made.time[0] += next(seconds for name, seconds in REST_SECONDS.items() if name == kind)
    assert (await outcome_of(made.chain)).text == "I am back"


@pytest.mark.parametrize(("asked", "rests"), [("5", 60), ("200", 200), ("999999", LONGEST_REST_SECONDS)])
async def test_it_rests_as_long_as_its_provider_asks(make: Make, asked: str, rests: float) -> None:
    slow = Reply(status=429, body={"error": {"message": "Rate limit reached"}}, headers={"Retry-After": asked})
    made = await make([slow, Reply("back")], [Reply("one"), Reply("two")])
    await outcome_of(made.chain)
    made.time[0] += rests - 0.5
    assert (await outcome_of(made.chain)).text == "two"
    made.time[0] += 0.5
    assert (await outcome_of(made.chain)).text == "back"


async def test_when_all_fail_each_reason_is_told_and_the_keys_are_not(make: Make) -> None:
    made = await make([DOWN["auth"]], [DOWN["rate_limit"]], [DOWN["refused"]])
    (failed,) = [event async for event in made.chain.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.may_retry) == ("rate_limit", True), "one of them may be tried again"
    assert failed.message.startswith("None of 3 models could answer. ")
    for server, words in zip(made.servers, ["wants a key", "slow down", "no such model"], strict=True):
        port = server.url.rpartition(":")[2].partition("/")[0]
        assert f"127.0.0.1:{port}" in failed.message
        assert words in failed.message


async def test_a_reason_that_all_share_is_said_once() -> None:
    """As of a budget that is spent, which is the same for all."""
    spent = FakeModel([[Failed("billing", "The budget is used up.")]])
    chain = Chain([spent, spent], clock=lambda: 0.0)
    assert [event async for event in chain.stream(ASKED)] == [Failed("billing", "The budget is used up.")]
    chain = Chain([spent, FakeModel([[Failed("auth", "No key.")]]), spent], clock=lambda: 0.0)
    (failed,) = [event async for event in chain.stream(ASKED)]
    assert failed == Failed("billing", "None of 3 models could answer. The budget is used up. No key.")


async def test_none_that_may_be_tried_again(make: Make) -> None:
    made = await make([DOWN["auth"]], [DOWN["billing"]])
    (failed,) = [event async for event in made.chain.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.may_retry) == ("auth", False)


async def test_those_that_rest_are_asked_last_and_not_never(make: Make) -> None:
    """G-MOD-11: nobody hears "all models failed" while one of them was not asked."""
    made = await make([DOWN["overload"], Reply("here again")], [Reply("one"), DOWN["overload"]])
    assert (await outcome_of(made.chain)).text == "one"
    assert (await outcome_of(made.chain)).text == "here again"
    assert made.asked == [2, 2]


async def test_after_the_first_word_nobody_else_is_asked(make: Make) -> None:
    """G-MOD-13: a person sees one answer, not the beginning of one and the whole of another."""
    made = await make([Reply("one two three", cut_after=3)], [Reply("Hello")])
    got = await outcome_of(made.chain)
    assert (got.text, got.kind) == ("one two", "network")
    assert made.asked == [1, 0]
    assert (await outcome_of(made.chain)).text == "Hello", "but the next call begins with another"


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
async def test_a_stream_that_dies_before_any_text(make: Make, cut: int) -> None:
    """G-MOD-13: nothing, reasoning, or half a call came; none of it is in the answer."""
    dying = Reply(reasoning="I think", calls=[Call("get", '{"city": "San Francisco"}')], cut_after=cut)
    made = await make([dying], [Reply("Hello", reasoning="They greet")])
    got = await outcome_of(made.chain)
    assert (got.text, got.reasoning, got.calls, got.kind) == ("Hello", "They greet", (), None)


async def test_too_long_for_a_smaller_one_is_not_too_long(make: Make) -> None:
    """To compact for the window of the first would not help the second, and there would be no end of it."""
    made = await make([DOWN["overload"]], [FINAL["overflow"]], [DOWN["refused"]], contexts=[32_000, 4_000, 32_000])
    (failed,) = [event async for event in made.chain.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert failed.kind == "overload"
    assert "longer than test/b takes" in failed.message
    made = await make([DOWN["overload"]], [FINAL["overflow"]], contexts=[32_000, 32_000])
    assert (await outcome_of(made.chain)).kind == "overflow"


async def test_one_that_can_not_call_tools_is_passed_over_where_there_are_some(make: Make) -> None:
    made = await make([DOWN["auth"]], [Reply("fiction")], tools=[True, False])
    (failed,) = [event async for event in made.chain.stream(Request("", (UserMessage("hi"),), TOOLS))]
    assert isinstance(failed, Failed)
    assert "test/b can't call tools" in failed.message
    assert made.asked == [1, 0]
    assert (await outcome_of(made.chain)).text == "fiction", "without tools it may answer"


async def test_nobody_is_asked_for_more_than_it_can_give(make: Make) -> None:
    made = await make([DOWN["auth"]], [Reply("Hello")])
    await outcome_of(made.chain, Request("", (UserMessage("hi"),), max_output=4096))
    assert made.servers[1].requests[0].body["max_tokens"] == 1024


async def test_closing_the_stream_closes_the_one_that_answers(make: Make) -> None:
    made = await make([DOWN["auth"]], [Reply("one two", stall_after=2)])
    stream = made.chain.stream(ASKED)
    assert await anext(stream) == TextDelta("one")
    await stream.aclose()


async def test_what_the_first_can_do_is_what_the_chain_can(make: Make) -> None:
    made = await make([], [], contexts=[16_000, 4_000], tools=[True, False])
    assert (made.chain.name, made.chain.limits.context, made.chain.uses_tools) == ("test/a", 16_000, True)


async def test_a_tool_that_ran_is_not_run_again(make: Make) -> None:
    """G-MOD-11: the first model fails in the middle of a turn, after a tool."""
    ran: list[str] = []

    async def note(text: str) -> Outcome:
        """Note it."""
        ran.append(text)
        return Outcome("noted")

    made = await make(
        [Reply(calls=[Call("note", '{"text": "milk"}')]), DOWN["rate_limit"]],
        [Reply("I noted milk.")],
    )
    turn = Turn(made.chain, Request("", (UserMessage("note milk"),)), [tool(note)])
    events = [event async for event in run(turn)]
    assert ran == ["milk"]
    assert getattr(events[-1], "text", None) == "I noted milk."
    assert made.asked == [2, 1]
    assert [m["role"] for m in made.servers[1].requests[0].messages] == ["user", "assistant", "tool"]


async def test_reasoning_comes_ahead_of_the_text(make: Make) -> None:
    made = await make([Reply("Hi", reasoning="They greet")], [])
    events = [event async for event in made.chain.stream(ASKED)]
    assert [type(event) for event in events] == [ReasoningDelta, TextDelta, Finished]
