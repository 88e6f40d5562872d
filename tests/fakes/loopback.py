"""A server on 127.0.0.1, for a fake to be one: its listening, the work that it does meanwhile, and waiting for changes.

It knows nothing of what is served.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Self

from aiohttp import web


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Loopback(ABC):
    """``port`` is the one it listens on; 0 before a free one is taken."""

    most_bytes: ClassVar[int] = 64 << 20
    """Of the body of a request."""
    context: ssl.SSLContext | None = None
    """Of TLS; None for none."""

    def __init__(self) -> None:
        super().__init__()
        self.port = 0
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._working: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The root of all that it serves."""
        return f"http://127.0.0.1:{self.port}"

    @abstractmethod
    def routes(self, router: web.UrlDispatcher) -> None:
        """Add what is served to ``router``."""

    async def work(self) -> None:
        """What is done beside answering, for as long as it runs: nothing here."""
        await self._stopping.wait()

    # Running ----------------------------------------------------------------------------------------------------------

    async def start(self) -> Self:
        """Listen, at first on any free port. After ``stop`` it may be started again: with its state, on its port."""
        app = web.Application(client_max_size=self.most_bytes)
        self.routes(app.router)
        self._stopping = asyncio.Event()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self.context).start()
        self.port = self._runner.addresses[0][1]
        self._working = asyncio.create_task(self.work())
        return self

    async def stop(self) -> None:
        self._stopping.set()
        self.change()
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    # Waiting ----------------------------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], bool], seconds: float = 20) -> None:
        """Looks after each change; raises TimeoutError after ``seconds``."""
        async with asyncio.timeout(seconds):
            while not condition():
                await self._changed.wait()

    def change(self) -> None:
        """Wake all who wait for something to happen; each looks for itself whether it was that."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def pause(self, seconds: float) -> None:
        """Wait, but not longer than the server runs."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
