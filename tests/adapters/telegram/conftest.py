"""A Bot API on loopback, and adapters that read it with the real library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.adapter import Accept
from adapters.message import Inbound, Message
from adapters.telegram import TelegramAdapter, TelegramSettings
from tests.fakes.telegram_api import TelegramApi


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

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Message)]


@pytest.fixture
async def api() -> AsyncIterator[TelegramApi]:
    async with TelegramApi() as api:
        yield api


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def settings_for(api: TelegramApi, token: str | None = None, **settings: Any) -> TelegramSettings:
    secret = SecretStr(token or api.token)
    return TelegramSettings(token=secret, base_url=api.url, poll_seconds=1, **settings)


@pytest.fixture
async def adapter(api: TelegramApi, naps: Naps, clock: Clock) -> AsyncIterator[TelegramAdapter]:
    adapter = TelegramAdapter("main", settings_for(api), sleep=naps, random=lambda: 0.5, monotonic=clock)
    yield adapter
    await adapter.close()


@asynccontextmanager
async def running(adapter: TelegramAdapter, accept: Accept) -> AsyncIterator[asyncio.Task[None]]:
    """The adapter at work for the length of the block; what ends it before its time fails the test."""
    task = asyncio.create_task(adapter.run(accept))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            raise error


async def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    """For what no event tells of: the health of an adapter."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


Receive = Callable[[], Awaitable[list[Inbound]]]


@pytest.fixture
def receive(api: TelegramApi, adapter: TelegramAdapter) -> Receive:
    """The events of all that was said so far."""

    async def receive() -> list[Inbound]:
        received = Received()
        async with running(adapter, received.accept):
            await api.wait_confirmed()
        return received.events

    return receive
