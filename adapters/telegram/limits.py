"""How often messages of ours may be edited, so that what is only shown never keeps what is sent from arriving.

Telegram counts edits as messages and takes twenty a minute in a group; who sends more is made to wait for half a minute
and longer. So edits leave room, and wait where Telegram said so; what is sent is only counted, because whether it may
be sent is for Telegram to say. Nothing here waits: it is said how long to. Knows no network.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from adapters.errors import RateLimited
from adapters.message import Address

_SECONDS = 4.0
_BURST = 4
"""With one edit in ``_SECONDS``, and ``_BURST`` at once before that, no minute holds more than nineteen."""

_AHEAD = (_BURST - 1) * _SECONDS
_MOST = 60.0 + _AHEAD
"""What was sent is forgotten after a minute, however much it was."""


class Pace:
    """The chats of one bot. ``monotonic`` gives seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._paid: dict[str, float] = {}
        """By chat, until when what was shown there is paid for at ``_SECONDS`` each."""
        self._held: dict[str, float] = {}

    def sent(self, address: Address, messages: int = 1) -> None:
        """``messages``, or edits, went to ``address``."""
        if address.kind != "direct":
            now = self._monotonic()
            self._paid = {chat: until for chat, until in self._paid.items() if until > now}
            paid = self._paid.get(address.chat, now) + messages * _SECONDS
            self._paid[address.chat] = min(paid, now + _MOST)

    def hold(self, address: Address, seconds: float) -> None:
        """Telegram takes nothing there for that long."""
        now = self._monotonic()
        self._held = {chat: until for chat, until in self._held.items() if until > now}
        self._held[address.chat] = max(self._held.get(address.chat, now), now + seconds)

    def wait(self, address: Address) -> float:
        """Seconds until an edit there is no harm; 0.0 for now."""
        now = self._monotonic()
        paid = self._paid.get(address.chat, now) - _AHEAD
        return max(0.0, paid - now, self._held.get(address.chat, now) - now)

    def check(self, address: Address) -> None:
        """Raises RateLimited where an edit has to wait."""
        if seconds := self.wait(address):
            raise RateLimited(f"the chat {address.chat} takes no more edits for {seconds:.1f} s", seconds)
