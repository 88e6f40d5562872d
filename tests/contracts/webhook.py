"""The webhook for the contract suite: real HTTP on loopback, with a program at the other end."""

from __future__ import annotations

import asyncio
import base64

from pydantic import SecretStr
from yarl import URL

from adapters.adapter import Adapter
from adapters.contract import SeenFile, Trouble
from adapters.message import Address
from adapters.webhook import WebhookAdapter, WebhookSettings
from tests.fakes.webhook_program import SECRET, Fault, WebhookProgram

_FAULTS: dict[Trouble, Fault] = {
    "rejected": Fault(400, b'{"error": "no such chat"}'),
    "formatting": Fault(422, b'{"error": "that html is not taken"}'),
    "flood": Fault(429, headers={"Retry-After": "3"}),
    "unreachable": Fault(502, b"<html>Bad Gateway</html>"),
    "ambiguous": Fault(drop=True, after=True),
    "auth": Fault(401, f"{SECRET} is not the secret".encode()),
}


class WebhookHarness:
    """Ann writes in a kitchen that a program of hers looks after."""

    troubles: frozenset[Trouble] = frozenset(_FAULTS)
    redelivers = True
    secrets: tuple[str, ...] = (SECRET, "in-the-address")

    def __init__(self) -> None:
        self._program = WebhookProgram()

    async def start(self) -> None:
        await self._program.start()

    async def stop(self) -> None:
        await self._program.stop()

    def open(self) -> Adapter:
        settings = WebhookSettings(
            secret=SecretStr(SECRET),
            callback_url=self._program.url,
            port=URL(self._program.bot).port or 0,
            text_limit=4000,
            file_limit=100_000,
            buttons=True,
        )
        return WebhookAdapter("home", settings)

    async def ready(self, adapter: Adapter) -> Address:
        async with asyncio.timeout(10):
            while adapter.health.state != "connected":
                await asyncio.sleep(0.01)
        return Address("webhook", adapter.account, "kitchen", "direct", space=adapter.account)

    async def says(self, text: str) -> None:
        self._program.say(self._program.message(text))

    async def shares(self, data: bytes, name: str, caption: str) -> None:
        file = {"url": self._program.link(name, data), "name": name, "size": len(data)}
        self._program.say(self._program.message(caption, attachments=[file]))

    def lose_files(self) -> None:
        self._program.files.clear()

    async def presses(self, label: str) -> None:
        number, message = len(self._program.taken) - 1, self._program.taken[-1]
        (data,) = (button["data"] for row in message["buttons"] for button in row if button["label"] == label)
        press = self._program.message("", type="pressed", message_id=f"m{number}", data=data)
        del press["text"]
        self._program.say(press)

    def shown(self) -> list[str]:
        return [message["text"] for message in self._program.taken]

    def files(self) -> list[SeenFile]:
        return [
            SeenFile(message["file"]["kind"], message["file"]["name"], _decoded(message), message["text"])
            for message in self._program.taken
        ]

    def fail_next_send(self, trouble: Trouble) -> None:
        self._program.faults.append(_FAULTS[trouble])

    def stall_next_send(self) -> None:
        self._program.faults.append(Fault(stall=True))

    async def stalled(self) -> None:
        await self._program.stalled()

    def attach(self, data: bytes) -> str | None:
        return self._program.link("attached", data)

    async def vanish(self) -> None:
        await self._program.stop()

    async def reappear(self) -> None:
        await self._program.start()


def _decoded(message: dict[str, dict[str, str]]) -> bytes:
    return base64.b64decode(message["file"]["data"])
