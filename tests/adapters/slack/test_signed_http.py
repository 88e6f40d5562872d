"""Signed requests: who may bring something, and what is answered."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from pydantic import SecretStr

from adapters.errors import AuthFailed
from adapters.slack import SlackAdapter
from tests.adapters.slack.conftest import opened
from tests.adapters.work import Clock, Naps, Received, running, until
from tests.fakes.loopback import free_port
from tests.fakes.slack_api import SIGNING_SECRET, TOKEN, Fault, SlackApi
from tests.fakes.slack_api.server import signed


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
async def web(port: int) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        yield session


@pytest.fixture
async def adapter(api: SlackApi, clock: Clock, port: int) -> AsyncIterator[SlackAdapter]:
    adapter = opened(
        api, Naps(limit=200), clock, transport="http", signing_secret=SecretStr(SIGNING_SECRET), http_port=port
    )
    adapter._sleep = asyncio.sleep  # it looks after its token once a minute
    yield adapter
    await adapter.close()


def event(api: SlackApi, text: str = "hello") -> str:
    """The body of a request that brings a message."""
    said = api.message(text)
    return json.dumps(api.event_payload({**said, "channel": api.direct.id, "channel_type": "im"}))


async def posted(web: aiohttp.ClientSession, body: str, headers: dict[str, str]) -> tuple[int, str]:
    async with web.post("/slack/events", data=body.encode(), headers=headers) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        signed("another body"),
        {"X-Slack-Request-Timestamp": "yesterday", "X-Slack-Signature": "v0=x"},
    ],
    ids=["none", "of another", "nonsense"],
)
async def test_what_is_not_slacks_is_refused(
    api: SlackApi, adapter: SlackAdapter, web: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        status, _ = await posted(web, event(api), {"Content-Type": "application/json", **headers})
        assert status == 401
    assert received.events == []


@pytest.mark.parametrize("age", [400, -400])
async def test_an_overheard_request_is_worth_nothing_later(
    api: SlackApi, adapter: SlackAdapter, web: aiohttp.ClientSession, age: float
) -> None:
    import time

    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        body = event(api)
        status, _ = await posted(web, body, signed(body, at=time.time() - age))
        assert status == 401
    assert received.events == []


async def test_another_secret_is_refused(api: SlackApi, adapter: SlackAdapter, web: aiohttp.ClientSession) -> None:
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        body = event(api)
        assert (await posted(web, body, signed(body, "another secret")))[0] == 401


async def test_slack_is_told_that_the_address_is_ours(
    api: SlackApi, adapter: SlackAdapter, web: aiohttp.ClientSession
) -> None:
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "connected")
        body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1aB"})
        status, said = await posted(web, body, {"Content-Type": "application/json", **signed(body)})
    assert (status, json.loads(said)) == (200, {"challenge": "3eZbrw1aB"})


async def test_200_says_that_it_is_stored(api: SlackApi, adapter: SlackAdapter, web: aiohttp.ClientSession) -> None:
    """G-DLV-21"""
    received = Received(troubles=[OSError("disk full")])
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        body = event(api)
        headers = {"Content-Type": "application/json", **signed(body)}
        for status, state in ((503, "retrying"), (200, "connected")):
            assert (await posted(web, body, headers))[0] == status
            assert adapter.health.state == state
    assert received.texts == ["hello"]


async def test_buttons_and_commands_are_brought_as_forms(api: SlackApi, adapter: SlackAdapter, port: int) -> None:
    received = Received()
    api.leads_to = f"http://127.0.0.1:{port}/slack/events"
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        api.commands("what grows & why?")
        api.says("hello")
        await api.wait_delivered(2)
    assert received.texts == ["what grows & why?", "hello"]


async def test_a_port_that_is_taken_is_told_and_waited_for(api: SlackApi, adapter: SlackAdapter, port: int) -> None:
    adapter._sleep = lambda _: asyncio.sleep(0.01)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        async with running(adapter, Received().accept):
            await until(lambda: "can't listen on" in adapter.health.detail)
            assert adapter.health.state == "retrying"
            other.close()
            await until(lambda: adapter.health.state == "connected")


async def test_a_token_that_is_revoked_meanwhile_ends_it(api: SlackApi, adapter: SlackAdapter) -> None:
    adapter._sleep = lambda _: asyncio.sleep(0.01)
    task = asyncio.create_task(adapter.run(Received().accept))
    await until(lambda: adapter.health.state == "connected")
    api.revoked[TOKEN] = "token_revoked"
    async with asyncio.timeout(5):
        with pytest.raises(AuthFailed, match="token_revoked"):
            await task


async def test_slack_says_that_this_is_the_end(
    api: SlackApi, adapter: SlackAdapter, web: aiohttp.ClientSession
) -> None:
    task = asyncio.create_task(adapter.run(Received().accept))
    await until(lambda: adapter.health.state == "connected")
    body = json.dumps(api.event_payload({"type": "app_uninstalled"}))
    assert (await posted(web, body, {"Content-Type": "application/json", **signed(body)}))[0] == 200
    async with asyncio.timeout(5):
        with pytest.raises(AuthFailed, match="removed from the workspace"):
            await task


async def test_what_can_not_be_looked_up_now_is_looked_up_later(api: SlackApi, adapter: SlackAdapter) -> None:
    """G-DLV-10: there is no connection whose next gap would be waited for; until then nothing counts as heard."""
    adapter._sleep = lambda _: asyncio.sleep(0.02)  # a minute passes soon
    api.message("missed", ts=f"{time.time() - 60:.6f}")
    api.fail("conversations.history", Fault(status=503))
    adapter.resume({}, datetime.now(UTC) - timedelta(hours=1))
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_called("conversations.history")
        assert adapter.health.heard_at is None
        await until(lambda: received.texts == ["missed"])
        await until(lambda: adapter.health.heard_at is not None)
