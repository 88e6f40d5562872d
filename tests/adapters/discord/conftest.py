"""Discord on loopback, and adapters that listen to it with the real library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from pydantic import SecretStr

from adapters.adapter import Accept
from adapters.discord import DiscordAdapter, DiscordSettings
from adapters.message import Address, Inbound, Message, Part
from adapters.text import FormattedText
from tests.fakes.discord_api import Channel, DiscordApi

T = TypeVar("T")


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
        return [event.text for event in self.of(Message)]

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with DiscordApi() as api:
        yield api


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def received() -> Received:
    return Received()


def settings_for(api: DiscordApi, token: str | None = None, **settings: Any) -> DiscordSettings:
    return DiscordSettings(token=SecretStr(token or api.token), base_url=api.root, **settings)


def adapter_for(api: DiscordApi, naps: Naps, **settings: Any) -> DiscordAdapter:
    return DiscordAdapter("main", settings_for(api, **settings), sleep=naps, random=lambda: 0.5)


@pytest.fixture
async def adapter(api: DiscordApi, naps: Naps) -> AsyncIterator[DiscordAdapter]:
    adapter = adapter_for(api, naps)
    yield adapter
    await adapter.close()


@asynccontextmanager
async def running(adapter: DiscordAdapter, accept: Accept) -> AsyncIterator[asyncio.Task[None]]:
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
    """For what no event tells of: the health of an adapter."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


async def connected(adapter: DiscordAdapter) -> None:
    await until(lambda: adapter.health.state == "connected")


def direct(api: DiscordApi) -> Address:
    return Address("discord", "main", str(api.dm.id), "direct")


def at(channel: Channel) -> Address:
    assert channel.guild is not None
    thread = str(channel.id) if channel.parent else None
    parent = str(channel.parent) if channel.parent else None
    return Address("discord", "main", str(channel.id), "channel", str(channel.guild.id), parent, thread)


def part(address: Address, text: str = "hello", **fields: Any) -> Part:
    return Part(address, FormattedText(text), **fields)
