"""People, their levels, and how a stranger becomes known."""

from __future__ import annotations

import pytest

from adapters.message import Address, Sender
from bot.pairing import ALPHABET, LENGTH, MOST_TOLD, MOST_WAITING, Pairing, new_code
from bot.people import People
from bot.state import State
from tests.bot.conftest import Clock
from tests.fakes.adapter import FakeAdapter
from workspaces.scope import Level

DOOR = FakeAdapter("telegram", "telegram")
CHAT = Address("telegram", "telegram", "7", "direct")


@pytest.fixture
def people(state: State, clock: Clock) -> People:
    return People(state, owners=["telegram:1"], identities={"ann": ["telegram:7", "discord:99"]}, clock=clock)


@pytest.fixture
def pairing(state: State, people: People, clock: Clock) -> Pairing:
    return Pairing(state, people, clock=clock)


async def test_levels_come_from_the_configuration_or_a_pairing(people: People) -> None:
    assert await people.level(CHAT, Sender("1")) is Level.OWNER
    assert await people.level(CHAT, Sender("7")) is None
    await people.give("telegram", "7", Level.GUEST, "Ann")
    assert await people.level(CHAT, Sender("7")) is Level.GUEST
    assert await people.level(CHAT, Sender("8", aliases=("7",))) is Level.GUEST
    assert await people.level(Address("discord", "d", "7", "direct"), Sender("7")) is None
    assert await people.level(CHAT, Sender("1", is_shared=True)) is None
    assert await people.level(Address("terminal", "terminal", "local", "direct"), Sender("local")) is Level.OWNER


async def test_a_name_gives_no_level(people: People) -> None:
    """G-RTE-19: ids decide."""
    await people.give("telegram", "7", Level.OWNER, "Ann")
    assert await people.level(CHAT, Sender("666", name="Ann")) is None
    assert await people.level(CHAT, Sender("telegram:1")) is None


async def test_linked_accounts_are_one_identity(people: People) -> None:
    assert people.identity(CHAT, Sender("7")) == "ann"
    assert people.identity(Address("discord", "d", "1", "direct"), Sender("99")) == "ann"
    assert people.identity(CHAT, Sender("99")) is None


async def test_a_moved_chat_keeps_its_first_id(people: People) -> None:
    old = Address("telegram", "telegram", "-5", "group")
    await people.move(old, "-1005")
    await people.move(Address("telegram", "telegram", "-1005", "group"), "-1009")
    for chat in ("-5", "-1005", "-1009"):
        assert (await people.canonical(Address("telegram", "telegram", chat, "group"))).chat == "-5"
    assert (await people.canonical(Address("telegram", "other", "-1005", "group"))).chat == "-1005"


def test_codes_have_no_look_alikes() -> None:
    assert not set("ILO01") & set(ALPHABET)
    codes = {new_code() for _ in range(100)}
    assert len(codes) == 100
    assert all(len(code) == LENGTH and set(code) <= set(ALPHABET) for code in codes)


async def test_a_code_is_approved_once_however_it_is_typed(pairing: Pairing, people: People) -> None:
    code = await pairing.ask(DOOR.message("hi", sender="7"))
    assert code is not None
    assert [(r.code, r.sender, r.name) for r in await pairing.waiting()] == [(code, "7", "Ann")]
    assert await pairing.approve("WRONGONE", Level.GUEST) is None
    approved = await pairing.approve(f" {code[:4].lower()}-{code[4:].lower()} ", Level.GUEST)
    assert approved is not None
    assert approved.sender == "7"
    assert await people.level(CHAT, Sender("7")) is Level.GUEST
    assert await pairing.approve(code, Level.OWNER) is None
    assert await people.level(CHAT, Sender("7")) is Level.GUEST


async def test_the_same_stranger_keeps_the_code_and_hears_it_a_few_times(pairing: Pairing) -> None:
    codes = [await pairing.ask(DOOR.message(f"hi {n}", sender="7")) for n in range(MOST_TOLD + 2)]
    assert codes[0] is not None
    assert codes == [codes[0]] * MOST_TOLD + [None, None]


async def test_a_code_is_good_for_an_hour(pairing: Pairing, clock: Clock) -> None:
    code = await pairing.ask(DOOR.message("hi"))
    assert code is not None
    clock.move(minutes=61)
    assert await pairing.waiting() == []
    assert await pairing.approve(code, Level.GUEST) is None
    assert await pairing.ask(DOOR.message("hi")) != code


async def test_at_most_three_wait_the_oldest_is_replaced(pairing: Pairing, clock: Clock) -> None:
    for number in range(MOST_WAITING + 1):
        clock.move(seconds=1)
        await pairing.ask(DOOR.message("hi", sender=str(100 + number)))
    assert [r.sender for r in await pairing.waiting()] == ["101", "102", "103"]


async def test_a_denied_code_is_gone_and_gives_nothing(pairing: Pairing, people: People) -> None:
    code = await pairing.ask(DOOR.message("hi", sender="7"))
    assert code is not None
    assert await pairing.deny(code) is not None
    assert await pairing.waiting() == []
    assert await people.all() == []
