"""What people and channels are called, and what kind of chat a channel is: asked of Slack once an hour each.

A name that can't be had is no reason not to read a message; a kind that can't be had now is one to read it later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from adapters.errors import AdapterError, Rejected
from adapters.message import Kind, Sender
from adapters.slack.markdown import Mentioned, Names
from adapters.text import sanitize

if TYPE_CHECKING:
    from adapters.slack.client import Client

T = TypeVar("T")

_FRESH_SECONDS = 3600.0
_FAILED_SECONDS = 60.0
"""How long a name is taken as it was found; and how long as not to be had."""

_MOST = 5000
"""Of each; the oldest are forgotten first."""

_MOST_LOOKUPS = 20
"""The first names of a message, which are asked for: whoever mentions hundreds must not keep everybody waiting."""

_KINDS: dict[str, Kind] = {"im": "direct", "mpim": "group", "channel": "channel", "group": "channel", "C": "channel"}


@dataclass(frozen=True, slots=True)
class Person:
    """``name`` is "" where Slack doesn't say."""

    name: str = ""
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Chat:
    name: str = ""
    kind: Kind = "channel"


class Directory:
    """Of one workspace. ``monotonic`` gives seconds."""

    def __init__(self, client: Client, me: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._me = me
        self._people: _Known[Person] = _Known(monotonic)
        self._chats: _Known[Chat] = _Known(monotonic)

    async def person(self, user: str) -> Person:
        if (known := self._people.get(user)) is not None:
            return known
        try:
            return self._people.keep(user, _person(await self._client.user(user)))
        except AdapterError:
            return self._people.keep(user, Person(), _FAILED_SECONDS)

    async def kind(self, chat: str, said: object = None) -> Kind:
        """What kind of chat it is, by what an event says of it, else by its id, else by Slack's word.

        Raises ``adapters.errors`` where that can't be had now.
        """
        if isinstance(said, str) and said in _KINDS:
            return _KINDS[said]
        if chat.startswith("D"):
            return "direct"
        return (await self._chat(chat)).kind

    async def knows(self, chat: str) -> bool:
        """Whether we are in a direct chat, and not only a command of ours was given there, between two others.

        Raises ``adapters.errors`` where that can't be found out now.
        """
        known = self._chats.get(chat)
        if known is None:
            await self._chat(chat)
            known = self._chats.get(chat)
        return known is not None and known.kind == "direct"

    async def somebody(self, user: str) -> Sender:
        known = await self.person(user)
        return Sender(user, known.name, is_bot=known.is_bot)

    async def sender(self, said: Mapping[str, Any]) -> Sender:
        """Whoever said it. An app, a workflow and a webhook have a voice, and are nobody's."""
        user, bot = str(said.get("user") or ""), str(said.get("bot_id") or "")
        if bot or not user:
            profile = said.get("bot_profile")
            named = profile.get("name") if isinstance(profile, Mapping) else said.get("username")
            return Sender(user or bot or "unknown", sanitize(str(named or "")), is_bot=True)
        return await self.somebody(user)

    async def names(self, found: Mentioned) -> Names:
        """What those are called who are mentioned; what can't be had, or would be asked for too often, is left out."""
        users, chats = sorted(found.users - {self._me}), sorted(found.chats)
        people = {user: known.name for user in users if (known := self._people.get(user)) is not None}
        places = {chat: there.name for chat in chats if (there := self._chats.get(chat)) is not None}
        people |= {user: (await self.person(user)).name for user in users[:_MOST_LOOKUPS]}
        for chat in chats[: max(0, _MOST_LOOKUPS - len(users))]:
            try:
                places[chat] = (await self._chat(chat)).name
            except AdapterError:
                continue
        return Names(self._me, people, places)

    async def _chat(self, chat: str) -> Chat:
        if (known := self._chats.get(chat)) is not None:
            return known
        try:
            return self._chats.keep(chat, _chat(await self._client.conversation(chat)))
        except Rejected:  # it is hidden from us, or a scope is missing: then it is a channel
            return self._chats.keep(chat, Chat(), _FAILED_SECONDS)


class _Known(Generic[T]):
    """What was found out, for as long as it is taken as it was."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._found: dict[str, tuple[float, T]] = {}

    def get(self, name: str) -> T | None:
        found = self._found.get(name)
        return found[1] if found is not None and found[0] > self._monotonic() else None

    def keep(self, name: str, found: T, seconds: float = _FRESH_SECONDS) -> T:
        self._found.pop(name, None)
        self._found[name] = (self._monotonic() + seconds, found)
        while len(self._found) > _MOST:
            del self._found[next(iter(self._found))]
        return found


def _person(user: Mapping[str, Any]) -> Person:
    profile = user.get("profile")
    profile = profile if isinstance(profile, Mapping) else {}
    known = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))
    name = next((one for one in known if isinstance(one, str) and one.strip()), "")
    return Person(sanitize(name), bool(user.get("is_bot")))


def _chat(chat: Mapping[str, Any]) -> Chat:
    kind: Kind = "direct" if chat.get("is_im") else "group" if chat.get("is_mpim") else "channel"
    return Chat(sanitize(str(chat.get("name") or "")), kind)
