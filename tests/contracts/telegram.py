"""Telegram for the contract suite: the real library before a Bot API server on loopback."""

from __future__ import annotations

import asyncio

from pydantic import SecretStr

from adapters.adapter import Adapter
from adapters.message import Address
from adapters.telegram import TelegramAdapter, TelegramSettings
from tests.contracts.harness import Trouble
from tests.fakes.telegram_api import ANN, TOKEN, Fault, TelegramApi

_FAULTS: dict[Trouble, Fault] = {
    "rejected": Fault(403, "Forbidden: bot was blocked by the user"),
    "formatting": Fault(400, "Bad Request: can't parse entities: unexpected end"),
    "flood": Fault(429, "Too Many Requests: retry after 3", retry_after=3),
    "unreachable": Fault(502, body=b"<html>Bad Gateway</html>"),
    "ambiguous": Fault(drop=True, after=True),
    "auth": Fault(401, "Unauthorized"),
}


class TelegramHarness:
    """Ann has written to the bot once, as Telegram wants it before a bot may write."""

    troubles: frozenset[Trouble] = frozenset(_FAULTS)
    redelivers = True
    secrets: tuple[str, ...] = (TOKEN.partition(":")[2],)

    def __init__(self) -> None:
        self._api = TelegramApi()

    async def start(self) -> None:
        await self._api.start()
        self._api.message(ANN, text="/start")

    async def stop(self) -> None:
        await self._api.stop()

    def open(self) -> Adapter:
        settings = TelegramSettings(token=SecretStr(TOKEN), base_url=self._api.url, poll_seconds=1)
        return TelegramAdapter("main", settings, sleep=lambda _: asyncio.sleep(0))

    async def ready(self, adapter: Adapter) -> Address:
        return Address("telegram", adapter.account, str(ANN.id), "direct")

    async def says(self, text: str) -> None:
        self._api.says(text)

    def shown(self) -> list[str]:
        return [sent.text for sent in self._api.sent]

    def fail_next_send(self, trouble: Trouble) -> None:
        self._api.fail("sendMessage", _FAULTS[trouble])

    def stall_next_send(self) -> None:
        self._api.fail("sendMessage", Fault(delay=60))

    async def stalled(self) -> None:
        await self._api.wait_called("sendMessage")

    def attach(self, data: bytes) -> str | None:
        self._api.add_file("file-1", data)
        return "file-1"
