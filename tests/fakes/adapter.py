"""A door without a platform: it satisfies the adapter protocol in memory, with faults on demand.

For tests of the hub that need no wire; the flow tests use real libraries over loopback instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

from adapters.adapter import Accept, Capabilities, Health
from adapters.errors import AdapterError, Rejected
from adapters.message import Address, Kind, Message, Part, Receipt, Sender
from adapters.text import FormattedText, utf16_length


@dataclass
class Sent:
    """One call of ``send`` that the platform took."""

    part: Part
    key: str

    @property
    def text(self) -> str:
        return self.part.text.plain


@dataclass
class FakeAdapter:
    """``faults`` are raised by the next calls of ``send``, in order; None lets one through.

    ``files`` are the attachments' bytes, by ref.
    """

    channel: str = "fake"
    account: str = "fake"
    capabilities: Capabilities = field(default_factory=lambda: Capabilities(text_limit=4096, typing=True))
    health: Health = field(default_factory=lambda: Health("connected"))
    faults: list[AdapterError | None] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    typed: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    _accept: asyncio.Future[Accept] | None = None
    _ids: count[int] = field(default_factory=lambda: count(1))
    _sent: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self, accept: Accept) -> None:
        self._accepted().set_result(accept)
        try:
            await asyncio.Event().wait()
        finally:
            self._accept = None  # it may be run again, by the next hub

    def message(
        self,
        text: str,
        *,
        sender: str = "7",
        chat: str | None = None,
        kind: Kind = "direct",
        message_id: str | None = None,
        mentions_me: bool = False,
        name: str = "Ann",
    ) -> Message:
        """A message as the platform would report it."""
        address = Address(self.channel, self.account, chat or sender, kind)
        return Message(
            message_id or str(next(self._ids)),
            address,
            Sender(sender, name),
            text,
            datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
            mentions_me=mentions_me,
        )

    async def says(self, message: Message) -> None:
        """Deliver an event to the hub, as the platform's event loop would."""
        accept = await self._accepted()
        await accept(message)

    async def wait_sent(self, number: int) -> list[Sent]:
        """The sends so far, once there are ``number`` of them."""
        async with self._sent, asyncio.timeout(10):
            await self._sent.wait_for(lambda: len(self.sent) >= number)
        return self.sent

    async def send(self, part: Part, key: str) -> Receipt:
        if self.delays:
            await asyncio.sleep(self.delays.pop(0))
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        async with self._sent:
            self.sent.append(Sent(part, key))
            self._sent.notify_all()
        return Receipt(f"sent-{len(self.sent)}")

    async def edit(self, part: Part, message_id: str) -> None:
        raise Rejected("this platform can't edit")

    async def typing(self, address: Address) -> None:
        self.typed += 1

    async def preview(self, address: Address, turn: str, delta: str) -> None:
        return

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        yield self.files.get(ref, ref.encode())[:limit]

    def measure(self, text: FormattedText) -> int:
        return utf16_length(text.plain)

    async def close(self) -> None:
        return

    def _accepted(self) -> asyncio.Future[Accept]:
        if self._accept is None:
            self._accept = asyncio.get_running_loop().create_future()
        return self._accept
