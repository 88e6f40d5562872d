"""The embedder over a server, against real HTTP: every kind of answer, every kind of trouble, and how long it takes."""

from __future__ import annotations

import asyncio
import base64
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from agents.openai_embedder import OpenAIEmbeddings
from agents.remote_embedder import LONGEST, RemoteEmbedder
from tests.fakes.model_server import DIMS, ModelServer, Recorded, Reply, Script, embeddings, serving, vector_of
from workspaces.memory import EmbedderError

KEY = "sk-very-secret-key-0123456789"
Connect = Callable[..., tuple[ModelServer, RemoteEmbedder]]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Starts a server with a script and gives it with an embedder over it; both are closed at the end."""
    with ExitStack() as stack:

        def start(script: Script, **options: Any) -> tuple[ModelServer, RemoteEmbedder]:
            server = stack.enter_context(serving(script))
            transport = OpenAIEmbeddings(
                "openai/fake", model="fake", base_url=server.url, api_key=KEY, key_place="OPENAI_API_KEY"
            )
            embedder = RemoteEmbedder("openai/fake", transport, **{"pause": 0.01, **options})
            stack.callback(embedder.release)
            return server, embedder

        yield start


def always(**reply: Any) -> Callable[[Recorded], Reply]:
    return lambda _: Reply(**reply)


def expected(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    matrix = np.array([vector_of(text) for text in texts], dtype=np.float32)
    vectors: npt.NDArray[np.float32] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return vectors


def inputs(server: ModelServer) -> list[list[str]]:
    return [request.body["input"] for request in server.requests]


def test_vectors_come_in_the_order_of_the_texts_and_have_length_1(connect: Connect) -> None:
    texts = ["one", "a second", "the third", "日本語"]
    server, embedder = connect(always())
    before = embedder.dims
    vectors = embedder.embed_documents(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected(texts), rtol=1e-6)
    assert (before, embedder.dims) == (None, DIMS)
    np.testing.assert_allclose(embedder.embed_query("one"), expected(["one"])[0], rtol=1e-6)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].body["model"] == "fake"


def test_a_list_goes_in_requests_that_are_not_too_long(connect: Connect) -> None:
    texts = [f"note {n}" for n in range(70)] + ["x" * 7000] * 5 + ["y" * 100_000]
    server, embedder = connect(always())
    vectors = embedder.embed_documents(texts)
    assert [len(batch) for batch in inputs(server)] == [32, 32, 9, 3]
    assert max(len(text) for batch in inputs(server) for text in batch) == LONGEST
    np.testing.assert_allclose(vectors, expected([text[:LONGEST] for text in texts]), rtol=1e-6)


def test_prefixes_tell_questions_from_documents(connect: Connect) -> None:
    server, embedder = connect(always(), document_prefix="passage: ", query_prefix="query: ")
    embedder.embed_documents(["a"])
    embedder.embed_query("b")
    assert inputs(server) == [["passage: a"], ["query: b"]]


def test_blank_texts_are_not_sent_and_have_no_vector(connect: Connect) -> None:
    """OpenAI refuses a list with an empty text in it as a whole."""
    server, embedder = connect(always())
    vectors = embedder.embed_documents(["", "one", " \n"])
    assert inputs(server) == [["one"]]
    assert [bool(row.any()) for row in vectors] == [False, True, False]
    assert not np.any(embedder.embed_query(" "))
    assert embedder.embed_documents([]).shape == (0, DIMS)
    assert len(server.requests) == 1


def test_halves_of_characters_are_mended_before_they_are_sent(connect: Connect) -> None:
    server, embedder = connect(always())
    embedder.embed_documents(["\ud83d\ude00 \ud800"])
    assert inputs(server) == [["😀 \ufffd"]]


def test_vectors_in_base64(connect: Connect) -> None:
    packed = base64.b64encode(struct.pack("<2f", 3, 4)).decode()
    _, embedder = connect([Reply(body={"data": [{"index": 0, "embedding": packed}]})])
    np.testing.assert_allclose(embedder.embed_query("x"), [0.6, 0.8])


@pytest.mark.parametrize("bad", ["[NaN, 1]", "[null, 1]", "[0, 0]", "[1e39, 1]", "[Infinity, 1]"], ids=str)
def test_a_vector_that_is_none_is_zeros_and_the_others_stay(connect: Connect, bad: str) -> None:
    """G-MEM-16: a zero or NaN vector is no vector."""
    body = '{"data": [{"index": 0, "embedding": %s}, {"index": 1, "embedding": [3, 4]}]}' % bad  # noqa: UP031
    _, embedder = connect([Reply(body=body)])
    np.testing.assert_allclose(embedder.embed_documents(["a", "b"]), [[0.0, 0.0], [0.6, 0.8]])


LASTING: dict[str, Reply] = {
    "key refused": Reply(status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}),
    "no credit": Reply(status=402, body={"error": {"message": "Payment required"}}),
    "forbidden": Reply(status=403, body={"error": {"message": "no access to this model"}}),
    "quota": Reply(status=429, body={"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
    "no such model": Reply(status=404, body={"error": {"message": "model 'fake' not found"}}),
    "not for embeddings": Reply(status=400, body={"error": {"message": "this model does not support embeddings"}}),
    "moved": Reply(status=302, headers={"Location": "/elsewhere"}, body=""),
    "a page": Reply(body="<html>welcome</html>"),
    "nothing": Reply(body={"object": "list"}),
    "one too few": Reply(body={"data": [{"index": 0, "embedding": [1, 2]}]}),
    "the same twice": Reply(body={"data": [{"index": 0, "embedding": [1, 2]}] * 2}),
    "words": Reply(body={"data": [{"index": i, "embedding": ["a", "b"]} for i in range(2)]}),
    "of two lengths": Reply(body={"data": [{"index": i, "embedding": [1.0] * (i + 2)} for i in range(2)]}),
    "half a float": Reply(body={"data": [{"index": i, "embedding": "AAAA"} for i in range(2)]}),
}


@pytest.mark.parametrize("case", LASTING)
def test_what_only_a_person_can_mend_is_asked_once(connect: Connect, case: str) -> None:
    """G-MEM-18: 402, 401 and 429 for a quota: one try, and it is marked as lasting."""
    server, embedder = connect(lambda _: LASTING[case])
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_documents(["one", "two"])
    assert caught.value.lasting
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


PASSING: dict[str, Reply] = {
    "overloaded": Reply(status=503, body="busy"),
    "broken": Reply(status=500, body={"error": {"message": "internal error"}}),
    "slow down": Reply(status=429, headers={"Retry-After": "0.01"}, body={"error": {"message": "rate limit"}}),
    "hangs up": Reply(drop=True),
    "cut": Reply(raw=[b'{"data"', b": ["], cut_after=1),
    "an error in an answer": Reply(body={"error": {"message": "Rate limit exceeded", "code": 429}}),
}


@pytest.mark.parametrize("case", PASSING)
def test_what_passes_is_tried_again(connect: Connect, case: str) -> None:
    server, embedder = connect([PASSING[case], Reply()])
    np.testing.assert_allclose(embedder.embed_documents(["one"]), expected(["one"]), rtol=1e-6)
    assert len(server.requests) == 2


@pytest.mark.parametrize("case", PASSING)
def test_what_does_not_pass_ends_after_three_tries_or_two(connect: Connect, case: str) -> None:
    server, embedder = connect(lambda _: PASSING[case])
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_documents(["one"])
    assert not caught.value.lasting
    assert len(server.requests) == 3
    with pytest.raises(EmbedderError):
        embedder.embed_query("one")
    assert len(server.requests) == 5


def test_a_long_wait_is_the_callers(connect: Connect) -> None:
    server, embedder = connect(always(status=429, headers={"Retry-After": "60"}, body="slow down"))
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_documents(["one"])
    assert (caught.value.retry_after, caught.value.lasting) == (60, False)
    assert len(server.requests) == 1


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    embedder = RemoteEmbedder("ollama/x", OpenAIEmbeddings("ollama/x", model="x", base_url=url), patience=0.1)
    with pytest.raises(EmbedderError, match=r"127\.0\.0\.1:\d+ can't be reached: connection refused"):
        embedder.embed_query("one")


@pytest.mark.parametrize("url", ["ftp://x/v1", "http://", "x"])
def test_an_address_that_is_none(url: str) -> None:
    embedder = RemoteEmbedder("x/y", OpenAIEmbeddings("x/y", model="y", base_url=url))
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_query("one")
    assert caught.value.lasting


def test_other_dims_than_before_are_refused(connect: Connect) -> None:
    """G-MEM-09: vectors of another length are never mixed in."""
    _, embedder = connect([Reply(), Reply(body={"data": [{"index": 0, "embedding": [1, 2, 3]}]})])
    embedder.embed_query("one")
    with pytest.raises(EmbedderError, match="3 values where 8 were expected") as caught:
        embedder.embed_query("two")
    assert caught.value.lasting


def limited(most: int, status: int, words: str) -> Callable[[Recorded], Reply]:
    """A server that takes no text of more than ``most`` characters, and refuses a list for one of its texts."""

    def reply(request: Recorded) -> Reply:
        if any(len(text) > most for text in request.body["input"]):
            return Reply(status=status, body={"error": {"message": words}})
        return Reply(body=embeddings(request.body))

    return reply


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "This model's maximum context length is 512 tokens"),
        (413, "too large"),
        (500, "input is too large to process. increase the physical batch size"),
    ],
)
def test_a_text_that_is_too_long_is_shortened_alone(connect: Connect, status: int, words: str) -> None:
    texts = ["one", "b" * 5000, "three", "four"]
    server, embedder = connect(limited(1500, status, words))
    np.testing.assert_allclose(embedder.embed_documents(texts), expected(texts), rtol=1e-6)
    assert len(server.requests) == 7, "the list, its halves, the second's two, and two halvings of the long one"


def test_a_text_that_a_server_never_takes_has_no_vector_and_the_others_have(connect: Connect) -> None:
    """A model that makes not-a-numbers of one text: Ollama answers 500 to the whole list."""

    def reply(request: Recorded) -> Reply:
        if any("poison" in text for text in request.body["input"]):
            return Reply(status=500, body={"error": {"message": "json: unsupported value: NaN"}})
        return Reply(body=embeddings(request.body))

    server, embedder = connect(reply)
    texts = [f"note {n}" for n in range(31)]
    vectors = embedder.embed_documents([*texts, "poison"])
    np.testing.assert_allclose(vectors[:31], expected(texts), rtol=1e-6)
    assert not vectors[31].any()
    assert len(server.requests) == 11


SLOW: dict[str, Reply] = {
    "says nothing": Reply(wait=True),
    "stops in the middle": Reply(raw=[b"{", b"}"], stall_after=1),
    "a byte now and then": Reply(raw=[b" "] * 1000, pause=0.05),
}


@pytest.mark.parametrize("case", SLOW)
def test_no_server_keeps_a_thread(connect: Connect, case: str) -> None:
    _, embedder = connect(lambda _: SLOW[case], patience=0.4)
    begun = time.monotonic()
    with pytest.raises(EmbedderError) as caught:
        embedder.embed_documents(["one"])
    assert time.monotonic() - begun < 2
    assert not caught.value.lasting


def test_release_ends_a_wait_and_the_next_call_works(connect: Connect) -> None:
    server, embedder = connect([Reply(status=503, headers={"Retry-After": "9"}, body="busy"), Reply(), Reply()])
    failed: list[BaseException] = []

    def work() -> None:
        try:
            embedder.embed_documents(["one"])
        except EmbedderError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    server.wait_for(1)
    while thread.is_alive():  # the answer may still be on its way when the first release comes
        embedder.release()
        thread.join(0.05)
    assert len(server.requests) < 3
    assert embedder.embed_query("two").any()


@pytest.mark.parametrize("case", ["key refused", "no credit", "quota", "overloaded", "says nothing"])
async def test_the_event_loop_is_never_held(connect: Connect, case: str) -> None:
    """G-MEM-18: whatever the server answers or leaves unanswered, others are served meanwhile."""
    script = {**LASTING, **PASSING, **SLOW}
    _, embedder = connect(lambda _: script[case], patience=2.0)
    embedding = asyncio.gather(
        *(asyncio.to_thread(embedder.embed_documents, ["one"] * 64) for _ in range(3)), return_exceptions=True
    )
    longest = 0.0
    while not embedding.done():
        before = time.monotonic()
        await asyncio.sleep(0.01)
        longest = max(longest, time.monotonic() - before)
    assert all(isinstance(error, EmbedderError) for error in await embedding)
    assert longest < 1.0, "of what a call that blocks would take, 2 s where the server is silent"
