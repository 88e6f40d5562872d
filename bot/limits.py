"""How many messages a sender and a chat may bring in a minute, counted in memory and by when they were said.

What came while the program was down is spread over the time in which it was said. Knows no inbox: it only counts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.message import Message
from bot import commands

WINDOW = timedelta(minutes=1)

MOST_AT_ONCE = 60
"""As many minutes' messages may arrive in one: what waited while the program was down, or says that it is older."""

MOST_STOPS = 20
"""How often a sender may say ``/stop`` in a minute."""

MOST_KEPT = 10_000
"""Senders and chats that are counted at once: about four megabytes. Beyond it the one that spoke first is forgotten."""

TOO_MANY = "Too many messages at once: I don't read what comes in the next {seconds} seconds. What came before is kept."


@dataclass(slots=True)
class _Window:
    """What was said by somebody, or in a chat, in one minute; ``seen`` is when one of it came in last."""

    seen: datetime
    count: int = 0
    is_told: bool = False


class Limits:
    """``per_sender`` and ``per_chat`` are messages a minute."""

    def __init__(self, per_sender: int, per_chat: int, clock: Callable[[], datetime]) -> None:
        self._per_sender = per_sender
        self._per_chat = per_chat
        self._clock = clock
        self._windows: OrderedDict[Hashable, _Window] = OrderedDict()

    def refusal(self, message: Message) -> str | None:
        """None for a message that is within the limits, which counts. Otherwise what to say to it: once in a window
        the reason, then "" for nothing.

        The terminal has no limit, and ``/stop`` one of its own.
        """
        if message.address.channel == "terminal":
            return None
        given = commands.given(message)
        is_stop = given is not None and given.name == "stop"
        address, sender = message.address, message.sender.id
        now = self._clock()
        minute, since = divmod(min(message.sent_at, now).timestamp(), WINDOW.total_seconds())
        arrived = now.timestamp() // WINDOW.total_seconds()
        self._forget()
        place = address.channel, address.account
        counted: tuple[tuple[Hashable, int], ...] = (
            (("sender", *place, sender, minute), self._per_sender),
            (("chat", *place, address.chat, minute), self._per_chat),
            (("arrived", *place, sender, arrived), MOST_AT_ONCE * self._per_sender),
        )
        if is_stop:  # it has to be heard above a flood, and is none itself
            counted = ((("stop", *place, sender, arrived), MOST_STOPS),)
        windows = [(self._window(key), most) for key, most in counted]
        full = [window for window, most in windows if window.count >= most]
        if not full:
            for window, _ in windows:
                window.count += 1
            return None
        is_told = any(window.is_told for window in full)
        for window in full:
            window.is_told = True
        return "" if is_told else TOO_MANY.format(seconds=max(1, round(WINDOW.total_seconds() - since)))

    def __len__(self) -> int:
        """How many senders and chats are counted now."""
        return len(self._windows)

    def _window(self, key: Hashable) -> _Window:
        now = self._clock()
        window = self._windows.setdefault(key, _Window(now))
        window.seen = now
        self._windows.move_to_end(key)
        return window

    def _forget(self) -> None:
        """Let go of the windows that are over, and of the first where there are too many."""
        over = self._clock() - WINDOW
        while self._windows:
            oldest = next(iter(self._windows.values()))
            if oldest.seen > over and len(self._windows) < MOST_KEPT:
                return
            self._windows.popitem(last=False)
