"""What only the adapter does: link an account, know people by both of their ids, outlive its end between two steps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.whatsapp_relay.directory import Account
from tests.fakes.whatsapp_relay.lines import Process, ToldError
from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.relay import Fault, Relay
from tests.whatsapp.bot import ADAPTER_PROGRAM, AdapterBot
from tests.whatsapp.conftest import Linked


@pytest.fixture
async def adapter(linked: Linked, relay: Relay, limpet: Account, tmp_path: Path) -> AsyncIterator[AdapterBot]:
    """Not started."""
    bot = AdapterBot(relay, limpet, linked.session(limpet.phone, tmp_path))
    try:
        yield bot
    finally:
        await bot.kill()


@pytest.mark.parametrize("phone", ["", "+1 (555) 000-0003"], ids=["qr", "code"])
async def test_it_links_an_account(relay: Relay, ann: Person, tmp_path: Path, phone: str) -> None:
    bob = relay.directory.open_account("15550000003", "100000000000003", "Bob")
    folder = tmp_path / "bob"
    folder.mkdir()
    settings = {"folder": str(folder), "proxy": relay.proxy.url, "root": relay.trust.root.hex(), "link": phone}
    process = Process(ADAPTER_PROGRAM, settings, relay.trust.environment, folder / "log.txt")
    try:
        await process.start()
        shown = await process.until("Shown")
        if phone:
            assert shown["kind"] == "PairingCode"
            await relay.pairing.enter(shown["text"], bob)
        else:
            assert shown["kind"] == "QrCode"
            await relay.pairing.scan(shown["text"], bob)
        await process.until("Linked", id=f"+{bob.phone}", lid=str(bob.by_lid))
        assert (folder / "session.db").stat().st_mode & 0o077 == 0
        await process.until("Health", state="connected")
        await ann.say(bob.by_phone, "are you there?")
        await ann.sees(text="echo: are you there?")
    finally:
        await process.kill()


async def test_a_person_is_the_same_by_number_and_by_hidden_id(relay: Relay, ann: Person, adapter: AdapterBot) -> None:
    """G-RTE-20: today people are named by LID, before it was by number."""
    await adapter.start()
    await ann.say(adapter.account.by_lid, "by hidden id")
    by_lid = await adapter.hears(text="by hidden id")
    relay.directory.addressing = "pn"
    await ann.say(adapter.account.by_phone, "by number")
    by_number = await adapter.hears(text="by number")
    assert (by_lid.sender, by_number.sender) == (ann.account.phone, ann.account.phone)
    assert by_lid.chat == by_number.chat


async def test_what_was_reported_and_not_stored_is_handed_on_by_the_next_run(
    relay: Relay, ann: Person, adapter: AdapterBot
) -> None:
    """The server has its receipt by then, and brings it no more."""
    adapter.stalls = True
    await adapter.start()
    said = await ann.say(adapter.account.by_phone, "hold this?")
    await adapter.stalled()
    await relay.until(lambda: relay.held(adapter.account) == [])
    await adapter.kill()
    adapter.stalls = False
    await adapter.start()
    assert (await adapter.hears(text="hold this?")).id == said
    await ann.sees(text="echo: hold this?")
    assert adapter.texts() == ["hold this?"]


async def test_a_send_that_nobody_answers_is_ambiguous(relay: Relay, ann: Person, adapter: AdapterBot) -> None:
    """It arrived, and nobody can know: the library gives a message its id, and can't be asked for it."""
    adapter.answer_seconds = 1.0
    await adapter.start()
    await ann.say(adapter.account.by_phone, "hello")
    chat = (await adapter.hears(text="hello")).chat
    relay.fail("message", Fault(after=True, silent=True))
    with pytest.raises(ToldError, match="Ambiguous"):
        await adapter.send(chat, "did you get this")
    await ann.sees(text="did you get this")


async def test_it_leaves_a_group(relay: Relay, ann: Person, adapter: AdapterBot) -> None:
    group = relay.directory.open_group("Tide", ann.account, adapter.account)
    await adapter.start()
    await ann.say(group.jid, "off you go")
    await adapter.leave((await adapter.hears(text="off you go")).chat)
    assert group.members == [ann.account.phone]


async def test_what_is_answered_was_read(relay: Relay, ann: Person, adapter: AdapterBot) -> None:
    await adapter.start()
    silent = await ann.say(adapter.account.by_phone, "for the record")
    await adapter.hears(text="for the record")
    assert relay.said("receipt", adapter.account, type="read", id=silent) == []
    asked = await ann.say(adapter.account.by_phone, "and this?")
    await ann.sees(text="echo: and this?")
    await relay.until(lambda: bool(relay.said("receipt", adapter.account, type="read")))
    assert asked in str(relay.said("receipt", adapter.account, type="read"))


async def test_the_owner_of_the_account_talks_to_it_in_the_chat_with_themselves(
    relay: Relay, adapter: AdapterBot, tmp_path: Path
) -> None:
    """Its own answers there come back to it as words of the owner's, and are known."""
    desk = await Person(relay, adapter.account, tmp_path / "desk").start()
    try:
        await desk.link()
        await adapter.start()
        await desk.say(adapter.account.by_lid, "note to myself?")
        await adapter.hears(text="note to myself?")
        await desk.sees(text="echo: note to myself?")
        await desk.say(adapter.account.by_lid, "that is all")
        await adapter.hears(text="that is all")
        assert adapter.texts() == ["note to myself?", "that is all"]
    finally:
        await desk.kill()


async def test_starting_and_stopping_again_and_again_hangs_nothing(
    relay: Relay, ann: Person, adapter: AdapterBot
) -> None:
    """In one process: the library's threads stay, and a new client has to live with them."""
    await adapter.start()
    for number in range(5):
        async with asyncio.timeout(30):
            await adapter.again()
        await ann.say(adapter.account.by_phone, f"round {number}")
        await adapter.hears(text=f"round {number}")
    assert adapter.texts() == [f"round {number}" for number in range(5)]
