"""Discord on loopback, and adapters that listen to it with the real library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from adapters.discord import DiscordAdapter, DiscordSettings
from adapters.message import Address, Part
from adapters.text import FormattedText
from tests.adapters.work import Naps, Received, until
from tests.fakes.discord_api import Channel, DiscordApi


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with DiscordApi() as api:
        yield api


@pytest.fixture
def naps() -> Naps:
    return Naps(limit=200)


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
