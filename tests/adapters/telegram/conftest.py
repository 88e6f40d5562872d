"""A Bot API on loopback, and adapters that read it with the real library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.message import Inbound
from adapters.telegram import TelegramAdapter, TelegramSettings
from tests.adapters.work import Clock, Naps, Received, running
from tests.fakes.telegram_api import TelegramApi


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
