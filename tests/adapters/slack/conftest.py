"""A workspace on loopback, and adapters that listen to it with the real libraries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.message import Address, Part
from adapters.slack import SlackAdapter, SlackSettings
from adapters.text import FormattedText
from tests.adapters.work import Clock, Naps, Received, running
from tests.fakes.slack_api import APP_TOKEN, TOKEN, Chat, SlackApi


@pytest.fixture
async def api() -> AsyncIterator[SlackApi]:
    async with SlackApi() as api:
        yield api


@pytest.fixture
def naps() -> Naps:
    return Naps(limit=200)


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
