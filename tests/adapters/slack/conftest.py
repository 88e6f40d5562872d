"""A workspace on loopback, and adapters that listen to it with the real libraries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.adapter import Accept
from adapters.message import Address, Inbound, Message, Part
from adapters.slack import SlackAdapter, SlackSettings
from adapters.text import FormattedText
from tests.fakes.slack_api import APP_TOKEN, TOKEN, Chat, SlackApi


@dataclass
class Naps:
    """A sleep that takes no time, up to ``limit`` times; after that it never ends, so that no test spins."""

    limit: int = 200
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
    def messages(self) -> list[Message]:
        return [event for event in self.events if isinstance(event, Message)]

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]

    @property
    def turns(self) -> set[str]:
        """What the inbox would take for a message of its own: it knows one by chat and id."""
        return {f"{message.address.chat}/{message.id}" for message in self.messages if message.mentions_me}


@pytest.fixture
async def api() -> AsyncIterator[SlackApi]:
    async with SlackApi() as api:
        yield api


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def settings_for(api: SlackApi, **settings: Any) -> SlackSettings:
    known: dict[str, Any] = {"token": SecretStr(TOKEN), "app_token": SecretStr(APP_TOKEN), "base_url": api.base_url}
    return SlackSettings(**(known | settings))


def opened(api: SlackApi, naps: Naps, clock: Clock, **settings: Any) -> SlackAdapter:
    own = settings_for(api, **settings)
    return SlackAdapter("main", own, sleep=naps, random=lambda: 0.5, monotonic=clock, ping_seconds=0.1)


@pytest.fixture
async def adapter(api: SlackApi, naps: Naps, clock: Clock) -> AsyncIterator[SlackAdapter]:
    adapter = opened(api, naps, clock)
    yield adapter
    await adapter.close()


@asynccontextmanager
async def running(adapter: SlackAdapter, accept: Accept) -> AsyncIterator[asyncio.Task[None]]:
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
    """For what no event tells of: the health of an adapter, and what it handed on."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def place(chat: Chat | None = None, thread: str | None = None) -> Address:
    """Ann's direct chat, or a channel."""
    kinds: dict[str, Any] = {"im": "direct", "mpim": "group"}
    if chat is None:
        return Address("slack", "main", "D0ANN0001", "direct", space="T0GARDEN1")
    return Address("slack", "main", chat.id, kinds.get(chat.kind, "channel"), space="T0GARDEN1", thread=thread)


def part(text: str = "hello", address: Address | None = None, **fields: Any) -> Part:
    return Part(address or place(), FormattedText(text), **fields)


Receive = Callable[[], Awaitable[Received]]


@pytest.fixture
def receive(api: SlackApi, adapter: SlackAdapter) -> Receive:
    """What all that was said so far is handed on as."""

    async def receive() -> Received:
        received = Received()
        async with running(adapter, received.accept):
            await api.wait_linked()
            await api.wait_acknowledged()
        return received

    return receive
