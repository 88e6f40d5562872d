"""Requests in OpenAI's format, and answers read out of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.model import (
    AssistantMessage,
    Finished,
    ModelEvent,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
)
from agents.wire import AnswerReader, body_of

ASKED = Request("", (UserMessage("hi"),))


def read(*chunks: dict[str, Any], request: Request = ASKED) -> list[ModelEvent]:
    reader = AnswerReader(request)
    return [event for chunk in chunks for event in reader.feed(chunk)] + list(reader.end())


def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def text_of(events: list[ModelEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def test_the_body_of_a_request() -> None:
    request = Request(
        system="Be brief.",
        messages=(
            UserMessage("weather?"),
            AssistantMessage("", (ToolCall("c1", "get", '{"a":1}'),), reasoning="I need it"),
            ToolResult("c1", "get", "rain"),
            AssistantMessage("It rains.", reasoning="easy"),
            UserMessage("thanks"),
        ),
        tools=(ToolSpec("get", "Get the weather.", {"type": "object", "properties": {}}),),
        max_output=50,
    )
    assert body_of(request, "m", temperature=0.5, max_output=99) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "weather?"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "I need it",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"a":1}'}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
            {"role": "assistant", "content": "It rains."},
            {"role": "user", "content": "thanks"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get",
                    "description": "Get the weather.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "max_tokens": 50,
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_what_is_not_asked_for_is_not_sent() -> None:
    body = body_of(ASKED, "m")
    assert body.keys() == {"model", "messages", "stream", "stream_options"}
    assert body["messages"] == [{"role": "user", "content": "hi"}]


def test_zero_is_a_temperature() -> None:
    assert body_of(Request("", (), temperature=0.0), "m", temperature=0.7)["temperature"] == 0


def test_fields_that_a_provider_calls_otherwise() -> None:
    message = AssistantMessage("", (ToolCall("c1", "get", "{}"),), reasoning="thought")
    request = Request("", (message, ToolResult("c1", "get", "x")), max_output=9)
    body = body_of(request, "m", output_field="max_completion_tokens", reasoning_field="reasoning")
    assert body["max_completion_tokens"] == 9
    assert body["messages"][0]["reasoning"] == "thought"


def test_a_longer_conversation_begins_with_the_same_bytes() -> None:
    first = json.dumps(body_of(Request("system", (UserMessage("one"),)), "m"))
    longer = Request("system", (UserMessage("one"), AssistantMessage("two"), UserMessage("three")))
    assert json.dumps(body_of(longer, "m")).startswith(first[: first.index("}]") + 1])


def test_a_made_up_tool_name_can_be_sent_back() -> None:
    request = Request("", (AssistantMessage("", (ToolCall("c1", "functions.get weather!", "{}"),)),))
    assert body_of(request, "m")["messages"][0]["tool_calls"][0]["function"]["name"] == "functions_get_weather_"


def test_a_request_holds_no_surrogates() -> None:
    """G-SPL-03: a body is encoded without an error whatever is in the history."""
    call = ToolCall("c1", "get", "\ud83c")
    request = Request("\ud83c", (UserMessage("\ud83c\udfa9"), AssistantMessage("\ud83c", (call,), "\ud83c")))
    body = json.dumps(body_of(request, "m"), ensure_ascii=False).encode("utf-8").decode()
    assert "\U0001f3a9" in body, "two halves of one letter are that letter"
    assert body.count("\ufffd") >= 3, "a lone half is shown as missing"


def test_a_streamed_answer() -> None:
    events = read(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}, "stop"),
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}},
    )
    assert events == [TextDelta("Hel"), TextDelta("lo"), Finished("stop", (), Usage(9, 2, 0))]


def test_a_whole_answer() -> None:
    call = {"id": "c1", "function": {"name": "get", "arguments": "{}"}}
    twice = {"id": None, "function": {"name": "get", "arguments": ""}}
    message = {"content": "Hi", "reasoning_content": "why", "tool_calls": [call, twice, twice]}
    events = read({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert events[:2] == [ReasoningDelta("why"), TextDelta("Hi")]
    assert isinstance(events[2], Finished)
    assert len({c.id for c in events[2].calls}) == 3


@pytest.mark.parametrize(
    ("reason", "has_call", "told"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tools"),
        ("tool_calls", True, "tools"),
        ("tool_calls", False, "stop"),
        ("length", True, "length"),
        ("max_tokens", False, "length"),
        ("content_filter", False, "filtered"),
        ("something new", False, "stop"),
    ],
)
def test_why_it_ended(reason: str, has_call: bool, told: str) -> None:
    calls = [{"index": 0, "id": "c1", "function": {"name": "get", "arguments": '{"a'}}] if has_call else []
    (finished,) = read(chunk({"tool_calls": calls}, reason))
    assert isinstance(finished, Finished)
    assert finished.reason == told
    assert len(finished.calls) == has_call


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_no_text(field: str) -> None:
    """G-MOD-08: content null and reasoning full is an answer without text."""
    events = read(chunk({"content": None, field: "The user wants"}), chunk({}, "stop"))
    assert events == [ReasoningDelta("The user wants"), Finished("stop")]


def test_parts_in_place_of_a_string() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    events = read(chunk({"content": [thought, {"type": "text", "text": "Hi"}]}), chunk({}, "stop"))
    assert events == [ReasoningDelta("hm"), TextDelta("Hi"), Finished("stop")]


def test_a_character_that_was_cut_into_two_chunks() -> None:
    """G-SPL-03: the two escapes of one character in two deltas; a half that stays alone."""
    chunks = [json.loads(json.dumps(chunk({"content": half}))) for half in ("hat \ud83c", "\udfa9 and \ud83c")]
    events = read(*chunks, chunk({}, "stop"))
    assert text_of(events) == "hat \U0001f3a9 and \ufffd"


def test_ids_of_the_conversation_are_not_given_again() -> None:
    asked = Request("", (AssistantMessage("", (ToolCall("call_0", "get", "{}"),)), ToolResult("call_0", "get", "x")))
    calls = [{"index": 0, "id": "call_0", "function": {"name": "get", "arguments": "{}"}}]
    finished = read(chunk({"tool_calls": calls}, "stop"), request=asked)[-1]
    assert isinstance(finished, Finished)
    assert finished.calls[0].id != "call_0"


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 7}}, Usage(9, 2, 7)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 7}, Usage(9, 2, 7)),
        ({"prompt_tokens": None, "completion_tokens": "2"}, Usage()),
        ("broken", Usage()),
    ],
)
def test_usage(usage: object, counted: Usage) -> None:
    (finished,) = read(chunk({}, "stop") | {"usage": usage})
    assert isinstance(finished, Finished)
    assert finished.usage == counted


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": ["x"]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": 3, "tool_calls": "x", "reasoning": {}}}]},
    ],
)
def test_odd_chunks_are_passed_over(odd: dict[str, Any]) -> None:
    assert text_of(read(odd, chunk({"content": "Hi"}), chunk({}, "stop"))) == "Hi"
