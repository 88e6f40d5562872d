"""The connection to Discord: the library's own HTTP and gateway clients, whose calls raise only ``adapters.errors``.

A trace of the HTTP client turns every answer that is no success into the adapter's error before the library would wait
and try again: that is for the outbox to decide. What the gateway sends is handed on as it came, in order. The library
keeps the buckets of Discord's rate limits, and waits where one is known to be empty.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import discord
from discord.http import HTTPClient, Route

from adapters.discord.refusals import GlobalLimit, refusal
from adapters.errors import AdapterError, Ambiguous, AuthFailed, Rejected, Unreachable

if TYPE_CHECKING:
    from discord.state import ConnectionState

    from adapters.discord.settings import DiscordSettings

log = logging.getLogger(__name__)

_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")
_UPLOAD_SECONDS = 300.0
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)

_IDENTIFY_SECONDS = 5.0
"""Between two logins on the gateway: Discord takes one in five seconds."""

_PLACES = ("READY", "GUILD_", "CHANNEL_", "THREAD_")
"""The events that the library reads: what it knows of servers. Messages are read here, so that none can break it."""

Receive = Callable[[str], None]
"""Takes a frame of the gateway, at once."""


class Connection:
    """One bot at one server. Raises AuthFailed for a token that can't be one, before any call.

    Made inside of a running event loop.
    """

    def __init__(
        self, settings: DiscordSettings, sleep: Callable[[float], Awaitable[None]], monotonic: Callable[[], float]
    ) -> None:
        self._token = settings.token.get_secret_value().strip()
        if not _TOKEN.fullmatch(self._token):
            raise AuthFailed(
                f"the Discord token {_tail(self._token)} doesn't look like one (three parts with dots between). "
                "Make a new one: https://discord.com/developers/applications, the application, Bot, Reset Token"
            )
        self._root = (settings.base_url or Route.BASE).rstrip("/")
        self._seconds = settings.answer_seconds
        self._monotonic = monotonic
        self._held_until = 0.0
        self._opening = asyncio.Lock()
        self._is_open = False
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(self._judge)
        self.session = Session(_Rest, self._root, trace, sleep)

    async def call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        query: Mapping[str, str | int] | None = None,
        form: Sequence[Mapping[str, Any]] | None = None,
        files: Sequence[discord.File] | None = None,
        **ids: str,
    ) -> Any:
        """The answer to one call; ``ids`` fill the braces of ``path``. Raises ``adapters.errors`` and nothing else."""
        if (left := self._held_until - self._monotonic()) > 0:
            raise GlobalLimit(f"Discord takes nothing of this bot for {left:.1f} s", left)
        await self.open()
        total = _UPLOAD_SECONDS if files else self._seconds
        given: dict[str, Any] = {"timeout": aiohttp.ClientTimeout(total=total)}
        given |= {} if json is None else {"json": json}
        given |= {} if query is None else {"params": query}
        given |= {} if form is None else {"form": form, "files": files}
        failure: AdapterError
        try:
            answer = await self.session.http.request(Route(method, path, **ids), **given)
            if not isinstance(answer, str) or not answer:  # the library's form of what is no JSON, and of nothing
                return answer
            failure = Ambiguous(f"{method} {path}: the answer can't be read: is the server a Discord API server?")
        except _CallError as error:
            failure = error.failure
        except (aiohttp.ClientError, OSError) as error:  # a timeout is an OSError
            reason = f"{method} {path}: no answer from {urlsplit(self._root).netloc} ({type(error).__name__})"
            failure = Unreachable(reason) if isinstance(error, _NOT_SENT) else Ambiguous(reason)
        except (discord.DiscordException, ValueError) as error:
            failure = Ambiguous(f"{method} {path}: the answer can't be read ({type(error).__name__})")
        raise self.told(failure)

    async def open(self) -> None:
        """Make ready to call; asks nothing."""
        async with self._opening:
            if not self._is_open:
                await self.session.prepare(self._token)
                self._is_open = True

    def told(self, failure: AdapterError) -> AdapterError:
        """``failure``, with which token it is and where there is another."""
        if isinstance(failure, GlobalLimit):
            self._held_until = self._monotonic() + failure.retry_after
        if isinstance(failure, AuthFailed):
            return AuthFailed(
                f"{failure}. The token {_tail(self._token)} is wrong or was reset: make a new one at "
                "https://discord.com/developers/applications (the application, Bot, Reset Token)"
            )
        return failure

    async def download(self, url: str, limit: int) -> Any:
        """The bytes at ``url`` as they arrive; raises Rejected as soon as they are known to be more than ``limit``."""
        too_big = Rejected(f"the file is larger than {limit} bytes")
        failure: AdapterError
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._seconds, sock_read=self._seconds)
        try:
            async with aiohttp.ClientSession(timeout=timeout) as web, web.get(url) as answer:
                if answer.status == 200:
                    arrived = 0
                    async for chunk in answer.content.iter_any():
                        arrived += len(chunk)
                        if arrived > limit:
                            raise too_big
                        yield chunk
                    return
                failure = refusal("GET", "/the file", answer.status, answer.headers, b'{"code": 0}')
        except (aiohttp.ClientError, OSError) as error:
            failure = Unreachable(f"the download broke off ({type(error).__name__})")
        raise failure

    async def close(self) -> None:
        await self.session.close()

    async def _judge(self, _: aiohttp.ClientSession, __: SimpleNamespace, end: aiohttp.TraceRequestEndParams) -> None:
        status = end.response.status
        if status >= 300:
            body = await end.response.read()
            path = str(end.url.path).removeprefix(urlsplit(self._root).path)
            raise _CallError(refusal(end.method, path, status, end.response.headers, body))


class _CallError(Exception):
    """Carries the adapter's error through the library."""

    def __init__(self, failure: AdapterError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _Rest(HTTPClient):
    """The library's HTTP client, at another root."""

    root = Route.BASE
    is_opening = False

    async def request(self, route: Route, **given: Any) -> Any:
        if self.is_opening:  # it would ask who we are, only to see whether the token is right
            return {}
        if self.root != Route.BASE:
            route.url = self.root + route.url.removeprefix(Route.BASE)
        return await super().request(route, **given)


class Session(discord.Client):
    """The library's client, without its handlers: frames go to ``receive``, and what it knows of servers is asked."""

    def __init__(
        self,
        rest: type[_Rest],
        root: str,
        trace: aiohttp.TraceConfig,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._rest = rest
        self._root = root
        self._trace = trace
        self._sleep = sleep
        self.receive: Receive = unheard
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # nobody here speaks
        intents = discord.Intents.none()
        intents.guilds = intents.messages = intents.reactions = intents.message_content = True
        super().__init__(
            intents=intents,
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            enable_debug_events=True,
        )

    def _get_state(self, **options: Any) -> ConnectionState[Session]:
        """Called by the library while it is made: the one place to give it another HTTP client."""
        self.http = self._rest(self.loop, http_trace=self._trace)
        self.http.root = self._root
        state = super()._get_state(**options)
        kept = {kind: parse for kind, parse in state.parsers.items() if kind.startswith(_PLACES)}
        state.parsers = {kind: partial(_guarded, kind, parse) for kind, parse in kept.items()}
        return state

    async def prepare(self, token: str) -> None:
        await self._async_setup_hook()
        assert isinstance(self.http, _Rest)
        self.http.is_opening = True
        await self.http.static_login(token)
        self.http.is_opening = False

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002  # the library's signature
        """Called by the library, in order, with all that comes; it has no handlers of ours to call."""
        if event == "socket_raw_receive":
            self.receive(args[0])

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002
        if not initial:
            await self._sleep(_IDENTIFY_SECONDS)


def _tail(token: str) -> str:
    """Enough of a token to tell it from another, and no more."""
    return f"ending in …{token[-3:]}" if len(token) >= 12 else "(too short to show)"


def _guarded(kind: str, parse: Callable[[Any], Any], data: Any) -> None:
    """What the library can't read of one event must not end the connection, which would bring it again."""
    try:
        parse(data)
    except Exception as error:
        log.warning("discord: a %s could not be read: %r", kind, error)


def unheard(_: str) -> None:
    """Nobody listens: the client is only used to call."""
