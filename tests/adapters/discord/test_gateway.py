"""The connection: resumed where it was cut off, made anew where it can't be, ended where a person has to act."""

from __future__ import annotations

import asyncio

import pytest

from adapters.discord import DiscordAdapter
from adapters.errors import AuthFailed
from adapters.message import Inbound, Message
from tests.adapters.discord.conftest import adapter_for, connected
from tests.adapters.work import Naps, Received, running, until
from tests.fakes.discord_api import DiscordApi, Fault


def logins(api: DiscordApi) -> list[str]:
    return [kind for kind, _ in api.logins]


async def test_it_asks_for_what_it_needs_and_no_more(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    """Servers, messages with what they say, and reactions; no members and no presences, which are many."""
    async with running(adapter, received.accept):
        await connected(adapter)
        assert adapter.health.detail == "@limpet"
    ((_, login),) = api.logins
    assert login["intents"] == 1 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15


@pytest.mark.parametrize("how", ["cut", "cut 1001", "reconnect", "invalid but resumable", "deaf"])
async def test_a_cut_connection_is_resumed_and_loses_nothing(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, how: str
) -> None:
    if how == "deaf":
        api.heartbeat_ms, api.deaf = 50, True
    async with running(adapter, received.accept):
        await connected(adapter)
        api.says("before")
        await until(lambda: received.texts == ["before"])
        match how:
            case "cut":
                api.cut()
            case "cut 1001":
                api.cut(1001)
            case "reconnect":
                api.ask_to_reconnect()
            case "invalid but resumable":
                api.invalidate(resumable=True)
            case "deaf":
                api.cut()
                api.deaf = False
        api.says("while away")
        await until(lambda: "while away" in received.texts)
        await until(lambda: adapter.health.state == "connected" and adapter.health.reconnects == 1)
        api.says("after")
        await until(lambda: received.texts[-1] == "after")
    assert received.texts == ["before", "while away", "after"]
    assert logins(api) == ["IDENTIFY", "RESUME"]


async def test_while_much_waits_to_be_stored_no_more_is_read(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes is left with Discord instead of filling the memory: not even that it hung up is read."""
    monkeypatch.setattr("adapters.discord.intake._MOST_WAITING", 3)
    goes_on = asyncio.Event()

    async def accept(event: Inbound) -> None:
        await goes_on.wait()
        await received.accept(event)

    said = [f"{number}" for number in range(20)]
    async with running(adapter, accept):
        await connected(adapter)
        for text in said:
            api.says(text)
        api.cut()
        with pytest.raises(TimeoutError):
            await api.until(lambda: len(api.logins) > 1, seconds=0.5)
        goes_on.set()
        await api.wait_login(2)
        await until(lambda: len(received.texts) == len(said))
    assert received.texts == said


async def test_where_a_session_can_t_be_resumed_where_discord_wants_it_it_is_elsewhere(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    """The machine that had it is gone: it must not be asked for ever."""
    api.resume_url = "ws://127.0.0.1:1/gw"
    async with running(adapter, received.accept):
        await connected(adapter)
        api.cut()
        api.says("while away")
        await until(lambda: received.texts == ["while away"])
    assert logins(api) == ["IDENTIFY", "RESUME"]


async def test_what_a_resumed_session_brings_again_is_handed_on_once(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    """G-DLV-09"""
    async with running(adapter, received.accept):
        await connected(adapter)
        message = api.says("one")
        await until(lambda: received.texts == ["one"])
        api.dispatch("MESSAGE_CREATE", api.messages[message] | {"channel_type": 1})
        api.cut()
        api.says("two")
        await until(lambda: "two" in received.texts)
    assert received.texts == ["one", "two"]


async def test_after_an_invalid_session_what_was_missed_is_read_up(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, naps: Naps
) -> None:
    garden = api.channel(api.guild())
    async with running(adapter, received.accept):
        await connected(adapter)
        api.says("before", channel=garden)
        api.says("to you")
        await until(lambda: len(received.texts) == 2)
        api.invalidate()
        api.says("lost", channel=garden)
        api.says("lost too")
        await api.wait_login(2)
        await until(lambda: len(received.texts) == 4)
        api.says("after")
        await until(lambda: received.texts[-1] == "after")
    assert sorted(received.texts[2:4]) == ["lost", "lost too"]
    assert logins(api) == ["IDENTIFY", "IDENTIFY"]
    assert 5.0 in naps.taken, "Discord takes one login in five seconds"


@pytest.mark.parametrize(
    ("code", "mend"),
    [
        (4004, "Reset Token"),
        (4014, "Message Content Intent"),
        (4013, "update discord.py"),
        (4012, "update discord.py"),
        (4011, "several connections"),
        (4010, "fault in the program"),
    ],
)
async def test_what_a_person_has_to_mend_ends_it(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, code: int, mend: str
) -> None:
    api.refuses = [code]
    with pytest.raises(AuthFailed, match=str(code)) as caught:
        await adapter.run(received.accept)
    assert mend in str(caught.value)
    assert (adapter.health.state, adapter.health.detail) == ("failed", str(caught.value))


async def test_the_intent_that_is_off_is_named_with_where_to_switch_it_on(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    api.forbids_content = True
    with pytest.raises(AuthFailed) as caught:
        await adapter.run(received.accept)
    assert "discord.com/developers/applications" in str(caught.value)
    assert "Privileged Gateway Intents" in str(caught.value)


async def test_a_token_that_is_reset_meanwhile_ends_it(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    task = asyncio.create_task(adapter.run(received.accept))
    await connected(adapter)
    api.revoked = True
    api.cut()
    with pytest.raises(AuthFailed, match="4004"):
        await task
    assert adapter.health.state == "failed"


async def test_a_wrong_token_ends_it_before_any_login(api: DiscordApi, naps: Naps, received: Received) -> None:
    adapter = adapter_for(api, naps, token="MTExMTExMTExMTExMTExMTEx.Wrong1.WrongWrongWrongWrongWrongWrongWrongWro")
    with pytest.raises(AuthFailed, match="401"):
        await adapter.run(received.accept)
    assert api.logins == []
    await adapter.close()


@pytest.mark.parametrize("code", [1000, 4000, 4001, 4002, 4005, 4007, 4008, 4009])
async def test_any_other_close_code_is_outlived(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, code: int
) -> None:
    api.refuses = [code, code, code]
    async with running(adapter, received.accept):
        await connected(adapter)
        api.says("hello")
        await until(lambda: received.texts == ["hello"])
    assert len(api.logins) == 4


async def test_pauses_grow_and_end(api: DiscordApi, adapter: DiscordAdapter, received: Received, naps: Naps) -> None:
    """Not to a quarter of an hour, and not to none."""
    api.fail("GET", "/gateway/bot", Fault(503), times=20)
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "retrying")
        assert "503" in adapter.health.detail
        await connected(adapter)
    assert len(naps.taken) == 20
    assert naps.taken[0] == 0.75
    assert naps.taken == sorted(naps.taken)
    assert naps.taken[-1] == 30 * 0.75


async def test_a_rate_limit_is_waited_out(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, naps: Naps
) -> None:
    api.fail("GET", "/gateway/bot", Fault(429, retry_after=17))
    async with running(adapter, received.accept):
        await connected(adapter)
    assert naps.taken == [17.0]


async def test_what_can_t_be_stored_is_told_and_kept_in_order(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    """G-DLV-07"""
    received.troubles = [OSError("disk full")] * 3
    seen = []

    async def accept(event: object) -> None:
        seen.append(adapter.health.state)
        await received.accept(event)  # type: ignore[arg-type]

    async with running(adapter, accept):
        await connected(adapter)
        for text in ("one", "two", "three"):
            api.says(text)
        await until(lambda: len(received.texts) == 3)
        await connected(adapter)
    assert received.texts == ["one", "two", "three"]
    assert seen[:4] == ["connected", "retrying", "retrying", "retrying"]


async def test_an_event_that_can_t_be_read_holds_up_nothing(
    api: DiscordApi, adapter: DiscordAdapter, received: Received, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(adapter, received.accept):
        await connected(adapter)
        message = api.message("x")
        api.dispatch("MESSAGE_CREATE", message | {"channel_type": 1, "sticker_items": [{"format_type": 1}]})
        api.says("after")
        api.dispatch("GUILD_ROLE_CREATE", {"guild_id": "not a number"})
        api.dispatch("CHANNEL_CREATE", {})
        await until(lambda: received.texts == ["after"])
        api.says("and on")
        await until(lambda: received.texts[-1] == "and on")
    assert "can't be read" in caplog.text
    assert api.logins[1:] == []


async def test_it_can_be_run_again(api: DiscordApi, adapter: DiscordAdapter, received: Received) -> None:
    for number in (1, 2):
        async with running(adapter, received.accept):
            await api.wait_login(number)
            await connected(adapter)
            api.says(f"{number}")
            await until(lambda: len(received.of(Message)) == number)  # noqa: B023
    assert received.texts == ["1", "2"]


async def test_what_is_lost_where_nothing_was_ever_said_is_read_up_too(
    api: DiscordApi, adapter: DiscordAdapter, received: Received
) -> None:
    """The first run, and the first word: there is no message to go on from, only when it began to listen."""
    garden = api.channel(api.guild())
    async with running(adapter, received.accept):
        await connected(adapter)
        await until(lambda: adapter.health.heard_at is not None)
        api.invalidate()
        api.says("lost", channel=garden)
        await until(lambda: bool(received.texts))
    assert received.texts == ["lost"]
    assert logins(api) == ["IDENTIFY", "IDENTIFY"], "nothing was resumed that would bring it"
    assert api.called("GET", f"/channels/{garden.id}/messages"), "it was read from the history"
