"""litellm as a translator: the same answers and the same failures as the lean client's, from the same server.

Importing it costs seconds of CPU, once for the whole module.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from agents import litellm_model
from agents.errors import MissingExtra
from agents.litellm_model import LiteLLMModel
from agents.model import (
    AssistantMessage,
    Failed,
    Finished,
    Image,
    Limits,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
)
from agents.prices import Prices
from tests.agents.model_cases import ANSWERS, ASKED, REFUSALS, Outcome, outcome_of
from tests.fakes.anthropic_server import Answer, AnthropicServer
from tests.fakes.model_server import Call, ModelServer, Reply, Script
from workspaces.installation import install_extra

KEY = "sk-very-secret-key-0123456789"
Connect = Callable[..., Any]

pytestmark = [
    # litellm reads these two from an instance, which newer pydantic discourages; as an error it would lose the usage.
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute:DeprecationWarning"),
    pytest.mark.filterwarnings(
        "ignore:Item '\\w+' on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning"
    ),
    # It keeps connections by the identity of their loop, which a later loop may have again.
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.fixture(scope="module", autouse=True)
def _import_once() -> None:
    litellm_model.load()


@pytest_asyncio.fixture(loop_scope="module")
async def connect() -> AsyncIterator[Connect]:
    servers: list[ModelServer] = []

    async def start(script: Script, **options: Any) -> tuple[ModelServer, LiteLLMModel]:
        server = await ModelServer(script).start()
        servers.append(server)
        settings: dict[str, Any] = {"model": "openai/fake", "base_url": server.url, "api_key": KEY} | options
        return server, LiteLLMModel("openai/fake", limits=Limits(8192, 1024), key_place="OPENAI_API_KEY", **settings)

    yield start
    for server in servers:
        await server.stop()


@pytest.mark.parametrize("case", ANSWERS)
async def test_answers(connect: Connect, case: str) -> None:
    reply, expected = ANSWERS[case]
    _, model = await connect([reply])
    assert await outcome_of(model) == expected


@pytest.mark.parametrize("case", REFUSALS)
async def test_refusals(connect: Connect, case: str) -> None:
    reply, kind = REFUSALS[case]
    server, model = await connect([reply, Reply("a second try")])
    (failed,) = [event async for event in model.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert failed.kind == kind
    assert "litellm" not in failed.message
    assert len(server.requests) == 1, "trying again is the agent's"


async def test_usage_and_what_is_sent(connect: Connect) -> None:
    server, model = await connect([Reply("Hi", usage=(1200, 7, 1024))], temperature=0.3)
    events = [event async for event in model.stream(ASKED)]
    assert events == [TextDelta("Hi"), Finished("stop", (), Usage(1200, 7, 1024))]
    (sent,) = server.requests
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert (sent.body["model"], sent.body["temperature"]) == ("fake", 0.3)


async def test_no_key_of_the_environment_is_sent_to_an_address_of_ones_own(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server, model = await connect([Reply("Hi")], api_key=None)
    assert (await outcome_of(model)).text == "Hi"
    assert KEY not in str(server.requests[0].headers)


async def test_closing_the_stream_hangs_up(connect: Connect) -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chunk = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + chunk)
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


async def test_a_stream_that_is_cut(connect: Connect) -> None:
    """G-MOD-13: after some text, the failure may be tried again and the text is not taken for the whole."""
    _, model = await connect([Reply("one two three", cut_after=3)])
    assert await outcome_of(model) == Outcome("one two", kind="network")


async def test_nobody_listens(connect: Connect) -> None:
    with socket.socket() as bound:  # and not listening, so that no other program takes the port
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        _, model = await connect([], base_url=f"http://127.0.0.1:{port}/v1")
        (failed,) = [event async for event in model.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert failed.kind == "network"
    assert failed.message.startswith(f"127.0.0.1:{port} can't be reached: connection refused.")


@pytest.mark.parametrize("cut", [0, 2, 3, 4])
async def test_a_stream_that_dies_gives_no_half_call(connect: Connect, cut: int) -> None:
    """G-MOD-13: after nothing, after reasoning, inside the arguments of a call."""
    _, model = await connect([Reply(reasoning="hm", calls=[Call("get", '{"city": "San Francisco"}')], cut_after=cut)])
    got = await outcome_of(model)
    assert (got.kind, got.calls, got.text) == ("network", (), "")


THINKING: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "They greet.", "signature": "c2lnMQ=="},
    {"type": "redacted_thinking", "data": "c2VhbGVk"},
    {"type": "thinking", "thinking": "I look it up.", "signature": "c2lnMg=="},
]
CALLING: list[dict[str, Any]] = [
    *THINKING,
    {"type": "text", "text": "Let me see."},
    {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"city": "SF"}},
]
TOOLS = (ToolSpec("get", "Get the weather.", {"type": "object", "properties": {"city": {"type": "string"}}}),)
EPHEMERAL = {"type": "ephemeral"}


def claude(url: str, name: str = "anthropic/claude-haiku-5-5", **options: Any) -> LiteLLMModel:
    return LiteLLMModel(
        name, model="anthropic/claude-haiku-5-5", base_url=url, api_key=KEY, limits=Limits(200_000, 8192), **options
    )


async def test_signed_thinking_comes_back_unchanged() -> None:
    """G-MOD-10: to the model that signed it, and to no other."""
    async with AnthropicServer(
        [Answer(CALLING, stop="tool_use"), Answer([{"type": "text", "text": "Rain."}])]
    ) as server:
        model = claude(server.url)
        events = [event async for event in model.stream(replace(ASKED, tools=TOOLS))]
        finished = events[-1]
        assert isinstance(finished, Finished)
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Let me see."
        said = AssistantMessage("Let me see.", finished.calls, "They greet.", model.name, finished.state)
        more = (*ASKED.messages, said, ToolResult(finished.calls[0].id, "get", "rain"))
        asked = replace(ASKED, messages=more, tools=TOOLS)
        for asker in (model, claude(server.url, "anthropic/another")):
            assert (await outcome_of(asker, asked)).text == "Rain."
    first, second = (request["messages"][1]["content"] for request in server.requests[1:])
    assert first == CALLING
    assert [block["type"] for block in second] == ["text", "tool_use"]
    assert second[1]["id"] != "toolu_1"


async def test_what_is_cached_is_marked_and_counted() -> None:
    """G-MOD-14: the provider counts it beside the input, and at its own price it is charged once."""
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 12304,
        "cache_read_input_tokens": 0,
        "output_tokens": 550,
    }
    async with AnthropicServer([Answer([{"type": "text", "text": "Hi"}], usage)]) as server:
        said = (UserMessage("one"), AssistantMessage("two"), UserMessage("three"))
        model = claude(server.url, marks_cache=True)
        finished = [event async for event in model.stream(replace(ASKED, messages=said, tools=TOOLS))][-1]
        await outcome_of(claude(server.url), ASKED)
    assert isinstance(finished, Finished)
    assert finished.usage == Usage(12307, 550, 0, 12304)
    assert Prices(3, 15, 0.3, 3.75).cost(finished.usage) == pytest.approx(0.054399, abs=1e-12)
    body, plain = server.requests
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": EPHEMERAL}]
    assert body["tools"][-1]["cache_control"] == EPHEMERAL
    assert [[part.get("cache_control") for part in m["content"]] for m in body["messages"]] == [
        [None],
        [EPHEMERAL],
        [None],
    ]
    assert "cache_control" not in str(plain)


@pytest.mark.parametrize("arguments", ['{"path": "x.txt", "text": "on', "[]", '{"a": NaN}', '{"a": "\\ud83c"}', ""])
async def test_a_call_that_was_cut_does_not_end_the_conversation(arguments: str) -> None:
    """The translation parses the arguments of every call in the history."""
    said = (
        UserMessage("write it"),
        AssistantMessage("", (ToolCall("c1", "write", arguments),)),
        ToolResult("c1", "write", "Not run: your output was cut off."),
        UserMessage("well?"),
    )
    async with AnthropicServer([Answer([{"type": "text", "text": "Hello."}])]) as server:
        outcome = await outcome_of(claude(server.url), replace(ASKED, messages=said, tools=TOOLS))
    assert (outcome.text, outcome.kind) == ("Hello.", None)
    (sent,) = [part for m in server.requests[0]["messages"] for part in m["content"] if part["type"] == "tool_use"]
    assert isinstance(sent["input"], dict)


async def test_an_image_is_seen_or_named() -> None:
    picture = replace(ASKED, messages=(UserMessage("look", (Image("media/a.png", "image/png", b"\x89PNG"),)),))
    async with AnthropicServer([Answer([{"type": "text", "text": "A cat"}])]) as server:
        for sees in (True, False):
            await outcome_of(claude(server.url, sees_images=sees), picture)
    seen, named = (request["messages"][0]["content"] for request in server.requests)
    assert seen[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert [part["text"] for part in named] == ["look\n[image: media/a.png]"]


IN_A_PROCESS = """
import asyncio, sys, threading

