"""What every client of a hosted model has to make of an answer: the same replies, the same events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agents.model import Failed, Finished, Model, ReasoningDelta, Request, TextDelta, ToolCall, UserMessage
from tests.fakes.model_server import Call, Reply

ASKED = Request("Be brief.", (UserMessage("hi"),))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The events of a call, added up. ``kind`` is the failure's, None for one that worked."""

    text: str = ""
    reasoning: str = ""
    reason: str | None = None
    calls: tuple[ToolCall, ...] = ()
    kind: str | None = None


async def outcome_of(model: Model, request: Request = ASKED) -> Outcome:
    text, reasoning = "", ""
    events = [event async for event in model.stream(request)]
    for event in events[:-1]:
        assert isinstance(event, TextDelta | ReasoningDelta), "the last event ends a call, and nothing else does"
        if isinstance(event, TextDelta):
            text += event.text
        else:
            reasoning += event.text
    end = events[-1]
    if isinstance(end, Finished):
        return Outcome(text, reasoning, end.reason, end.calls)
    assert isinstance(end, Failed)
    return Outcome(text, reasoning, kind=end.kind)


def _index_0(call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    piece: dict[str, Any] = {"index": 0, "function": {"arguments": arguments}}
    if call_id:
        piece |= {"id": call_id, "type": "function"}
        piece["function"]["name"] = name
    return {"tool_calls": [piece]}


SAN_FRANCISCO = ToolCall("c1", "get", '{"city":"SF"}')
NEW_YORK = ToolCall("c2", "get", '{"city":"NY"}')

ANSWERS: dict[str, tuple[Reply, Outcome]] = {
    "text": (Reply("Hello there, ærlig talt 🐚"), Outcome("Hello there, ærlig talt 🐚", reason="stop")),
    "reasoning": (Reply("Hi", reasoning="They greet."), Outcome("Hi", "They greet.", "stop")),
    "think tags": (Reply("<think>They greet.</think>Hi"), Outcome("Hi", "They greet.", "stop")),
    "length": (Reply("Hello th", finish="length"), Outcome("Hello th", reason="length")),
    "one call": (
        Reply("Let me see.", calls=[Call("get", '{"city":"SF"}', "c1")]),
        Outcome("Let me see.", reason="tools", calls=(SAN_FRANCISCO,)),
    ),
    "two calls": (
        Reply(calls=[Call("get", '{"city":"SF"}', "c1"), Call("get", '{"city":"NY"}', "c2")]),
        Outcome(reason="tools", calls=(SAN_FRANCISCO, NEW_YORK)),
    ),
    "two calls, all index 0 (G-MOD-04)": (
        Reply(
            deltas=[
                _index_0("c1", "get", '{"city":'),
                _index_0(None, None, '"SF"}'),
                _index_0("c2", "get", '{"city":'),
                _index_0(None, None, '"NY"}'),
            ],
            finish="tool_calls",
        ),
        Outcome(reason="tools", calls=(SAN_FRANCISCO, NEW_YORK)),
    ),
    "calls without ids (G-MOD-06)": (
        Reply(calls=[Call("get", '{"city":"SF"}', None), Call("get", '{"city":"NY"}', None)]),
        Outcome(reason="tools", calls=(replace(SAN_FRANCISCO, id="call00001"), replace(NEW_YORK, id="call00002"))),
    ),
    "the same call and id twice (G-MOD-05)": (
        Reply(
            deltas=[
                {"tool_calls": [{"index": i, "id": c, "type": "function", "function": {"name": "get", "arguments": a}}]}
                for i, (c, a) in enumerate([("c1", '{"city":"SF"}'), ("c2", '{"city":"NY"}'), ("c2", '{"city":"NY"}')])
            ],
            finish="tool_calls",
        ),
        Outcome(reason="tools", calls=(SAN_FRANCISCO, NEW_YORK)),
    ),
    "broken arguments, not cut (G-MOD-03)": (
        Reply(calls=[Call("get", '{"action": listt_windows"}', "c1")]),
        Outcome(reason="tools", calls=(ToolCall("c1", "get", '{"action": listt_windows"}'),)),
    ),
    "reasoning and nothing else (G-MOD-08)": (
        Reply(reasoning="The user wants..."),
        Outcome(reasoning="The user wants...", reason="stop"),
    ),
    "cut arguments (G-MOD-01)": (
        Reply(calls=[Call("get", '{"city":"S', "c1")], finish="length"),
        Outcome(reason="length", calls=(ToolCall("c1", "get", '{"city":"S'),)),
    ),
}

REFUSALS: dict[str, tuple[Reply, str]] = {
    "auth": (Reply(status=401, body={"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}), "auth"),
    "billing": (Reply(status=429, body={"error": {"message": "no", "code": "insufficient_quota"}}), "billing"),
    "rate limit": (Reply(status=429, body={"error": {"message": "Rate limit reached"}}), "rate_limit"),
    "overload": (Reply(status=503, body={"error": {"message": "Overloaded"}}), "overload"),
    "model unknown": (Reply(status=404, body={"error": {"message": "no such model"}}), "refused"),
    "bad request": (Reply(status=400, body={"error": {"message": "Unsupported parameter"}}), "refused"),
    "filter": (
        Reply(status=400, body={"error": {"message": "content management policy", "code": "content_filter"}}),
        "filtered",
    ),
    **{
        f"overflow (G-CMP-26): {words}": (Reply(status=400, body={"error": {"message": words}}), "overflow")
        for words in (
            "too large for model with 8192 maximum context length",
            "total length of all messages is too long",
            "Input is too long for requested model",
            "Input length 9000 exceeds maximum context length 8192",
            "Current length is 9000 while limit is 8192",
            "Your request exceeded model token limit: 8192",
        )
    },
    "overflow (G-CMP-26): the code alone": (
        Reply(status=400, body={"error": {"message": "no", "code": "context_length_exceeded"}}),
        "overflow",
    ),
}
