"""The tests: what the hub may count on, whatever the platform."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from adapters.adapter import Accept, Adapter, Drafter, Eraser, Leaver, Reactor
from adapters.contract.harness import (
    ButtonHarness,
    DeletionHarness,
    EditHarness,
    FileHarness,
    Harness,
    OutageHarness,
    StallHarness,
    Trouble,
    UploadHarness,
)
from adapters.errors import AdapterError, Ambiguous, AuthFailed, RateLimited, Rejected, Unreachable
from adapters.markdown import parse
from adapters.message import Address, Button, Edited, File, Inbound, Message, Part, Pressed
from adapters.split import split
from adapters.text import FormattedText

Kind = TypeVar("Kind")

ERRORS: dict[Trouble, tuple[type[AdapterError], bool]] = {
    "rejected": (Rejected, False),
    "formatting": (Rejected, False),
    "flood": (RateLimited, True),
    "unreachable": (Unreachable, True),
    "ambiguous": (Ambiguous, False),
    "auth": (AuthFailed, False),
}
"""The error for each trouble, and whether sending again is safe."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""One pixel."""

DATA = bytes(range(256)) * 100


@dataclass
class Store:
    """Where the hub would keep events. ``troubles`` are raised by the next calls, in order; None stores.

    ``keeps``: an event is kept although the call fails, as where the process ends before it can say so.
    """

    events: list[Inbound] = field(default_factory=list)
    troubles: list[Exception | None] = field(default_factory=list)
    keeps: bool = False
    grown: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, event: Inbound) -> None:
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble is None or self.keeps:
            self.events.append(event)
            self.grown.set()
        if trouble is not None:
            raise trouble

    async def until(self, text: str) -> list[str]:
        """The texts of the messages stored, once ``text`` is among them."""
        async with asyncio.timeout(10):
            while text not in (texts := [message.text for message in self.of(Message)]):
                self.grown.clear()
                await self.grown.wait()
        return texts

    async def first(self, kind: type[Kind]) -> Kind:
        """The first event of ``kind``, once there is one."""
        async with asyncio.timeout(10):
            while not (found := self.of(kind)):
                self.grown.clear()
                await self.grown.wait()
        return found[0]

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]


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
        assert not any(secret in adapter.health.detail for secret in harness.secrets)


async def eventually(is_so: Callable[[], bool]) -> None:
    """Returns once ``is_so``; what an adapter reports has no event to wait for."""
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def part(address: Address, text: str = "hello", *files: File) -> Part:
    return Part(address, FormattedText(text), files=files)


def lacks(harness: Harness, protocol: str) -> NoReturn:
    """Skip a test for which the harness has no methods."""
    pytest.skip(f"{type(harness).__name__} is no {protocol}")


def needs(harness: Harness, protocol: str) -> NoReturn:
    """The same where the adapter's own capabilities ask for the test."""
    pytest.fail(f"by its capabilities the adapter can: make {type(harness).__name__} a {protocol}")


def on_disk(folder: Path, name: str, data: bytes) -> File:
    path = folder / name
    path.write_bytes(data)
    return File("image" if name.endswith(".png") else "document", str(path), name)


def traces(error: BaseException | None) -> Iterator[str]:
    """All that a log could show of an error and of those behind it."""
    while error is not None:
        yield f"{error!s} {error!r} {error.args!r} {vars(error)!r}"
        error = error.__cause__ or error.__context__


