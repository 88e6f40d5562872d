"""Who waits for the one writer: in order, one at a time, and without a line that stays."""

from __future__ import annotations

import asyncio
import random

import pytest

from bot.turnstile import Turnstile


async def passes(number: int = 1) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def brief(lock: Turnstile, done: list[int], number: int) -> None:
    async with lock:
        done.append(number)


async def test_all_who_waited_go_on_in_one_pass() -> None:
    """Else a line that formed once stays as long as more arrive than the loop has passes."""
    lock, done = Turnstile(), list[int]()
    await lock.acquire()
    tasks = [asyncio.create_task(brief(lock, done, number)) for number in range(100)]
    await passes()
    assert done == []
    lock.release()
    await passes(2)
    assert done == list(range(100))
    await asyncio.gather(*tasks)


async def test_who_comes_later_does_not_go_ahead() -> None:
    lock, done = Turnstile(), list[int]()
    await lock.acquire()
    first = asyncio.create_task(brief(lock, done, 1))
    await passes()
    lock.release()
    await asyncio.gather(brief(lock, done, 2), first)
    assert done == [1, 2]


@pytest.mark.parametrize("seed", range(20))
async def test_one_at_a_time_in_the_order_of_arrival_whatever_they_wait_for(seed: int) -> None:
    """Some wait while they have it, some are called off before or while they have it."""
    rng = random.Random(seed)
    lock, inside, arrived, entered = Turnstile(), 0, list[int](), list[int]()

    async def work(number: int) -> None:
        nonlocal inside
        await passes(rng.randrange(6))
        arrived.append(number)
        async with lock:
            entered.append(number)
            inside += 1
            assert inside == 1
            try:
                await passes(rng.choice([0, 0, 0, 1, 3]))
            finally:
                inside -= 1

    tasks = [asyncio.create_task(work(number)) for number in range(60)]
    for task in rng.sample(tasks, 15):
        await passes(rng.randrange(3))
        task.cancel()
    async with asyncio.timeout(10):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert [task.exception() for task in tasks if not task.cancelled()] == [None] * sum(
        not task.cancelled() for task in tasks
    )
    assert entered == [number for number in arrived if number in set(entered)]
    assert len(entered) >= 45
    assert not lock.locked()


async def test_one_who_was_let_in_and_called_off_holds_up_nobody() -> None:
    lock = Turnstile()
    await lock.acquire()
    gone = asyncio.create_task(lock.acquire())
    await passes()
    waiting = asyncio.create_task(lock.acquire())  # comes while the other one is being let in
    lock.release()
    gone.cancel()
    async with asyncio.timeout(1):
        await waiting
    assert gone.cancelled()
    assert lock.locked()
