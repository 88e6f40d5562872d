"""A platform and a home for each talk."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.faults.doors import DOORS, Door
from tests.flows.conftest import limpet, telegram

__all__ = ["limpet", "telegram"]


@pytest.fixture(params=DOORS)
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    async with DOORS[request.param]() as opened:
        yield opened
