"""The threads that the bot takes part in, and what was said where it is called.

Takes part: it said something there, or the first message mentions it. A thread is read once, when it is first heard
of; what is said later is heard of by itself. What is shown of it is what a session can't know yet: that of a thread in
which the bot answered before has it all. Knows no session and no address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.errors import Rejected
from adapters.message import Sender, Spoken
from adapters.slack import content, markdown
from adapters.slack.content import SAYING, Said
from adapters.slack.markdown import Mentioned, Names

if TYPE_CHECKING:
    from adapters.slack.client import Client
    from adapters.slack.directory import Directory
    from adapters.slack.settings import BotIdentity

CHANNEL_SECONDS = 3600.0
"""How old what is said in a channel may be to have to do with a question that is asked there."""

_LONGEST = 500
_MOST_CHARACTERS = 6000
"""Of one message, and of all that is shown."""

_MOST = 5000
"""Threads that are remembered; the oldest are forgotten first, and read again when something is said there."""


@dataclass(frozen=True, slots=True)
class Thread:
    """``before`` is what was said there, for as long as nobody was shown it."""

    takes_part: bool
    before: tuple[Spoken, ...] = ()


class Threads:
    """Of one bot. ``most`` is how many messages are shown."""

    def __init__(self, client: Client, directory: Directory, me: BotIdentity, most: int) -> None:
        self._client = client
        self._directory = directory
        self._me = me
        self._most = most
        self._known: dict[tuple[str, str], Thread] = {}

    def join(self, chat: str, thread: str) -> None:
        """From now on the bot takes part, and what was said there was shown."""
        self._known.pop((chat, thread), None)
        self._known[chat, thread] = Thread(takes_part=True)
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]

    async def of(self, chat: str, thread: str, message: str) -> Thread:
        """How it stood in a thread before ``message``. Raises ``adapters.errors`` where that can't be found out now."""
        known = self._known.get((chat, thread))
        if known is None:
            try:
                known = await self._read(chat, thread, message)
            except Rejected:  # a scope is missing, or the thread's beginning was deleted
                known = Thread(takes_part=False)
            self._known[chat, thread] = known
        return known

    async def channel(self, chat: str, message: str) -> tuple[Spoken, ...]:
        """What was said in a channel right before ``message``; nothing where it can't be had."""
        if not self._most:
            return ()
        oldest = f"{float(message) - CHANNEL_SECONDS:.6f}"
        try:
            said = await self._client.history(chat, oldest=oldest, latest=message, limit=self._most)
        except Rejected:
            return ()
        return await self._spoken([one for one in said if one.get("ts") != message])

    async def _read(self, chat: str, thread: str, message: str) -> Thread:
        said = [one for one in await self._client.replies(chat, thread, latest=message) if one.get("ts") != message]
        ours = [one for one in said if self._is_ours(one)]
        called = any(self._me.id in content.addressed(one) for one in said)
        answered = any(one.get("ts") != thread for one in ours)
        before = () if answered or not self._most else await self._spoken(said)
        return Thread(bool(ours) or called, before)

    def _is_ours(self, said: Said) -> bool:
        return said.get("user") == self._me.id or (bool(self._me.bot) and said.get("bot_id") == self._me.bot)

    async def _spoken(self, said: Sequence[Said]) -> tuple[Spoken, ...]:
        """The first message, which says what it is about, and the newest."""
        said = [one for one in said if str(one.get("subtype") or "") in SAYING]
        shown = [*said[:1], *said[1:][-(self._most - 1) :]] if self._most > 1 else said[-1:]
        mentioned = [content.mentioned(one) for one in shown]
        users, chats = (one.users for one in mentioned), (one.chats for one in mentioned)
        names = await self._directory.names(Mentioned(frozenset().union(*users), frozenset().union(*chats)))
        spoken = [Spoken(await self._sender(one), words) for one in shown if (words := self._words(one, names))]
        while len(spoken) > 1 and sum(len(one.text) for one in spoken) > _MOST_CHARACTERS:
            del spoken[1]
        return tuple(spoken)

    def _words(self, said: Said, names: Names) -> str:
        words = markdown.named_me(content.summary(said, names), self._me.username).strip()
        return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"

    async def _sender(self, said: Said) -> Sender | None:
        """None for us."""
        return None if self._is_ours(said) else await self._directory.sender(said)
