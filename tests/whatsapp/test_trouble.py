"""What goes wrong on the way: connections, logins, answers, processes. What can be mended by itself is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.whatsapp_relay.lines import ToldError
from tests.fakes.whatsapp_relay.person import Person
from tests.fakes.whatsapp_relay.relay import Fault, Refusal, Relay
from tests.whatsapp.bot import Bot, Trouble
from tests.whatsapp.conftest import Linked


async def _talk(ann: Person, bot: Bot, text: str) -> None:
    """The bot is there: it hears ``text`` and answers."""
    await ann.say(bot.account.by_phone, text)
    await ann.sees(text=f"echo: {text}")


async def _is_back(relay: Relay, bot: Bot, logins: int = 2) -> None:
    """After so many logins of its, the first one included."""
    await relay.until(lambda: [one.user for one in relay.logins].count(bot.account.phone) >= logins)


# Connections ----------------------------------------------------------------------------------------------------------


async def test_what_is_said_while_it_is_away_waits_and_comes_once_and_in_order(
    relay: Relay, ann: Person, bot: Bot
) -> None:
    await _talk(ann, bot, "before?")
    await bot.stop()
    await relay.until(lambda: not relay.online(bot.account))
    ids = [await ann.say(bot.account.by_phone, f"away {number}") for number in range(5)]
    assert relay.held(bot.account) == ids
    await bot.start()
    await bot.hears(text="away 4")
    assert bot.texts() == ["before?", *(f"away {number}" for number in range(5))]
    await relay.until(lambda: relay.held(bot.account) == [])


async def test_a_dropped_connection_is_made_anew(relay: Relay, ann: Person, bot: Bot) -> None:
    await _talk(ann, bot, "before?")
    await relay.cut(bot.account)
    await ann.say(bot.account.by_phone, "in the gap")
    await _is_back(relay, bot)
    await bot.hears(text="in the gap")
    await _talk(ann, bot, "after?")
    assert bot.texts() == ["before?", "in the gap", "after?"]


async def test_a_network_that_is_away_is_tried_again(relay: Relay, ann: Person, bot: Bot) -> None:
    await _talk(ann, bot, "before?")
    calls = len(relay.proxy.calls)
    relay.proxy.is_open = False
    await relay.cut(bot.account)
    await ann.say(bot.account.by_phone, "without a network")
    await relay.until(lambda: len(relay.proxy.calls) >= calls + 2)
    relay.proxy.is_open = True
    await bot.hears(text="without a network")
    await _talk(ann, bot, "after?")


async def test_the_server_may_ask_for_a_new_connection(relay: Relay, ann: Person, bot: Bot) -> None:
    await relay.restart(bot.account)
    await _is_back(relay, bot)
    await _talk(ann, bot, "after?")


# Logins ---------------------------------------------------------------------------------------------------------------


async def test_a_removed_device_is_told_and_does_not_come_again(relay: Relay, bot: Bot) -> None:
    await relay.remove(bot.account)
    await bot.reports("removed")
    assert not relay.online(bot.account)
    assert bot.account.devices == {}


async def test_another_process_with_the_same_session_replaces_it(
    linked: Linked, relay: Relay, bot: Bot, tmp_path: Path
) -> None:
    other = await Person(relay, bot.account, linked.session(bot.account.phone, tmp_path / "other")).start()
    try:
        await bot.reports("replaced")
        await other.until("Connected")
    finally:
        await other.kill()


@pytest.mark.parametrize(
    ("refusal", "trouble"),
    [
        (Refusal(401), "removed"),
        (Refusal(402, code=101, expire=3600), "banned"),
        (Refusal(405), "outdated"),
    ],
    ids=["unlinked", "banned", "outdated"],
)
async def test_a_refused_login_is_told(relay: Relay, bot: Bot, refusal: Refusal, trouble: Trouble) -> None:
    relay.refuse(bot.account, refusal)
    await relay.cut(bot.account)
    await bot.reports(trouble)


async def test_a_server_that_is_busy_is_tried_again(relay: Relay, ann: Person, bot: Bot) -> None:
    relay.refuse(bot.account, Refusal(503))
    await relay.cut(bot.account)
    await _is_back(relay, bot)
    await _talk(ann, bot, "after?")


# Answers --------------------------------------------------------------------------------------------------------------


async def test_it_hears_while_the_server_takes_its_time_with_an_answer(relay: Relay, ann: Person, bot: Bot) -> None:
    await _talk(ann, bot, "hello?")
    chat = (await bot.hears(text="hello?")).chat
    relay.fail("message", Fault(after=True, delay=6))
    sending = asyncio.create_task(bot.send(chat, "slowly"))
    seen = await ann.sees(text="slowly")
    await ann.say(bot.account.by_phone, "meanwhile")
    await bot.hears(text="meanwhile")
    assert not sending.done()
    assert await sending == seen["id"]


async def test_a_refused_message_is_an_error_and_arrives_nowhere(relay: Relay, ann: Person, bot: Bot) -> None:
    await _talk(ann, bot, "hello?")
    chat = (await bot.hears(text="hello?")).chat
    relay.fail("message", Fault(error=479))
    with pytest.raises(ToldError, match="479"):
        await bot.send(chat, "nobody sees this")
    await _talk(ann, bot, "and now?")
    assert ann.told("Message", text="nobody sees this") == []


async def test_a_message_whose_answer_was_lost_is_shown_once(relay: Relay, ann: Person, bot: Bot) -> None:
    """It arrived, but the connection breaks before its sender is told. The library sends it again, as the same one."""
    await _talk(ann, bot, "hello?")
    chat = (await bot.hears(text="hello?")).chat
    relay.fail("message", Fault(after=True, drop=True))
    sent = await bot.send(chat, "once")
    await _is_back(relay, bot)
    await _talk(ann, bot, "after?")
    assert len(relay.said("message", bot.account, id=sent)) == 2
    assert len(ann.told("Message", text="once")) == 1


# Processes ------------------------------------------------------------------------------------------------------------


async def test_after_kill_9_nothing_is_heard_twice_and_what_came_meanwhile_is_heard(
    relay: Relay, ann: Person, bot: Bot
) -> None:
    await _talk(ann, bot, "before?")
    await bot.kill()
    await relay.until(lambda: not relay.online(bot.account))
    said = [f"dead {number}" for number in range(3)]
    for text in said:
        await ann.say(bot.account.by_phone, text)
    await bot.start()
    for text in said:
        await bot.hears(text=text)
    await _talk(ann, bot, "after?")
    # One that it has lost the key of is asked for again, and so comes later.
    assert sorted(bot.texts()) == sorted(["before?", *said, "after?"])


@pytest.mark.parametrize("number", range(3))
async def test_kill_9_while_messages_come(relay: Relay, ann: Person, bot: Bot, number: int) -> None:
    """What was on its way may be lost, at most; what was said after the death is not, and nothing is heard twice."""
    for text in ("one", "two", "three"):
        await ann.say(bot.account.by_phone, text)
        if len(bot.texts()) == number:
            await bot.kill()
    await bot.kill()
    await relay.until(lambda: not relay.online(bot.account))
    await ann.say(bot.account.by_phone, "after the death")
    await bot.start()
    await bot.hears(text="after the death")
    heard = bot.texts()
    assert len(set(heard)) == len(heard)
    await relay.until(lambda: relay.held(bot.account) == [])
