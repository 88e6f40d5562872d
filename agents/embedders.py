"""Which embedder a name stands for: one of this machine, or a model that a server embeds with.

A model is written and reached as one to talk with is: ``provider/model``, or the name of a ``[models.<name>]`` table
that gives it an address or a key of its own. Asks no server and reads no weights.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agents import catalog
from agents.catalog import ModelChoice
from agents.errors import ModelError, UnknownModel
from agents.remote_embedder import RemoteEmbedder, Transport
from agents.settings import ModelsSettings
from agents.weights import WeightsStore
from workspaces.memory import embedders as embedded
from workspaces.memory.embedder import Embedder, EmbedderError

_REPRESENT = "Represent this sentence for searching relevant passages: "

_PREFIXES: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern), document, query)
    for pattern, document, query in (
        (r"nomic-embed-text", "search_document: ", "search_query: "),
        (r"\be5-(small|base|large)(?!-instruct)", "passage: ", "query: "),
        (r"embeddinggemma", "title: none | text: ", "task: search result | query: "),
        (r"snowflake-arctic-embed(2|.*v2)", "", "query: "),
        (r"snowflake-arctic-embed|mxbai-embed-(large|xsmall)|bge-(small|base|large)-en", "", _REPRESENT),
        (
            r"qwen3-embedding",
            "",
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        ),
    )
)
"""By the name of a model: what it was trained to see before a document and before a question, as its card says.

Servers pass texts on as they are, so it is for the client to add. An entry that changes makes other vectors: then the
name of the space in ``resolve`` has to change as well.
"""


def resolve(name: str, models: ModelsSettings, environ: Mapping[str, str], weights: WeightsStore) -> Embedder | None:
    """The embedder called ``name``, None for "none".

    A model that can't embed for want of a key or a package is an ``Unavailable``: notes are found by words meanwhile.
    Raises UnknownModel for a name that means nothing.
    """
    if name in embedded.NAMES:
        return embedded.embedded(name)
    choice = catalog.resolve(models, environ, weights, name)
    if choice is None or choice.client == "local":
        raise UnknownModel(f"{name} is a model to talk with, and can't embed", 'set memory.embedder to "local"')
    document, query = prefixes_of(choice.model)
    space = f"{choice.name}, prefixed" if document or query else choice.name
    try:
        catalog.check(choice, environ, weights)
    except ModelError as error:
        return Unavailable(space, str(error))
    return RemoteEmbedder(
        space,
        _transport(choice),
        document_prefix=document,
        query_prefix=query,
        patience=choice.settings.timeout,
    )


def prefixes_of(model: str) -> tuple[str, str]:
    """What goes before a document and before a question, both "" for most models."""
    found = (prefixes for pattern, *prefixes in _PREFIXES if pattern.search(model.lower()))
    document, query = next(found, ("", ""))
    return document, query


def _transport(choice: ModelChoice) -> Transport:
    common: dict[str, Any] = {"model": choice.model, "api_key": choice.api_key, "key_place": choice.key_place}
    if choice.client == "litellm":
        from agents.litellm_embedder import LiteLLMEmbeddings

        return LiteLLMEmbeddings(choice.name, base_url=choice.base_url, **common)
    from agents.openai_embedder import OpenAIEmbeddings

    assert choice.base_url is not None, "the lean client is chosen only where there is an address"
    return OpenAIEmbeddings(choice.name, base_url=choice.base_url, **common)


class Unavailable:
    """Stands for an embedder that lacks something; ``reason`` says what, and what mends it. Its vectors are kept."""

    dims = None

    def __init__(self, name: str, reason: str) -> None:
        self.id = name
        self._error = reason

    def embed_documents(self, texts: object) -> Any:  # noqa: ARG002
        raise EmbedderError(self._error, lasting=True)

    def embed_query(self, text: str) -> Any:  # noqa: ARG002
        raise EmbedderError(self._error, lasting=True)
