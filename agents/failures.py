"""What went wrong in a call, as a ``Failed`` that a person can act on.

Providers say the same thing in many ways: by status, by a code in the body, or only in a sentence. Here they become
the few kinds that the agent acts on. A message names the server, the place of the key and the mend, and never holds
the key, even where a server repeats it. Knows no client and does no I/O.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from agents.model import Failed, FailureKind
from agents.surrogates import mended

LONGEST_QUOTE = 200
"""Characters of a server's own words in a message; some answer with a page."""

_OVERFLOW = re.compile(
    r"context[ _]length|context (window|size|limit)|context_size|maximum context"
    r"|maximum (prompt|input|model) length|(prompt|input|inputs|request) (is|are) too (long|large)"
    r"|(input|prompt) too (long|large)|exceeds (the )?max(imum)? (input )?length|input length (\S+ exceeds|should be)"
    r"|total length of all messages is too long|too large for model|request too large for"
    r"|(input|prompt) (tokens?|token count) .{0,40}exceeds?|token count .{0,40}exceeds the (limit|model)"
    r"|exceeds the maximum number of (input )?tokens|exceeded model token limit|input tokens, limit is"
    r"|too many input tokens|too many tokens:|prompt contains too many tokens"
    r"|`?inputs`? tokens \+ `?max_new_tokens`? must be|inputs?`? must have less than \S+ tokens|expected maxlength"
    r"|current length is .{0,20}while limit is"
    r"|reduce (the length of )?(the|your) (messages|prompt|message size)",
    re.IGNORECASE,
)
_BILLING = re.compile(
    r"insufficient[ _](quota|credits?|balance|funds)|credit balance is too low|billing[ _](not[ _]active|hard[ _]limit)"
    r"|payment required|requires more credits",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content[ _](filter|policy|management policy)|ResponsibleAIPolicy|moderation|flagged|safety (filter|system)"
    r"|data_inspection_failed",
    re.IGNORECASE,
)
_RATE = re.compile(r"rate[ _-]?limit|too many requests|resource_exhausted", re.IGNORECASE)
_AUTH = re.compile(r"invalid_api_key|authentication_error|incorrect api key|unauthorized", re.IGNORECASE)
_NO_TOOLS = re.compile(r"not support (tools|tool|function)|tool use is not supported|requires --jinja", re.IGNORECASE)
_SECRET = re.compile(r"\b(sk|pk|gsk|xai|AIza)[-_A-Za-z0-9*]{8,}")

_STARTED_BY = {11434: ("Ollama", "ollama serve"), 1234: ("LM Studio", "lms server start")}
"""What listens on a port of this machine by default, and the command that starts it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where calls go, as far as a message has to name it.

    ``url`` is the base URL, None where a library finds it (litellm). ``key_place`` is where the key is looked for, ""
    for a server that needs none; ``key`` is only kept to be blanked out, None where there is none.
    """

    model: str
    url: str | None
    key_place: str = ""
    key: str | None = field(default=None, repr=False)

    @property
    def server(self) -> str:
        """Host and port; the provider's part of the model's name where there is no URL."""
        if self.url is None:
            return self.model.partition("/")[0]
        return f"{urlsplit(self.url).hostname}:{self.port}"

    @property
    def port(self) -> int | None:
        if self.url is None:
            return None
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def is_local(self) -> bool:
        return self.url is not None and is_loopback(urlsplit(self.url).hostname)


