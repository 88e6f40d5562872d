"""Slack for the contract suite: the real libraries before a workspace on loopback."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import SecretStr

from adapters.adapter import Adapter
from adapters.contract import SeenFile, Trouble
from adapters.message import Address
from adapters.slack import SlackAdapter, SlackSettings
from tests.fakes.loopback import free_port
from tests.fakes.slack_api import APP_TOKEN, SIGNING_SECRET, TOKEN, Fault, SlackApi

_FAULTS: dict[Trouble, Fault] = {
    "rejected": Fault("not_in_channel"),
    "formatting": Fault("invalid_blocks"),
    "flood": Fault("ratelimited", 429, retry_after=3),
    "unreachable": Fault(status=503),
    "ambiguous": Fault(drop=True, after=True),
    "auth": Fault("token_revoked"),
}


class SlackHarness:
    """Ann has a direct chat with the bot."""

    troubles: frozenset[Trouble] = frozenset(_FAULTS)
    redelivers = True
    secrets: tuple[str, ...] = (TOKEN, APP_TOKEN, SIGNING_SECRET)

    def __init__(self) -> None:
        self._api = SlackApi()
        self._newest = ""

    async def start(self) -> None:
        await self._api.start()

    async def stop(self) -> None:
        await self._api.stop()

    def open(self) -> Adapter:
        settings = SlackSettings(
            token=SecretStr(TOKEN), app_token=SecretStr(APP_TOKEN), base_url=self._api.base_url, **self._settings()
        )
        return SlackAdapter("main", settings, sleep=lambda _: asyncio.sleep(0), ping_seconds=0.2)

    def _settings(self) -> dict[str, Any]:
        return {}

    async def ready(self, adapter: Adapter) -> Address:
        chat = self._api.direct
        return Address("slack", adapter.account, chat.id, "direct", space="T0GARDEN1")

    async def says(self, text: str) -> None:
        self._newest = self._api.says(text)

    async def changes(self, text: str) -> None:
        self._api.edits(self._newest, text)

    async def shares(self, data: bytes, name: str, caption: str) -> None:
        self._api.shares(data, name, caption)

    def lose_files(self) -> None:
        self._api.files.clear()

    async def presses(self, label: str) -> None:
        self._api.presses(self._api.sent[-1], label)

    def shown(self) -> list[str]:
        return [sent.text for sent in self._api.sent]

    def files(self) -> list[SeenFile]:
        return [
            SeenFile(
                "image" if file["mimetype"].startswith("image/") else "document",
                file["title"],
                self._api.contents[file["id"]],
                sent.text if number == 0 else "",
            )
            for sent in self._api.sent
            for number, file in enumerate(sent.files)
        ]

    def delete(self, message_id: str) -> None:
        self._api.deletes(message_id)

    def fail_next_send(self, trouble: Trouble) -> None:
        self._api.fail("chat.postMessage", _FAULTS[trouble])

    def stall_next_send(self) -> None:
        self._api.fail("chat.postMessage", Fault(delay=60))

    async def stalled(self) -> None:
        await self._api.wait_called("chat.postMessage")

    def attach(self, data: bytes) -> str | None:
        return str(self._api.add_file(data, "file.bin")["id"])

    async def vanish(self) -> None:
        await self._api.stop()

    async def reappear(self) -> None:
        await self._api.start()


class SlackHttpHarness(SlackHarness):
    """The same app, to which Slack posts what Ann says."""

    def __init__(self) -> None:
        super().__init__()
        self._port = free_port()
        self._api.leads_to = f"http://127.0.0.1:{self._port}/slack/events"

    def _settings(self) -> dict[str, Any]:
        return {"transport": "http", "signing_secret": SecretStr(SIGNING_SECRET), "http_port": self._port}

    def open(self) -> Adapter:
        adapter = super().open()
        adapter._sleep = lambda _: asyncio.sleep(0.05)  # type: ignore[attr-defined]
        return adapter
