"""A real state database in a temporary folder, a clock that the test moves, and a hub whole behind a fake door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.app import Hub
from bot.config import load
from bot.home import Home
from bot.people import People
from bot.state import State
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import ModelServer
from workspaces.workspace import INTERVIEW


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def people_of(state: State, clock: Clock) -> People:
    """Nobody is known; chats may move."""
    return People(state, owners=(), identities={}, clock=clock)


@pytest.fixture
async def state(tmp_path: Path) -> AsyncIterator[State]:
    async with State.open(tmp_path / "limpet.sqlite") as opened:
        yield opened


OPEN = 'direct = "open"\nallow = ["*"]\n'

Serve = Callable[..., AbstractAsyncContextManager[Hub]]


@pytest.fixture
def door() -> FakeAdapter:
    return FakeAdapter("telegram", "telegram")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def serve(home: Home, door: FakeAdapter) -> Serve:
    """A running hub over ``door`` and a model server; ``channel``, ``top`` and ``models`` are further lines of its
    settings."""

    @asynccontextmanager
    async def serve(server: ModelServer, channel: str = OPEN, top: str = "", models: str = "") -> AsyncIterator[Hub]:
        home.root.mkdir(exist_ok=True)
        home.config.write_text(
            f'{top}\n[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n{models}\n\n'
            f'[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n{channel}'
        )
        async with Hub.open(load(home, {}), home, [door]) as hub:
            (home.workspace("main") / INTERVIEW).unlink(missing_ok=True)
            running = asyncio.create_task(hub.run())
            try:
                yield hub
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    return serve
