"""Socket Mode: what is acknowledged when, and every way in which a connection ends."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import SecretStr

from adapters.errors import AuthFailed
from adapters.slack import SlackAdapter
from tests.adapters.slack.conftest import Receive, opened, part
from tests.adapters.work import Clock, Naps, Received, running, until
from tests.fakes.slack_api import APP_TOKEN, TOKEN, Fault, SlackApi


async def test_an_envelope_is_acknowledged_once_it_is_stored(api: SlackApi, adapter: SlackAdapter) -> None:
    """G-DLV-07: and not before."""
    stored = asyncio.Event()
    began = asyncio.Event()

    async def accept(event: object) -> None:
        began.set()
        await stored.wait()

    async with running(adapter, accept):
        api.says("hello")
        async with asyncio.timeout(10):
            await began.wait()
        assert api.acknowledged == []
        stored.set()
        await api.wait_acknowledged()


async def test_what_can_not_be_stored_is_tried_again_in_its_place(
    api: SlackApi, adapter: SlackAdapter, naps: Naps
) -> None:
    """G-DLV-21: Slack would bring it three times, and then never again."""
    received = Received(troubles=[OSError("disk full")] * 5)
    async with running(adapter, received.accept):
        api.says("first")
        api.says("second")
        await until(lambda: len(received.texts) == 2)
        await api.wait_acknowledged()
        assert adapter.health.state == "connected"
    assert received.texts == ["first", "second"]
    assert naps.taken == sorted(naps.taken), "the pauses grow"


async def test_a_late_acknowledgement_brings_the_same_again(api: SlackApi, adapter: SlackAdapter) -> None:
    """G-DLV-01"""
    api.redelivery_seconds = 0.05
    received = Received(troubles=[OSError("busy")])
    async with running(adapter, received.accept):
        api.says("hello")
        await api.wait_acknowledged()
        repeated = api.event(**{**api.direct.messages[0], "channel": api.direct.id, "channel_type": "im"})
        await until(lambda: repeated in api.acknowledged)
    assert len(received.turns) == 1


async def test_one_post_is_one_turn_however_it_is_told(api: SlackApi, receive: Receive) -> None:
    """G-DLV-02, G-DLV-03: as a message, as a mention, and again under other event ids."""
    channel = api.channel()
    api.says(f"<@{api.me.id}> hi", chat=channel)
    message, mention = (envelope["payload"]["event"] for envelope in list(api.waiting))
    for event in (mention, message, mention):
        api.event(**event)
    received = await receive()
    assert len(received.messages) == 5
    assert len(received.turns) == 1
    assert len({(one.address, one.text, one.sender) for one in received.messages}) == 1


async def test_an_asked_for_reconnection_loses_nothing(api: SlackApi, adapter: SlackAdapter) -> None:
    received = Received()
    async with running(adapter, received.accept):
        for number, reason in enumerate(("warning", "refresh_requested", "too_many_websockets"), 1):
            await api.wait_linked(number)
            await api.disconnect(reason)
            await api.wait_linked(number + 1)
            api.says(reason)
            await until(lambda reason=reason: reason in received.texts)  # type: ignore[misc]
            await api.wait_acknowledged()
    assert received.texts == ["warning", "refresh_requested", "too_many_websockets"]
    assert adapter.health.reconnects == 0, "it was no trouble"


async def test_a_connection_that_breaks_is_opened_anew(api: SlackApi, adapter: SlackAdapter) -> None:
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_linked()
        await api.cut()
        await api.wait_linked(2)
        api.says("still there?")
        await until(lambda: "still there?" in received.texts)
        await until(lambda: adapter.health.reconnects == 1)
        assert adapter.health.state == "connected"
    assert len(received.turns) == 1, "looked up and brought, it is the same message"


async def test_a_connection_without_a_greeting_is_none(
    api: SlackApi, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.slack.socket_mode._CONNECT_SECONDS", 0.2)
    api.greets = False
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "retrying")
        assert "opened no connection" in adapter.health.detail
        api.greets = True
        await until(lambda: adapter.health.state == "connected")


@pytest.mark.parametrize("token", [TOKEN, APP_TOKEN])
@pytest.mark.parametrize("error", ["token_revoked", "invalid_auth", "account_inactive"])
async def test_a_wrong_token_ends_it(api: SlackApi, adapter: SlackAdapter, token: str, error: str) -> None:
    """The library would try for ever, and tell nobody."""
    api.revoked[token] = error
    with pytest.raises(AuthFailed, match=error):
        await adapter.run(Received().accept)
    assert adapter.health.state == "failed"
    assert "api.slack.com/apps" in adapter.health.detail
    assert token not in adapter.health.detail


async def test_an_app_token_that_is_revoked_meanwhile_ends_it(api: SlackApi, adapter: SlackAdapter) -> None:
    task = asyncio.create_task(adapter.run(Received().accept))
    await api.wait_linked()
    api.revoked[APP_TOKEN] = "token_revoked"
    await api.cut()
    async with asyncio.timeout(5):
        with pytest.raises(AuthFailed, match="App-Level Tokens"):
            await task
    assert adapter.health.state == "failed"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"type": "tokens_revoked", "tokens": {"bot": ["U0LIMPET1"]}}, "revoked"),
        ({"type": "app_uninstalled"}, "removed from the workspace"),
    ],
)
async def test_slack_says_that_this_is_the_end(
    api: SlackApi, adapter: SlackAdapter, event: dict[str, object], words: str
) -> None:
    task = asyncio.create_task(adapter.run(Received().accept))
    await api.wait_linked()
    api.event(**event)
    async with asyncio.timeout(5):
        with pytest.raises(AuthFailed, match=words):
            await task


async def test_a_persons_token_is_not_ours(api: SlackApi, receive: Receive) -> None:
    api.event(type="tokens_revoked", tokens={"oauth": ["U0ANN0001"]})
    assert (await receive()).events == []


async def test_socket_mode_that_was_switched_off_ends_it(api: SlackApi, adapter: SlackAdapter) -> None:
    task = asyncio.create_task(adapter.run(Received().accept))
    await api.wait_linked()
    await api.disconnect("link_disabled")
    async with asyncio.timeout(5):
        with pytest.raises(AuthFailed, match="Switch it on again"):
            await task


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"app_token": None}, "app_token is not set"),
        ({"app_token": SecretStr("xoxb-000000000001-wrong")}, "begins with xapp-"),
        ({"token": SecretStr("xoxp-000000000001-wrong")}, "begins with xoxb-"),
        ({"transport": "http"}, "signing_secret is not set"),
    ],
)
async def test_a_token_that_can_not_be_one_is_told_before_any_call(
    api: SlackApi, naps: Naps, clock: Clock, settings: dict[str, object], words: str
) -> None:
    adapter = opened(api, naps, clock, **settings)
    with pytest.raises(AuthFailed, match=words):
        await adapter.run(Received().accept)
    await adapter.close()


async def test_too_many_connections_are_waited_for(api: SlackApi, adapter: SlackAdapter, naps: Naps) -> None:
    api.fail("apps.connections.open", Fault("ratelimited", 429, retry_after=30))
    async with running(adapter, Received().accept):
        await api.wait_linked()
    assert naps.taken[0] == 30


async def test_an_outage_of_the_web_api_is_outlived(api: SlackApi, adapter: SlackAdapter) -> None:
    api.fail("auth.test", Fault(status=503), Fault("internal_error"), Fault(drop=True))
    received = Received()
    async with running(adapter, received.accept):
        api.says("hello")
        await until(lambda: bool(received.texts))
        assert adapter.health.state == "connected"
    assert received.texts == ["hello"]
    assert len(api.called("auth.test")) >= 4, "three went wrong"


async def test_nonsense_holds_up_nothing(api: SlackApi, adapter: SlackAdapter) -> None:
    """Whatever comes over the connection, the next message is heard."""
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_linked()
        for nonsense in ("", "no json", "[]", "7", '{"type": 7}', '{"envelope_id": 7}'):
            await api.links[-1].send_str(nonsense)
        for event in ({}, {"type": "message"}, {"type": "message", "ts": "x", "channel": 7, "user": []}):
            api.event(**event)
        api.event(type="message", channel="D0ANN0001", ts="1796040000.000100", user="U0ANN0001", text=["x"], blocks=7)
        api.says("hello")
        await until(lambda: "hello" in received.texts)
        await api.wait_acknowledged()
    assert received.texts.count("hello") == 1
    assert api.opened == 1, "no connection is given up for it"


async def test_a_chat_whose_kind_is_not_known_now_is_read_later(api: SlackApi, adapter: SlackAdapter) -> None:
    """The kind decides the session: guessed wrong, words would lie in the wrong one."""
    mpim = api.add_chat("G0ANNBOB", "mpim")
    api.fail("conversations.info", Fault(status=503), Fault("ratelimited", 429, retry_after=1))
    received = Received()
    async with running(adapter, received.accept):
        api.says("hi", chat=mpim, told=False)
        api.event(**{**mpim.messages[-1], "channel": mpim.id})
        await until(lambda: bool(received.events))
    assert {message.address.kind for message in received.messages} == {"group"}


async def test_a_name_that_can_not_be_had_is_no_reason_to_wait(api: SlackApi, receive: Receive) -> None:
    api.fail("users.info", Fault("user_not_found"))
    api.says("hello")
    (message,) = (await receive()).messages
    assert (message.sender.id, message.sender.name, message.text) == ("U0ANN0001", "", "hello")


async def test_a_name_is_asked_for_once_an_hour(api: SlackApi, adapter: SlackAdapter, clock: Clock) -> None:
    received = Received()
    async with running(adapter, received.accept):
        for number in range(3):
            api.says(f"{number}")
        await until(lambda: len(received.texts) == 3)
        assert len(api.called("users.info")) == 1
        clock.seconds += 3601
        api.says("later")
        await until(lambda: len(received.texts) == 4)
        assert len(api.called("users.info")) == 2


async def test_sending_needs_no_run(api: SlackApi, adapter: SlackAdapter) -> None:
    receipt = await adapter.send(part(), "key")
    assert receipt.message_id == api.sent[0].id
