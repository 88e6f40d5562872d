"""The lean client against a real HTTP server: every kind of answer, every kind of trouble."""

from __future__ import annotations

import asyncio
import json
import socket
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.failures import Endpoint
from agents.model import (
    AssistantMessage,
    Failed,
    Finished,
    Image,
    Limits,
    ModelEvent,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolResult,
    Usage,
    UserMessage,
)
from agents.openai_model import Answer, OpenAIModel
from tests.agents.model_cases import ANSWERS, ASKED, REFUSALS, Outcome, outcome_of
from tests.fakes.model_server import Call, ModelServer, Reply, Script

KEY = "sk-very-secret-key-0123456789"
Connect = Callable[..., Any]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Starts a server with a script and gives it with a client of it; both are closed at the end."""
    running: list[ModelServer | OpenAIModel] = []

    async def start(script: Script, **options: Any) -> tuple[ModelServer, OpenAIModel]:
        server = await ModelServer(script).start()
        settings: dict[str, Any] = {"model": "fake", "base_url": server.url, "limits": Limits(8192, 1024)} | options
        model = OpenAIModel("openai/fake", **settings)
        running.extend((server, model))
        return server, model

    yield start
    for each in reversed(running):
        await (each.stop() if isinstance(each, ModelServer) else each.close())


@pytest.mark.parametrize("case", ANSWERS)
async def test_answers(connect: Connect, case: str) -> None:
    reply, expected = ANSWERS[case]
    _, model = await connect([reply])
    assert await outcome_of(model) == expected


@pytest.mark.parametrize("case", [name for name, (reply, _) in ANSWERS.items() if reply.deltas is None])
async def test_answers_of_a_server_that_does_not_stream(connect: Connect, case: str) -> None:
    reply, expected = ANSWERS[case]
    _, model = await connect([replace(reply, whole=True)])
    assert await outcome_of(model) == expected


@pytest.mark.parametrize("case", REFUSALS)
async def test_refusals(connect: Connect, case: str) -> None:
    reply, kind = REFUSALS[case]
    _, model = await connect([reply], api_key=KEY, key_place="OPENAI_API_KEY")
    assert (await outcome_of(model)).kind == kind


async def test_what_is_sent(connect: Connect) -> None:
    server, model = await connect([Reply("Hi")], api_key=KEY, temperature=0.3, max_output=99)
    assert (await outcome_of(model)).reason == "stop"
    (sent,) = server.requests
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert (sent.body["temperature"], sent.body["max_tokens"]) == (0.3, 99)
    assert sent.body["stream_options"] == {"include_usage": True}


async def test_an_image_is_sent_as_a_part(connect: Connect) -> None:
    asked = Request("", (UserMessage("look", (Image("media/a.png", "image/png", b"\x89PNG"),)),))
    server, model = await connect([Reply("a cat")] * 2, sees_images=True)
    assert (await outcome_of(model, asked)).text == "a cat"
    assert server.requests[0].messages[0]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw=="
    server, model = await connect([Reply("no idea")])
    await outcome_of(model, asked)
    assert server.requests[0].messages[0]["content"] == "look\n[image: media/a.png]"


async def test_what_a_provider_wants_back_comes_back_unchanged(connect: Connect) -> None:
    """G-MOD-10, as OpenRouter has it; the second request is the proof."""
    details = [
        {"type": "reasoning.text", "text": "They ", "index": 0, "format": "anthropic-claude-v1"},
        {"type": "reasoning.text", "text": "ask.", "signature": "c2ln", "index": 0},
        {"type": "reasoning.encrypted", "data": "c2Vh", "id": "rs_1", "index": 1},
    ]
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    thinking = Reply(
        deltas=[*({"reasoning_details": [d], "reasoning": "x"} for d in details), {"tool_calls": [call]}],
        finish="tool_calls",
    )
    server, model = await connect([thinking, Reply("rain")], reasoning_field="reasoning")
    finished = [event async for event in model.stream(ASKED)][-1]
    assert isinstance(finished, Finished)
    said = AssistantMessage("", finished.calls, "xxx", model.name, finished.state)
    await outcome_of(model, replace(ASKED, messages=(*ASKED.messages, said, ToolResult("c1", "get", "rain"))))
    answer = server.requests[1].messages[2]
    assert "reasoning" not in answer
    assert answer["reasoning_details"] == [
        {
            "type": "reasoning.text",
            "text": "They ask.",
            "index": 0,
            "format": "anthropic-claude-v1",
            "signature": "c2ln",
        },
        details[2],
    ]


async def test_marks_for_a_cache_are_sent_where_they_are_wanted(connect: Connect) -> None:
    for wanted in (True, False):
        server, model = await connect([Reply("Hi")], marks_cache=wanted)
        await outcome_of(model)
        assert ("cache_control" in server.requests[0].text) is wanted


@pytest.mark.parametrize("cut", [0, 1, 2, 3, 4])
async def test_a_stream_that_dies_gives_no_half_call(connect: Connect, cut: int) -> None:
    """G-MOD-13: after nothing, after reasoning, inside the arguments of a call."""
    _, model = await connect([Reply(reasoning="hm", calls=[Call("get", '{"city": "San Francisco"}')], cut_after=cut)])
    got = await outcome_of(model)
    assert (got.kind, got.calls, got.text) == ("network", (), "")


async def test_a_provider_that_ends_with_an_error(connect: Connect) -> None:
    """G-MOD-12: an error in place of a reason is a failure, whatever text came before, and none of it is text."""
    _, model = await connect([Reply("", deltas=[], finish="error", usage=None)])
    (failed,) = [event async for event in model.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.may_retry) == ("overload", True)


async def test_without_a_key_none_is_sent(connect: Connect) -> None:
    server, model = await connect([Reply("Hi")])
    await outcome_of(model)
    assert "authorization" not in server.requests[0].headers


async def test_usage_is_the_providers(connect: Connect) -> None:
    _, model = await connect([Reply("Hi", usage=(1200, 7, 1024))])
    events = [event async for event in model.stream(ASKED)]
    assert events[-1] == Finished("stop", (), Usage(1200, 7, 1024))


async def test_what_came_together_is_handed_on_together_and_at_once(connect: Connect) -> None:
    """One event for the pieces of one read, those of another kind apart; and no waiting for more."""
    more = asyncio.Event()

    def sent(*deltas: dict[str, str]) -> bytes:
        return b"".join(b"data: %b\n\n" % json.dumps({"choices": [{"delta": delta}]}).encode() for delta in deltas)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        thoughts = {"reasoning_content": "H"}, {"reasoning_content": "m"}
        words = {"content": "One"}, {"content": " two"}
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + sent(*thoughts, *words))
        await more.wait()
        writer.write(sent({"content": " three"}, {"content": " four"}))
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        _, model = await connect([], base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        stream = model.stream(ASKED)
        assert [await anext(stream), await anext(stream)] == [ReasoningDelta("Hm"), TextDelta("One two")]
        more.set()
        assert await anext(stream) == TextDelta(" three four")
        await stream.aclose()


async def test_closing_the_stream_hangs_up(connect: Connect) -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: {"choices":[{"delta":{"content":"Hi"}}]}\n\n')
        while await reader.read(65536):
            pass
        gone.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        _, model = await connect([], base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        stream = model.stream(ASKED)
        assert await anext(stream) == TextDelta("Hi")
        await stream.aclose()
        await asyncio.wait_for(gone.wait(), 5)


async def test_one_connection_serves_many_calls(connect: Connect) -> None:
    ports = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.add(writer.get_extra_info("peername")[1])
        body = b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}'
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def ignore_end(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The client's leaving ends ``serve`` in the middle of its read."""

    asyncio.get_running_loop().set_exception_handler(ignore_end)
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        _, model = await connect([], base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        for _ in range(3):
            assert (await outcome_of(model)).text == "Hi"
        await model.close()
    assert len(ports) == 1


@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_a_stream_that_is_cut(connect: Connect, pieces: int) -> None:
    """G-MOD-13: before any text and after some: a failure that may be tried again, never a silent end."""
    _, model = await connect([Reply("one two three", cut_after=pieces)])
    outcome = await outcome_of(model)
    assert outcome == Outcome(text="one two" if pieces == 3 else "", kind="network")


async def test_a_call_that_is_cut_is_not_handed_out(connect: Connect) -> None:
    """G-MOD-13: inside a tool call: nothing of it is there to be run."""
    reply, _ = ANSWERS["one call"]
    _, model = await connect([Reply("", reply.calls, cut_after=3)])
    assert await outcome_of(model) == Outcome(kind="network")


async def test_a_stream_that_ends_cleanly_but_too_early(connect: Connect) -> None:
    chunk = b'data: {"choices":[{"delta":{"content":"one"}}]}\n\n'
    _, model = await connect([Reply(raw=[chunk]), Reply(raw=[chunk, b'data: {"choi']), Reply(raw=[b": ping\n\n"])])
    assert await outcome_of(model) == Outcome("one", kind="network")
    assert await outcome_of(model) == Outcome("one", kind="network")
    assert (await outcome_of(model)).kind == "refused", "it never was a chat completion"


async def test_what_comes_after_the_reason_may_be_lost(connect: Connect) -> None:
    """Neither the usage nor the end mark is the answer."""
    chunk = b'data: {"choices":[{"delta":{"content":"one"},"finish_reason":"stop"}]}\n\n'
    _, model = await connect([Reply(raw=[chunk]), Reply(raw=[chunk, b"x"], cut_after=1)])
    assert await outcome_of(model) == Outcome("one", reason="stop")
    assert await outcome_of(model) == Outcome("one", reason="stop")


async def test_an_end_mark_without_a_reason(connect: Connect) -> None:
    chunk = b'data: {"choices":[{"delta":{"content":"one"}}]}\r\n\r\n'
    _, model = await connect([Reply(raw=[chunk, b"data: [DONE]"])])
    assert await outcome_of(model) == Outcome("one", reason="stop")


async def test_a_server_that_says_nothing(connect: Connect) -> None:
    _, model = await connect([Reply("one two", stall_after=2), Reply(wait=True)], silence=0.05)
    events = [event async for event in model.stream(ASKED)]
    assert events[0] == TextDelta("one")
    assert isinstance(events[-1], Failed)
    assert "said nothing for 0.05 seconds" in events[-1].message
    assert (await outcome_of(model)).kind == "network"


async def test_a_server_that_hangs_up(connect: Connect) -> None:
    _, model = await connect([Reply(drop=True), Reply("Hi")])
    assert (await outcome_of(model)).kind == "network"
    assert (await outcome_of(model)).text == "Hi", "the next call makes a connection of its own"


async def test_nobody_listens(connect: Connect) -> None:
    with socket.socket() as bound:  # and not listening, so that no other program takes the port
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        _, model = await connect([], base_url=f"http://127.0.0.1:{port}/v1")
        (failed,) = [event async for event in model.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert failed.kind == "network"
    assert failed.message.startswith(f"127.0.0.1:{port} can't be reached: connection refused.")


async def test_a_host_that_does_not_exist(connect: Connect) -> None:
    _, model = await connect([], base_url="http://no-such-host.invalid/v1")
    (failed,) = [event async for event in model.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.may_retry) == ("network", True)
    assert "no-such-host.invalid:80" in failed.message


async def test_an_address_that_is_none(connect: Connect) -> None:
    _, model = await connect([], base_url="http://")
    assert (await outcome_of(model)).kind == "refused"


@pytest.mark.parametrize("raw", [b"<html>Welcome</html>", b"{}", b'{"hello": 1}', b"[1]", b"data: [DONE]\n\n"])
async def test_something_else_answers(connect: Connect, raw: bytes) -> None:
    _, model = await connect([Reply(raw=[raw])])
    (failed,) = [event async for event in model.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert failed.kind == "refused"
    assert "usually ends in /v1" in failed.message


async def test_a_redirect_is_not_followed(connect: Connect) -> None:
    """It would carry the key to wherever it points."""
    server, _ = await connect([Reply("Hi")])
    _, model = await connect(
        [Reply(status=307, headers={"Location": f"{server.url}/chat/completions"})], api_key=KEY, key_place="X"
    )
    assert (await outcome_of(model)).kind == "refused"
    assert server.requests == []


async def test_an_error_inside_the_stream(connect: Connect) -> None:
    events = [
        b'data: {"choices":[{"delta":{"content":"one"}}]}\n\n',
        b'data: {"error":{"code":429,"message":"slow down"},"choices":[]}\n\n',
        b"data: [DONE]\n\n",
    ]
    _, model = await connect([Reply(raw=events), Reply(raw=[b'{"error": "model \\"x\\" not loaded"}'])])
    assert await outcome_of(model) == Outcome("one", kind="rate_limit")
    assert (await outcome_of(model)).kind == "overload"


async def test_how_long_to_wait(connect: Connect) -> None:
    body = {"error": {"message": "Rate limit reached"}}
    _, model = await connect([Reply(status=429, body=body, headers={"Retry-After": "3"})])
    (failed,) = [event async for event in model.stream(ASKED)]
    assert failed == Failed("rate_limit", failed.message, 3)


async def test_the_key_is_nowhere_to_be_seen(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    body = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    _, model = await connect([Reply(status=401, body=body), Reply(drop=True)], api_key=KEY, key_place="OPENAI_API_KEY")
    events: list[ModelEvent] = [e for _ in range(2) for e in [event async for event in model.stream(ASKED)]]
    seen = f"{events!r} {model!r} {vars(model)['_endpoint']!r} {caplog.text} {traceback.format_exc()}"
    assert KEY not in seen
    assert "OPENAI_API_KEY" in seen


async def test_many_calls_at_once(connect: Connect) -> None:
    _, model = await connect(lambda request: Reply(request.messages[-1]["content"]))
    requests = [Request("", (UserMessage(f"call {n}"),)) for n in range(50)]
    outcomes = await asyncio.gather(*(outcome_of(model, request) for request in requests))
    assert [outcome.text for outcome in outcomes] == [f"call {n}" for n in range(50)]


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(lambda text: "<" not in text),
    st.booleans(),
    st.data(),
)
def test_any_cutting_of_the_bytes_gives_the_same_answer(text: str, ascii_only: bool, data: st.DataObject) -> None:
    """G-SPL-03: also in the middle of a character, and of an escaped pair of surrogates."""
    deltas = [{"content": character} for character in text]
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas] + [{"choices": [{"finish_reason": "stop"}]}]
    stream = "".join(f"data: {json.dumps(chunk, ensure_ascii=ascii_only)}\r\n\r\n" for chunk in chunks).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=20)))
    answer = Answer(ASKED, Endpoint("fake", "http://127.0.0.1:1/v1"))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    events = [event for piece in pieces for event in answer.feed(piece)] + list(answer.end())
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == text
    assert isinstance(events[-1], Finished)
