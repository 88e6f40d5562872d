"""Runs the adapter as the hub would, with an ``accept`` that tells what it is given and answers every question.

What was told is what counts as stored: it outlives the process.
"""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

from adapters.adapter import Health
from adapters.errors import AdapterError
from adapters.linking import Shown
from adapters.message import Address, Attachment, Deleted, Edited, File, Inbound, Message, Part, Reacted
from adapters.text import FormattedText
from adapters.whatsapp import WhatsAppAdapter, WhatsAppSettings
from tests.fakes.whatsapp_relay import library
from tests.fakes.whatsapp_relay.lines import Lines

_PAUSE_SECONDS = 0.05
_LOOK_SECONDS = 0.01


async def _shorter(seconds: float) -> None:
    """As a person pauses between messages, but not as long; the end of a ban is waited for."""
    await asyncio.sleep(min(seconds, _PAUSE_SECONDS) if seconds < 60 else seconds)


class Program:
    def __init__(self, lines: Lines) -> None:
        given = lines.settings
        self._settings = WhatsAppSettings(
            proxy_url=given["proxy"],
            stream_edits=True,
            messages_a_minute=120,
            messages_an_hour=3000,
            answer_seconds=given.get("answer_seconds", 80.0),
        )
        self._lines = lines
        self._folder = Path(given["folder"])
        self._adapter = WhatsAppAdapter("test", self._settings, self._folder, sleep=_shorter)
        self._chats: dict[str, Address] = {}
        self._files: dict[str, Attachment] = {}
        self._unanswered: asyncio.Queue[Message] = asyncio.Queue()
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        if "link" in self._lines.settings:
            await self._link(self._lines.settings["link"])
        self._running = asyncio.create_task(self._adapter.run(self._accept))
        beside = [asyncio.create_task(self._watch()), asyncio.create_task(self._answer())]
        names = (name for name in dir(self) if name.startswith("do_"))
        await self._lines.serve({name.removeprefix("do_"): getattr(self, name) for name in names})
        for task in beside:
            task.cancel()

    async def _link(self, phone: str) -> None:
        def show(shown: Shown) -> None:
            self._lines.tell("Shown", kind=type(shown).__name__, text=shown.text)

        linked = await WhatsAppAdapter.link(self._settings, phone=phone or None, show=show, folder=self._folder)
        self._lines.tell("Linked", id=linked.id, lid=linked.lid)

    # What it hears ----------------------------------------------------------------------------------------------------

    async def _accept(self, said: Inbound) -> None:
        if self._lines.settings.get("stalls"):
            self._lines.tell("Stalled")
            await asyncio.Event().wait()
        self._chats[said.address.chat] = said.address
        match said:
            case Message():
                kind = said.attachments[0].kind if said.attachments else "text"
                if said.attachments:
                    self._files[said.id] = said.attachments[0]
                ids = (said.sender.id, *said.sender.aliases)
                self._lines.tell(
                    "Heard",
                    kind="audio" if kind == "voice" else kind,
                    id=said.id,
                    chat=said.address.chat,
                    sender=next((one.lstrip("+") for one in ids if "@" not in one), ""),
                    text=said.text,
                    of=said.reply_to or "",
                    quoted=said.quote.text if said.quote else "",
                    mentions_me=said.mentions_me,
                    media_type=(said.attachments[0].media_type or "") if said.attachments else "",
                )
                if said.text.endswith("?"):
                    self._unanswered.put_nowait(said)
            case Edited():
                self._about("edit", said, said.text, said.sender.id)
            case Deleted():
                self._about("deletion", said)
            case Reacted():
                self._about("reaction", said, said.emoji, said.sender.id)
            case _:
                self._about("other", said)

    def _about(self, kind: str, said: Inbound, text: str = "", sender: str = "") -> None:
        of = "" if not isinstance(said, Edited | Deleted | Reacted) else said.id
        who = sender.lstrip("+")
        self._lines.tell("Heard", kind=kind, id=of, chat=said.address.chat, sender=who, text=text, of=of)

    async def _answer(self) -> None:
        """Again and again where that may help, as the hub does."""
        while True:
            said = await self._unanswered.get()
            part = Part(said.address, FormattedText(f"echo: {said.text}"), reply_to=said.id, question=said.text)
            while not await self._is_sent(part, said.id):
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _is_sent(self, part: Part, key: str) -> bool:
        try:
            await self._adapter.send(part, key)
        except AdapterError as error:
            self._lines.tell("Unsent", text=part.text.plain, error=str(error))
            return not error.may_retry
        return True

    async def _watch(self) -> None:
        """How it is has no event of its own."""
        known: Health | None = None
        while True:
            if self._adapter.health != known:
                known = self._adapter.health
                self._lines.tell("Health", state=known.state, detail=known.detail)
            await asyncio.sleep(_LOOK_SECONDS)

    # What it is told --------------------------------------------------------------------------------------------------

    async def do_send(self, chat: str, text: str, file: str = "") -> str | None:
        kind = "image" if file.endswith(".png") else "document"
        files = (File(kind, file, Path(file).name),) if file else ()  # type: ignore[arg-type]  # one of the two
        part = Part(self._chats[chat], FormattedText(text), files=files)
        return (await self._adapter.send(part, text)).message_id

    async def do_edit(self, chat: str, of: str, text: str) -> None:
        await self._adapter.edit(Part(self._chats[chat], FormattedText(text)), of)

    async def do_erase(self, chat: str, of: str) -> None:
        await self._adapter.erase(self._chats[chat], of)

    async def do_react(self, chat: str, of: str, emoji: str) -> None:
        await self._adapter.react(self._chats[chat], of, emoji)

    async def do_leave(self, chat: str) -> None:
        await self._adapter.leave(self._chats[chat])

    async def do_type(self, chat: str) -> None:
        await self._adapter.typing(self._chats[chat])

    async def do_fetch(self, of: str) -> str:
        data = b"".join([piece async for piece in self._adapter.fetch(self._files[of].ref, 1 << 20)])
        return base64.b64encode(data).decode()

    async def do_again(self) -> None:
        """Stop, start, and be connected."""
        await self._end()
        self._running = asyncio.create_task(self._adapter.run(self._accept))
        while self._adapter.health.state != "connected":
            await asyncio.sleep(_LOOK_SECONDS)

    async def do_stop(self) -> None:
        await self._end()
        await self._adapter.close()

    async def _end(self) -> None:
        assert self._running is not None
        self._running.cancel()
        await asyncio.wait([self._running])


def main() -> None:
    lines = Lines()
    library.load()
    library.replace_root_key(bytes.fromhex(lines.settings["root"]))
    asyncio.run(Program(lines).run())
    os._exit(0)  # the library's threads stay


if __name__ == "__main__":
    main()
