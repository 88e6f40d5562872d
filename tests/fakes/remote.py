"""The fake door from another process: a client that has every call made where the platform and the test are.

Requests and answers are pickles on a Unix socket, a connection for each call: closing it takes the call back.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from adapters.adapter import Accept, Adapter, Capabilities, Health
from adapters.isolated.frames import Trouble
from adapters.message import Address, Inbound, Part, Receipt
from adapters.text import FormattedText, utf16_length


def say(writer: asyncio.StreamWriter, value: object) -> None:
    data = pickle.dumps(value)
    writer.write(len(data).to_bytes(4) + data)


async def hear(reader: asyncio.StreamReader) -> Any:
    """Raises IncompleteReadError at the end."""
    return pickle.loads(await reader.readexactly(int.from_bytes(await reader.readexactly(4))))


class RemoteSettings(BaseModel):
    socket: Path
    capabilities: Capabilities


class RemoteDoor:
    """What runs in the other process."""

    settings_model = RemoteSettings
    channel = "fake"

    def __init__(self, account: str, settings: RemoteSettings) -> None:
        self.account = account
        self.capabilities = settings.capabilities
        self.health = Health()
        self._socket = str(settings.socket)

    async def run(self, accept: Accept) -> None:
        reader, writer = await asyncio.open_unix_connection(self._socket)
        try:
            say(writer, ("run",))
            self.health = replace(self.health, state="connected")
            while True:
                event: Inbound = await hear(reader)
                self.health = replace(self.health, heard_at=datetime.now(UTC))
                try:
                    await accept(event)
                except Exception as error:
                    say(writer, Trouble.of(error))
                else:
                    say(writer, None)
        finally:
            writer.close()
            self.health = replace(self.health, state="stopped")

    async def _call(self, *request: object) -> Any:
        reader, writer = await asyncio.open_unix_connection(self._socket)
        try:
            say(writer, request)
            answer = await hear(reader)
        finally:
            writer.close()
        if isinstance(answer, Trouble):
            raise answer.error(RuntimeError)
        return answer

    async def send(self, part: Part, key: str) -> Receipt:
        return cast(Receipt, await self._call("send", part, key))

    async def edit(self, part: Part, message_id: str) -> None:
        await self._call("edit", part, message_id)

    async def typing(self, address: Address) -> None:
        await self._call("typing", address)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        await self._call("react", address, message_id, emoji)

    async def erase(self, address: Address, message_id: str) -> None:
        await self._call("erase", address, message_id)

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        for piece in await self._call("fetch", ref, limit):
            yield piece

    def measure(self, text: FormattedText) -> int:
        return utf16_length(text.plain)

    async def close(self) -> None:
        """No connection outlives its call."""


class Counter:
    """Where ``door`` is: serves those calls."""

    def __init__(self, door: Adapter) -> None:
        self._door = door
        self._server: asyncio.Server | None = None

    async def open(self, path: Path) -> None:
        self._server = await asyncio.start_unix_server(self._serve, path)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name, *arguments = await hear(reader)
        replies: asyncio.Queue[Trouble | None] = asyncio.Queue()

        async def accept(event: Inbound) -> None:
            say(writer, event)
            if trouble := await replies.get():
                raise trouble.error(RuntimeError)

        work = asyncio.create_task(self._door.run(accept) if name == "run" else self._answered(name, arguments))
        try:
            listening = asyncio.create_task(self._listen(reader, replies, work))
            say(writer, await work)
            await listening
        except asyncio.CancelledError:
            """The other side is gone."""
        finally:
            writer.close()

    async def _listen(
        self, reader: asyncio.StreamReader, replies: asyncio.Queue[Trouble | None], work: asyncio.Task[Any]
    ) -> None:
        try:
            while True:
                replies.put_nowait(await hear(reader))
        except (asyncio.IncompleteReadError, ConnectionError):
            work.cancel()

    async def _answered(self, name: str, arguments: list[Any]) -> object:
        try:
            answer = getattr(self._door, name)(*arguments)
            return [piece async for piece in answer] if name == "fetch" else await answer
        except Exception as error:
            return Trouble.of(error)
