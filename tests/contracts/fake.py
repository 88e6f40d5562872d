"""The fake door for the contract suite: what the tests of the hub rely on has to hold for it as well."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace

from adapters.adapter import Accept, Adapter, Capabilities
from adapters.contract import SeenFile, Trouble
from adapters.errors import AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.message import Address, Attachment, Edited, Inbound, Message, Part, Pressed, Receipt
from tests.fakes.adapter import FakeAdapter

_ERRORS: dict[Trouble, AdapterError] = {
    "rejected": Rejected("403: blocked"),
    "formatting": Rejected("400: can't parse entities", formatting=True),
    "flood": RateLimited("429", 3),
    "unreachable": Unreachable("502"),
    "auth": AuthFailed("401"),
}

_CAPABILITIES = Capabilities(
    text_limit=4096,
    caption_limit=100,
    file_limit=30_000,
    album=3,
    edits=True,
    edit_seconds={"direct": 1.0},
    buttons=True,
    typing=True,
)


@dataclass
class Door(FakeAdapter):
    """What the person says waits in ``says_next`` until a run has stored it."""

    capabilities: Capabilities = _CAPABILITIES
    says_next: deque[Inbound] = field(default_factory=deque)
    said: asyncio.Event = field(default_factory=asyncio.Event)
    is_lost: bool = False
    """The answer to the next send does not come back."""
    stalls: asyncio.Event | None = None
    """Set by the next send, which is not answered."""

    async def run(self, accept: Accept) -> None:
        delivering = asyncio.create_task(self._deliver())
        try:
            await super().run(accept)
        finally:
            delivering.cancel()
            await asyncio.gather(delivering, return_exceptions=True)

    async def send(self, part: Part, key: str) -> Receipt:
        if self.stalls is not None:
            arrived, self.stalls = self.stalls, None
            arrived.set()
            await asyncio.Event().wait()
        receipt = await super().send(part, key)
        if self.is_lost:
            self.is_lost = False
            raise Ambiguous("the answer was lost")
        return receipt

    async def _deliver(self) -> None:
        while True:
            while self.says_next:
                try:
                    await self.says(self.says_next[0])
                except Exception:
                    await asyncio.sleep(0)
                else:
                    self.says_next.popleft()
            self.said.clear()
            await self.said.wait()


class FakeHarness:
    """The platform is the door itself, so there is one for all runs."""

    troubles: frozenset[Trouble] = frozenset({*_ERRORS, "ambiguous"})
    redelivers = True
    secrets: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._door = Door()
        self._stalled = asyncio.Event()
        self._newest: Message | None = None

    async def start(self) -> None:
        """There is nothing to bring up."""

    async def stop(self) -> None:
        """Nor to take down."""

    def open(self) -> Adapter:
        return self._door

    async def ready(self, adapter: Adapter) -> Address:
        return self._door.message("").address

    async def says(self, text: str) -> None:
        self._newest = self._door.message(text)
        self._say(self._newest)

    async def changes(self, text: str) -> None:
        assert self._newest is not None
        said = self._newest
        self._say(Edited(said.id, said.address, said.sender, text, said.sent_at))

    async def shares(self, data: bytes, name: str, caption: str) -> None:
        self._door.files[name] = data
        self._say(replace(self._door.message(caption), attachments=(Attachment("document", name, name, len(data)),)))

    def lose_files(self) -> None:
        self._door.files.clear()

    async def presses(self, label: str) -> None:
        newest = self._door.sent[-1]
        (button,) = (button for row in newest.part.buttons for button in row if button.label == label)
        by = self._door.message("")
        self._say(Pressed("press-1", by.address, by.sender, newest.message_id, button.data, by.sent_at))

    def shown(self) -> list[str]:
        return [part.text.plain for part in self._door.shown]

    def files(self) -> list[SeenFile]:
        return [
            SeenFile(file.kind, file.name, data, sent.text if number == 0 else "")
            for sent in self._door.sent
            for number, (file, data) in enumerate(zip(sent.part.files, sent.data, strict=True))
        ]

    def delete(self, message_id: str) -> None:
        self._door.delete(message_id)

    def fail_next_send(self, trouble: Trouble) -> None:
        if trouble == "ambiguous":
            self._door.is_lost = True
        else:
            self._door.faults.append(_ERRORS[trouble])

    def stall_next_send(self) -> None:
        self._door.stalls = self._stalled

    async def stalled(self) -> None:
        await self._stalled.wait()

    def attach(self, data: bytes) -> str | None:
        self._door.files["ref"] = data
        return "ref"

    def _say(self, event: Inbound) -> None:
        self._door.says_next.append(event)
        self._door.said.set()
