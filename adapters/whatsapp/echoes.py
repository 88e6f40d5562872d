"""Our own words, when WhatsApp brings them back to us.

In the chat with oneself the account's owner and this program speak as the same person: only what we sent tells them
apart, and it may come back before the call that sent it has returned. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_MOST = 2000
"""Ids of sent messages that are remembered."""


class Echoes:
    """What one account sent lately."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, str], None] = {}
        self._sending: list[tuple[str, str]] = []

    @contextmanager
    def sending(self, chat: str, text: str) -> Iterator[None]:
        """While ``text`` is being sent, the first message that says it there is ours."""
        pending = (chat, text)
        self._sending.append(pending)
        try:
            yield
        finally:
            if pending in self._sending:
                self._sending.remove(pending)

    def sent(self, chat: str, message: str) -> None:
        """It has that id."""
        self._sent[chat, message] = None
        while len(self._sent) > _MOST:
            del self._sent[next(iter(self._sent))]

    def is_ours(self, chat: str, message: str, text: str) -> bool:
        """Whether we said it; ``text`` as it was sent. It stays ours whenever it comes again."""
        if (chat, message) in self._sent:
            return True
        if (chat, text) not in self._sending:
            return False
        self._sending.remove((chat, text))
        self.sent(chat, message)
        return True
