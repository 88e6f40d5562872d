"""Embeddings of any provider there is, through litellm: Gemini, Mistral, Cohere, Voyage, Bedrock and the rest.

One call, no retries. Lists, tries and prefixes are ``RemoteEmbedder``'s; what litellm is and costs, ``litellm_model``
says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agents.errors import MissingExtra
from agents.failures import Endpoint
from agents.litellm_model import failure_of, load, options_of
from agents.model import Failed
from agents.openai_embedder import vectors_in
from agents.remote_embedder import CallFailed
from agents.surrogates import mended

if TYPE_CHECKING:
    from workspaces.memory.embedder import Vector

_TASKS: Mapping[str, tuple[str, str, str]] = {
    "cohere": ("input_type", "search_document", "search_query"),
    "voyage": ("input_type", "document", "query"),
    "jina_ai": ("task", "retrieval.passage", "retrieval.query"),
    "gemini": ("task_type", "RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"),
    "vertex_ai": ("task_type", "RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"),
}
"""By provider: the name of the parameter that tells questions from documents, and its two values."""


class LiteLLMEmbeddings:
    """A ``Transport``. ``model`` is litellm's name of it ("cohere/embed-v4.0"); the rest is as in ``LiteLLMModel``."""

    def __init__(
        self,
        name: str,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        key_place: str = "",
    ) -> None:
        self._model = model
        self._endpoint = Endpoint(model=name, url=base_url, key_place=key_place, key=api_key)

    def ask(self, texts: Sequence[str], *, is_query: bool, seconds: float) -> list[Vector]:
        try:
            litellm = load()
        except MissingExtra as error:
            raise CallFailed(Failed("refused", str(error))) from error
        options = options_of(self._endpoint, seconds) | self._task(is_query=is_query)
        try:
            answer = litellm.embedding(model=self._model, input=[mended(text) for text in texts], **options)
        except Exception as error:  # its exceptions have no common root
            raise CallFailed(failure_of(error, self._endpoint, seconds)) from error
        return vectors_in({"data": [_entry(entry) for entry in answer.data]}, len(texts), self._endpoint)

    def close(self) -> None:
        """Nothing is held here: litellm keeps its connections in a cache of its own, and closes them at exit."""

    def _task(self, *, is_query: bool) -> dict[str, str]:
        task = _TASKS.get(self._model.partition("/")[0])
        return {task[0]: task[2 if is_query else 1]} if task else {}


def _entry(entry: Any) -> dict[str, Any]:
    """One vector as the format has it; some providers' answers hold objects in place of dictionaries."""
    values = entry if isinstance(entry, Mapping) else entry.model_dump()
    return {key: values[key] for key in ("index", "embedding") if values.get(key) is not None}
