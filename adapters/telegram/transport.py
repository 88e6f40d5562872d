"""The connection to a Bot API server: python-telegram-bot's ``Bot``, whose calls raise only ``adapters.errors`` here.

The transport turns every answer that is no success into the adapter's error, where status and body are still known.
The token is part of every URL, so no error of the library and no log line of it is let through as it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import httpx
from telegram import Bot
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from adapters.errors import AdapterError, Ambiguous, AuthFailed, Unreachable
from adapters.telegram.refusals import refusal, true_status

if TYPE_CHECKING:
    from adapters.telegram.settings import TelegramSettings

T = TypeVar("T")

_TOKEN = re.compile(r"\d+:[\w-]+")
_CONNECT_SECONDS = 10.0
_UPLOAD_SECONDS = 60.0
"""How long 64 KB of a file may take."""

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)

_LEAKY = ("httpx", "telegram.Bot")
"""Loggers that print URLs: httpx each request (INFO), the library its base URL (DEBUG)."""


class Connection:
    """One bot at one server. Raises AuthFailed for a token that can't be one, before any call."""

    def __init__(self, settings: TelegramSettings) -> None:
        token = settings.token.get_secret_value().strip()
        if not _TOKEN.fullmatch(token):
            raise AuthFailed(
                f"the Telegram token {_tail(token)} doesn't look like one (123456789:AAF…). "
                "Copy it from @BotFather again: /mybots, the bot, API Token"
            )
        root = (settings.base_url or "https://api.telegram.org").rstrip("/")
        self._token = token
        self._redaction = _Redaction(token.partition(":")[2])
        for name in _LEAKY:
            logging.getLogger(name).addFilter(self._redaction)
        self.tls = httpx.create_ssl_context()
        """One for all: it takes 0.07 s of CPU to read the certificates."""
        shared = {"verify": self.tls}
        self._polls = _Transport(connection_pool_size=1, connect_timeout=_CONNECT_SECONDS, httpx_kwargs=shared)
        self._calls = _Transport(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=settings.answer_seconds,
            media_write_timeout=_UPLOAD_SECONDS,
            httpx_kwargs=shared,
        )
        self.bot = Bot(
            token,
            base_url=f"{root}/bot",
            base_file_url=f"{root}/file/bot",
            request=self._calls,
            get_updates_request=self._polls,
        )

    def hide(self, secret: str) -> None:
        """Let no error and no log of the libraries show ``secret``, which is not empty."""
        self._redaction.secrets.add(secret)

    async def call(self, request: Awaitable[T]) -> T:
        """The answer to a request of ``bot``. Raises ``adapters.errors`` and nothing else."""
        try:
            return await request
        except _CallError as error:
            failure = error.failure
        except Exception as error:  # an answer that says ok and holds something the library can't take
            failure = Ambiguous(f"the answer of the server is odd: {error!r}")
        failure.args = (self._redaction.clean(str(failure)),)
        if isinstance(failure, AuthFailed):
            failure = AuthFailed(
                f"{failure}. The token {_tail(self._token)} is wrong or was revoked: "
                "copy the current one from @BotFather (/mybots, the bot, API Token)"
            )
        # Raised here and not inside "except": no error of the library, whose request holds the URL, hangs on to it.
        raise failure

    async def close(self) -> None:
        await self._polls.shutdown()
        await self._calls.shutdown()
        for name in _LEAKY:
            logging.getLogger(name).removeFilter(self._redaction)


class _CallError(TelegramError):
    """Carries the adapter's error through the library, which lets errors of its own kind pass unchanged."""

    __slots__ = ("failure",)

    def __init__(self, failure: AdapterError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _Transport(HTTPXRequest):
    """The library's transport; whatever is no success it raises as ``_CallError``."""

    __slots__ = ()

    async def do_request(self, url: str, method: str, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        address = urlsplit(url)
        name = address.path.rpartition("/")[2]
        try:
            status, body = await super().do_request(url, method, *args, **kwargs)
        except TelegramError as error:
            failure = _lost(f"{name}: no answer from {address.netloc}", error.__cause__)
        else:
            status = true_status(status, body)
            if 200 <= status < 300:
                return status, body
            failure = refusal(name, status, body)
        raise _CallError(failure)


def _lost(what: str, cause: BaseException | None) -> AdapterError:
    """The error for a call that got no answer: did the request leave this machine?"""
    reason = f"{what} ({type(cause).__name__})"
    return Unreachable(reason) if isinstance(cause, _NOT_SENT) else Ambiguous(reason)


class _Redaction(logging.Filter):
    """Takes secrets, such as the secret half of a token, out of log records and other texts."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self.secrets = {secret}

    def clean(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if (cleaned := self.clean(message)) != message:
            record.msg, record.args = cleaned, ()
        return True


def _tail(token: str) -> str:
    """Enough of a token to tell it from another, and no more."""
    return f"ending in …{token[-3:]}" if len(token) >= 12 else "(too short to show)"
