"""A device is linked: by a QR code, by a code for a phone number; it comes again by itself, and leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.whatsapp_relay.directory import Account
from tests.fakes.whatsapp_relay.pairing import WrongCodeError
from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.relay import Relay


@pytest.fixture
def bob(relay: Relay) -> Account:
    """A phone without any linked device."""
    return relay.directory.open_account("15550000003", "100000000000003", "Bob")


@pytest.fixture
async def newcomer(relay: Relay, bob: Account, tmp_path: Path) -> AsyncIterator[Person]:
    person = await Person(relay, bob, tmp_path / "bob").start()
    yield person
    await person.kill()


async def test_a_qr_code_links_and_the_session_outlives_the_process(
    relay: Relay, newcomer: Person, ann: Person, bob: Account, tmp_path: Path
) -> None:
    with pytest.raises(WrongCodeError):
        await relay.pairing.scan("https://wa.me/settings/linked_devices#ref0,a,b,c,d", bob)
    await newcomer.link()
    assert [one["ID"]["User"] for one in newcomer.told("PairStatus")] == [bob.phone]
    await newcomer.stop()
    await ann.say(bob.by_phone, "are you there?")
    again = await Person(relay, bob, tmp_path / "bob").start()
    try:
        assert (await again.sees(text="are you there?"))["name"] == "Ann"
        assert again.told("QR") == []
    finally:
        await again.kill()


async def test_a_code_for_a_phone_number_links(relay: Relay, newcomer: Person, ann: Person, bob: Account) -> None:
    await newcomer.until("QR")
    code = await newcomer.do("pairing_code", phone="+1 555 000-0003")
    assert len(code) == 9
    await relay.pairing.enter(code, bob)
    await newcomer.until("Connected")
    await ann.say(bob.by_phone, "found you")
    await newcomer.sees(text="found you")


async def test_a_wrong_code_links_nothing(relay: Relay, newcomer: Person, bob: Account) -> None:
    await newcomer.until("QR")
    code = await newcomer.do("pairing_code", phone=bob.phone)
    wrong = ("1" if code[0] != "1" else "2") + code[1:]
    relay.heard.clear()
    await relay.pairing.enter(wrong, bob)
    await relay.until(lambda: relay.pairing.failed > 0)
    assert newcomer.told("PairStatus") == []
    assert bob.devices == {}


async def test_a_device_takes_itself_off_the_list(relay: Relay, ann: Person) -> None:
    await ann.do("log_out")
    assert ann.account.devices == {}


async def test_a_second_device_of_a_person_gets_what_the_first_one_sends(
    relay: Relay, ann: Person, limpet: Account, tmp_path: Path
) -> None:
    second = await Person(relay, ann.account, tmp_path / "second").start()
    try:
        await second.link()
        await ann.say(limpet.by_phone, "from my desk")
        seen = await second.sees(text="from my desk")
        assert seen["is_own"]
        assert seen["chat"] in (str(limpet.by_lid), str(limpet.by_phone))
    finally:
        await second.kill()
