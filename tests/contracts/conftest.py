"""Every adapter there is, one harness each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from adapters.contract import Harness
from tests.contracts.discord import DiscordHarness
from tests.contracts.fake import FakeHarness
from tests.contracts.isolated import IsolatedHarness
from tests.contracts.slack import SlackHarness, SlackHttpHarness
from tests.contracts.telegram import TelegramHarness, TelegramWebhookHarness
from tests.contracts.terminal import TerminalHarness
from tests.contracts.webhook import WebhookHarness
from tests.contracts.whatsapp import WhatsAppHarness

HARNESSES: dict[str, Callable[[], Harness]] = {
    "discord": DiscordHarness,
    "fake": FakeHarness,
    "isolated": IsolatedHarness,
    "slack": SlackHarness,
    "slack http": SlackHttpHarness,
    "telegram": TelegramHarness,
    "telegram webhook": TelegramWebhookHarness,
    "terminal": TerminalHarness,
    "webhook": WebhookHarness,
    "whatsapp": WhatsAppHarness,
}


@pytest.fixture(params=HARNESSES)
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    harness = HARNESSES[request.param]()
    await harness.start()
    yield harness
    await harness.stop()
