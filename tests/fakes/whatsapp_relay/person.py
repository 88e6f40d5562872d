"""A person: a real client in a process of its own, which a test lets write, answer, react and look at what came.

One process for each, because the client's environment and its Go runtime are those of a process.
"""

from __future__ import annotations

import base64
from pathlib import Path

from tests.fakes.whatsapp_relay.directory import Account
from tests.fakes.whatsapp_relay.lines import Event, Process
from tests.fakes.whatsapp_relay.relay import Relay

PROGRAM = "tests.fakes.whatsapp_relay.person_program"


class Person(Process):
    """``account`` is whose device this is; its session is in ``folder``. Methods that write give the message's id."""

    def __init__(
        self, relay: Relay, account: Account, folder: Path, *, echoes: bool = False, root: bytes | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "name": account.phone,
            "store": str(folder / "session.db"),
            "proxy": relay.proxy.url,
            "root": (root or relay.trust.root).hex(),
            "echoes": echoes,
        }
        super().__init__(PROGRAM, settings, relay.trust.environment, folder / "log.txt")
        self.account = account
        self.relay = relay

    async def link(self) -> None:
        """Scan the code that it shows, and wait until it is there with all its keys."""
        await self.relay.pairing.scan((await self.until("QR"))["code"], self.account)
        await self.until("Connected")

    async def say(self, chat: object, text: str) -> str:
        return str(await self.do("say", chat=str(chat), text=text))

    async def quote(self, of: str, text: str) -> str:
        return str(await self.do("quote", of=of, text=text))

    async def quote_myself(self, chat: object, of: str, said: str, text: str) -> str:
        """``said`` is what the own message ``of`` says."""
        return str(await self.do("quote_myself", chat=str(chat), of=of, said=said, text=text))

    async def mention(self, chat: object, text: str, *whom: object) -> str:
        return str(await self.do("mention", chat=str(chat), text=text, whom=[str(one) for one in whom]))

    async def edit(self, chat: object, of: str, text: str) -> str:
        return str(await self.do("edit", chat=str(chat), of=of, text=text))

    async def delete(self, chat: object, of: str) -> str:
        return str(await self.do("delete", chat=str(chat), of=of))

    async def react(self, of: str, emoji: str) -> str:
        return str(await self.do("react", of=of, emoji=emoji))

    async def send_file(self, chat: object, kind: str, data: bytes, name: str = "", caption: str = "") -> str:
        """``kind`` is "image" or "document"."""
        sent = base64.b64encode(data).decode()
        return str(await self.do("send_file", chat=str(chat), kind=kind, data=sent, name=name, caption=caption))

    async def send_voice(self, chat: object, data: bytes, seconds: int) -> str:
        return str(await self.do("send_voice", chat=str(chat), data=base64.b64encode(data).decode(), seconds=seconds))

    async def fetch(self, of: str) -> bytes:
        return base64.b64decode(await self.do("fetch", of=of))

    async def ask(self, chat: object, question: str, *options: str) -> str:
        return str(await self.do("ask", chat=str(chat), question=question, options=options))

    async def vote(self, of: str, *options: str) -> str:
        return str(await self.do("vote", of=of, options=options))

    async def read(self, of: str) -> None:
        await self.do("read", of=of)

    async def sees(self, kind: str = "text", **fields: str) -> Event:
        """The first message of ``kind`` with these fields, once it is there."""
        return await self.until("Message", 1, kind=kind, **fields)
