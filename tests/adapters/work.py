"""An adapter at work, for tests: its pauses and its clock, the length of its run, and what it handed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from adapters.adapter import Accept, Adapter
from adapters.message import Inbound, Message

T = TypeVar("T")


@dataclass
class Naps:
    """A sleep that takes no time, up to ``limit`` times; after that it never ends, so that no test spins."""

    limit: int = 50
    taken: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        if len(self.taken) >= self.limit:
            await asyncio.Event().wait()
        await asyncio.sleep(0)


@dataclass
class Clock:
    """Seconds that pass when a test says so."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Received:
    """What an adapter handed on. ``troubles`` are raised by the next calls, in order; None lets one through."""

    events: list[Inbound] = field(default_factory=list)
    troubles: list[Exception | None] = field(default_factory=list)

    async def accept(self, event: Inbound) -> None:
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble is not None:
            raise trouble
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def messages(self) -> list[Message]:
        return self.of(Message)

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    @property
    def turns(self) -> set[str]:
        """What the inbox would take for a message of its own: it knows one by chat and id."""
        return {f"{message.address.chat}/{message.id}" for message in self.messages if message.mentions_me}


@asynccontextmanager
async def running(adapter: Adapter, accept: Accept) -> AsyncIterator[asyncio.Task[None]]:
    """The adapter at work for the length of the block; what ends it before its time fails the test."""
    task = asyncio.create_task(adapter.run(accept))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            raise error


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """For what no event tells of: the health of an adapter, and what it handed on."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
