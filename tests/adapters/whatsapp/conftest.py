"""An account at work: the real library with a stand-in for its Go side, and an adapter whose pauses take no time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.message import Address, Part
from adapters.text import FormattedText
from adapters.whatsapp import WhatsAppAdapter, WhatsAppSettings
from tests.adapters.work import Clock, Naps
from tests.fakes.whatsapp_events import ANN, GROUP
from tests.fakes.whatsapp_seam import Seam, ann

Open = Callable[..., WhatsAppAdapter]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "whatsapp"


@pytest.fixture
async def seam(folder: Path) -> AsyncIterator[Seam]:
    seam = await Seam().start()
    seam.link(folder)
    yield seam
    await seam.stop()
    assert seam.crashes == []


class Wall:
    """The time of day, which is the machine's until a test moves it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def naps() -> Naps:
    return Naps(limit=500)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def opened(seam: Seam, folder: Path, naps: Naps, clock: Clock, wall: Wall) -> AsyncIterator[Open]:
    """Makes adapters with settings."""
    made: list[WhatsAppAdapter] = []

    def opened(**settings: Any) -> WhatsAppAdapter:
        known: dict[str, Any] = {"proxy_url": seam.proxy_url, "messages_a_minute": 120}
        own = WhatsAppSettings(**(known | settings))
        made.append(WhatsAppAdapter("main", own, folder, sleep=naps, random=lambda: 0.5, monotonic=clock, now=wall))
        return made[-1]

    yield opened
    for adapter in made:
        await adapter.close()


@pytest.fixture
def adapter(opened: Open) -> WhatsAppAdapter:
    return opened()


def place(chat: str = "") -> Address:
    """Ann's direct chat, or a group."""
    return Address("whatsapp", "main", chat or ann(), "group" if chat.endswith("@g.us") else "direct")


def part(text: str = "hello", address: Address | None = None, **fields: Any) -> Part:
    return Part(address or place(), FormattedText(text), **fields)


IN_GROUP = {"chat": GROUP, "sender": f"{ANN['lid']}:3@lid"}
"""Where a message of Ann's was said."""