hosts = set()

def hook(event, args):
    if event == "socket.connect":
        hosts.add(args[1][0])
    elif event == "socket.getaddrinfo":
        hosts.add(args[0])

sys.addaudithook(hook)

class Watch:
    threads = set()
    def find_spec(self, name, path=None, target=None):
        if name == "litellm":
            self.threads.add(threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Watch())

from agents.litellm_model import LiteLLMModel
from agents.model import Finished, Limits, Request, UserMessage

async def main():
    model = LiteLLMModel("a/b", model="openai/fake", base_url=sys.argv[1], limits=Limits(8192, 512))
    events = [event async for event in model.stream(Request("", (UserMessage("hi"),)))]
    assert isinstance(events[-1], Finished), events

asyncio.run(main())
print(Watch.threads, hosts)
"""


async def test_it_is_loaded_in_a_thread_and_calls_nobody_but_the_provider() -> None:
    """No telemetry, no cost map from the network: what a process with litellm connects to is the model's server."""
    async with ModelServer([Reply("Hi")]) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            IN_A_PROCESS,
            server.url,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "HOME": "/nowhere"},
        )
        out, _ = await process.communicate()
    assert process.returncode == 0
    assert out.decode().strip() == "{False} {'127.0.0.1'}"


async def test_a_server_that_says_nothing(connect: Connect) -> None:
    _, model = await connect([Reply("one two", stall_after=2)], silence=0.3)
    events = [event async for event in model.stream(ASKED)]
    assert isinstance(events[-1], Failed)
    assert events[-1].kind == "network"
    assert "said nothing for 0.3 seconds" in events[-1].message


