"""How fast we write: like a person, because WhatsApp bans what writes like a machine, and warns nobody.

A message takes a moment that grows with its length; an hour and a minute hold only so many. Time is passed in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from adapters.errors import RateLimited
from adapters.rounds import Times


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds, characters and messages. The limits are by our own judgement: WhatsApp names none."""

    first: float = 0.8
    characters_a_second: float = 120.0
    longest: float = 6.0
    a_minute: int = 20
    an_hour: int = 300


class Pacing:
    """The speed of one account. Everything that it sends waits here in order, whatever the chat."""

    def __init__(self, times: Times, pace: Pace | None = None) -> None:
        self._times = times
        self._pace = pace or Pace()
        self._line = asyncio.Lock()
        self._sent: deque[float] = deque()

    async def wait(self, length: int) -> None:
        """Until a message of ``length`` characters may go. Raises RateLimited where that would be long."""
        async with self._line:
            now = self._times.monotonic()
            for most, seconds in ((self._pace.a_minute, 60.0), (self._pace.an_hour, 3600.0)):
                if (rest := self._rest(most, seconds, now)) > 0:
                    raise RateLimited(f"no more than {most} messages in {seconds:.0f} s are sent to WhatsApp", rest)
            pause = min(self._pace.longest, self._pace.first + length / self._pace.characters_a_second)
            await self._times.sleep(pause * (0.75 + self._times.random() / 2))
            self._sent.append(self._times.monotonic())

    def _rest(self, most: int, seconds: float, now: float) -> float:
        """How long until one more fits into the last ``seconds``; 0 where it does."""
        while self._sent and now - self._sent[0] >= 3600.0:
            self._sent.popleft()
        if len(self._sent) < most:
            return 0.0
        return max(0.0, self._sent[-most] + seconds - now)
