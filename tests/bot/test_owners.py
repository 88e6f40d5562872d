"""A channel that waits for a person: its owner hears of it by another one, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from adapters.adapter import Accept, Health
from adapters.errors import AuthFailed
from adapters.message import Sender
from bot.app import Hub
from bot.config import load
from bot.home import Home
from tests.fakes.adapter import FakeAdapter

LOGGED_OUT = "the account was logged out on the phone: link it again with limpet channels login phone"
SETTINGS = 'owners = ["telegram:1"]\n\n[channels.telegram]\ntoken = "123456:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n'


class Phone(FakeAdapter):
    """Runs until it is ``logged_out``, and not at all after that."""

    def __init__(self) -> None:
        super().__init__("webhook", "phone")
        self.logged_out = asyncio.Event()

    async def run(self, accept: Accept) -> None:
        self.health = Health("connected")
        await self.logged_out.wait()
        self.health = Health("failed", LOGGED_OUT)
        raise AuthFailed(LOGGED_OUT)


@asynccontextmanager
async def running(home: Home, *doors: FakeAdapter) -> AsyncIterator[Hub]:
    home.root.mkdir(exist_ok=True)
    home.config.write_text(SETTINGS)
    async with Hub.open(load(home, {}), home, doors) as hub:
        serving = asyncio.create_task(hub.run())
        try:
            yield hub
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def test_owners_hear_by_another_door_that_one_waits_for_them(home: Home, door: FakeAdapter) -> None:
    """Once, however often the hub is started, and nobody else does."""
    phone = Phone()
    async with running(home, door, phone):
        await door.says(door.message("/whoami", sender="1"))
        await door.says(door.message("hello", sender="2"))
        await door.wait_sent(3)  # a code for the stranger, and the owner is asked about them
        phone.logged_out.set()
        told = (await door.wait_sent(4))[3]
    assert told.part.address.chat == "1"
    assert told.text == f"My channel phone works no more: {LOGGED_OUT}"
    assert phone.sent == []
    async with running(home, door, phone) as hub:
        await door.says(door.message("/whoami", sender="1"))
        await door.wait_sent(5)
        await hub.idle()
    assert [sent.text for sent in door.sent].count(told.text) == 1


@pytest.mark.parametrize("reason", ["another reason", LOGGED_OUT])
async def test_it_is_said_again_for_another_reason_or_once_it_had_worked(
    home: Home, door: FakeAdapter, reason: str
) -> None:
    async with running(home, door, Phone()) as hub:
        await door.says(door.message("/whoami", sender="1"))
        await door.wait_sent(1)
        await hub.idle()
    for why, number in ((LOGGED_OUT, 2), (reason, 3)):
        phone = Phone()
        phone.logged_out.set()

        async def run(_: Accept, why: str = why, phone: FakeAdapter = phone) -> None:
            phone.health = Health("failed", why, heard_at=phone.message("").sent_at if why == LOGGED_OUT else None)
            raise AuthFailed(why)

        phone.run = run  # type: ignore[assignment,method-assign]
        async with running(home, door, phone):
            await door.wait_sent(number)
    assert door.sent[-1].text == f"My channel phone works no more: {reason}"


async def test_nobody_is_told_where_there_is_no_other_door(home: Home) -> None:
    """It is in the status, and what would be written could never arrive."""
    phone = Phone()
    async with running(home, phone) as hub:
        phone.logged_out.set()
        async with asyncio.timeout(10):
            while phone.health.state != "failed":
                await asyncio.sleep(0)
        await hub.idle()
    assert phone.sent == []


async def test_an_owner_by_another_id_is_told_as_well(home: Home, door: FakeAdapter) -> None:
    """The settings name a phone number, and messages come from a hidden id."""
    phone = Phone()
    async with running(home, door, phone):
        said = door.message("/whoami", sender="100@lid")
        await door.says(replace(said, sender=Sender("100@lid", "Ann", ("1",))))
        await door.wait_sent(1)
        phone.logged_out.set()
        told = (await door.wait_sent(2))[1]
    assert (told.part.address.chat, told.text) == ("100@lid", f"My channel phone works no more: {LOGGED_OUT}")
