"""How fast we write: like a person, because WhatsApp bans what writes like a machine, and warns nobody.

A message takes a moment that grows with its length; an hour and a minute hold only so many, and one chat gets half an
hour's at most, so that none can silence the others. Time is passed in.
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
        self._sent: deque[tuple[float, str]] = deque()
        """When and to which chat, in the last hour."""

    async def wait(self, chat: str, length: int) -> None:
        """Until a message of ``length`` characters may go to ``chat``. Raises RateLimited where that would be long."""
        async with self._line:
            self._check(chat)
            pause = min(self._pace.longest, self._pace.first + length / self._pace.characters_a_second)
            await self._times.sleep(pause * (0.75 + self._times.random() / 2))
            self._sent.append((self._times.monotonic(), chat))

    def spend(self, chat: str) -> bool:
        """Whether something small may go to ``chat`` now, which then counts like a message."""
        try:
            self._check(chat)
        except RateLimited:
            return False
        self._sent.append((self._times.monotonic(), chat))
        return True

    def _check(self, chat: str) -> None:
        now, pace = self._times.monotonic(), self._pace
        while self._sent and now - self._sent[0][0] >= 3600.0:
            self._sent.popleft()
        sent = [at for at, _ in self._sent]
        there = [at for at, to in self._sent if to == chat]
        share = -(-pace.an_hour // 2)
        limits = (
            (sent, pace.a_minute, 60.0, ""),
            (sent, pace.an_hour, 3600.0, ""),
            (there, share, 3600.0, " to one chat"),
        )
        for times, most, seconds, whom in limits:
            if len(times) >= most and (rest := times[-most] + seconds - now) > 0:
                what = f"no more than {most} messages{whom} in {seconds:.0f} s are sent to WhatsApp"
                raise RateLimited(what, rest)
