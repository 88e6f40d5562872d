"""The speed of a person, on a clock of our own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from adapters.errors import RateLimited
from adapters.rounds import Times
from adapters.whatsapp.pacing import Pace, Pacing


class Clock:
    def __init__(self, random: float = 0.5) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.times = Times(self.sleep, lambda: random, lambda: datetime.now(UTC), lambda: self.now)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.now += seconds


async def test_a_longer_message_takes_longer_and_none_takes_long() -> None:
    clock = Clock()
    pacing = Pacing(clock.times)
    for length in (0, 120, 4000):
        await pacing.wait("1", length)
    assert clock.slept == [pytest.approx(0.8), pytest.approx(1.8), pytest.approx(6.0)]


@pytest.mark.parametrize(("random", "factor"), [(0.0, 0.75), (0.5, 1.0), (0.999, 1.2495)])
async def test_no_two_pauses_are_alike(random: float, factor: float) -> None:
    clock = Clock(random)
    await Pacing(clock.times).wait("1", 0)
    assert clock.slept == [pytest.approx(0.8 * factor)]


async def test_those_who_write_at_once_wait_for_each_other() -> None:
    clock = Clock()
    pacing = Pacing(clock.times)
    ends: list[object] = []

    async def write(number: int) -> None:
        await pacing.wait("1", 0)
        ends.append((number, clock.now))

    await asyncio.gather(*(write(number) for number in range(3)))
    assert ends == [(0, pytest.approx(1000.8)), (1, pytest.approx(1001.6)), (2, pytest.approx(1002.4))]


@pytest.mark.parametrize(
    ("pace", "rest"),
    [(Pace(first=1.0, a_minute=3), 58.0), (Pace(first=1.0, an_hour=6), 3598.0), (Pace(first=1.0, an_hour=5), 3598.0)],
)
async def test_beyond_the_limit_the_hub_is_told_how_long(pace: Pace, rest: float) -> None:
    """It waits then, and not this call, which would hold up other chats."""
    clock = Clock()
    pacing = Pacing(clock.times, pace)
    for _ in range(3):
        await pacing.wait("1", 0)
    with pytest.raises(RateLimited) as limited:
        await pacing.wait("1", 0)
    assert limited.value.retry_after == pytest.approx(rest)
    clock.now += rest
    await pacing.wait("1", 0)


async def test_a_message_that_was_given_up_counts_for_nothing() -> None:
    clock = Clock()
    pacing = Pacing(clock.times, Pace(a_minute=1))
    waiting = asyncio.create_task(pacing.wait("1", 0))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await pacing.wait("1", 0)


async def test_one_chat_leaves_half_of_an_hour_to_the_others() -> None:
    """Else whoever writes without an end keeps the account from answering anybody."""
    clock = Clock()
    pacing = Pacing(clock.times, Pace(first=1.0, an_hour=6))
    for _ in range(3):
        await pacing.wait("loud", 0)
    with pytest.raises(RateLimited, match="no more than 3 messages to one chat"):
        await pacing.wait("loud", 0)
    assert not pacing.spend("loud")
    for _ in range(3):
        await pacing.wait("quiet", 0)
    with pytest.raises(RateLimited, match="no more than 6 messages in"):
        await pacing.wait("another", 0)


async def test_what_is_small_counts_and_does_not_wait() -> None:
    clock = Clock()
    pacing = Pacing(clock.times, Pace(a_minute=2))
    assert pacing.spend("1")
    assert pacing.spend("1")
    assert not pacing.spend("2")
    with pytest.raises(RateLimited):
        await pacing.wait("2", 0)
    assert clock.slept == []
