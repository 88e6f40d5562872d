"""What is said in the library's threads: stored before they go on, tried again, and never in the way of an end.

The callback is the library's own C type, called from a thread that Python doesn't know, as its Go side does.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from typing import Any

import pytest

from adapters.whatsapp.bridge import Bridge
from adapters.whatsapp.library import load
from tests.fakes.whatsapp_events import event, update

MESSAGE = 17


def calls(execute: Callable[..., None], *texts: str) -> threading.Thread:
    """A thread of the library's that reports a message of each of ``texts``, one after the other."""
    load()
    from neonize._binder import func_callback_bytes

    callback: Callable[..., None] = func_callback_bytes(execute)

    def report() -> None:
        for text in texts:
            data = event(update({"conversation": text})).SerializeToString()
            buffer = ctypes.create_string_buffer(data, len(data))
            callback(b"main", ctypes.addressof(buffer), len(data), MESSAGE)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    return thread


def never(error: Exception) -> None:
    raise AssertionError(error)


async def ended(thread: threading.Thread) -> None:
    await asyncio.wait_for(asyncio.to_thread(thread.join), 10)
    assert not thread.is_alive()


def text_of(kind: int, data: bytes) -> str:
    assert kind == MESSAGE
    return str(load().events.Message.FromString(data).Message.conversation)


async def test_the_thread_waits_until_it_is_stored_and_order_is_kept() -> None:
    stored: list[str] = []
    begun, may_store = asyncio.Event(), asyncio.Event()

    async def take(kind: int, data: bytes) -> None:
        begun.set()
        await may_store.wait()
        stored.append(text_of(kind, data))

    thread = calls(Bridge(asyncio.get_running_loop(), take, never).execute, "one", "two", "three")
    await asyncio.wait_for(begun.wait(), 10)
    assert thread.is_alive()
    assert stored == []
    may_store.set()
    await ended(thread)
    assert stored == ["one", "two", "three"]


@pytest.mark.parametrize("fault", [OSError("disk full"), TimeoutError("busy"), ValueError("x")])
async def test_what_could_not_be_stored_is_tried_again(fault: Exception) -> None:
    """WhatsApp brings nothing twice."""
    tries: list[str] = []
    told: list[Exception] = []

    async def take(kind: int, data: bytes) -> None:
        tries.append(text_of(kind, data))
        if len(tries) < 3:
            raise fault

    bridge = Bridge(asyncio.get_running_loop(), take, told.append, first_pause=0.001)
    await ended(calls(bridge.execute, "one", "two"))
    assert tries == ["one", "one", "one", "two"]
    assert [repr(one) for one in told] == [repr(fault)] * 2


async def test_an_end_lets_every_waiting_thread_go() -> None:
    begun = asyncio.Event()
    cancelled: list[str] = []

    async def take(kind: int, data: bytes) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(text_of(kind, data))
            raise

    bridge = Bridge(asyncio.get_running_loop(), take, never)
    threads = [calls(bridge.execute, "one"), calls(bridge.execute, "two")]
    await asyncio.wait_for(begun.wait(), 10)
    bridge.close()
    for thread in threads:
        await ended(thread)
    await ended(calls(bridge.execute, "three"))  # what comes after the end goes nowhere
    assert "three" not in cancelled


async def test_an_end_ends_a_pause_as_well() -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    tries: list[str] = []

    async def take(kind: int, data: bytes) -> None:
        tries.append(text_of(kind, data))
        raise OSError("disk full")

    def report(_: Exception) -> None:
        loop.call_soon_threadsafe(told.set)

    bridge = Bridge(loop, take, report, first_pause=3600)
    thread = calls(bridge.execute, "one")
    await asyncio.wait_for(told.wait(), 10)
    assert thread.is_alive(), "it pauses"
    bridge.close()
    await ended(thread)
    assert tries == ["one"], "what could not be stored is not tried at the end once more"


def test_a_loop_that_is_gone_holds_no_thread() -> None:
    loop = asyncio.new_event_loop()

    async def take(kind: int, data: bytes) -> None:
        raise AssertionError(kind, data)

    bridge = Bridge(loop, take, never)
    loop.close()
    thread = calls(bridge.execute, "one")
    thread.join(10)
    assert not thread.is_alive()


async def test_the_library_takes_it_in_the_place_of_its_own_dispatch(tmp_path: Any) -> None:
    """It hands Go whatever ``client.event.execute`` is when it connects."""
    stored: list[str] = []

    async def take(kind: int, data: bytes) -> None:
        stored.append(text_of(kind, data))

    client = load().client.NewAClient(str(tmp_path / "session.sqlite"))
    client.event.execute = Bridge(asyncio.get_running_loop(), take, never).execute
    await ended(calls(client.event.execute, "one"))
    assert stored == ["one"]


# The journal ----------------------------------------------------------------------------------------------------------


class Journal:
    """What is in it, and what was done with it, in order."""

    def __init__(self) -> None:
        self.kept: dict[int, bytes] = {}
        self.log: list[str] = []

    def keep(self, kind: int, data: bytes) -> int:
        number = len(self.log)
        self.kept[number] = data
        self.log.append(f"keep {text_of(kind, data)}")
        return number

    def done(self, number: int) -> None:
        self.log.append(f"done {text_of(MESSAGE, self.kept.pop(number))}")


async def test_what_is_said_is_noted_before_the_event_loop_sees_it_and_until_it_is_stored() -> None:
    """G-DLV-07, G-DLV-21: a kill between the two loses nothing."""
    journal = Journal()

    async def take(kind: int, data: bytes) -> None:
        journal.log.append(f"take {text_of(kind, data)}")
        if len(journal.log) < 4:
            raise OSError("disk full")

    loop = asyncio.get_running_loop()
    bridge = Bridge(loop, take, lambda _: None, 0.001, journal, frozenset({MESSAGE}))
    await ended(calls(bridge.execute, "one", "two"))
    assert journal.log == [
        "keep one",
        "take one",
        "take one",
        "take one",
        "done one",
        "keep two",
        "take two",
        "done two",
    ]


async def test_after_an_end_what_is_said_is_noted_and_goes_no_further() -> None:
    journal, begun = Journal(), asyncio.Event()

    async def take(kind: int, data: bytes) -> None:
        begun.set()
        await asyncio.Event().wait()

    bridge = Bridge(asyncio.get_running_loop(), take, never, 0.001, journal, frozenset({MESSAGE}))
    thread = calls(bridge.execute, "one", "two")
    await asyncio.wait_for(begun.wait(), 10)
    bridge.close()
    await ended(thread)
    assert journal.log == ["keep one", "keep two"]


async def test_other_kinds_are_not_noted() -> None:
    journal = Journal()

    async def take(kind: int, data: bytes) -> None:
        assert kind == MESSAGE

    bridge = Bridge(asyncio.get_running_loop(), take, never, 0.001, journal, frozenset({3}))
    await ended(calls(bridge.execute, "one"))
    assert journal.log == []


async def test_a_journal_that_fails_loses_nothing() -> None:
    stored: list[str] = []
    told: list[Exception] = []

    class Broken(Journal):
        def keep(self, kind: int, data: bytes) -> int:
            raise OSError("disk full")

    async def take(kind: int, data: bytes) -> None:
        stored.append(text_of(kind, data))

    bridge = Bridge(asyncio.get_running_loop(), take, told.append, 0.001, Broken(), frozenset({MESSAGE}))
    await ended(calls(bridge.execute, "one"))
    assert stored == ["one"]
    assert len(told) == 1
