"""A scripted hub on the real adapter: it takes each message once and answers as a test says. Knows no agent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from adapters.adapter import Accept, TurnReport
from adapters.errors import Absent
from adapters.message import Address, Inbound, Message, Part
from adapters.terminal import Failure, Hello, Ready, TerminalAdapter
from adapters.text import FormattedText

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HERE = Address("terminal", "terminal", "local", "direct", space="main")

Script: TypeAlias = Callable[["Hub", Message], Coroutine[Any, Any, None]]


async def echo(hub: Hub, message: Message) -> None:
    await hub.answer(message, f"You said: {message.text}")
    await hub.done(message)


class Hub:
    """``async with Hub(script, listen=path)``; ``taken`` are the messages in order, without repetitions."""

    def __init__(
        self,
        script: Script = echo,
        *,
        listen: Path | None = None,
        connected: socket.socket | None = None,
        word: Ready | Failure | None = None,
        patience: float = 10.0,
    ) -> None:
        self.taken: list[Message] = []
        self.hellos: list[Hello] = []
        self.arrivals: asyncio.Queue[Address] = asyncio.Queue()
        self.accept_error: Exception | None = None
        self._word = word or Ready("main", "fake-1")
        self._script = script
        self._turns: set[asyncio.Task[None]] = set()
        self.adapter = TerminalAdapter(
            user="Ann",
            greet=self._greet,
            listen=listen,
            connected=connected,
            arrived=self.arrivals.put_nowait,
            clock=lambda: NOON,
            patience=patience,
        )

    async def __aenter__(self) -> Hub:
        await self.start(self._accept)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, accept: Accept) -> None:
        self._running = asyncio.create_task(self.adapter.run(accept))
        while self.adapter.health.state == "starting":
            await asyncio.sleep(0)

    async def stop(self) -> None:
        for task in (*self._turns, self._running):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.adapter.close()

    async def answer(self, message: Message, text: str, *, key: str = "") -> None:
        """As an outbox does: a part that nobody takes waits for the next console."""
        await self.deliver(Part(message.address, FormattedText(text), reply_to=message.id), key or f"{message.id}/0")

    async def deliver(self, part: Part, key: str) -> None:
        while True:
            try:
                await self.adapter.send(part, key)
                return
            except Absent:
                await self.arrivals.get()

    async def stream(self, message: Message, *deltas: str) -> None:
        for delta in deltas:
            await self.adapter.preview(message.address, message.id, delta)

    async def done(self, message: Message, **report: Any) -> None:
        await self.adapter.done(message.address, message.id, TurnReport(**{"parts": 1, "model": "fake-1", **report}))

    async def fail(self, message: Message, text: str, code: int) -> None:
        await self.adapter.fail(message.address, message.id, text, code)

    async def _greet(self, hello: Hello) -> Ready | Failure:
        self.hellos.append(hello)
        if isinstance(self._word, Ready) and hello.agent is not None:
            return replace(self._word, agent=hello.agent)
        return self._word

    async def _accept(self, event: Inbound) -> None:
        if self.accept_error is not None:
            raise self.accept_error
        assert isinstance(event, Message)
        if event.id in [message.id for message in self.taken]:
            return
        self.taken.append(event)
        turn = asyncio.create_task(self._script(self, event))
        self._turns.add(turn)
        turn.add_done_callback(self._turns.discard)
