"""A platform and a home for each talk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.telegram_api import TelegramApi
from tests.faults.doors import DOORS, Door
from tests.flows.conftest import Limpet


@pytest.fixture
def limpet(tmp_path: Path) -> Limpet:
    return Limpet(tmp_path / "home")


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramApi]:
    async with TelegramApi() as api:
        yield api


@pytest.fixture(params=DOORS)
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with DOORS[request.param]() as opened:
        yield opened
