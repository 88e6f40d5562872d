"""What was said to us lately: an answer to it has to say by whom, and in which words; and what of it is not read yet.

Kept while the process lives: after that an answer in a group quotes nothing of before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from adapters.whatsapp.identity import Jid

_MOST = 2000
"""Messages that are remembered."""
_LONGEST = 200
"""Characters of each, which is more than a quote shows."""
_MOST_UNREAD = 50
"""Messages of one chat that are marked as read at once; those before them are read by that as well."""
_MOST_CHATS = 200
"""With messages that are not read yet; where nobody is ever answered, they stay unread."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message in ``chat``, in WhatsApp's own addresses."""

    chat: Jid
    author: Jid
    text: str


@dataclass(frozen=True, slots=True)
class Unread:
    """Messages of one author in one chat, oldest first."""

    chat: Jid
    author: Jid
    messages: tuple[str, ...]


class Heard:
    """By chat, as its address is called, and message."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], Said] = {}
        self._unread: dict[str, list[tuple[Said, str]]] = {}

    def note(self, called: str, message: str, said: Said, *, is_own: bool) -> None:
        """``is_own``: by the account itself, on another device."""
        self._said[called, message] = replace(said, text=said.text[:_LONGEST])
        while len(self._said) > _MOST:
            del self._said[next(iter(self._said))]
        if not is_own:
            unread = self._unread.setdefault(called, [])
            unread.append((replace(said, text=""), message))
            del unread[:-_MOST_UNREAD]
            while len(self._unread) > _MOST_CHATS:
                del self._unread[next(iter(self._unread))]

    def said(self, called: str, message: str) -> Said | None:
        return self._said.get((called, message))

    def take_unread(self, called: str) -> list[Unread]:
        """What is not read there yet; it counts as read from now on."""
        found: dict[tuple[Jid, Jid], list[str]] = {}
        for said, message in self._unread.pop(called, []):
            found.setdefault((said.chat, said.author), []).append(message)
        return [Unread(chat, author, tuple(messages)) for (chat, author), messages in found.items()]
