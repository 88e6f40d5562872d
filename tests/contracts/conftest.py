"""Every adapter there is, one harness each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.contracts.harness import Harness
from tests.contracts.telegram import TelegramHarness

HARNESSES: dict[str, Callable[[], Harness]] = {"telegram": TelegramHarness}


@pytest.fixture(params=HARNESSES)
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    harness = HARNESSES[request.param]()
    await harness.start()
    yield harness
    await harness.stop()
