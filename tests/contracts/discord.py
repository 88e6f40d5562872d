"""Discord for the contract suite: the real library before an API and a gateway on loopback."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from pydantic import SecretStr

from adapters.adapter import Accept, Adapter
from adapters.contract import SeenFile, Trouble
from adapters.discord import DiscordAdapter, DiscordSettings
from adapters.message import Address, Inbound, Message
from tests.fakes.discord_api import TOKEN, DiscordApi, Fault, shown

_FAULTS: dict[Trouble, Fault] = {
    "rejected": Fault(403, "Cannot send messages to this user", code=50007),
    "flood": Fault(429, retry_after=3),
    "unreachable": Fault(502, body=b"<html>Bad Gateway</html>"),
    "ambiguous": Fault(drop=True, after=True),
    "auth": Fault(401, "401: Unauthorized"),
}


class _Remembering(DiscordAdapter):
    """Notes what was stored, as the hub's inbox does, for the next adapter to go on from."""

    newest: dict[str, str]

    async def run(self, accept: Accept) -> None:
        async def noted(event: Inbound) -> None:
            await accept(event)
            if isinstance(event, Message):
                self.newest[event.address.chat] = event.id

        await super().run(noted)


class DiscordHarness:
    """Ann and the bot have a direct chat."""

    troubles: frozenset[Trouble] = frozenset(_FAULTS)
    redelivers = True
    secrets: tuple[str, ...] = (TOKEN, TOKEN.rpartition(".")[2])

    def __init__(self) -> None:
        self._api = DiscordApi()
        self._newest: dict[str, str] = {}
        self._begun = datetime.now(UTC)
        self._said = 0

    async def start(self) -> None:
        await self._api.start()
        self._newest[str(self._api.dm.id)] = str(self._api.new_id())

    async def stop(self) -> None:
        await self._api.stop()

    def open(self) -> Adapter:
        settings = DiscordSettings(token=SecretStr(TOKEN), base_url=self._api.root)
        adapter = _Remembering("main", settings, sleep=lambda _: asyncio.sleep(0))
        adapter.newest = self._newest
        adapter.resume(self._newest, self._begun)
        return adapter

    async def ready(self, adapter: Adapter) -> Address:
        await self._api.until(lambda: self._api.is_listened_to)
        return Address("discord", adapter.account, str(self._api.dm.id), "direct")

    async def says(self, text: str) -> None:
        self._said = self._api.says(text)

    async def changes(self, text: str) -> None:
        self._api.edits(self._said, text)

    async def shares(self, data: bytes, name: str, caption: str) -> None:
        self._api.says(caption, attachments=[self._api.attachment(name, data, "application/octet-stream")])

    def lose_files(self) -> None:
        self._api.files.clear()

    async def presses(self, label: str) -> None:
        self._api.presses(self._api.sent[-1], label)

    def shown(self) -> list[str]:
        return [shown(sent.text) for sent in self._api.sent]

    def files(self) -> list[SeenFile]:
        return [
            SeenFile(
                "image" if name.endswith(".png") else "document", name, data, shown(sent.text) if not number else ""
            )
            for sent in self._api.sent
            for number, (name, data) in enumerate(sent.files)
        ]

    def delete(self, message_id: str) -> None:
        self._api.deletes(next(sent for sent in self._api.sent if str(sent.id) == message_id))

    def fail_next_send(self, trouble: Trouble) -> None:
        self._api.fail("POST", "/messages", _FAULTS[trouble])

    def stall_next_send(self) -> None:
        self._api.fail("POST", "/messages", Fault(delay=60))

    async def stalled(self) -> None:
        await self._api.wait_called("POST", "/messages")

    def attach(self, data: bytes) -> str | None:
        file = self._api.attachment("report.bin", data)
        message = self._api.message("", attachments=[file])
        return f"{self._api.dm.id}/{message['id']}/{file['id']}"

    async def vanish(self) -> None:
        await self._api.stop()

    async def reappear(self) -> None:
        await self._api.start()
