"""Being called: what is stored before it is confirmed, who is let in, and what an operator sees when it goes wrong."""

from __future__ import annotations

import asyncio
import io
import logging
import socket
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
from pydantic import SecretStr, ValidationError

from adapters.errors import AuthFailed
from adapters.message import Pressed
from adapters.telegram import TelegramAdapter, TelegramSettings
from tests.adapters.telegram.conftest import settings_for
from tests.adapters.work import Naps, Received, running, until
from tests.fakes.loopback import free_port
from tests.fakes.telegram_api import ANN, TOKEN, Fault, Sent, TelegramApi

URL = "https://bot.test/telegram/news"
PROOF = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture
def port(api: TelegramApi) -> int:
    """Where ``URL`` leads to."""
    port = free_port()
    api.leads_to = f"http://127.0.0.1:{port}"
    return port


@pytest.fixture
def naps() -> Naps:
    """The looks at Telegram's side of it: each is a nap, and a test says when there is another."""
    return Naps(limit=1)


@pytest.fixture
async def adapter(api: TelegramApi, port: int, naps: Naps) -> AsyncIterator[TelegramAdapter]:
    adapter = TelegramAdapter(
        "main", settings_for(api, webhook_url=URL, webhook_port=port), sleep=naps, random=lambda: 0.5
    )
    yield adapter
    await adapter.close()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_updates_are_brought_and_arrive_in_order(api: TelegramApi, adapter: TelegramAdapter) -> None:
    api.says("before")
    received = Received()
    async with running(adapter, received.accept):
        for number in range(5):
            api.says(f"{number}")
        await api.wait_confirmed()
        assert (adapter.health.state, adapter.health.detail) == ("connected", "@limpet_bot")
        assert adapter.health.heard_at is not None
    assert received.texts == ["before", *"01234"]
    (call,) = api.called("setWebhook")
    assert call["url"] == URL
    assert call["max_connections"] == "1", "one after the other is the order they were said in"
    assert "message_reaction" in call["allowed_updates"]
    assert len(call["secret_token"]) > 30
    assert api.called("getUpdates") == []
    assert adapter.health.state == "stopped"


