"""The only way to Telegram: python-telegram-bot's ``Bot`` behind calls that raise nothing but ``adapters.errors``.

The transport turns every answer that is no success into the adapter's error, where status and body are still known.
The token is part of every URL, so no error of the library and no log line of it is let through as it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import httpx
from telegram import Bot, LinkPreviewOptions, ReplyParameters
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from adapters.errors import AdapterError, Ambiguous, AuthFailed, Rejected, Unreachable
from adapters.telegram.entities import rendered
from adapters.telegram.refusals import refusal, true_status
from adapters.telegram.settings import BotIdentity

if TYPE_CHECKING:
    from adapters.message import Address, Part
    from adapters.telegram.settings import TelegramSettings

T = TypeVar("T")

_TOKEN = re.compile(r"\d+:[\w-]+")
_CONNECT_SECONDS = 10.0

_GET_UPDATES = "get__updates"
"""Becomes getUpdates. The library's own method parses all updates at once, so one bad update would lose the batch, and
it warns when ``do_api_request`` is given a name that it has a method for."""

_UPDATES = ["message", "edited_message", "channel_post", "edited_channel_post", "my_chat_member"]

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)

_LEAKY = ("httpx", "telegram.Bot")
"""Loggers that print URLs: httpx each request (INFO), the library its base URL (DEBUG)."""


class Client:
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
        self._answer_seconds = settings.answer_seconds
        self._redaction = _Redaction(token)
        for name in _LEAKY:
            logging.getLogger(name).addFilter(self._redaction)
        self._polls = _Transport(connection_pool_size=1, connect_timeout=_CONNECT_SECONDS)
        self._calls = _Transport(connect_timeout=_CONNECT_SECONDS, read_timeout=settings.answer_seconds)
        self._bot = Bot(
            token,
            base_url=f"{root}/bot",
            base_file_url=f"{root}/file/bot",
            request=self._calls,
            get_updates_request=self._polls,
        )

    async def identity(self) -> BotIdentity:
        me = await self._call(self._bot.get_me())
        return BotIdentity(str(me.id), me.username or "", me.full_name)

    async def updates(self, offset: int | None, seconds: int) -> list[Any]:
        """What came in, as the server's JSON, oldest first; waits up to ``seconds`` for something to come.

        Everything before ``offset`` is forgotten by the server.
        """
        parameters = {"offset": offset, "timeout": seconds, "allowed_updates": _UPDATES}
        poll = self._bot.do_api_request(_GET_UPDATES, parameters, read_timeout=seconds + self._answer_seconds)
        updates = await self._call(poll)
        if not isinstance(updates, list):
            raise Unreachable("the answer to getUpdates holds no list: is the server a Bot API server?")
        return updates

    async def remove_webhook(self) -> None:
        await self._call(self._bot.delete_webhook(drop_pending_updates=False))

    async def show_commands(self, commands: Sequence[tuple[str, str]]) -> None:
        """Put ``commands``, names and what they do, in the place of those that the bot's menu had."""
        await self._call(self._bot.set_my_commands(commands))

    async def send(self, part: Part) -> str:
        """The id of the message that ``part`` became."""
        text, entities = rendered(part.text)
        answered = None
        if part.reply_to:
            answered = ReplyParameters(int(part.reply_to), allow_sending_without_reply=True)
        message = await self._call(
            self._bot.send_message(
                part.address.chat,
                text,
                entities=entities,
                link_preview_options=LinkPreviewOptions(is_disabled=True),
                message_thread_id=_thread(part.address),
                reply_parameters=answered,
            )
        )
        return str(message.message_id)

    async def edit(self, part: Part, message_id: str) -> None:
        text, entities = rendered(part.text)
        await self._call(
            self._bot.edit_message_text(
                text,
                part.address.chat,
                int(message_id),
                entities=entities,
                link_preview_options=LinkPreviewOptions(is_disabled=True),
            )
        )

    async def show_typing(self, address: Address) -> None:
        await self._call(self._bot.send_chat_action(address.chat, "typing", message_thread_id=_thread(address)))

    async def download(self, file_id: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file as they arrive; raises Rejected as soon as they are known to be more than ``limit``."""
        file = await self._call(self._bot.get_file(file_id))
        too_big = Rejected(f"the file is larger than {limit} bytes")
        if (file.file_size or 0) > limit:
            raise too_big
        url = file.file_path or ""
        if not url.startswith("http"):
            raise Rejected("the Bot API server keeps files on a disk of its own: start it without --local")
        failure: AdapterError
        try:
            async with httpx.AsyncClient(timeout=self._answer_seconds) as web, web.stream("GET", url) as answer:
                if answer.status_code == httpx.codes.OK:
                    arrived = 0
                    async for chunk in answer.aiter_bytes():
                        arrived += len(chunk)
                        if arrived > limit:
                            raise too_big
                        yield chunk
                    return
                failure = refusal("download", answer.status_code, b"")
        except httpx.HTTPError as error:
            failure = Unreachable(f"the download broke off ({type(error).__name__})")
        raise failure

    async def close(self) -> None:
        await self._polls.shutdown()
        await self._calls.shutdown()
        for name in _LEAKY:
            logging.getLogger(name).removeFilter(self._redaction)

    async def _call(self, request: Awaitable[T]) -> T:
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
    """Takes the secret half of a token out of log records and other texts."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._secret = token.partition(":")[2]

    def clean(self, text: str) -> str:
        return text.replace(self._secret, "…")

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if self._secret in message:
            record.msg, record.args = self.clean(message), ()
        return True


def _thread(address: Address) -> int | None:
    return int(address.thread) if address.thread else None


def _tail(token: str) -> str:
    """Enough of a token to tell it from another, and no more."""
    return f"ending in …{token[-3:]}" if len(token) >= 12 else "(too short to show)"
