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
from typing import Any

import pytest
import pytest_asyncio

from agents import litellm_model
from agents.errors import MissingExtra
from agents.litellm_model import LiteLLMModel
from agents.model import Failed, Finished, Limits, TextDelta, Usage
from tests.agents.model_cases import ANSWERS, ASKED, REFUSALS, Outcome, outcome_of
from tests.fakes.model_server import ModelServer, Reply, Script
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
