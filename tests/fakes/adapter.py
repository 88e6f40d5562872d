"""A door without a platform: it satisfies the adapter protocol in memory, with faults on demand.

For tests of the hub that need no wire; the flow tests use real libraries over loopback instead. It refuses what its
``capabilities`` say that it can't take, as a platform would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from adapters.adapter import Accept, Capabilities, Health
from adapters.errors import AdapterError, Rejected
from adapters.message import Address, Inbound, Kind, Message, Part, Receipt, Sender
from adapters.text import FormattedText, utf16_length


@dataclass
class Sent:
    """One call of ``send`` that the platform took: a message, or an album.

    ``now`` is the part as it was last edited, None once somebody deleted the message. ``data`` is what its files held.
    """

    part: Part
    key: str
    message_id: str
    data: tuple[bytes, ...] = ()
    now: Part | None = None

    @property
    def text(self) -> str:
        return self.part.text.plain


@dataclass
class FakeAdapter:
    """``faults`` are raised by the next calls of ``send``, and ``edit_faults`` of ``edit``, in order; None lets one
    through. ``delays`` are slept before them, in seconds.

    ``files`` are the attachments' bytes, by ref. ``draft_seconds`` is what ``drafts`` says: None where it shows none.
    """

    channel: str = "fake"
    account: str = "fake"
    capabilities: Capabilities = field(default_factory=lambda: Capabilities(text_limit=4096, typing=True))
    health: Health = field(default_factory=Health)
    draft_seconds: float | None = None
    faults: list[AdapterError | None] = field(default_factory=list)
    edit_faults: list[AdapterError | None] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    edits: list[tuple[str, Part]] = field(default_factory=list)
    drafted: list[tuple[str, Part]] = field(default_factory=list)
    """The drafts, each with its turn."""
    reactions: dict[str, str] = field(default_factory=dict)
    """Our sign on a message, by its id."""
    typed: int = 0
    _accept: asyncio.Future[Accept] | None = None
    _ids: count[int] = field(default_factory=lambda: count(1))
    _sent: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self, accept: Accept) -> None:
        self._accepted().set_result(accept)
        self.health = replace(self.health, state="connected")
        try:
            await asyncio.Event().wait()
        finally:
            self._accept = None  # it may be run again, by the next hub
            self.health = replace(self.health, state="stopped")

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

    async def says(self, event: Inbound) -> None:
        """Deliver an event to the hub, as the platform's event loop would."""
        accept = await self._accepted()
        self.health = replace(self.health, heard_at=datetime.now(UTC))
        await accept(event)

    async def wait_sent(self, number: int) -> list[Sent]:
        """The sends so far, once there are ``number`` of them."""
        async with self._sent, asyncio.timeout(10):
            await self._sent.wait_for(lambda: len(self.sent) >= number)
        return self.sent

    @property
    def shown(self) -> list[Part]:
        """Our messages as they are now."""
        return [sent.now for sent in self.sent if sent.now is not None]

    def delete(self, message_id: str) -> None:
        """Somebody deletes a message of ours."""
        self._message(message_id).now = None

    async def send(self, part: Part, key: str) -> Receipt:
        await self._meet(self.faults)
        self._check(part)
        known = [sent for sent in self.sent if sent.key == key] if self.capabilities.idempotent else []
        if known:
            return Receipt(known[0].message_id)
        try:
            data = tuple(Path(file.path).read_bytes() for file in part.files)
        except OSError as error:
            raise Rejected(f"a file is gone: {error.strerror}") from None
        if any(len(piece) > self.capabilities.file_limit for piece in data):
            raise Rejected("a file is too large")
        async with self._sent:
            self.sent.append(Sent(part, key, f"sent-{len(self.sent) + 1}", data, now=part))
            self._sent.notify_all()
        return Receipt(self.sent[-1].message_id)

    async def edit(self, part: Part, message_id: str) -> None:
        await self._meet(self.edit_faults)
        if not self.capabilities.edits:
            raise Rejected("this platform can't edit")
        sent = self._message(message_id)
        if sent.now is None:
            raise Rejected("the message is gone", gone=True)
        self._check(replace(part, files=sent.part.files))
        async with self._sent:
            sent.now = replace(part, files=sent.part.files)
            self.edits.append((message_id, part))
            self._sent.notify_all()

    async def typing(self, address: Address) -> None:
        self.typed += 1

    def drafts(self, address: Address) -> float | None:
        return self.draft_seconds

    async def draft(self, part: Part, turn: str) -> None:
        self.drafted.append((turn, part))

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        self.reactions[message_id] = emoji

    async def erase(self, address: Address, message_id: str) -> None:
        if any(sent.message_id == message_id for sent in self.sent):
            self.delete(message_id)

    async def fetch(self, ref: str, limit: int) -> AsyncIterator[bytes]:
        if ref not in self.files:
            raise Rejected(f"there is no file {ref!r}")
        if len(self.files[ref]) > limit:
            raise Rejected(f"the file is larger than {limit} bytes")
        yield self.files[ref]

    def measure(self, text: FormattedText) -> int:
        return utf16_length(text.plain)

    async def close(self) -> None:
        return

    async def _meet(self, faults: list[AdapterError | None]) -> None:
        if self.delays:
            await asyncio.sleep(self.delays.pop(0))
        if faults and (fault := faults.pop(0)) is not None:
            raise fault

    def _check(self, part: Part) -> None:
        """Raises Rejected for what this platform doesn't take."""
        can = self.capabilities
        if not part.text and not part.files:
            raise Rejected("a blank message")
        limit = can.caption_limit if part.files else can.text_limit
        if (limit or part.files) and self.measure(part.text) > limit:
            raise Rejected(f"the text is longer than {limit}")
        if part.files and not (can.file_limit and len(part.files) <= can.album):
            raise Rejected("so many files can't be sent")
        if part.buttons and not can.buttons:
            raise Rejected("no buttons can be shown")

    def _message(self, message_id: str) -> Sent:
        for sent in self.sent:
            if sent.message_id == message_id:
                return sent
        raise Rejected(f"there is no message {message_id!r}", gone=True)

    def _accepted(self) -> asyncio.Future[Accept]:
        if self._accept is None:
            self._accept = asyncio.get_running_loop().create_future()
        return self._accept