@pytest.mark.asyncio
class AdapterContract:
    """Derive from it, with a fixture ``harness`` that gives a ``Harness``, started, and stops it after the test."""

    @pytest.fixture(autouse=True)
    def _keeps_secrets(self, harness: Harness, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
        """Whatever a test does: no secret is in the log."""
        caplog.set_level(logging.DEBUG)
        caplog.set_level(logging.INFO, "markdown_it")
        yield
        lines = map(caplog.handler.format, caplog.get_records("call"))
        leaks = [line for line in lines if any(secret in line for secret in harness.secrets)]
        assert leaks == [], "secrets in the log"

    # In

    async def test_messages_arrive_whole_and_in_order(self, harness: Harness) -> None:
        texts = [f"message {number} 👋" for number in range(12)]
        store = Store()
        async with running(harness, store.accept) as (adapter, address):
            for text in texts:
                await harness.says(text)
            assert await store.until(texts[-1]) == texts
            assert adapter.health.state == "connected"
        messages = store.of(Message)
        for message in messages:
            assert message.address == address
            assert (message.address.channel, message.address.account) == (adapter.channel, adapter.account)
            assert message.sent_at.tzinfo is not None
            assert message.sender.id
        assert len({message.sender for message in messages}) == 1
        assert len({message.id for message in messages}) == len(texts)

    async def test_what_could_not_be_stored_is_handed_on_again(self, harness: Harness) -> None:
        """G-DLV-07"""
        if not harness.redelivers:
            pytest.skip("this platform keeps nothing")
        store = Store(troubles=[None, OSError("disk full"), OSError("disk full")])
        async with running(harness, store.accept):
            for text in ("a", "b", "c"):
                await harness.says(text)
            assert await store.until("c") == ["a", "b", "c"]

    async def test_what_comes_again_is_the_same_event(self, harness: Harness) -> None:
        """G-DLV-08: the inbox tells a repetition by address and id, so neither may differ."""
        if not harness.redelivers:
            pytest.skip("this platform keeps nothing")
        store = Store(troubles=[OSError("gone before it could say so")], keeps=True)
        async with running(harness, store.accept):
            await harness.says("one")
            await harness.says("two")
            assert await store.until("two") == ["one", "one", "two"]
        first, again, _ = store.of(Message)
        assert (again.id, again.address, again.sender) == (first.id, first.address, first.sender)

    async def test_what_was_not_stored_at_the_end_comes_to_the_next_run(self, harness: Harness) -> None:
        """G-DLV-07, G-DLV-21: the process ends while a message is being stored."""
        if not harness.redelivers:
            pytest.skip("this platform keeps nothing")
        reached = asyncio.Event()

        async def never_stores(event: Inbound) -> None:  # noqa: ARG001
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

    async def test_a_stored_message_does_not_come_again(self, harness: Harness) -> None:
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

    async def test_a_message_that_is_changed_is_no_second_one(self, harness: Harness) -> None:
        """G-DLV-05"""
        if not isinstance(harness, EditHarness):
            lacks(harness, "EditHarness")
        store = Store()
        async with running(harness, store.accept):
            await harness.says("teh")
            await store.until("teh")
            await harness.changes("the")
            edited = await store.first(Edited)
        assert [message.text for message in store.of(Message)] == ["teh"]
        assert (edited.id, edited.text) == (store.of(Message)[0].id, "the")

    async def test_a_file_has_its_bytes_and_its_limit(self, harness: Harness) -> None:
        ref = harness.attach(DATA)
        if ref is None:
            pytest.skip("this platform has no files")
        async with running(harness, Store().accept) as (adapter, _):
            assert b"".join([piece async for piece in adapter.fetch(ref, len(DATA))]) == DATA
            with pytest.raises(Rejected):
                [piece async for piece in adapter.fetch(ref, len(DATA) - 1)]

    async def test_a_file_comes_with_its_message(self, harness: Harness) -> None:
        if not isinstance(harness, UploadHarness):
            lacks(harness, "UploadHarness")
        store = Store()
        async with running(harness, store.accept) as (adapter, _):
            await harness.shares(DATA, "report.bin", "look at this")
            await store.until("look at this")
            (attachment,) = store.of(Message)[-1].attachments
            assert (attachment.kind, attachment.name) == ("document", "report.bin")
            assert attachment.size in (None, len(DATA))
            assert b"".join([piece async for piece in adapter.fetch(attachment.ref, len(DATA))]) == DATA
            harness.lose_files()
            with pytest.raises(Rejected):
                [piece async for piece in adapter.fetch(attachment.ref, len(DATA))]

    # Out

    async def test_a_send_is_shown_and_gives_a_receipt(self, harness: Harness) -> None:
        async with running(harness, Store().accept) as (adapter, address):
            receipts = [await adapter.send(part(address, text), text) for text in ("first", "second")]
            assert harness.shown() == ["first", "second"]
            ids = [receipt.message_id for receipt in receipts]
            assert ids == [None, None] or len(set(ids)) == 2

    @pytest.mark.parametrize("trouble", ERRORS)
    async def test_each_trouble_is_its_error(self, harness: Harness, trouble: Trouble) -> None:
        """G-DLV-11, G-FMT-08"""
        if trouble not in harness.troubles:
            pytest.skip("this platform knows no such trouble")
        async with running(harness, Store().accept) as (adapter, address):
            knows_keys = trouble == "ambiguous" and adapter.capabilities.idempotent
            error, safe = ERRORS["unreachable" if knows_keys else trouble]
            harness.fail_next_send(trouble)
            with pytest.raises(error) as caught:
                await adapter.send(part(address), "key")
            assert type(caught.value).may_retry is safe
            for trace in (*traces(caught.value), adapter.health.detail):
                assert not any(secret in trace for secret in harness.secrets)
            assert harness.shown() == (["hello"] if trouble == "ambiguous" else [])
            if isinstance(caught.value, Rejected):
                assert caught.value.formatting is (trouble == "formatting")
            if isinstance(caught.value, RateLimited):
                assert caught.value.retry_after == 3
            if trouble != "auth":
                await adapter.send(part(address, "again"), "other key")
                assert harness.shown()[-1] == "again"

    async def test_a_key_is_shown_once(self, harness: Harness) -> None:
        """G-DLV-11: that is what ``idempotent`` says."""
        async with running(harness, Store().accept) as (adapter, address):
            if not adapter.capabilities.idempotent:
                pytest.skip("this platform knows no keys")
            first, again, _ = [await adapter.send(part(address), key) for key in ("a", "a", "b")]
            assert harness.shown() == ["hello", "hello"]
            assert again.message_id in (None, first.message_id)

    async def test_the_limit_is_what_measure_counts(self, harness: Harness) -> None:
        """G-SPL-01"""
        async with running(harness, Store().accept) as (adapter, address):
            limit = adapter.capabilities.text_limit
            if not limit:
                pytest.skip("this platform has no limit")
            for number, char in enumerate(("x", "é", "日", "🎩")):
                width = adapter.measure(FormattedText(char))
                longest = FormattedText(char * (limit // width))
                assert limit - width < adapter.measure(longest) <= limit
                await adapter.send(Part(address, longest), f"{number}")
                assert harness.shown()[-1] == longest.plain
                with pytest.raises(Rejected):
                    await adapter.send(Part(address, FormattedText(longest.plain + char)), f"{number} too long")

    async def test_a_long_answer_arrives_in_parts_and_loses_nothing(self, harness: Harness) -> None:
        """G-SPL-09"""
        prose = "# Title\n\n> A quote\n> that goes on\n\n" + "Some **bold** words, `code` and 🎩.\n\n" * 200
        answer = prose + "```py\n" + "x = 1\n" * 800 + "```\n\n|a|b|\n|-|-|\n|[l](https://ex.test)|&amp;<|\n"
        async with running(harness, Store().accept) as (adapter, address):
            text = parse(answer) if adapter.capabilities.markup else FormattedText(answer)
            parts = split(text, adapter.capabilities.text_limit or 2000, adapter.measure)
            for number, piece in enumerate(parts):
                await adapter.send(Part(address, piece), str(number))
            assert len(parts) > 1
            assert "".join("".join(harness.shown()).split()) == "".join(text.plain.split())

    async def test_a_blank_part_is_refused_before_it_is_sent(self, harness: Harness) -> None:
        """G-SPL-06"""
        async with running(harness, Store().accept) as (adapter, address):
            with pytest.raises(Rejected):
                await adapter.send(part(address, " \n\t"), "key")
            assert harness.shown() == []

    async def test_an_edit_replaces_the_text_or_is_refused(self, harness: Harness) -> None:
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

    async def test_what_is_gone_can_not_be_edited(self, harness: Harness) -> None:
        async with running(harness, Store().accept) as (adapter, address):
            if not adapter.capabilities.edits:
                pytest.skip("this platform changes nothing that was sent")
            if not isinstance(harness, DeletionHarness):
                needs(harness, "DeletionHarness")
            receipt = await adapter.send(part(address, "before"), "key")
            assert receipt.message_id, "an adapter that edits has to know what"
            harness.delete(receipt.message_id)
            with pytest.raises(Rejected) as caught:
                await adapter.edit(part(address, "after"), receipt.message_id)
            assert caught.value.gone
            assert harness.shown() == []

    async def test_a_button_brings_its_data(self, harness: Harness) -> None:
        store = Store()
        async with running(harness, store.accept) as (adapter, address):
            if not adapter.capabilities.buttons:
                pytest.skip("this platform has no buttons")
            if not isinstance(harness, ButtonHarness):
                needs(harness, "ButtonHarness")
            await harness.says("may I?")
            await store.until("may I?")
            buttons = ((Button("Yes", "approve 1"), Button("No", "deny 1")), (Button("Later", "é" * 32),))
            receipt = await adapter.send(Part(address, FormattedText("Well?"), buttons=buttons), "key")
            await harness.presses("Later")
            pressed = await store.first(Pressed)
        assert (pressed.data, pressed.message_id) == ("é" * 32, receipt.message_id)
        assert (pressed.address, pressed.sender) == (address, store.of(Message)[0].sender)
        assert pressed.id not in {message.id for message in store.of(Message)}

    async def test_files_arrive_with_their_caption(self, harness: Harness, tmp_path: Path) -> None:
        files = [on_disk(tmp_path, "pixel.png", PNG), on_disk(tmp_path, "report é.bin", DATA)]
        async with running(harness, Store().accept) as (adapter, address):
            if not adapter.capabilities.file_limit:
                pytest.skip("this platform shows no files")
            if not isinstance(harness, FileHarness):
                needs(harness, "FileHarness")
            await adapter.send(part(address, "a caption", files[0]), "0")
            await adapter.send(part(address, "", files[1]), "1")
            picture, document = harness.files()
        assert (picture.data, picture.caption) == (PNG, "a caption")
        assert (document.data, document.caption) == (DATA, "")
        assert (document.kind, document.name) == ("document", "report é.bin")

    async def test_an_album_is_one_part(self, harness: Harness, tmp_path: Path) -> None:
        async with running(harness, Store().accept) as (adapter, address):
            most = adapter.capabilities.album
            if most < 2:
                pytest.skip("this platform has no albums")
            if not isinstance(harness, FileHarness):
                needs(harness, "FileHarness")
            files = [on_disk(tmp_path, f"{number}.bin", bytes([number]) * 9) for number in range(most + 1)]
            receipt = await adapter.send(part(address, "all of them", *files[:most]), "0")
            assert receipt.message_id
            assert [file.data for file in harness.files()] == [bytes([number]) * 9 for number in range(most)]
            assert [file.caption for file in harness.files() if file.caption] == ["all of them"]
            with pytest.raises(Rejected):
                await adapter.send(part(address, "", *files), "1")

    async def test_a_caption_has_its_limit(self, harness: Harness, tmp_path: Path) -> None:
        file = on_disk(tmp_path, "report.bin", DATA)
        async with running(harness, Store().accept) as (adapter, address):
            if not adapter.capabilities.file_limit:
                pytest.skip("this platform shows no files")
            width = adapter.measure(FormattedText("🎩"))
            longest = "🎩" * (adapter.capabilities.caption_limit // width)
            await adapter.send(part(address, longest, file), "0")
            with pytest.raises(Rejected):
                await adapter.send(part(address, longest + "🎩", file), "1")

    async def test_a_file_that_is_gone_or_too_large_is_refused(self, harness: Harness, tmp_path: Path) -> None:
        gone = File("document", str(tmp_path / "gone.bin"), "gone.bin")
        async with running(harness, Store().accept) as (adapter, address):
            limit = adapter.capabilities.file_limit
            large = on_disk(tmp_path, "large.bin", b"")
            os.truncate(large.path, limit + 1)
            for unsent in (gone, large):
                with pytest.raises(Rejected):
                    await adapter.send(part(address, "", unsent), unsent.name)
            assert harness.shown() == []

    async def test_a_cancelled_send_ends_and_the_next_one_works(self, harness: Harness) -> None:
        if not isinstance(harness, StallHarness):
            lacks(harness, "StallHarness")
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

    async def test_what_is_best_effort_never_fails(self, harness: Harness) -> None:
        """Typing, drafts, reactions and what takes something back, while the platform is there and while it is not."""

        async def all_of_it(adapter: Adapter, address: Address) -> None:
            await adapter.typing(address)
            if isinstance(adapter, Drafter) and adapter.drafts(address) is not None:
                await adapter.draft(part(address, "hel"), "turn-1")
            if isinstance(adapter, Reactor):
                await adapter.react(address, "1", "👀")
                await adapter.react(address, "987654321", "")
            if isinstance(adapter, Eraser):
                await adapter.erase(address, "987654321")
            if isinstance(adapter, Leaver):
                await adapter.leave(address)

        async with running(harness, Store().accept) as (adapter, address):
            await all_of_it(adapter, address)
            assert harness.shown() == [], "none of it is a message"
        await harness.stop()
        adapter = harness.open()
        await all_of_it(adapter, address)
        await adapter.close()

    # Health

    async def test_a_run_ends_soon_after_it_is_cancelled(self, harness: Harness) -> None:
        store = Store()
        for text in ("one", "two"):
            async with running(harness, store.accept) as (adapter, _):
                await harness.says(text)
                await store.until(text)
                began = asyncio.get_running_loop().time()
            assert asyncio.get_running_loop().time() - began < 2
            assert adapter.health.state == "stopped"

    async def test_health_tells_when_the_platform_was_heard(self, harness: Harness) -> None:
        store = Store()
        adapter = harness.open()
        assert (adapter.health.state, adapter.health.heard_at) == ("starting", None)
        await adapter.close()
        async with running(harness, store.accept) as (adapter, _):
            await harness.says("hello")
            await store.until("hello")
            await eventually(lambda: adapter.health.heard_at is not None)
            heard = adapter.health.heard_at
            assert heard is not None
            assert heard.tzinfo is not None
            assert (adapter.health.state, adapter.health.reconnects) == ("connected", 0)

    async def test_an_outage_is_told_and_outlived(self, harness: Harness) -> None:
        if not isinstance(harness, OutageHarness):
            lacks(harness, "OutageHarness")
        store = Store()
        async with running(harness, store.accept) as (adapter, address):
            await harness.says("before")
            await store.until("before")
            await harness.vanish()
            with pytest.raises(Unreachable):
                await adapter.send(part(address), "key")
            await eventually(lambda: adapter.health.state == "retrying")
            assert adapter.health.detail
            await harness.reappear()
            await adapter.send(part(address), "key")
            await harness.says("after")
            assert list(dict.fromkeys(await store.until("after"))) == ["before", "after"]
            await eventually(lambda: adapter.health.state == "connected")
            assert adapter.health.reconnects >= 1
            assert harness.shown() == ["hello"]