def is_loopback(host: str | None) -> bool:
    """Whether ``host`` is this machine."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def unreachable(endpoint: Endpoint, reason: str) -> Failed:
    """No connection, or none in time. ``reason`` finishes "… can't be reached: "."""
    starts = _STARTED_BY.get(endpoint.port or 0) if endpoint.is_local else None
    if starts:
        mend = f"Is {starts[0]} running? Start it: `{starts[1]}`."
    elif endpoint.is_local:
        mend = "Is the model server running there? Start it, or set base_url under [models]."
    else:
        mend = "Check the network, and base_url under [models] if you set it."
    return Failed("network", f"{endpoint.server} can't be reached: {_clean(reason, endpoint)}. {mend}")


def broken_off(endpoint: Endpoint, reason: str) -> Failed:
    """The connection was there and ended before the answer did."""
    return Failed("network", f"{endpoint.server} broke off before the answer was complete: {_clean(reason, endpoint)}.")


def not_an_api(endpoint: Endpoint, status: int, wanted: str) -> Failed:
    """Something answered, but not as the API does; ``wanted`` is what should have come ("chat completion")."""
    return Failed(
        "refused",
        f"{endpoint.url} answered (HTTP {status}) with something that is no {wanted}. "
        "Check base_url under [models]: it usually ends in /v1.",
    )


def answered_with(
    endpoint: Endpoint,
    status: int | None,
    body: object,
    headers: Mapping[str, str] | None = None,
    *,
    kind: FailureKind | None = None,
) -> Failed:
    """The failure that an error answer stands for.

    ``status`` is the HTTP status, None for an error inside a stream. ``body`` is the answer as bytes, text or parsed
    JSON. Header names may be in any case. ``kind`` None: it is told from the rest.
    """
    code, words = _details(body)
    words = _clean(words, endpoint)
    kind = kind or classify(status if status is not None else _status_in(code), code, words)
    lowered = {name.lower(): value for name, value in (headers or {}).items()}
    wait = retry_after(lowered) if kind in ("rate_limit", "overload") else None
    return Failed(kind, _sentence(kind, endpoint, status, words), wait)


def classify(status: int | None, code: str, words: str) -> FailureKind:
    """The kind of an error by its status (None: unknown), the code or type in its body, and its words."""
    said = f"{code} {words}"
    if status == 402 or (status not in (401, 404) and _BILLING.search(said)):
        return "billing"
    if status == 401 or (status is None and _AUTH.search(said)):
        return "auth"
    if status == 413 or (status != 403 and _OVERFLOW.search(said)):
        return "overflow"
    if status in (None, 400, 403, 422) and _FILTERED.search(said):
        return "filtered"
    if status == 403:
        return "auth"
    if status == 429 or (status is None and _RATE.search(said)):
        return "rate_limit"
    if status is None or status == 408 or status >= 500:
        return "overload"
    return "refused"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by ``retry-after-ms`` or ``retry-after`` (seconds or a date), None where neither is to be read.

    A date is counted from the answer's own ``date``, so that a wrong clock here does no harm.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait):
            return max(0.0, wait)
    due, now = _date(headers.get("retry-after")), _date(headers.get("date"))
    if due is None:
        return None
    return max(0.0, (due - (now or datetime.now(UTC))).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _sentence(kind: FailureKind, endpoint: Endpoint, status: int | None, words: str) -> str:
    server, model = endpoint.server, endpoint.model
    told = f"HTTP {status}" if status else "error"
    told = f"{told}: {words}" if words else told
    place = endpoint.key_place or "api_key under [models]"
    match kind:
        case "auth" if endpoint.key is None:
            return f"{server} wants a key. Set {place}."
        case "auth":
            return f"{server} refused the key from {place} ({told}). Set a valid one there."
        case "billing":
            return f"{server} says that the account has no credit left ({told}). Top it up, or choose another model."
        case "rate_limit":
            return f"{server} asks to slow down ({told})."
        case "overload":
            return f"{server} is in trouble or overloaded ({told})."
        case "overflow":
            return f"The conversation is longer than {model} takes ({told})."
        case "filtered":
            return f"{server} blocked this by its content filter ({told}). Say it in another way."
        case _:
            return f"{server} refused the call of {model} ({told}). {_mend(endpoint, status, words)}"


def _mend(endpoint: Endpoint, status: int | None, words: str) -> str:
    if _NO_TOOLS.search(words):
        return "Set uses_tools = false under [models], or choose a model that can call tools."
    if status == 404 and endpoint.port == 11434:
        return f"Get the model: `ollama pull {endpoint.model.partition('/')[2] or endpoint.model}`."
    if status == 404:
        return "Check the model's name, and base_url under [models] if you set it."
    return "Check the model's name and its settings under [models]."


def _details(body: object) -> tuple[str, str]:
    """The code (or type) and the words of an error body, "" where there is none."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return "", "" if str(body).lstrip().startswith("<") else str(body)
    if isinstance(body, list):
        body = body[0] if body else ""
    if not isinstance(body, Mapping):
        return "", "" if body is None else str(body)
    for key in ("error", "detail"):
        if isinstance(body.get(key), Mapping):
            return _details(body[key])
    words = next((str(body[k]) for k in ("message", "error", "detail", "msg") if body.get(k)), "")
    code = " ".join(str(body[k]) for k in ("code", "type", "status") if body.get(k))
    return code, words + _inner_words(body)


def _inner_words(body: Mapping[str, Any]) -> str:
    """OpenRouter keeps what the provider behind it said in ``metadata.raw``."""
    metadata = body.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f" {raw}" if raw else ""


def _status_in(code: str) -> int | None:
    """An HTTP status that a stream's error carries as its code."""
    found = re.search(r"\b[45]\d\d\b", code)
    return int(found[0]) if found else None


def _clean(text: str, endpoint: Endpoint) -> str:
    """One line, short, without anything that looks like a key."""
    text = " ".join(mended(text).split())
    if endpoint.key:
        text = text.replace(endpoint.key, "[key]")
    text = _SECRET.sub("[key]", text)
    cut = text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
    return cut.rstrip(" .")
