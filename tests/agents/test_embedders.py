"""What a name of an embedder stands for, and a memory over one whose server stops serving."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agents import embedders
from agents.embedders import Unavailable, prefixes_of
from agents.errors import UnknownModel
from agents.openai_embedder import OpenAIEmbeddings
from agents.remote_embedder import RemoteEmbedder
from agents.settings import ModelsSettings
from agents.weights import WeightsStore
from tests.fakes.model_server import ModelServer, Recorded, Reply
from workspaces.memory import EmbedderError, Memory
from workspaces.memory.embedder import Embedder, Releasable
from workspaces.memory.local_embedder import LocalEmbedder
from workspaces.memory.static_embedder import StaticEmbedder
from workspaces.scope import Scope

KEY = "sk-very-secret-key-0123456789"


def resolve(name: str, folder: Path, environ: dict[str, str] | None = None, **models: Any) -> Embedder | None:
    return embedders.resolve(name, ModelsSettings(**models), environ or {}, WeightsStore(folder))


def test_the_embedders_of_this_machine(tmp_path: Path) -> None:
    assert resolve("none", tmp_path) is None
    assert isinstance(resolve("static", tmp_path), StaticEmbedder)
    assert isinstance(resolve("local", tmp_path), LocalEmbedder)


@pytest.mark.parametrize("name", ["", "statc", "openai", "local/smollm2", "/x", "x/"])
def test_a_name_that_means_nothing_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownModel):
        resolve(name, tmp_path)


async def test_a_model_of_a_server_is_asked_with_the_usual_key(tmp_path: Path) -> None:
    async with ModelServer(lambda _: Reply()) as server:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        embedder = resolve("openai/text-embedding-3-small", tmp_path, environ)
        assert embedder is not None
        assert (embedder.id, embedder.dims) == ("openai/text-embedding-3-small", None)
        await asyncio.to_thread(embedder.embed_query, "one")
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert server.requests[0].body == {"model": "text-embedding-3-small", "input": ["one"]}
        assert isinstance(embedder, Releasable)
        embedder.release()


async def test_a_table_gives_an_address_of_its_own_and_no_key_of_another(tmp_path: Path) -> None:
    async with ModelServer(lambda _: Reply()) as server:
        table = {"model": "openai/nomic-embed-text-v1.5", "base_url": server.url}
        embedder = resolve("notes", tmp_path, {"OPENAI_API_KEY": KEY}, notes=table)
        assert embedder is not None
        assert embedder.id == "openai/nomic-embed-text-v1.5, prefixed"
        await asyncio.to_thread(embedder.embed_documents, ["one"])
        assert "authorization" not in server.requests[0].headers
        assert server.requests[0].body["input"] == ["search_document: one"]
        assert isinstance(embedder, Releasable)
        embedder.release()


@pytest.mark.parametrize("name", ["openai/text-embedding-3-small", "openai/nomic-embed-text"])
def test_without_a_key_it_says_so_and_keeps_its_name(tmp_path: Path, name: str) -> None:
    """The index goes by the name: what was embedded stays until the key is back."""
    embedder, same = resolve(name, tmp_path), resolve(name, tmp_path, {"OPENAI_API_KEY": KEY})
    assert isinstance(embedder, Unavailable)
    assert same is not None
    assert embedder.id == same.id
    with pytest.raises(EmbedderError, match="OPENAI_API_KEY is not set") as caught:
        embedder.embed_query("x")
    assert caught.value.lasting
    with pytest.raises(EmbedderError, match="OPENAI_API_KEY is not set"):
        embedder.embed_documents(["x"])


@pytest.mark.parametrize(
    ("model", "document", "query"),
    [
        ("nomic-embed-text:v1.5", "search_document: ", "search_query: "),
        ("intfloat/multilingual-e5-small", "passage: ", "query: "),
        ("intfloat/multilingual-e5-large-instruct", "", ""),
        ("embeddinggemma:300m", "title: none | text: ", "task: search result | query: "),
        ("snowflake-arctic-embed2", "", "query: "),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "", "query: "),
        ("snowflake-arctic-embed:33m", "", "Represent this sentence for searching relevant passages: "),
        ("mxbai-embed-large", "", "Represent this sentence for searching relevant passages: "),
        ("BAAI/bge-m3", "", ""),
        ("text-embedding-3-large", "", ""),
        ("all-minilm", "", ""),
    ],
)
def test_prefixes_go_by_the_name(model: str, document: str, query: str) -> None:
    assert prefixes_of(model) == (document, query)


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        Reply(status=402, body={"error": {"message": "Payment required"}}),
        Reply(status=429, body={"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
        Reply(status=503, headers={"Retry-After": "60"}, body="busy"),
        Reply(wait=True),
    ],
    ids=["key", "credit", "quota", "overload", "silence"],
)
async def test_a_memory_whose_server_stops_serving_finds_by_words_and_recovers(tmp_path: Path, refusal: Reply) -> None:
    """G-MEM-17 and G-MEM-18: found by words, told, one request, a free event loop; and well again by itself."""
    broken = False
    now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

    def reply(_: Recorded) -> Reply:
        return refusal if broken else Reply()

    async with ModelServer(reply) as server:
        transport = OpenAIEmbeddings("openai/x", model="x", base_url=server.url, api_key=KEY, key_place="A_KEY")
        embedder = RemoteEmbedder("openai/x", transport, patience=3.0)
        with ExitStack() as stack:
            stack.callback(embedder.release)
            await asyncio.to_thread(embedder.embed_query, "how long are your vectors?")
            async with Memory.open(
                tmp_path / "home",
                tmp_path / "index.sqlite",
                embedder=embedder,
                clock=lambda: now,
                zone=lambda: ZoneInfo("UTC"),
            ) as memory:
                scope = Scope.home()
                await memory.append("The boiler was serviced in March.", scope=scope)
                assert (await memory.search("boiler", scope=scope)).hits
                await memory.sync()
                assert (await memory.search("boiler", scope=scope)).mode == "hybrid"
                broken = True
                asked = len(server.requests)
                ticks = asyncio.create_task(_longest_pause())
                for _ in range(3):
                    found = await memory.search("boiler", scope=scope)
                    assert [hit.text for hit in found.hits]
                    assert found.mode == "keyword"
                    assert any("openai/x" in warning for warning in found.warnings)
                    assert KEY not in " ".join(found.warnings)
                ticks.cancel()
                assert len(server.requests) == asked + 1
                assert await ticks < 1.5, "of what a call that blocks would take, 3 s"
                broken, now = False, now + timedelta(hours=1)
                assert (await memory.search("boiler", scope=scope)).mode == "hybrid"


async def _longest_pause() -> float:
    longest = 0.0
    try:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)
    except asyncio.CancelledError:
        return longest
