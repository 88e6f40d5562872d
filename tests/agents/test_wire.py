"""Requests in OpenAI's format, and answers read out of it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.model import (
    AssistantMessage,
    ChatMessage,
    Finished,
    Image,
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
from agents.wire import AnswerReader, body_of, error_in, joined, written

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
            AssistantMessage("", (ToolCall("c1", "get", '{"a":1}'),), reasoning="I need it", model="x/m"),
            ToolResult("c1", "get", "rain"),
            AssistantMessage("It rains.", reasoning="easy", model="x/m"),
            UserMessage("thanks"),
        ),
        tools=(ToolSpec("get", "Get the weather.", {"type": "object", "properties": {}}),),
        max_output=50,
    )
    assert body_of(request, "m", name="x/m", temperature=0.5, max_output=99) == {
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
    body = body_of(ASKED, "m", name="x/m")
    assert body.keys() == {"model", "messages", "stream", "stream_options"}
    assert body["messages"] == [{"role": "user", "content": "hi"}]


def test_zero_is_a_temperature() -> None:
    assert body_of(Request("", (), temperature=0.0), "m", name="x/m", temperature=0.7)["temperature"] == 0


def test_fields_that_a_provider_calls_otherwise() -> None:
    message = AssistantMessage("", (ToolCall("c1", "get", "{}"),), "thought", "x/m")
    request = Request("", (message, ToolResult("c1", "get", "x")), max_output=9)
    body = body_of(request, "m", name="x/m", output_field="max_completion_tokens", reasoning_field="reasoning")
    assert body["max_completion_tokens"] == 9
    assert body["messages"][0]["reasoning"] == "thought"


def test_a_longer_conversation_begins_with_the_same_bytes() -> None:
    first = json.dumps(body_of(Request("system", (UserMessage("one"),)), "m", name="x/m"))
    longer = Request("system", (UserMessage("one"), AssistantMessage("two"), UserMessage("three")))
    assert json.dumps(body_of(longer, "m", name="x/m")).startswith(first[: first.index("}]") + 1])


def test_a_made_up_tool_name_can_be_sent_back() -> None:
    request = Request("", (AssistantMessage("", (ToolCall("c1", "functions.get weather!", "{}"),)),))
    assert (
        body_of(request, "m", name="x/m")["messages"][0]["tool_calls"][0]["function"]["name"]
        == "functions_get_weather_"
    )


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"a": 1}', '{"a": 1}'), ('{"a":"\\u00e9"}', '{"a":"\\u00e9"}'), ('{"path": "x", "text": "on', "{}"),
        ("", "{}"), ("nothing", "{}"), ("[1]", "{}"), ('"text"', "{}"), ("null", "{}"), ('{"a": NaN}', "{}"),
        ('{"a": 1e999}', "{}"),
        ('{"a": 1} {"b": 2}', "{}"), ('{"a": ' + "[" * 9_999, "{}"), ('{"a": ' + "9" * 9_999 + "}", "{}"),
        ('{"a": "\\ud83c"}', '{"a": "\ufffd"}'),
    ],
)  # fmt: skip
def test_arguments_that_are_no_object_are_not_sent_back(written: str, sent: str) -> None:
    """A call that was cut stays in the history, and would refuse each later call of a provider that parses."""
    request = Request("", (AssistantMessage("", (ToolCall("c1", "write", written),)), ToolResult("c1", "write", "no")))
    (call,) = body_of(request, "m", name="x/m")["messages"][0]["tool_calls"]
    assert call["function"]["arguments"] == sent


def test_a_request_holds_no_surrogates() -> None:
    """G-SPL-03: a body is encoded without an error whatever is in the history."""
    call = ToolCall("c1", "get", '{"a": "\ud83c"}')
    request = Request("\ud83c", (UserMessage("\ud83c\udfa9"), AssistantMessage("\ud83c", (call,), "\ud83c", "x/m")))
    body = json.dumps(body_of(request, "m", name="x/m"), ensure_ascii=False).encode("utf-8").decode()
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
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cache_write_tokens": 4}},
            Usage(9, 2, 0, 4),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "cache_read_input_tokens": 3,
                "cache_creation_input_tokens": 4,
            },
            Usage(9, 2, 3, 4),
        ),
        (  # G-MOD-14: counted beside the input, as Anthropic does it
            {"prompt_tokens": 3, "completion_tokens": 550, "cache_creation_input_tokens": 12304},
            Usage(12307, 550, 0, 12304),
        ),
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


PICTURE = Image("media/a.png", "image/png", b"\x89PNG")
SEEN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}


@pytest.mark.parametrize(
    ("message", "sees", "content"),
    [
        (UserMessage("look", (PICTURE,)), True, [{"type": "text", "text": "look"}, SEEN]),
        (UserMessage("", (PICTURE,)), True, [SEEN]),
        (UserMessage("look", (PICTURE,)), False, "look\n[image: media/a.png]"),
        (UserMessage("", (PICTURE,)), False, "[image: media/a.png]"),
        (UserMessage("look", (replace(PICTURE, data=None),)), True, "look\n[image: media/a.png]"),
        (UserMessage("look", (replace(PICTURE, media_type="image/heic"),)), True, "look\n[image: media/a.png]"),
        (
            UserMessage("two", (PICTURE, Image("media/b.svg", "image/svg+xml", b"<svg/>"))),
            True,
            [{"type": "text", "text": "two\n[image: media/b.svg]"}, SEEN],
        ),
        (UserMessage("[image, 4 B: media/a.png]", (PICTURE,)), False, "[image, 4 B: media/a.png]"),
        (UserMessage("none"), True, "none"),
    ],
)
def test_images_are_seen_or_named(message: UserMessage, sees: bool, content: object) -> None:
    body = body_of(Request("", (message,)), "m", name="x/m", sees_images=sees)
    assert body["messages"] == [{"role": "user", "content": content}]


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
DETAIL = {"type": "reasoning.encrypted", "data": "c2Vh", "index": 0}


@pytest.mark.parametrize(
    ("reasoning", "state", "fields"),
    [
        ("hm", (), {"reasoning_content": "hm"}),
        ("hm", (THOUGHT,), {"thinking_blocks": [THOUGHT]}),
        ("hm", (DETAIL,), {"reasoning_details": [DETAIL]}),
        ("", (), {}),
    ],
)
def test_thinking_goes_back_to_the_same_model_only(
    reasoning: str, state: tuple[dict[str, Any], ...], fields: dict[str, Any]
) -> None:
    """G-MOD-10: unchanged in the next request of the same model, dropped when the model changes."""
    for writer, expected in (("x/m", fields), ("x/other", {}), ("", {})):
        said = AssistantMessage("", (ToolCall("c1", "get", "{}"),), reasoning, writer, state)
        answer = body_of(Request("", (said, ToolResult("c1", "get", "x"))), "m", name="x/m")["messages"][0]
        kept = {k: v for k, v in answer.items() if k in ("reasoning_content", "thinking_blocks", "reasoning_details")}
        assert kept == expected, writer


def test_state_is_read_from_the_stream() -> None:
    pieces = [{"type": "thinking", "thinking": "h"}, {"type": "thinking", "thinking": "m"}, {**THOUGHT, "thinking": ""}]
    events = read(*(chunk({"thinking_blocks": [piece]}) for piece in pieces), chunk({"content": "Hi"}, "stop"))
    assert events == [TextDelta("Hi"), Finished("stop", state=(THOUGHT,))]


def marked(request: Request) -> list[str]:
    """What carries a mark for the cache: the text of a message, or the name of a tool."""
    body = body_of(request, "m", name="x/m", marks_cache=True)
    places = [t["function"]["name"] for t in body.get("tools", []) if "cache_control" in t]
    for message in body["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else []
        places += [part["text"] for part in parts if "cache_control" in part]
    return places


def test_marks_of_a_cache() -> None:
    """Tools, system text, what precedes the newest question, and within a turn the last result: four at most."""
    tools = tuple(ToolSpec(name, "x", {"type": "object", "properties": {}}) for name in ("get", "put"))
    said: tuple[ChatMessage, ...] = (UserMessage("one"), AssistantMessage("two"), UserMessage("three"))
    call = (AssistantMessage("", (ToolCall("c1", "get", "{}"),), model="x/m"), ToolResult("c1", "get", "rain"))
    assert marked(Request("sys", said[:1], tools)) == ["put", "sys"]
    assert marked(Request("sys", said, tools)) == ["put", "sys", "two"]
    assert marked(Request("sys", (*said, *call), tools)) == ["put", "sys", "two", "rain"]
    after = (UserMessage("one"), *call, AssistantMessage(""), UserMessage("three"))
    assert marked(Request("sys", after)) == ["sys", "rain"], "an empty text takes no mark"
    assert marked(Request("", said[:1])) == []
    assert "cache_control" not in json.dumps(body_of(Request("sys", said, tools), "m", name="x/m"))


def test_marks_change_nothing_else() -> None:
    """The prefix that a cache holds is the same with the mark further on."""

    def stripped(value: Any) -> Any:
        if isinstance(value, list):
            return [stripped(v) for v in value]
        return {k: stripped(v) for k, v in value.items() if k != "cache_control"} if isinstance(value, dict) else value

    first = (UserMessage("one"), AssistantMessage("two"), UserMessage("three"))
    longer = (*first, AssistantMessage("four"), UserMessage("five"))
    bodies = [body_of(Request("sys", said), "m", name="x/m", marks_cache=True)["messages"] for said in (first, longer)]
    plain = [[(m["role"], _text_in(m)) for m in stripped(messages)] for messages in bodies]
    assert plain[1][: len(plain[0])] == plain[0]


def _text_in(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_what_is_kept_of_messages_changes_no_body() -> None:
    """A conversation that grows, with calls, a picture whose bytes are there once and gone later, and marks."""
    picture = Image("media/a.png", "image/png", b"x")
    said: tuple[ChatMessage, ...] = (
        UserMessage("weather?"),
        AssistantMessage("", (ToolCall("c1", "get", "{}"),), model="x/m"),
        ToolResult("c1", "get", "rain"),
        AssistantMessage("", (ToolCall("c1", "get", "{}"),), model="y/m"),
        ToolResult("c1", "get", "sun"),
        AssistantMessage("Both."),
        UserMessage("look", (picture,)),
        AssistantMessage("I see."),
        UserMessage("and now?"),
    )
    kept: dict[int, Any] = {}
    tools = (ToolSpec("get", "Get the weather.", {}),)
    for marks in (True, False, True):
        for number in range(1, len(said) + 1):
            request = Request("Be brief.", said[:number], tools)
            made = body_of(request, "m", name="x/m", sees_images=True, marks_cache=marks, kept=kept)
            assert made == body_of(request, "m", name="x/m", sees_images=True, marks_cache=marks)
            assert written(made) == json.dumps(made, ensure_ascii=False).encode()
    gone = (*said[:6], UserMessage("look", (replace(picture, data=None),)))
    made = body_of(Request("", gone), "m", name="x/m", sees_images=True, kept=kept)
    assert made["messages"][-1] == {"role": "user", "content": "look\n[image: media/a.png]"}


def test_what_is_kept_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.wire.MOST_KEPT", 10)
    kept: dict[int, Any] = {}
    said = tuple(UserMessage(str(number)) for number in range(35))
    assert body_of(Request("", said), "m", name="x/m", kept=kept) == body_of(Request("", said), "m", name="x/m")
    assert len(kept) <= 10


@given(st.lists(st.sampled_from([TextDelta("a"), TextDelta("b"), ReasoningDelta("c"), Finished("stop")]), max_size=20))
def test_what_came_together_is_joined_in_its_order(events: list[ModelEvent]) -> None:
    def spelt(events: list[ModelEvent]) -> list[tuple[str, str]]:
        return [(type(e).__name__, letter) for e in events for letter in getattr(e, "text", ".")]

    got = list(joined(events))
    assert spelt(got) == spelt(events)
    assert all(type(one) is not type(other) or isinstance(one, Finished) for one, other in pairwise(got))


def test_a_provider_that_ends_with_an_error() -> None:
    """G-MOD-12: it is classified before anything is shown, and is no answer."""
    assert error_in(chunk({}, "error")) == "the provider broke off the answer"
    assert error_in({"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 429}}]}) == {"code": 429}
    assert error_in(chunk({"content": "error"}, "stop")) is None
