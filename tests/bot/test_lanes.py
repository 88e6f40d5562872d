"""Work that is ordered within a key and parallel between keys."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import pytest

from bot.lanes import Lanes


async def _raise(key: str, error: Exception) -> None:
    raise AssertionError(key) from error


async def test_one_key_is_in_order_and_keys_are_parallel() -> None:
    queues = {"a": [1, 2, 3], "b": [4, 5]}
    done: list[tuple[str, int]] = []
    both = asyncio.Barrier(2)

    async def work(key: str) -> bool:
        if not queues[key]:
            return False
        item = queues[key].pop(0)
        if item in (1, 4):
            async with asyncio.timeout(5):
                await both.wait()  # only passes when both keys work at the same time
        done.append((key, item))
        return True

    lanes = Lanes(work, failed=_raise)
    lanes.wake("a")
    lanes.wake("b")
    await lanes.idle()
    assert [i for k, i in done if k == "a"] == [1, 2, 3]
    assert [i for k, i in done if k == "b"] == [4, 5]


async def test_a_wake_up_is_never_lost_whenever_it_comes() -> None:
    """G-DLV-16: a message in the gap between "turn done" and "idle" is answered."""
    rng = random.Random(16)
    for _ in range(500):
        queue: list[int] = []
        done: list[int] = []

        async def work(key: str, queue: list[int] = queue, done: list[int] = done) -> bool:
            for _ in range(rng.randrange(3)):
                await asyncio.sleep(0)
            if not queue:
                for _ in range(rng.randrange(3)):
                    await asyncio.sleep(0)
                return False
            done.append(queue.pop(0))
            return True

        lanes = Lanes(work, failed=_raise)
        for number in range(4):
            queue.append(number)
            lanes.wake("s")
            for _ in range(rng.randrange(8)):
                await asyncio.sleep(0)
        await lanes.idle()
        assert done == [0, 1, 2, 3]


async def most_at_once(work: Callable[[], Awaitable[None]], keys: int = 30, *, pieces: int = 1, limit: int = 16) -> int:
    """How many of ``keys`` lanes, each with ``pieces`` of ``work``, are at it at the same time."""
    left, working, most = dict.fromkeys(map(str, range(keys)), pieces), 0, 0

    async def piece(key: str) -> bool:
        nonlocal working, most
        if not left[key]:
            return False
        left[key] -= 1
        working += 1
        most = max(most, working)
        await work()
        working -= 1
        return True

    lanes = Lanes(piece, limit=limit, failed=_raise)
    for key in left:
        lanes.wake(key)
    await lanes.idle()
    assert not any(left.values()), "each had its turn"
    return most


async def test_no_more_lanes_work_at_once_than_allowed() -> None:
    async def work() -> None:
        for _ in range(20):  # long enough for others to begin
            await asyncio.sleep(0)

    assert await most_at_once(work, keys=8, pieces=2, limit=3) == 3


async def test_a_fault_in_one_lane_is_reported_tried_again_and_stops_no_other() -> None:
    """A full disk passes: what was in the lane must not wait for the next message."""
    failed: list[tuple[str, str]] = []
    done: list[str] = []
    waits: list[float] = []

    async def work(key: str) -> bool:
        if key == "bad" and len(failed) < 7:
            raise RuntimeError("full")
        if key in done:
            return False
        done.append(key)
        return True

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def told(key: str, error: Exception) -> None:
        failed.append((key, str(error)))

    lanes = Lanes(work, failed=told, sleep=sleep)
    lanes.wake("bad")
    lanes.wake("good")
    await lanes.idle()
    assert failed == [("bad", "full")] * 7
    assert sorted(done) == ["bad", "good"]
    assert waits == [1, 2, 4, 8, 16, 30, 30]


async def test_close_does_not_wait_for_a_lane_that_rests() -> None:
    """With a full disk a lane may rest for half a minute, and whoever leaves must not wait for it."""
    resting = asyncio.Event()

    async def work(_: str) -> bool:
        raise RuntimeError("full")

    async def told(_: str, __: Exception) -> None:
        pass

    async def sleep(_: float) -> None:
        resting.set()
        await asyncio.Event().wait()

    lanes = Lanes(work, failed=told, sleep=sleep)
    lanes.wake("a")
    await resting.wait()
    async with asyncio.timeout(5):
        await lanes.close(60)
        await lanes.idle()


async def test_close_does_not_wait_for_what_has_not_begun() -> None:
    """Somebody types on, and somebody else waits for a place: both are asked again after the next start."""
    begun, end = asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def ready(key: str) -> bool:
        if key == "typing":
            await asyncio.Event().wait()
        return key not in done

    async def work(key: str) -> bool:
        begun.set()
        await end.wait()
        done.append(key)
        return True

    lanes = Lanes(work, ready=ready, limit=1, failed=_raise)
    for key in ("runs", "typing", "waits"):
        lanes.wake(key)
    await begun.wait()
    closing = asyncio.create_task(lanes.close(60))
    await asyncio.sleep(0)
    end.set()
    async with asyncio.timeout(5):
        await closing
    assert done == ["runs"]


@pytest.mark.parametrize("grace", [0.0, 5.0])
async def test_close_cuts_off_only_what_outlasts_the_grace(grace: float) -> None:
    finished = asyncio.Event()

    async def work(_: str) -> bool:
        if finished.is_set():
            return False
        await asyncio.sleep(0.05)
        finished.set()
        return True

    lanes = Lanes(work, failed=_raise)
    lanes.wake("a")
    await asyncio.sleep(0)
    await lanes.close(grace)
    assert finished.is_set() == (grace > 0)
    lanes.wake("a")
    await lanes.idle()  # a lane that has closed begins nothing: this would never return


async def test_a_key_with_much_to_do_gives_way_after_each_piece() -> None:
    """One session that is flooded starves nobody: with one place, everybody else is next."""
    left = {"flood": 1000, "ann": 1, "bob": 1}
    done: list[str] = []

    async def work(key: str) -> bool:
        if not left[key]:
            return False
        left[key] -= 1
        done.append(key)
        await asyncio.sleep(0)
        return True

    lanes = Lanes(work, limit=1, failed=_raise)
    lanes.wake("flood")
    while not done:
        await asyncio.sleep(0)
    lanes.wake("ann")
    lanes.wake("bob")
    await lanes.idle()
    assert len(done) == 1002
    assert max(done.index("ann"), done.index("bob")) <= 5


async def test_what_is_waited_for_takes_no_place() -> None:
    """A hundred that are still typing hold up none who is done."""
    typing, done = asyncio.Event(), list[str]()

    async def ready(key: str) -> bool:
        if key != "done":
            await typing.wait()
        return key not in done

    async def work(key: str) -> bool:
        done.append(key)
        return True

    lanes = Lanes(work, ready=ready, limit=1, failed=_raise)
    for number in range(100):
        lanes.wake(str(number))
    lanes.wake("done")
    async with asyncio.timeout(5):
        while done != ["done"]:
            await asyncio.sleep(0)
    typing.set()
    await lanes.idle()
    assert len(done) == 101


async def test_work_that_waits_for_others_is_done_sixteen_at_once() -> None:
    async def waits() -> None:
        await asyncio.sleep(0.2)

    assert await most_at_once(waits) == 16


async def test_work_that_keeps_the_loop_busy_is_done_few_at_once() -> None:
    """So that what arrives meanwhile is accepted soon, however many conversations there are."""

    async def computes() -> None:
        for _ in range(3):
            end = time.monotonic() + 0.03
            while time.monotonic() < end:
                pass
            await asyncio.sleep(0)

    assert await most_at_once(computes) <= 4
