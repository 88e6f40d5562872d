"""WhatsApp for the contract suite: the real library, with a stand-in for its Go side."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from adapters.adapter import Adapter
from adapters.contract import SeenFile, Trouble
from adapters.message import Address
from adapters.whatsapp import WhatsAppAdapter, WhatsAppSettings
from adapters.whatsapp.content import attachments, opened
from tests.fakes.whatsapp_display import shown
from tests.fakes.whatsapp_events import event, update
from tests.fakes.whatsapp_seam import NOT_CONNECTED, TIMED_OUT, Fault, Seam, ann

_FAULTS: dict[Trouble, Fault] = {
    "rejected": Fault("failed to get group members: you're not participating in that group"),
    "unreachable": Fault(NOT_CONNECTED),
    "ambiguous": Fault(TIMED_OUT, after=True),
    "auth": Fault("the store doesn't contain a device JID"),
}


class WhatsAppHarness:
    """Ann has written to the account before."""

    troubles: frozenset[Trouble] = frozenset(_FAULTS)
    redelivers = True
    secrets: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._seam = Seam()
        self._folder = tempfile.TemporaryDirectory()
        self._newest = ""
        self._opened: Adapter | None = None

    async def start(self) -> None:
        await self._seam.start()
        self._seam.link(self._path)

    async def stop(self) -> None:
        await self._seam.stop()
        self._folder.cleanup()
        assert self._seam.crashes == []

    @property
    def _path(self) -> Path:
        return Path(self._folder.name) / "whatsapp"

    def open(self) -> Adapter:
        settings = WhatsAppSettings(
            proxy_url=self._seam.proxy_url, write_first=True, stream_edits=True, messages_a_minute=120
        )
        self._opened = WhatsAppAdapter("main", settings, self._path, sleep=lambda _: asyncio.sleep(0))
        return self._opened

    async def ready(self, adapter: Adapter) -> Address:
        async with asyncio.timeout(10):
            while adapter.health.state != "connected":
                await asyncio.sleep(0.005)
        return Address("whatsapp", adapter.account, ann(), "direct")

    async def says(self, text: str) -> None:
        self._newest = self._seam.says(text)

    async def changes(self, text: str) -> None:
        self._seam.edits(self._newest, text)

    async def shares(self, data: bytes, name: str, caption: str) -> None:
        self._seam.reports_message(self._seam.file(data, name, caption))

    def lose_files(self) -> None:
        self._seam.files.clear()

    async def presses(self, label: str) -> None:
        """She answers with the number that stands before it."""
        text = self._seam.sent[-1].text
        (number,) = [line.partition(".")[0] for line in text.splitlines() if line.endswith(f". {label}")]
        self._seam.says(number)

    def shown(self) -> list[str]:
        return [shown(sent.text).plain for sent in self._seam.sent]

    def files(self) -> list[SeenFile]:
        found = []
        for sent in self._seam.sent:
            (file,) = attachments(opened(sent.body))
            (own,) = (own for _, own in sent.body.ListFields())
            found.append(SeenFile(file.kind, file.name, self._seam.files[own.mediaKey], shown(sent.text).plain))
        return found

    def delete(self, message_id: str) -> None:
        """The account's phone takes it back while the next change of it is under way."""
        self._seam.takes_back(message_id, ann())
        self._seam.faults.append(Fault(meanwhile=self._seam.all_reported))

    def fail_next_send(self, trouble: Trouble) -> None:
        self._seam.faults.append(_FAULTS[trouble])

    def stall_next_send(self) -> None:
        self._seam.faults.append(Fault(stalls=True))

    async def stalled(self) -> None:
        await asyncio.to_thread(self._seam.stalled.wait, 10)

    def attach(self, data: bytes) -> str | None:
        message = event(update(self._seam.file(data)))
        return attachments(opened(message.Message))[0].ref

    async def vanish(self) -> None:
        self._seam.vanish()

    async def reappear(self) -> None:
        """The library finds it again by itself: until it has, nothing is sent."""
        assert self._opened is not None
        self._seam.reappear()
        await self.ready(self._opened)
