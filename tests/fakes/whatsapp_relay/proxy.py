"""The way to the server: an HTTP proxy that clients tunnel through (CONNECT), to hosts of WhatsApp's only.

Whoever asks for another host is refused, and remembered: nothing of a client leaves this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress

_CHUNK = 1 << 16


class Proxy:
    """``hosts`` are those that lead to the server at ``port``. ``calls`` are all that were asked for, in order."""

    def __init__(self, hosts: Collection[str], changed: Callable[[], None]) -> None:
        self._hosts = hosts
        self._changed = changed
        self._server: asyncio.Server | None = None
        self._working: set[asyncio.Task[None]] = set()
        self._leads_to = 0
        self.port = 0
        self.calls: list[str] = []
        self.refused: list[str] = []
        self.is_open = True
        """False: as if the network were down."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, leads_to: int) -> None:
        self._leads_to = leads_to
        self._server = await asyncio.start_server(self._come, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._working:
            task.cancel()
        if self._working:
            await asyncio.wait(self._working)

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._working.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._tunnel(reader, writer)
        finally:
            self._working.discard(task)
            writer.transport.abort()

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, host, *_ = head.decode().split()
        self.calls.append(host)
        self._changed()
        if not self.is_open:
            return
        if method != "CONNECT" or host not in self._hosts:
            self.refused.append(host)
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            await writer.drain()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._leads_to)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, server_writer))
                both.create_task(_pump(server_reader, writer))
        finally:
            server_writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