async def test_a_provider_that_does_not_exist(connect: Connect) -> None:
    _, model = await connect([], model="nosuchprovider/x", base_url=None)
    assert (await outcome_of(model)).kind == "refused"


async def test_a_key_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    name = "anthropic/claude-haiku-5-5"
    model = LiteLLMModel(name, model=name, limits=Limits(8192, 1024), key_place="ANTHROPIC_API_KEY")
    (failed,) = [event async for event in model.stream(ASKED)]
    assert failed == Failed("auth", "anthropic wants a key. Set ANTHROPIC_API_KEY.")


async def test_the_key_is_nowhere_to_be_seen(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    body = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    _, model = await connect([Reply(status=401, body=body)])
    events = [event async for event in model.stream(ASKED)]
    assert KEY not in f"{events!r} {model!r} {caplog.text}"


async def test_it_stays_quiet(connect: Connect, capfd: pytest.CaptureFixture[str]) -> None:
    _, model = await connect([Reply("Hi"), Reply(status=500, body={"error": {"message": "oops"}})])
    for _ in range(2):
        await outcome_of(model)
    await asyncio.sleep(0)
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("LiteLLM").level == logging.CRITICAL
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"


async def test_the_extra_is_missing(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingExtra, match=re.escape(install_extra("litellm"))):
        litellm_model.load()
    _, model = await connect([Reply("Hi")])
    (failed,) = [event async for event in model.stream(ASKED)]
    assert isinstance(failed, Failed)
    assert f"`{install_extra('litellm')}`" in failed.message
