"""The only way to the other program: signed requests to one host, and what each answer means as ``adapters.errors``.

Redirects are not followed. No error quotes an address beyond its host, since the rest of it may be a secret.
"""

from __future__ import annotations

import json
import re
from asyncio import IncompleteReadError
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar
from yarl import URL

from adapters.errors import AdapterError, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.text import sanitize
from adapters.webhook.settings import WebhookSettings
from adapters.webhook.signing import signed

KEY_HEADER = "Idempotency-Key"

_CONNECT_SECONDS = 10.0
_DEFAULT_WAIT = 5.0
_LONGEST_ANSWER = 64_000
_LONGEST_QUOTE = 200
_CHUNK = 1 << 16


class Client:
    """Posts to and fetches from one host. Raises nothing but ``adapters.errors``."""

    def __init__(self, settings: WebhookSettings, clock: Callable[[], datetime]) -> None:
        self._secret = settings.secret.get_secret_value()
        self._url = URL(settings.callback_url)
        self._answer_seconds = settings.answer_seconds
        self._clock = clock
        self._session = ClientSession(cookie_jar=DummyCookieJar())

    async def post(self, payload: Mapping[str, Any], key: str) -> str | None:
        """Give ``payload`` to the receiver; the id of the message that it made of it, None where it says none.

        It takes a ``key`` once. So what got no answer may be sent again, and is Unreachable and never Ambiguous.
        """
        body = json.dumps(payload, ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json",
            KEY_HEADER: quote(key, safe="/"),
            **signed(self._secret, body, self._clock()),
        }
        patience = ClientTimeout(total=self._answer_seconds, sock_connect=_CONNECT_SECONDS)
        failure: AdapterError
        try:
            async with self._session.post(
                self._url, data=body, headers=headers, allow_redirects=False, timeout=patience
            ) as answer:
                said = await _head(answer)
                if _is_success(answer):
                    return _message_id(said)
                failure = self._refusal(answer, said)
        except (ClientError, OSError) as error:  # TimeoutError is one
            failure = Unreachable(
                f"{self._place} gave no answer ({type(error).__name__}): is the program there running?"
            )
        # Raised here and not inside "except": no error of the library, whose request holds the URL, hangs on to it.
        raise failure

    async def download(self, url: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes at ``url``, which is on the receiver's host; one more than ``limit`` raises Rejected.

        What is signed is the path with the query, in the place of a body.
        """
        target = URL(url)
        headers = {
            "Accept-Encoding": "identity",
            **signed(self._secret, target.raw_path_qs.encode(), self._clock()),
        }
        patience = ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=self._answer_seconds)
        failure: AdapterError
        try:
            async with self._session.get(target, headers=headers, allow_redirects=False, timeout=patience) as answer:
                if _is_success(answer):
                    arrived = 0
                    async for chunk in answer.content.iter_chunked(_CHUNK):
                        arrived += len(chunk)
                        if arrived > limit:
                            raise Rejected(f"the file is larger than {limit:,} bytes")
                        yield chunk
                    return
                failure = self._refusal(answer, await _head(answer))
                if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
                    failure = Rejected(f"{self._place} has no such file ({answer.status})")
        except (ClientError, OSError) as error:
            failure = Unreachable(f"the download from {self._place} broke off ({type(error).__name__})")
        raise failure

    async def close(self) -> None:
        await self._session.close()

    @property
    def _place(self) -> str:
        return self._url.authority

    def _refusal(self, answer: ClientResponse, said: bytes) -> AdapterError:
        """What an answer that is no success means."""
        text = " ".join(sanitize(said.decode(errors="replace")).replace(self._secret, "…").split())[:_LONGEST_QUOTE]
        what = f"{self._place} says {answer.status}{f' ({text})' if text else ''}"
        wait = re.fullmatch(r"[0-9]{1,6}", answer.headers.get("Retry-After", ""))
        match answer.status:
            case HTTPStatus.TOO_MANY_REQUESTS:
                return RateLimited(what, float(wait[0]) if wait else _DEFAULT_WAIT)
            case HTTPStatus.SERVICE_UNAVAILABLE if wait:
                return RateLimited(what, float(wait[0]))
            case HTTPStatus.UNAUTHORIZED:
                return AuthFailed(f"{what}: is the secret the same at both ends, and are both clocks right?")
            case HTTPStatus.UNPROCESSABLE_ENTITY:
                return Rejected(what, formatting=True)
            case HTTPStatus.NOT_FOUND | HTTPStatus.METHOD_NOT_ALLOWED:
                return Unreachable(f"{what}: is callback_url right?")
            case status if 300 <= status < 400:
                return Unreachable(f"{what}, and redirects are not followed: set callback_url to where it leads")
            case status if status >= 500 or status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY):
                return Unreachable(what)
        return Rejected(what)


def _is_success(answer: ClientResponse) -> bool:
    return 200 <= answer.status < 300


async def _head(answer: ClientResponse) -> bytes:
    """The beginning of an answer, as much as is ever looked at."""
    try:
        return await answer.content.readexactly(_LONGEST_ANSWER)
    except IncompleteReadError as whole:
        return whole.partial


def _message_id(said: bytes) -> str | None:
    try:
        answer = json.loads(said)
    except (ValueError, RecursionError):
        return None
    found = answer.get("id") if isinstance(answer, dict) else None
    return str(found) if isinstance(found, str | int) and found else None
