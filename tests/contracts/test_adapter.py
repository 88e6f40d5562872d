"""The contract of ``adapters.adapter``, over every adapter: what the hub may count on, whatever the platform."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from adapters.adapter import Accept, Adapter
from adapters.errors import AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.markdown import parse
from adapters.message import Address, Inbound, Message, Part
from adapters.split import split
from adapters.text import FormattedText
from tests.contracts.harness import Harness, Trouble

ERRORS: dict[Trouble, tuple[type[AdapterError], bool]] = {
    "rejected": (Rejected, False),
    "formatting": (Rejected, False),
    "flood": (RateLimited, True),
    "unreachable": (Unreachable, True),
    "ambiguous": (Ambiguous, False),
    "auth": (AuthFailed, False),
}
"""The error for each trouble, and whether sending again is safe."""


@dataclass
class Store:
    """Where the hub would keep events. ``troubles`` are raised by the next calls, in order; None stores."""

    events: list[Inbound] = field(default_factory=list)
    troubles: list[Exception | None] = field(default_factory=list)
    grown: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, event: Inbound) -> None:
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble is not None:
            raise trouble
        self.events.append(event)
        self.grown.set()

    async def until(self, text: str) -> list[str]:
        """The texts of the messages stored, once ``text`` is among them."""
        async with asyncio.timeout(10):
            while text not in (texts := [event.text for event in self.events if isinstance(event, Message)]):
                self.grown.clear()
                await self.grown.wait()
        return texts


@asynccontextmanager
async def running(harness: Harness, accept: Accept) -> AsyncIterator[tuple[Adapter, Address]]:
    """An adapter at work, and the place of the person."""
    adapter = harness.open()
    task = asyncio.create_task(adapter.run(accept))
    try:
        yield adapter, await harness.ready(adapter)
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=5)
        await adapter.close()
        assert task.cancelled(), f"run went on after it was cancelled, or ended by itself: {task}"


def part(address: Address, text: str = "hello") -> Part:
    return Part(address, FormattedText(text))


async def test_messages_arrive_whole_and_in_order(harness: Harness) -> None:
    texts = [f"message {number} 👋" for number in range(12)]
    store = Store()
    async with running(harness, store.accept) as (adapter, address):
        for text in texts:
            await harness.says(text)
        assert await store.until(texts[-1]) == texts
        assert adapter.health.state == "connected"
    for event in store.events:
        assert isinstance(event, Message)
        assert event.address == address
        assert (event.address.channel, event.address.account) == (adapter.channel, adapter.account)
        assert event.sent_at.tzinfo is not None
        assert event.sender.id
    ids = [event.id for event in store.events if isinstance(event, Message)]
    assert len(set(ids)) == len(ids)


async def test_what_could_not_be_stored_is_handed_on_again(harness: Harness) -> None:
    """G-DLV-07"""
    if not harness.redelivers:
        pytest.skip("this platform keeps nothing")
    store = Store(troubles=[None, OSError("disk full"), OSError("disk full")])
    async with running(harness, store.accept):
        for text in ("a", "b", "c"):
            await harness.says(text)
        assert await store.until("c") == ["a", "b", "c"]


async def test_what_was_not_stored_at_the_end_comes_to_the_next_run(harness: Harness) -> None:
    """G-DLV-07: the process ends while a message is being stored."""
    if not harness.redelivers:
        pytest.skip("this platform keeps nothing")
    reached = asyncio.Event()

    async def never_stores(event: Inbound) -> None:
        reached.set()
        await asyncio.Event().wait()

    async with running(harness, never_stores):
        await harness.says("question")
        async with asyncio.timeout(10):
            await reached.wait()
    await harness.says("meanwhile")
    store = Store()
    async with running(harness, store.accept):
        assert await store.until("meanwhile") == ["question", "meanwhile"]


async def test_a_stored_message_does_not_come_again(harness: Harness) -> None:
    """G-DLV-06: not once the adapter went on to the next, which is what acknowledges it."""
    store = Store()
    async with running(harness, store.accept):
        await harness.says("one")
        await store.until("one")
        await harness.says("two")
        await store.until("two")
    later = Store()
    async with running(harness, later.accept):
        await harness.says("three")
        assert "one" not in await later.until("three")


async def test_a_send_is_shown_and_gives_a_receipt(harness: Harness) -> None:
    async with running(harness, Store().accept) as (adapter, address):
        receipts = [await adapter.send(part(address, text), text) for text in ("first", "second")]
        assert harness.shown() == ["first", "second"]
        ids = [receipt.message_id for receipt in receipts]
        assert ids == [None, None] or len(set(ids)) == 2


@pytest.mark.parametrize("trouble", ERRORS)
async def test_each_trouble_is_its_error(harness: Harness, trouble: Trouble) -> None:
    """G-DLV-11"""
    if trouble not in harness.troubles:
        pytest.skip("this platform knows no such trouble")
    error, safe = ERRORS[trouble]
    async with running(harness, Store().accept) as (adapter, address):
        harness.fail_next_send(trouble)
        with pytest.raises(error) as caught:
            await adapter.send(part(address), "key")
        assert type(caught.value).may_retry is safe
        assert not any(secret in str(caught.value) for secret in harness.secrets)
        assert harness.shown() == (["hello"] if trouble == "ambiguous" else [])
        if isinstance(caught.value, Rejected):
            assert caught.value.formatting is (trouble == "formatting")
        if isinstance(caught.value, RateLimited):
            assert caught.value.retry_after == 3
        if trouble != "auth":
            await adapter.send(part(address, "again"), "other key")
            assert harness.shown()[-1] == "again"


async def test_the_limit_is_what_measure_counts(harness: Harness) -> None:
    """G-SPL-01"""
    async with running(harness, Store().accept) as (adapter, address):
        limit = adapter.capabilities.text_limit
        if not limit:
            pytest.skip("this platform has no limit")
        for char in ("x", "é", "日", "🎩"):
            width = adapter.measure(FormattedText(char))
            longest = FormattedText(char * (limit // width))
            assert limit - width < adapter.measure(longest) <= limit
            await adapter.send(Part(address, longest), "key")
            with pytest.raises(Rejected):
                await adapter.send(Part(address, FormattedText(longest.plain + char)), "key")


async def test_a_long_answer_arrives_in_parts_and_loses_nothing(harness: Harness) -> None:
    """G-SPL-09"""
    answer = "# Title\n\n" + "Some **bold** words, `code` and 🎩.\n\n" * 200 + "```py\n" + "x = 1\n" * 800 + "```"
    async with running(harness, Store().accept) as (adapter, address):
        text = parse(answer)
        parts = split(text, adapter.capabilities.text_limit or 2000, adapter.measure)
        for number, piece in enumerate(parts):
            await adapter.send(Part(address, piece), str(number))
        assert len(parts) > 1
        assert "".join("".join(harness.shown()).split()) == "".join(text.plain.split())


async def test_a_blank_part_is_refused_before_it_is_sent(harness: Harness) -> None:
    """G-SPL-06"""
    async with running(harness, Store().accept) as (adapter, address):
        with pytest.raises(Rejected):
            await adapter.send(part(address, " \n\t"), "key")
        assert harness.shown() == []


async def test_an_edit_replaces_the_text_or_is_refused(harness: Harness) -> None:
    async with running(harness, Store().accept) as (adapter, address):
        receipt = await adapter.send(part(address, "before"), "key")
        message_id = receipt.message_id or "1"
        if adapter.capabilities.edits:
            await adapter.edit(part(address, "after"), message_id)
            await adapter.edit(part(address, "after"), message_id)
            assert harness.shown() == ["after"]
        else:
            with pytest.raises(Rejected):
                await adapter.edit(part(address, "after"), message_id)


async def test_typing_and_previews_never_fail(harness: Harness) -> None:
    async with running(harness, Store().accept) as (adapter, address):
        await adapter.typing(address)
        await adapter.preview(address, "turn-1", "hel")
        shown = harness.shown()
    await harness.stop()
    adapter = harness.open()
    await adapter.typing(address)
    await adapter.preview(address, "turn-1", "lo")
    await adapter.close()
    assert harness.shown() == shown == [], "a preview is no message"


async def test_a_run_ends_soon_after_it_is_cancelled(harness: Harness) -> None:
    store = Store()
    for text in ("one", "two"):
        async with running(harness, store.accept) as (adapter, _):
            await harness.says(text)
            await store.until(text)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 2
        assert adapter.health.state == "stopped"


async def test_a_cancelled_send_ends_and_the_next_one_works(harness: Harness) -> None:
    async with running(harness, Store().accept) as (adapter, address):
        harness.stall_next_send()
        send = asyncio.create_task(adapter.send(part(address, "lost"), "key"))
        async with asyncio.timeout(10):
            await harness.stalled()
        send.cancel()
        with pytest.raises(asyncio.CancelledError):
            await send
        await adapter.send(part(address, "kept"), "other key")
        assert harness.shown()[-1] == "kept"


async def test_a_file_has_its_bytes_and_its_limit(harness: Harness) -> None:
    data = bytes(range(256)) * 100
    ref = harness.attach(data)
    if ref is None:
        pytest.skip("this platform has no files")
    async with running(harness, Store().accept) as (adapter, _):
        assert b"".join([piece async for piece in adapter.fetch(ref, len(data))]) == data
        with pytest.raises(Rejected):
            [piece async for piece in adapter.fetch(ref, len(data) - 1)]
