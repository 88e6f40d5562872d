"""Embeddings through litellm, from the server that the lean client has too. Importing it costs seconds of CPU, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from agents import litellm_model
from agents.litellm_embedder import LiteLLMEmbeddings
from agents.remote_embedder import RemoteEmbedder
from tests.fakes.model_server import ModelServer, Reply, Script, serving, vector_of
from workspaces.memory import EmbedderError

KEY = "sk-very-secret-key-0123456789"
Connect = Callable[..., tuple[ModelServer, RemoteEmbedder]]

pytestmark = pytest.mark.filterwarnings(
    # litellm reads these two from an instance, which newer pydantic discourages.
    "ignore:Accessing the 'model_(computed_)?fields' attribute:DeprecationWarning",
    "ignore:Items? '\\w+.* on TypedDict class .* (is|are) using the `ReadOnly` qualifier:UserWarning",
)


@pytest.fixture(scope="module", autouse=True)
def _import_once() -> None:
    litellm_model.load()


@pytest.fixture
def connect() -> Iterator[Connect]:
    with ExitStack() as stack:

        def start(script: Script, *, model: str = "openai/fake") -> tuple[ModelServer, RemoteEmbedder]:
            server = stack.enter_context(serving(script))
            transport = LiteLLMEmbeddings(model, model=model, base_url=server.url, api_key=KEY, key_place="A_KEY")
            return server, RemoteEmbedder(model, transport, patience=20, pause=0.01)

        yield start


@pytest.mark.parametrize(
    ("model", "task", "of_document", "of_query"),
    [
        ("openai/fake", None, None, None),
        ("mistral/mistral-embed", None, None, None),
        ("voyage/voyage-3.5", "input_type", "document", "query"),
        ("jina_ai/jina-embeddings-v3", "task", "retrieval.passage", "retrieval.query"),
    ],
)
def test_vectors_and_what_tells_questions_from_documents(
    connect: Connect, model: str, task: str | None, of_document: str | None, of_query: str | None
) -> None:
    server, embedder = connect(lambda _: Reply(), model=model)
    texts = ["one", "a second", "\ud800"]
    vectors = embedder.embed_documents(texts)
    lines = [np.array(vector_of(text)) for text in [*texts[:2], "\ufffd"]]
    np.testing.assert_allclose(vectors, [line / np.linalg.norm(line) for line in lines], rtol=1e-6)
    embedder.embed_query("one")
    assert [request.body.get(task or "") for request in server.requests] == [of_document, of_query]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
        (402, {"error": {"message": "Payment required"}}),
        (429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
        (404, {"error": {"message": "no such model"}}),
    ],
)
def test_what_only_a_person_can_mend_is_asked_once(connect: Connect, status: int, body: object) -> None:
    """G-MEM-18: and not retried by litellm either."""
    server, embedder = connect(lambda _: Reply(status=status, body=body))
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_documents(["one"])
    assert caught.value.lasting
    assert "litellm" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [Reply(status=503, body="busy"), Reply(drop=True), Reply(status=429, headers={"Retry-After": "0"}, body="")],
)
def test_what_passes_is_tried_again(connect: Connect, reply: Reply) -> None:
    server, embedder = connect([reply, Reply()])
    assert embedder.embed_query("one").any()
    assert len(server.requests) == 2