async def test_what_is_not_stored_is_brought_again(
    api: TelegramApi, adapter: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """G-DLV-21: a 200 only after ``accept`` returned."""
    received = Received(troubles=[None, OSError("disk full"), OSError("disk full"), None])
    async with running(adapter, received.accept):
        for text in ("a", "b", "c"):
            api.says(text)
        await api.wait_confirmed()
        await until(lambda: adapter.health.state == "connected")
        assert adapter.health.reconnects == 1
    assert received.texts == ["a", "b", "c"]
    assert api.deliveries == [200, 503, 503, 200, 200]
    (warning,) = warnings(caplog)
    assert "could not be stored (OSError)" in warning


async def test_what_was_being_stored_at_the_end_comes_to_the_next_run(
    api: TelegramApi, port: int, adapter: TelegramAdapter
) -> None:
    """G-DLV-21, G-DLV-07: the process ends while a message is being stored."""
    reached = asyncio.Event()

    async def never_stores(event: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    async with running(adapter, never_stores):
        api.says("question")
        await reached.wait()
    assert len(api.waiting) == 1
    later = TelegramAdapter("main", settings_for(api, webhook_url=URL, webhook_port=port), sleep=Naps(limit=1))
    received = Received()
    async with running(later, received.accept):
        await api.wait_confirmed()
    assert received.texts == ["question"]
    await later.close()


async def test_a_bad_update_is_skipped(
    api: TelegramApi, adapter: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    received = Received()
    async with running(adapter, received.accept):
        api.push(message={"message_id": "x", "date": "yesterday"})
        api.says("after")
        await api.wait_confirmed()
    assert received.texts == ["after"]
    assert "can't be read" in warnings(caplog)[0]
    assert set(api.deliveries) == {200}


async def test_a_pressed_button_is_confirmed(api: TelegramApi, adapter: TelegramAdapter) -> None:
    message = api.message(api.me, api.group(), text="Shall I?")
    api.press(Sent(message["message_id"], -1001, ["Shall I?"], [], buttons=[[("Yes", "yes")]]), "Yes")
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_confirmed()
        await until(lambda: not api.presses)
    assert [event.data for event in received.events if isinstance(event, Pressed)] == ["yes"]


@pytest.mark.parametrize("secret", [None, "", "wrong", "ünïcode"])
async def test_nobody_else_is_let_in(api: TelegramApi, port: int, adapter: TelegramAdapter, secret: str | None) -> None:
    received = Received()
    headers = {} if secret is None else {PROOF: secret}
    async with running(adapter, received.accept), aiohttp.ClientSession(headers=headers) as web:
        await api.wait_called("setWebhook")
        update = {"update_id": 1, "message": api.message(ANN, text="obey")}
        async with web.post(f"http://127.0.0.1:{port}/telegram/news", json=update) as answer:
            assert answer.status == 403
    assert received.events == []


async def test_a_secret_in_no_encoding_is_a_wrong_one(api: TelegramApi, port: int, adapter: TelegramAdapter) -> None:
    async with running(adapter, Received().accept):
        await api.wait_called("setWebhook")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /telegram/news HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n{PROOF}: ".encode()
        writer.write(head + b"\xff\xfe\r\n\r\n{}")
        assert (await reader.readline()).startswith(b"HTTP/1.1 403")
        writer.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/telegram/news", b"not json", 400),
        ("POST", "/telegram/news", b"\xff\xfe", 400),
        ("POST", "/telegram/news", b"[]", 200),
        ("POST", "/telegram/news", b'"x"', 200),
        ("POST", "/telegram/news", b"{}" + b" " * (1 << 20), 413),
        ("GET", "/telegram/news", None, 405),
        ("POST", "/", b"{}", 404),
        ("POST", "/telegram/news/more", b"{}", 404),
    ],
)
async def test_what_is_no_update_does_no_harm(
    api: TelegramApi, port: int, naps: Naps, method: str, path: str, body: bytes | None, status: int
) -> None:
    settings = settings_for(api, webhook_url=URL, webhook_port=port, webhook_secret=SecretStr("s3cret"))
    adapter = TelegramAdapter("main", settings, sleep=naps)
    received = Received()
    async with running(adapter, received.accept), aiohttp.ClientSession(headers={PROOF: "s3cret"}) as web:
        await api.wait_called("setWebhook")
        assert api.webhook_secret == "s3cret"
        async with web.request(method, f"http://127.0.0.1:{port}{path}", data=body and io.BytesIO(body)) as answer:
            assert answer.status == status
        api.says("hello")
        await api.wait_confirmed()
    assert received.texts == ["hello"]
    await adapter.close()


async def test_a_port_that_is_taken_is_waited_for(
    api: TelegramApi, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    naps = Naps()
    settings = settings_for(api, webhook_url=URL, webhook_port=port)
    adapter = TelegramAdapter("main", settings, sleep=naps)
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", port)
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: len(naps.taken) >= 3)
        assert adapter.health.state == "retrying"
        assert f"can't listen on 127.0.0.1:{port}" in adapter.health.detail
        assert "set another webhook_port" in adapter.health.detail
        assert api.called("setWebhook") == []
        taken.close()
        await taken.wait_closed()
        api.says("hello")
        await api.wait_confirmed()
    assert received.texts == ["hello"]
    assert len([line for line in warnings(caplog) if "can't listen" in line]) == 1
    await adapter.close()


@pytest.mark.parametrize(
    ("url", "says"), [("http://bot.test/", "An HTTPS URL must be provided"), ("https://bot.test:444/", "only on ports")]
)
async def test_an_address_that_telegram_refuses_is_said_with_the_mend(
    api: TelegramApi, port: int, naps: Naps, url: str, says: str
) -> None:
    adapter = TelegramAdapter("main", settings_for(api, webhook_url=url, webhook_port=port), sleep=naps)
    async with running(adapter, Received().accept):
        await until(lambda: adapter.health.state == "retrying")
        assert says in adapter.health.detail
        assert "webhook_url has to be an https address on port 443, 80, 88 or 8443" in adapter.health.detail
    await adapter.close()


class Looks:
    """A sleep that ends when a test says so: then Telegram is asked again."""

    def __init__(self) -> None:
        self._allowed = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        await self._allowed.acquire()

    def again(self) -> None:
        self._allowed.release()


async def test_a_way_that_leads_nowhere_is_seen(api: TelegramApi, port: int, caplog: pytest.LogCaptureFixture) -> None:
    """Telegram tells when it is asked, and only then."""
    api.leads_to = f"http://127.0.0.1:{free_port()}"
    looks = Looks()
    adapter = TelegramAdapter("main", settings_for(api, webhook_url=URL, webhook_port=port), sleep=looks)
    api.says("hello")
    received = Received()
    async with running(adapter, received.accept):
        await api.wait_delivered(1)
        assert adapter.health.state == "connected"
        looks.again()
        await until(lambda: adapter.health.state == "retrying")
        assert "can't bring 1 messages to webhook_url: Connection refused" in adapter.health.detail
        assert f"leads to 127.0.0.1:{port}" in adapter.health.detail
        api.leads_to = f"http://127.0.0.1:{port}"
        await api.wait_confirmed()
        assert adapter.health.state == "connected"
        looks.again()
        looks.again()
        await api.wait_called("getWebhookInfo", 3)
        assert adapter.health.state == "connected"
    assert received.texts == ["hello"]
    assert len(warnings(caplog)) == 1
    await adapter.close()


async def test_a_trouble_that_is_over_is_none(api: TelegramApi, port: int) -> None:
    """Telegram goes on telling of the last one, also while something is on its way."""
    looks, stored = Looks(), asyncio.Event()

    async def accept(event: object) -> None:
        await stored.wait()

    adapter = TelegramAdapter("main", settings_for(api, webhook_url=URL, webhook_port=port), sleep=looks)
    async with running(adapter, accept):
        await api.wait_called("setWebhook")
        api.webhook_error = {"last_error_date": int(time.time()) - 60, "last_error_message": "Connection refused"}
        api.says("hello")
        for look in (1, 2):
            looks.again()
            await api.wait_called("getWebhookInfo", look)
        await until(lambda: adapter.health.state == "connected")
        assert len(api.waiting) == 1
        stored.set()
        await api.wait_confirmed()
    await adapter.close()


@pytest.mark.parametrize(
    ("other", "says"), [("https://elsewhere.test/x", "are taken to elsewhere.test"), ("", "are asked for")]
)
async def test_a_webhook_that_another_program_set_is_taken_back(
    api: TelegramApi, port: int, other: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    """G-OPS-08"""
    looks = Looks()
    adapter = TelegramAdapter("main", settings_for(api, webhook_url=URL, webhook_port=port), sleep=looks)
    received = Received()
    async with running(adapter, received.accept):
        await until(lambda: adapter.health.state == "connected")
        api.webhook = other
        looks.again()
        await until(lambda: adapter.health.state == "retrying")
        assert f"the bot's messages {says} by another program" in adapter.health.detail
        looks.again()
        await until(lambda: api.webhook == URL)
        looks.again()
        await until(lambda: adapter.health.state == "connected")
        api.says("hello")
        await api.wait_confirmed()
    assert received.texts == ["hello"]
    assert len(warnings(caplog)) == 1
    await adapter.close()


async def test_a_token_that_was_revoked_ends_it(api: TelegramApi, port: int) -> None:
    adapter = TelegramAdapter("main", settings_for(api, webhook_url=URL, webhook_port=port), sleep=Naps())
    api.fail("getWebhookInfo", Fault(401, "Unauthorized"))
    with pytest.raises(AuthFailed):
        async with asyncio.timeout(5):
            await adapter.run(Received().accept)
    assert (adapter.health.state, "BotFather" in adapter.health.detail) == ("failed", True)
    await adapter.close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))


async def test_back_to_polling(api: TelegramApi, adapter: TelegramAdapter) -> None:
    """The address stays set at Telegram when we stop, and goes when we ask for updates again."""
    async with running(adapter, Received().accept):
        await api.wait_called("setWebhook")
    assert api.webhook == URL
    api.leads_to = ""
    api.says("hello")
    poller = TelegramAdapter("main", settings_for(api), sleep=Naps())
    received = Received()
    async with running(poller, received.accept):
        await api.wait_confirmed()
    assert (received.texts, api.webhook) == (["hello"], "")
    await poller.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"webhook_url": "bot.test/telegram"},
        {"webhook_url": "https://bot.test"},
        {"webhook_port": 0},
        {"webhook_secret": "no spaces"},
        {"webhook_secret": "ü"},
        {"webhook_secret": "x" * 257},
        {"webhook_secret": ""},
    ],
)
def test_settings_that_telegram_would_refuse(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TelegramSettings.model_validate({"token": TOKEN} | settings)
