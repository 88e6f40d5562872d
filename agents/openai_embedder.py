"""Embeddings from OpenAI-compatible servers: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio.

One POST in the thread that asks, within the seconds it is given, whatever the server does. It makes one call and tells
how it ended; lists, tries and prefixes are ``RemoteEmbedder``'s. Knows no provider's table and reads no configuration.
"""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agents import failures
from agents.failures import Endpoint
from agents.model import Failed
from agents.remote_embedder import CallFailed
from agents.surrogates import mended

if TYPE_CHECKING:
    import httpx

    from workspaces.memory.embedder import Vector

CONNECT_SECONDS = 5.0
_LONGEST_ANSWER = 64 << 20
_LONGEST_ERROR = 64 << 10
"""Bytes of a body that are read."""


class OpenAIEmbeddings:
    """A ``Transport``. The arguments are those of ``OpenAIModel``; ``base_url`` ends before "/embeddings"."""

    def __init__(
        self, name: str, *, model: str, base_url: str, api_key: str | None = None, key_place: str = ""
    ) -> None:
        self._model = model
        self._url = base_url.rstrip("/") + "/embeddings"
        self._endpoint = Endpoint(model=name, url=base_url, key_place=key_place, key=api_key)
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def ask(self, texts: Sequence[str], *, is_query: bool, seconds: float) -> list[Vector]:  # noqa: ARG002
        data = json.dumps({"model": self._model, "input": [mended(text) for text in texts]}).encode()
        status, headers, body = self._post(data, seconds)
        if status != 200:
            if status < 400:
                raise CallFailed(self._no_embeddings(f"HTTP {status}"))
            raise CallFailed(failures.answered_with(self._endpoint, status, body, headers))
        return vectors_in(body, len(texts), self._endpoint)

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _post(self, data: bytes, seconds: float) -> tuple[int, Mapping[str, str], bytes]:
        import httpx

        ends = time.monotonic() + seconds
        timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        body = bytearray()
        try:
            with self._connected().stream("POST", self._url, content=data, timeout=timeout) as response:
                most = _LONGEST_ANSWER if response.status_code == 200 else _LONGEST_ERROR
                for chunk in response.iter_bytes():
                    body += chunk
                    if time.monotonic() > ends:  # a server that sends a byte now and then is never silent
                        raise CallFailed(self._too_slow(seconds))
                    if len(body) > most:
                        break
                return response.status_code, response.headers, bytes(body[:most])
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            url = self._endpoint.url
            raise CallFailed(Failed("refused", f"base_url under [models] is no URL: {url!r}.")) from error
        except httpx.ConnectTimeout as error:
            reason = f"no connection within {min(CONNECT_SECONDS, seconds):.3g} seconds"
            raise CallFailed(failures.unreachable(self._endpoint, reason)) from error
        except httpx.ConnectError as error:
            raise CallFailed(failures.unreachable(self._endpoint, _reason(error))) from error
        except httpx.TimeoutException as error:
            raise CallFailed(self._too_slow(seconds)) from error
        except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: closed by another thread
            raise CallFailed(failures.broken_off(self._endpoint, "the connection ended")) from error

    def _connected(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._client is None:
                headers = {"Content-Type": "application/json", "User-Agent": "limpet"}
                if self._endpoint.key:
                    headers["Authorization"] = f"Bearer {self._endpoint.key}"
                # No redirects: one would turn the POST into a GET, and could carry the key to another host.
                self._client = httpx.Client(headers=headers, trust_env=not self._endpoint.is_local)
            return self._client

    def _too_slow(self, seconds: float) -> Failed:
        return failures.broken_off(self._endpoint, f"it took longer than {seconds:.3g} seconds")

    def _no_embeddings(self, why: str) -> Failed:
        return _not_embeddings(self._endpoint, why)


def vectors_in(body: bytes | Mapping[str, Any], count: int, endpoint: Endpoint) -> list[Vector]:
    """The vectors of an answer, in the order of the ``count`` texts: numbers, or base64 of little-endian float32.

    What is no number becomes not-a-number. Raises CallFailed for an answer that is none.
    """
    try:
        answer = json.loads(body) if isinstance(body, bytes) else body
    except ValueError as error:
        raise CallFailed(_not_embeddings(endpoint, "no JSON")) from error
    if isinstance(answer, Mapping) and answer.get("error"):
        raise CallFailed(failures.answered_with(endpoint, None, {"error": answer["error"]}))
    entries = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise CallFailed(_not_embeddings(endpoint, "no list of data"))
    order = [entry.get("index", place) for place, entry in enumerate(entries)]
    if len(entries) != count or sorted(order, key=str) != sorted(range(count), key=str):
        raise CallFailed(_not_embeddings(endpoint, f"{len(entries)} vectors for {count} texts, or not one for each"))
    vectors: list[Any] = [None] * count
    for place, entry in zip(order, entries, strict=True):
        try:
            vectors[place] = _vector(entry.get("embedding"))
        except (ValueError, TypeError) as error:
            raise CallFailed(_not_embeddings(endpoint, "a vector that is none")) from error
    return vectors


def _vector(value: object) -> Vector:
    import numpy as np

    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
    if not isinstance(value, list) or not value:
        raise TypeError("no list of numbers")
    with np.errstate(over="ignore"):  # too large for a float32: infinite, which is no vector either
        vector = np.array([math.nan if x is None else x for x in value], dtype=np.float32)
    if vector.ndim != 1:
        raise TypeError("more than one dimension")
    return vector


def _not_embeddings(endpoint: Endpoint, why: str) -> Failed:
    where = endpoint.url or endpoint.server
    return Failed(
        "refused",
        f"{where} gave no embeddings ({why}). Check that {endpoint.model} is a model for embeddings, "
        "and base_url under [models]: it usually ends in /v1.",
    )


def _reason(error: Exception) -> str:
    """What the system said: the innermost cause has it."""
    inner: BaseException = error
    while (cause := inner.__cause__ or inner.__context__) is not None:
        inner = cause
    if isinstance(inner, ConnectionRefusedError):
        return "connection refused"
    return (inner.strerror if isinstance(inner, OSError) else "") or str(inner) or type(inner).__name__
