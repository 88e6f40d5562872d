"""The terminal for the contract suite: a console's own end of the socket, and a person who reads what it brings."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from adapters.adapter import Adapter
from adapters.contract import Trouble
from adapters.message import Address
from adapters.terminal.adapter import TerminalAdapter
from adapters.terminal.endpoint import to_socket
from adapters.terminal.link import Link, ulid
from adapters.terminal.wire import VERSION, Answer, Hello, Ready, Say


async def _greet(hello: Hello) -> Ready:
    return Ready(hello.agent or "main")


def _id(number: int) -> str:
    return ulid(0, number)


class TerminalHarness:
    """A console that confirms what it shows; one that confirms nothing is a suspended one."""

    troubles: frozenset[Trouble] = frozenset({"unreachable", "ambiguous"})
    redelivers = False  # a console is told what could not be stored, and the person says it again
    secrets: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "limpet.sock"
        self._link = Link(to_socket(self._path), Hello(VERSION, interactive=True), delays=[0.01] * 1000)
        self._shown: list[str] = []
        self._said = 0
        self._trouble: Trouble | None = None
        self._stalled: asyncio.Event | None = None
        self._arrived: asyncio.Queue[Address] = asyncio.Queue()
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._link.__aenter__()
        self._reading = asyncio.create_task(self._read())

    async def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
            await self._link.__aexit__(None, None, None)
            self._folder.cleanup()

    def open(self) -> Adapter:
        for number in range(self._said):
            if self._link.kept(_id(number)):
                self._link.take_back(_id(number))  # no hub is here that would say that its turn has ended
        return TerminalAdapter(greet=_greet, listen=self._path, arrived=self._arrived.put_nowait, patience=1.0)

    async def ready(self, adapter: Adapter) -> Address:
        async with asyncio.timeout(10):
            return await self._arrived.get()

    async def says(self, text: str) -> None:
        await self._link.say(Say(_id(self._said), text))
        self._said += 1

    def shown(self) -> list[str]:
        return list(self._shown)

    def fail_next_send(self, trouble: Trouble) -> None:
        self._trouble = trouble

    def stall_next_send(self) -> None:
        self._stalled = asyncio.Event()
        self._trouble = "unreachable"

    async def stalled(self) -> None:
        assert self._stalled is not None
        await self._stalled.wait()

    def attach(self, data: bytes) -> str | None:
        return None

    async def _read(self) -> None:
        while True:
            event = await self._link.events.get()
            if not isinstance(event, Answer):
                continue
            trouble, self._trouble = self._trouble, None
            if self._stalled is not None:
                self._stalled.set()
            if trouble != "unreachable":
                self._shown.append(event.text)
            if trouble is None:
                await self._link.got(event)
