"""Telegram for the contract suite: the real library before a Bot API server on loopback."""

from __future__ import annotations

import asyncio

from pydantic import SecretStr

from adapters.adapter import Adapter
from adapters.contract import SeenFile, Trouble
from adapters.message import Address
from adapters.telegram import TelegramAdapter, TelegramSettings
from tests.fakes.loopback import free_port
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
        self._newest = 0

    async def start(self) -> None:
        await self._api.start()
        self._api.message(ANN, text="/start")

    async def stop(self) -> None:
        await self._api.stop()

    def open(self) -> Adapter:
        return TelegramAdapter("main", self._settings(), sleep=lambda _: asyncio.sleep(0))

    def _settings(self) -> TelegramSettings:
        return TelegramSettings(token=SecretStr(TOKEN), base_url=self._api.url, poll_seconds=1)

    async def ready(self, adapter: Adapter) -> Address:
        return Address("telegram", adapter.account, str(ANN.id), "direct")

    async def says(self, text: str) -> None:
        self._newest = self._api.says(text)

    async def changes(self, text: str) -> None:
        self._api.edits(self._newest, text)

    async def shares(self, data: bytes, name: str, caption: str) -> None:
        self._api.add_file("shared", data)
        document = {"file_id": "shared", "file_unique_id": "s", "file_name": name, "file_size": len(data)}
        self._api.push(message=self._api.message(ANN, document=document, caption=caption))

    def lose_files(self) -> None:
        self._api.files.clear()

    async def presses(self, label: str) -> None:
        self._api.press(self._api.sent[-1], label)

    def shown(self) -> list[str]:
        return [sent.text for sent in self._api.sent]

    def files(self) -> list[SeenFile]:
        return [
            SeenFile(sent.kind, "" if sent.kind == "photo" else sent.file.name, sent.file.data, sent.text)
            for sent in self._api.sent
            if sent.file is not None
        ]

    def delete(self, message_id: str) -> None:
        self._api.delete(next(sent for sent in self._api.sent if str(sent.id) == message_id))

    def fail_next_send(self, trouble: Trouble) -> None:
        self._api.fail("sendMessage", _FAULTS[trouble])

    def stall_next_send(self) -> None:
        self._api.fail("sendMessage", Fault(delay=60))

    async def stalled(self) -> None:
        await self._api.wait_called("sendMessage")

    def attach(self, data: bytes) -> str | None:
        self._api.add_file("file-1", data)
        return "file-1"

    async def vanish(self) -> None:
        await self._api.stop()

    async def reappear(self) -> None:
        await self._api.start()


class TelegramWebhookHarness(TelegramHarness):
    """The same bot, to which Telegram brings what Ann says."""

    def __init__(self) -> None:
        super().__init__()
        self._port = free_port()
        self._api.leads_to = f"http://127.0.0.1:{self._port}"

    def _settings(self) -> TelegramSettings:
        settings = {"webhook_url": "https://bot.test/telegram", "webhook_port": self._port}
        return super()._settings().model_copy(update=settings)

    def open(self) -> Adapter:
        return TelegramAdapter("main", self._settings(), sleep=lambda _: asyncio.sleep(0.05))
