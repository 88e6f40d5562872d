"""Receiving: what is confirmed and when, what happens after every kind of trouble, and what an operator sees of it."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from adapters.adapter import Health, Offered
from adapters.errors import AuthFailed
from adapters.message import Inbound, Message
from adapters.telegram import TelegramAdapter
from tests.adapters.telegram.conftest import settings_for
from tests.adapters.work import Naps, Received, running, until
from tests.fakes.telegram_api import TOKEN, Fault, TelegramApi


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_updates_arrive_once_and_in_order(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """G-DLV-06"""
    received = Received()
    for round_ in range(3):
        api.says(f"{round_} a")
        async with running(adapter, received.accept):
            api.says(f"{round_} b")
            await api.wait_confirmed()
    assert received.texts == [f"{round_} {name}" for round_ in range(3) for name in "ab"]
    assert adapter.health.state == "stopped"


async def test_what_is_not_stored_is_not_confirmed(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """G-DLV-07, G-DLV-08"""
    api.says("stored")
    api.says("lost with the process")
    stored: list[str] = []
    reached = asyncio.Event()

    async def accept(event: Inbound) -> None:
        assert isinstance(event, Message)
        if stored:
            reached.set()
            await asyncio.Event().wait()
        stored.append(event.text)

    async with running(adapter, accept):
        await reached.wait()
    assert [update["message"]["text"] for update in api.waiting] == ["stored", "lost with the process"]

    received = Received()
    async with running(adapter, received.accept):
        await api.wait_confirmed()
    assert received.texts == ["stored", "lost with the process"]


async def test_a_message_that_could_not_be_stored_comes_again(
    api: TelegramApi, adapter: TelegramAdapter, naps: Naps, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("a", "b", "c"):
        api.says(text)
    received = Received(troubles=[None, OSError("disk full"), OSError("disk full"), None])
    async with running(adapter, received.accept):
        await api.wait_confirmed()
        await until(lambda: adapter.health.state == "connected")
    assert received.texts == ["a", "b", "c"]
    assert naps.taken == [1.0, 1.5]
    assert len(warnings(caplog)) == 1
    assert "disk full" in caplog.text
    offsets = [call.get("offset") for call in api.called("getUpdates")]
    assert offsets[:4] == [None, "1001", "1001", "1003"]


async def test_a_bad_update_is_skipped(
    api: TelegramApi, adapter: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    api.says("before")
    bad = api.push(message={"message_id": "x", "date": "yesterday"})
    api.push(message=None, my_chat_member={"chat": 5})
    api.says("after", date=10**20)
    api.says("after")
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_confirmed()
    assert received.texts == ["before", "after"]
    assert [f"update {number}" in line for number, line in enumerate(warnings(caplog), bad)] == [True] * 3


async def test_updates_without_a_number_do_not_spin(api: TelegramApi, adapter: TelegramAdapter, naps: Naps) -> None:
    api.fail("getUpdates", Fault(200, body=b'{"ok":true,"result":[{"message":1},"x",null]}'), times=3)
    api.says("hello")
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_confirmed()
    assert received.texts == ["hello"]
    assert naps.taken == [1.0, 1.5, 2.25]


async def test_the_network_comes_up_after_us(
    api: TelegramApi, adapter: TelegramAdapter, naps: Naps, caplog: pytest.LogCaptureFixture
) -> None:
    """G-OPS-16"""
    caplog.set_level(logging.INFO, "adapters")
    await api.stop()
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: len(naps.taken) >= 5)
        assert adapter.health.state == "retrying"
        assert "no answer from 127.0.0.1" in adapter.health.detail
        await api.start()
        api.says("at last")
        await api.wait_confirmed()
        await until(lambda: adapter.health.state == "connected")
    assert received.texts == ["at last"]
    assert [record.getMessage() for record in caplog.records if record.name.startswith("adapters")] == [
        f"telegram/main: getMe: no answer from 127.0.0.1:{api.port} (ConnectError)",
        "telegram/main: connected again",
    ]


async def test_what_an_operator_sees_of_lost_connections(api: TelegramApi, naps: Naps) -> None:
    times = iter(datetime(2026, 11, 30, 12, tzinfo=UTC) + timedelta(seconds=n) for n in range(1000))
    adapter = TelegramAdapter("main", settings_for(api), sleep=naps, now=lambda: next(times))
    assert adapter.health == Health("starting")
    api.fail("getMe", Fault(502, body=b"<html>"), times=3)
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        first = adapter.health
        assert (first.reconnects, first.detail) == (0, "@limpet_bot"), "what was never there was not lost"
        assert first.heard_at is not None
        for lost in (1, 2):
            api.fail("getUpdates", Fault(drop=True), times=4)
            api.says("hello")
            await until(lambda lost=lost: adapter.health.reconnects == lost)  # type: ignore[misc]  # the loop's own
        assert adapter.health.state == "connected"
        assert adapter.health.heard_at is not None
        assert adapter.health.heard_at > first.heard_at
        seen = adapter.health.heard_at
        await until(lambda: adapter.health.heard_at != seen)
    assert (adapter.health.state, adapter.health.reconnects) == ("stopped", 2)
    await adapter.close()


async def test_several_bots_at_once(api: TelegramApi, caplog: pytest.LogCaptureFixture) -> None:
    """One that fails stops none of the others."""
    async with TelegramApi(token="987654321:AAotherotherotherotherotherotherother", username="work_bot") as other:
        ours = TelegramAdapter("main", settings_for(api), sleep=Naps())
        theirs = TelegramAdapter("work", settings_for(other), sleep=Naps())
        broken = TelegramAdapter("old", settings_for(api, TOKEN[:-3] + "abc"), sleep=Naps())
        mine, work = Received(), Received()
        api.says("for main")
        other.says("for work")
        async with running(ours, mine.accept), running(theirs, work.accept):
            with pytest.raises(AuthFailed):
                await broken.run(Received().accept)
            await api.wait_confirmed()
            await other.wait_confirmed()
            assert [adapter.health.detail for adapter in (ours, theirs)] == ["@limpet_bot", "@work_bot"]
        assert [event.address.account for event in (*mine.events, *work.events)] == ["main", "work"]
        assert (mine.texts, work.texts) == (["for main"], ["for work"])
        for adapter in (ours, theirs, broken):
            await adapter.close()


async def test_a_slow_poll_is_lost_and_asked_again(api: TelegramApi, naps: Naps) -> None:
    """A connection that died without a word, as behind a router that forgot it."""
    adapter = TelegramAdapter("main", settings_for(api, answer_seconds=0.1), sleep=naps)
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        api.fail("getUpdates", Fault(delay=60), times=2)
        await until(lambda: bool(naps.taken), seconds=15)  # the poll that was under way knew nothing of it
        api.says("hello")
        await until(lambda: received.texts == ["hello"], seconds=15)
    assert naps.taken
    await adapter.close()


async def test_pauses_grow_to_half_a_minute(api: TelegramApi, adapter: TelegramAdapter, naps: Naps) -> None:
    api.fail("getUpdates", Fault(500), Fault(502, body=b"<html>"), Fault(drop=True), times=5)
    async with running(adapter, Received().accept):
        await until(lambda: len(naps.taken) == 15)
        await until(lambda: adapter.health.state == "connected")
    assert naps.taken[:4] == [1.0, 1.5, 2.25, 3.375]
    assert naps.taken[9:] == [30.0] * 6


async def test_a_flood_wait_is_kept(api: TelegramApi, adapter: TelegramAdapter, naps: Naps) -> None:
    api.fail("getUpdates", Fault(429, retry_after=17))
    api.says("hello")
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_confirmed()
    assert (naps.taken, received.texts) == ([17.0], ["hello"])


async def test_another_poller_ends_and_we_go_on(
    api: TelegramApi, adapter: TelegramAdapter, naps: Naps, caplog: pytest.LogCaptureFixture
) -> None:
    """G-OPS-08"""
    api.fail("getUpdates", Fault(409, "Conflict: terminated by other getUpdates request"), times=12)
    api.says("hello")
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: len(naps.taken) == 12)
        assert adapter.health.state == "retrying"
        assert "another program reads this bot's messages" in adapter.health.detail
        await api.wait_confirmed()
        await until(lambda: adapter.health.state == "connected")
    assert received.texts == ["hello"]
    assert len(warnings(caplog)) == 1
    assert naps.taken[:3] == [1.5, 2.25, 3.375]
    assert max(naps.taken) == 45.0


async def test_two_pollers_for_ever_are_one_line_in_each_log(
    api: TelegramApi, caplog: pytest.LogCaptureFixture
) -> None:
    """G-OPS-08"""
    mine, theirs = Naps(limit=8), Naps(limit=8)
    first = TelegramAdapter("mine", settings_for(api), sleep=mine, random=lambda: 0.2)
    second = TelegramAdapter("theirs", settings_for(api), sleep=theirs, random=lambda: 0.9)
    async with running(first, Received().accept), running(second, Received().accept):
        await until(lambda: len(mine.taken) == 8 or len(theirs.taken) == 8, seconds=20)
    assert len(warnings(caplog)) <= 2
    assert mine.taken == sorted(mine.taken)
    assert mine.taken[:4] != theirs.taken[:4]
    await first.close()
    await second.close()


async def test_a_webhook_is_taken_away(api: TelegramApi, adapter: TelegramAdapter) -> None:
    api.webhook = "https://elsewhere.test"
    api.says("hello")
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_confirmed()
    assert received.texts == ["hello"]
    assert api.called("deleteWebhook") == [{"drop_pending_updates": "false"}]


@pytest.mark.parametrize("token", [TOKEN[:-3] + "abc", "what I was given abc"])
async def test_a_wrong_token_ends_it_at_once(api: TelegramApi, naps: Naps, token: str) -> None:
    adapter = TelegramAdapter("main", settings_for(api, token), sleep=naps)
    with pytest.raises(AuthFailed, match="ending in …abc"):
        await adapter.run(Received().accept)
    assert adapter.health.state == "failed"
    assert "BotFather" in adapter.health.detail
    assert naps.taken == []
    await adapter.close()


async def test_a_token_revoked_later_ends_it(api: TelegramApi, adapter: TelegramAdapter) -> None:
    api.says("hello")
    received = Received()
    task = asyncio.create_task(adapter.run(received.accept))
    await api.wait_confirmed()
    api.token = "123456789:AnotherTokenAnotherTokenAnotherToken"
    api.fail("getUpdates", Fault(401, "Unauthorized"))
    with pytest.raises(AuthFailed):
        async with asyncio.timeout(5):
            await task
    assert received.texts == ["hello"]
    assert adapter.health.state == "failed"


async def test_a_long_poll_waits_and_answers_at_once(api: TelegramApi, adapter: TelegramAdapter) -> None:
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_called("getUpdates")
        assert api.called("getUpdates")[0]["timeout"] == "1"
        began = asyncio.get_running_loop().time()
        api.says("hello")
        await until(lambda: received.texts == ["hello"])
        assert asyncio.get_running_loop().time() - began < 0.9


MENU = [Offered("help", "what I answer to"), Offered("undo", "take back what I noted last")]


async def test_the_menu_is_what_was_offered(api: TelegramApi, adapter: TelegramAdapter) -> None:
    adapter.offer(MENU)
    received = Received()
    for text in ("one", "two"):
        async with running(adapter, received.accept):
            api.says(text)
            await api.wait_confirmed()
    assert api.menu == [(command.name, command.summary) for command in MENU]
    assert len(api.called("setMyCommands")) == 2, "once a start"


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500, "Internal Server Error"),
        Fault(400, "Bad Request: BOT_COMMAND_INVALID"),
        Fault(404, "Not Found"),
        Fault(429, "Too Many Requests", retry_after=3600),
        Fault(409, "Conflict"),
        Fault(drop=True),
        Fault(200, body=b"<html>log in</html>"),
    ],
)
async def test_a_menu_that_cant_be_set_stops_nothing(
    api: TelegramApi, adapter: TelegramAdapter, naps: Naps, caplog: pytest.LogCaptureFixture, fault: Fault
) -> None:
    adapter.offer(MENU)
    api.fail("setMyCommands", fault)
    api.says("hello")
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_confirmed()
        await until(lambda: adapter.health.state == "connected")
    assert received.texts == ["hello"]
    assert naps.taken == []
    (warning,) = warnings(caplog)
    assert "the menu of commands was not set" in warning


async def test_nothing_offered_leaves_the_menu_alone(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """It may be somebody else's who set it by hand."""
    received = Received()
    async with running(adapter, received.accept):
        api.says("hello")
        await api.wait_confirmed()
    assert api.called("setMyCommands") == []
