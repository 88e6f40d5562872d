"""Any provider there is, through litellm: the only import of it.

litellm costs seconds of CPU and 190 MB at import, so it is imported at the first call, in a thread. It is used as
a translator and no more: one streamed call, no retries, no callbacks, no network of its own, no reading of ``.env``.
Its chunks go through the same reader as the lean client's, because its own joins parallel tool calls into one.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from agents import failures
from agents.errors import MissingExtra
from agents.failures import Endpoint
from agents.model import Failed, FailureKind, Limits, ModelEvent, Request
from agents.wire import AnswerReader, body_of

SILENCE_SECONDS = 120.0
"""How long a provider may say nothing."""

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    "LITELLM_MODE": "PRODUCTION",
}
"""Read by litellm when it is imported: its tables come from the package, and it loads no ``.env`` of its own."""

_NO_KEY = "none"
"""For an address without a key: else litellm would send it the one that it finds in the environment."""

_KINDS: Mapping[str, FailureKind] = {
    "ContextWindowExceededError": "overflow",
    "ContentPolicyViolationError": "filtered",
    "PaymentRequiredError": "billing",
}
"""What the class of an exception says more surely than its status."""

_LOST = frozenset({"ConnectError", "ReadError", "WriteError", "RemoteProtocolError", "APIConnectionError"})
"""httpx's and openai's names for a connection that was never made or was lost. litellm's own ``APIConnectionError``
is none: it wraps whatever went wrong."""

_PREFIX = re.compile(r"^(\w+\.)*\w*(Error|Timeout): |^\w*Exception - ")
_SUFFIX = re.compile(r"\s*Handle with `litellm\.\w+`\.?\s*$|\nReceived Model Group=.*", re.DOTALL)


class LiteLLMModel:
    """``name`` is what people call the model; ``model`` is litellm's name of it ("anthropic/claude-haiku-5-5").

    ``base_url`` None for the provider's own. The rest is as in ``OpenAIModel``.
    """

    def __init__(
        self,
        name: str,
        *,
        model: str,
        limits: Limits,
        base_url: str | None = None,
        api_key: str | None = None,
        key_place: str = "",
        uses_tools: bool = True,
        sees_images: bool = False,
        temperature: float | None = None,
        max_output: int | None = None,
        silence: float = SILENCE_SECONDS,
        marks_cache: bool = False,
    ) -> None:
        self.name, self.limits = name, limits
        self.uses_tools, self.sees_images = uses_tools, sees_images
        self._endpoint = Endpoint(model=name, url=base_url, key_place=key_place, key=api_key)
        self._body = partial(
            body_of,
            name=name,
            model=model,
            temperature=temperature,
            max_output=max_output,
            sees_images=sees_images,
            marks_cache=marks_cache,
        )
        self._silence = silence

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        try:
            litellm = await asyncio.to_thread(load)
        except MissingExtra as error:
            yield Failed("refused", str(error))
            return
        reader = AnswerReader(request)
        options = options_of(self._endpoint, self._silence) | {"stream_timeout": self._silence}
        try:
            async with aclosing(await litellm.acompletion(**self._body(request), **options)) as chunks:
                async for chunk in chunks:
                    for delta in reader.feed(chunk.model_dump(warnings=False)):
                        yield delta
                    if reader.is_counted:
                        break  # litellm gives the usage last; after it come accounts of its own, a tenth of the call
        except Exception as error:  # its exceptions have no common root, and a failure of a model is an event
            if not reader.is_complete:
                yield failure_of(error, self._endpoint, self._silence)
                return
        if not reader.is_complete:
            yield failures.broken_off(self._endpoint, "the connection ended")
            return
        for event in reader.end():
            yield event

    async def close(self) -> None:
        """Nothing is held here: litellm keeps its connections in a cache of its own, and closes them at exit."""


def options_of(endpoint: Endpoint, seconds: float) -> dict[str, Any]:
    """What every call of litellm is given: where to, with which key, for how long, and no retries of its own."""
    key, url = endpoint.key, endpoint.url
    return {
        "api_base": url,
        "api_key": key or (_NO_KEY if url else None),
        "num_retries": 0,
        "max_retries": 0,
        "timeout": seconds,
        "drop_params": True,
    }


def failure_of(error: Exception, endpoint: Endpoint, seconds: float) -> Failed:
    """What an exception of litellm stands for; ``seconds`` is how long the provider was waited for."""
    error = getattr(error, "original_exception", None) or error  # what a stream's own error was made of
    if (lost := _lost_connection(error, endpoint, seconds)) is not None:
        return lost
    headers = getattr(getattr(error, "response", None), "headers", None)
    status, kind = getattr(error, "status_code", None), _KINDS.get(type(error).__name__)
    return failures.answered_with(endpoint, status, _body(error), headers, kind=kind)


def _lost_connection(error: BaseException, endpoint: Endpoint, seconds: float) -> Failed | None:
    """What the network did, where an exception that was wrapped several times began there; else None."""
    causes = list(_chain(error))
    if any(isinstance(c, TimeoutError) or type(c).__name__.endswith("Timeout") for c in causes):
        return failures.broken_off(endpoint, f"it said nothing for {seconds:g} seconds")
    lost = next((c for c in causes if isinstance(c, OSError) or _is_lost(c)), None)
    if lost is None:
        return None
    host = next(((c.host, c.port) for c in causes if hasattr(c, "host") and hasattr(c, "port")), None)
    if host and endpoint.url is None:
        endpoint = replace(endpoint, url=f"https://{host[0]}:{host[1]}")
    if host or isinstance(lost, ConnectionRefusedError):
        return failures.unreachable(endpoint, _reason(causes))
    return failures.broken_off(endpoint, "the connection ended")


def load() -> Any:
    """The litellm module, imported and silenced. Blocks for seconds at the first call.

    Raises MissingExtra when it is not installed.
    """
    os.environ.update(_ENVIRONMENT)
    try:
        litellm: Any = importlib.import_module("litellm")
    except ModuleNotFoundError as error:
        raise MissingExtra("a model through litellm", "litellm") from error
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    litellm.callbacks = []
    litellm.DEFAULT_MAX_RETRIES = 0  # embedding() takes a 0 that it is given for "whatever the default is"
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False
    return litellm


def _body(error: Exception) -> object:
    """What the provider itself answered: parsed, where an exception still has it, else in litellm's words."""
    body = next((b for c in _chain(error) if isinstance(b := getattr(c, "body", None), Mapping)), None)
    if body is not None:
        return {"error": body}
    words = _SUFFIX.sub("", str(error))
    while (shorter := _PREFIX.sub("", words)) != words:
        words = shorter
    return words


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_lost(cause: BaseException) -> bool:
    return type(cause).__name__ in _LOST and type(cause).__module__.startswith(("httpx", "openai"))


def _reason(causes: Sequence[BaseException]) -> str:
    """What the system said: the innermost error has it."""
    inner = next((c for c in reversed(causes) if isinstance(c, OSError)), None)
    if inner is None or isinstance(inner, ConnectionRefusedError):
        return "connection refused"
    return inner.strerror or str(inner) or type(inner).__name__
