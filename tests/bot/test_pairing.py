"""People, their levels, and how a stranger becomes known."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from adapters.message import Address, Message, Sender
from bot.pairing import ALPHABET, FRESH, LENGTH, LIFETIME, MOST_TOLD, MOST_WAITING, NO_CODE_NOW, Pairing, new_code
from bot.people import People
from bot.state import State
from tests.bot.conftest import Clock
from tests.fakes.adapter import FakeAdapter
from workspaces.database import sqlite
from workspaces.scope import Level

DOOR = FakeAdapter("telegram", "telegram")
CHAT = Address("telegram", "telegram", "7", "direct")


@pytest.fixture
def people(state: State, clock: Clock) -> People:
    return People(state, owners=["telegram:1"], identities={"ann": ["telegram:7", "discord:99"]}, clock=clock)


@pytest.fixture
def pairing(state: State, people: People, clock: Clock) -> Pairing:
    return Pairing(state, people, clock=clock)


async def ask(pairing: Pairing, sender: str = "7") -> str | None:
    """The code that this stranger hears when they write, None for silence or an excuse."""
    words = await pairing.ask(DOOR.message("hi", sender=sender))
    found = re.search(rf"pairing approve ([{ALPHABET}]{{{LENGTH}}})$", words or "")
    return found[1] if found else None


async def test_levels_come_from_the_configuration_or_a_pairing(people: People) -> None:
    assert await people.level(CHAT, Sender("1")) is Level.OWNER
    assert await people.level(CHAT, Sender("7")) is None
    await people.give("telegram", "7", Level.GUEST, "Ann")
    assert await people.level(CHAT, Sender("7")) is Level.GUEST
    assert await people.level(CHAT, Sender("8", aliases=("7",))) is Level.GUEST
    assert await people.level(Address("discord", "d", "7", "direct"), Sender("7")) is None
    assert await people.level(CHAT, Sender("1", is_shared=True)) is None
    assert await people.level(Address("terminal", "terminal", "local", "direct"), Sender("local")) is Level.OWNER


async def test_who_is_known_by_another_id_meanwhile_is_the_one_who_asked(pairing: Pairing) -> None:
    """A phone number, and later the hidden id of the same person: no second code, and a no stays a no."""

    def words() -> Message:
        message = DOOR.message("hi")
        return replace(message, sender=Sender("100@lid", aliases=("7",)))

    code = await ask(pairing)
    assert code is not None
    assert code in (await pairing.ask(words()) or "")
    request = await pairing.of(words())
    assert request is not None
    assert request.sender == "7"
    await pairing.deny(code, for_good=True)
    assert await pairing.ask(words()) is None
    assert await pairing.waiting() == []


async def test_a_name_gives_no_level(people: People) -> None:
    """G-RTE-19: ids decide."""
    await people.give("telegram", "7", Level.OWNER, "Ann")
    assert await people.level(CHAT, Sender("666", name="Ann")) is None
    assert await people.level(CHAT, Sender("telegram:1")) is None


async def test_linked_accounts_are_one_identity(people: People) -> None:
    assert people.identity(CHAT, Sender("7")) == "ann"
    assert people.identity(Address("discord", "d", "1", "direct"), Sender("99")) == "ann"
    assert people.identity(CHAT, Sender("99")) is None


async def test_a_moved_chat_keeps_its_first_id_and_is_written_to_at_its_newest(people: People) -> None:
    """G-RTE-26: also where Telegram tells of a move late, and again."""
    old = Address("telegram", "telegram", "-5", "group")
    assert await people.newest(old) == old
    await people.move(old, "-1005")
    await people.move(Address("telegram", "telegram", "-1005", "group"), "-1009")
    await people.move(old, "-1005")
    for chat in ("-5", "-1005", "-1009"):
        address = Address("telegram", "telegram", chat, "group")
        assert (await people.canonical(address)).chat == "-5"
        assert (await people.newest(address)).chat == "-1009"
    assert (await people.canonical(Address("telegram", "other", "-1005", "group"))).chat == "-1005"


async def test_who_has_a_number_after_somebody_is_not_taken_for_them(people: People) -> None:
    """Numbers change hands: a person's number leads to one hidden id, the first that it was told with."""

    def at(chat: str) -> Address:
        return Address("telegram", "telegram", chat, "direct")

    await people.move(at("+155"), "ann@lid")
    await people.move(at("+155"), "bob@lid")
    ann, bob = Sender("ann@lid", aliases=("+166",)), Sender("bob@lid", aliases=("+155",))
    assert await people.first_id(at("ann@lid"), ann) == "+155"
    assert await people.first_id(at("ann@lid"), Sender("ann@lid")) == "+155", "before her new number is told"
    assert await people.first_id(at("bob@lid"), bob) == "bob@lid"
    assert (await people.newest(at("ann@lid"))).chat == "ann@lid"


def test_codes_have_no_look_alikes() -> None:
    assert not set("ILO01") & set(ALPHABET)
    codes = {new_code() for _ in range(100)}
    assert len(codes) == 100
    assert all(len(code) == LENGTH and set(code) <= set(ALPHABET) for code in codes)


async def test_a_level_that_is_taken_away_is_gone(people: People) -> None:
    await people.give("telegram", "7", Level.GUEST, "Ann")
    assert await people.take_away("telegram", "7")
    assert await people.level(CHAT, Sender("7")) is None
    assert not await people.take_away("telegram", "7")


async def test_a_code_is_approved_once_however_it_is_typed(pairing: Pairing, people: People) -> None:
    code = await ask(pairing)
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
    codes = [await ask(pairing) for _ in range(MOST_TOLD + 2)]
    assert codes[0] is not None
    assert codes == [codes[0]] * MOST_TOLD + [None, None]


