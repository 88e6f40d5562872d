"""The token: nowhere in a log, an error, a traceback or a health, whatever goes wrong and however much is logged."""

from __future__ import annotations

import io
import logging
import traceback
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from adapters.errors import AdapterError
from adapters.message import Address, Part
from adapters.telegram import TelegramAdapter, check_token
from adapters.text import FormattedText
from tests.adapters.telegram.conftest import settings_for
from tests.adapters.work import Naps, Received, running, until
from tests.fakes.loopback import free_port
from tests.fakes.telegram_api import ANN, TOKEN, Fault, TelegramApi

SECRET = TOKEN.partition(":")[2]
HELLO = Part(Address("telegram", "main", "7", "direct"), FormattedText("hello"))


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that any library logs, formatted with its traceback."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setLevel(logging.DEBUG)
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def chained(error: BaseException) -> str:
    """The traceback and everything that hangs on the error, shown or not."""
    text = "".join(traceback.format_exception(error)) + repr(error) + repr(error.__dict__)
    for other in (error.__cause__, error.__context__):
        text += chained(other) if other else ""
    return text


@pytest.mark.parametrize(
    "fault",
    [
        None,
        Fault(401, "Unauthorized"),
        Fault(500, f"Cannot POST /bot{TOKEN}/sendMessage"),
        Fault(404, body=f"<pre>Cannot POST /bot{TOKEN}/sendMessage</pre>".encode()),
        Fault(200, body=b'{"ok":true,"result":{}}'),
        Fault(200, body=b"<html>"),
        Fault(drop=True),
    ],
)
async def test_a_call_shows_no_token(
    log: io.StringIO, api: TelegramApi, adapter: TelegramAdapter, fault: Fault | None
) -> None:
    """G-OPS-06"""
    api.message(ANN, text="hello")
    shown = ""
    if fault:
        api.fail("sendMessage", fault)
    try:
        await adapter.send(HELLO, "key")
    except AdapterError as error:
        logging.getLogger("test").exception("failed")
        shown = chained(error)
    assert "sendMessage" in log.getvalue()
    assert "bot123456789:…" in log.getvalue()
    assert SECRET not in log.getvalue() + shown + repr(adapter) + repr(vars(adapter))


async def test_no_connection_shows_no_token(log: io.StringIO, api: TelegramApi, adapter: TelegramAdapter) -> None:
    """G-OPS-06"""
    await api.stop()
    with pytest.raises(AdapterError) as caught:
        await adapter.send(HELLO, "key")
    assert SECRET not in log.getvalue() + chained(caught.value)


async def test_polling_and_downloads_show_no_token(
    log: io.StringIO, api: TelegramApi, adapter: TelegramAdapter, naps: Naps
) -> None:
    """G-OPS-06"""
    api.add_file("F", b"data")
    api.says("hello")
    api.push(message={"text": "bad"})
    api.fail("getUpdates", Fault(500, f"/bot{TOKEN}/getUpdates"), Fault(409, "Conflict"), Fault(200, body=b"<html>"))
    async with running(adapter, Received(troubles=[OSError("full")]).accept):
        await until(lambda: len(naps.taken) >= 3)
        details = adapter.health.detail
        await api.wait_confirmed()
    assert [piece async for piece in adapter.fetch("F", 10)] == [b"data"]
    api.files.clear()
    assert "documents" in log.getvalue()
    assert SECRET not in log.getvalue() + details


async def test_a_webhook_shows_no_token_and_no_secret_of_its_own(log: io.StringIO, api: TelegramApi) -> None:
    """G-OPS-06: the library would log what it calls setWebhook with."""
    port = free_port()
    own = "the-secret-of-the-webhook"
    api.leads_to = f"http://127.0.0.1:{port}"
    api.fail("setWebhook", Fault(400, f"Bad Request: bad webhook {own}"))
    api.says("hello")
    url = "https://bot.test/news"
    settings = settings_for(api, webhook_url=url, webhook_port=port, webhook_secret=SecretStr(own))
    adapter = TelegramAdapter("main", settings, sleep=Naps())
    details = ""
    async with running(adapter, Received(troubles=[OSError("full")]).accept):
        await until(lambda: adapter.health.state == "retrying")
        details = adapter.health.detail
        await api.wait_confirmed()
    await adapter.close()
    assert "setWebhook" in log.getvalue()
    assert SECRET not in log.getvalue() + details
    assert own not in log.getvalue() + details


async def test_a_wrong_token_is_not_shown_either(log: io.StringIO, api: TelegramApi) -> None:
    """G-OPS-06"""
    for wrong in (TOKEN[:-3] + "abc", "123456789:tooshortButSecret", "not a token but secret"):
        with pytest.raises(AdapterError) as caught:
            await check_token(settings_for(api, wrong))
        assert wrong[10:] not in log.getvalue() + chained(caught.value)


async def test_the_loggers_are_left_as_they_were(api: TelegramApi) -> None:
    before = [list(logging.getLogger(name).filters) for name in ("httpx", "telegram.Bot")]
    await check_token(settings_for(api))
    assert [logging.getLogger(name).filters for name in ("httpx", "telegram.Bot")] == before