async def test_a_code_is_good_for_an_hour(pairing: Pairing, clock: Clock) -> None:
    code = await ask(pairing)
    assert code is not None
    clock.move(minutes=61)
    assert await pairing.waiting() == []
    assert await pairing.approve(code, Level.GUEST) is None
    assert await ask(pairing) not in (None, code)


async def test_at_most_three_wait_and_the_oldest_makes_room_when_it_is_no_longer_fresh(
    pairing: Pairing, clock: Clock
) -> None:
    for number in range(MOST_WAITING):
        clock.move(minutes=1)
        assert await ask(pairing, str(100 + number))
    assert await pairing.ask(DOOR.message("hi", sender="103")) == NO_CODE_NOW
    assert [r.sender for r in await pairing.waiting()] == ["100", "101", "102"]
    clock.move(seconds=FRESH.total_seconds() - 120)
    assert await ask(pairing, "104")
    assert await ask(pairing, "105") is None, "the next oldest is still fresh"
    assert [r.sender for r in await pairing.waiting()] == ["101", "102", "104"]
    assert await pairing.approve("X" * LENGTH, Level.GUEST) is None


async def test_other_accounts_have_codes_of_their_own(pairing: Pairing) -> None:
    other = FakeAdapter("telegram", "second")
    for number in range(MOST_WAITING):
        assert await ask(pairing, str(number))
    assert "approve" in (await pairing.ask(other.message("hi", sender="9")) or "")


async def test_a_flood_of_strangers_is_not_answered_with_a_flood(pairing: Pairing, clock: Clock) -> None:
    """And keeps nothing of those who got no code."""
    for number in range(MOST_WAITING):
        await ask(pairing, str(number))
    said = [await pairing.ask(DOOR.message("hi", sender=str(1000 + n))) for n in range(200)]
    assert said == [NO_CODE_NOW] + [None] * 199
    clock.move(minutes=1)
    assert await pairing.ask(DOOR.message("hi", sender="2000")) == NO_CODE_NOW
    assert len(await pairing.waiting()) == MOST_WAITING


async def test_no_crowd_pushes_out_a_fresh_code_or_locks_the_door_for_ever(pairing: Pairing, clock: Clock) -> None:
    """Five strangers ask every minute for hours. Each can push out one code; then a newcomer waits for ten minutes at
    most, and keeps the code for as long at least, whoever else comes.
    """
    crowd = [f"crowd-{number}" for number in range(5)]
    minutes = int(FRESH.total_seconds() / 60)

    async def pass_time(by: int) -> None:
        for _ in range(by):
            clock.move(minutes=1)
            for one in crowd:
                await ask(pairing, one)

    await pass_time(len(crowd) * minutes)
    for friend in range(3):
        await pass_time(13 * friend)
        for _ in range(minutes + 1):
            if code := await ask(pairing, f"friend-{friend}"):
                break
            await pass_time(1)
        assert code, "the door is locked"
        for minute in range(minutes):
            await ask(pairing, f"new-{friend}-{minute}")
            assert code in [request.code for request in await pairing.waiting()], "a fresh code was pushed out"
            await pass_time(1)


async def test_whoever_had_a_code_pushes_out_nobody(pairing: Pairing, clock: Clock) -> None:
    for sender in ("1", "2", "3"):
        assert await ask(pairing, sender)
    clock.move(seconds=FRESH.total_seconds())
    assert await ask(pairing, "4"), "1 made room"
    clock.move(seconds=FRESH.total_seconds())
    assert await ask(pairing, "1") is None
    clock.move(seconds=LIFETIME.total_seconds())
    assert await ask(pairing, "1"), "there is room again"


@pytest.mark.parametrize("stage", ["INSERT ON people", "DELETE ON pairing"])
async def test_an_approval_is_whole_or_not_at_all(pairing: Pairing, people: People, state: State, stage: str) -> None:
    """A full disk or a crash between its two steps: nobody is in whose code still waits, or out whose code is gone."""
    code = await ask(pairing)
    assert code is not None
    async with state.transaction() as db:
        await db.execute(f"CREATE TRIGGER full BEFORE {stage} BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises(sqlite().Error, match="full"):
        await pairing.approve(code, Level.MEMBER)
    assert await people.all() == []
    assert [request.code for request in await pairing.waiting()] == [code]
    async with state.transaction() as db:
        await db.execute("DROP TRIGGER full")
    assert await pairing.approve(code, Level.MEMBER) is not None
    assert await people.level(CHAT, Sender("7")) is Level.MEMBER
    assert await pairing.waiting() == []


async def test_whoever_is_in_waits_no_longer_at_another_account(pairing: Pairing, people: People) -> None:
    """A code that was left over would lower their level when it is approved."""
    code = await ask(pairing)
    words = await pairing.ask(FakeAdapter("telegram", "second").message("hi", sender="7"))
    assert code is not None
    assert words is not None
    other = words.rpartition(" ")[2]
    assert await pairing.approve(code, Level.OWNER) is not None
    assert await pairing.approve(other, Level.GUEST) is None
    assert await people.level(CHAT, Sender("7")) is Level.OWNER


async def test_a_denied_code_is_gone_and_gives_nothing(pairing: Pairing, people: People, clock: Clock) -> None:
    code = await ask(pairing)
    assert code is not None
    assert await pairing.deny(code) is not None
    assert await pairing.waiting() == []
    assert await people.all() == []
    assert await pairing.approve(code, Level.GUEST) is None
    assert await ask(pairing) not in (None, code), "they may ask again"
