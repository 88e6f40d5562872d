"""The servers, people and messages of one bot's Discord: by people, for a test to say, and by the bot, to look at."""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from tests.fakes.discord_api.checks import Json
from tests.fakes.loopback import Loopback

EPOCH_MS = 1_420_070_400_000

TEXT, DIRECT, FORUM, PUBLIC_THREAD, PRIVATE_THREAD = 0, 1, 15, 11, 12
ALL = (1 << 53) - 1
"""Every permission."""

_NAMED = re.compile(r"<@!?(\d+)>")
_ROLES = re.compile(r"<@&(\d+)>")
_CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who writes, or the bot itself."""

    id: int
    username: str
    name: str | None = None
    is_bot: bool = False

    def json(self) -> Json:
        fields = {"id": str(self.id), "username": self.username, "discriminator": "0", "global_name": self.name}
        return fields | {"avatar": None, "bot": self.is_bot, "public_flags": 0}


ANN = User(700000000000000007, "ann", "Ann")
BOB = User(800000000000000008, "bob", "Bob")
BOT = User(111111111111111111, "limpet", None, is_bot=True)


@dataclass(slots=True)
class Guild:
    """A server. ``roles`` are names by id, and ``members`` the roles of those who are on it, by user id."""

    id: int
    name: str
    roles: dict[int, str] = field(default_factory=dict)
    members: dict[int, list[int]] = field(default_factory=dict)
    nicks: dict[int, str] = field(default_factory=dict)
    permissions: int = ALL
    """Of everyone."""


@dataclass(slots=True)
class Channel:
    """A channel or a thread; ``guild`` None is a direct chat. ``joined``: the bot takes part in the thread."""

    id: int
    type: int
    name: str = ""
    guild: Guild | None = None
    parent: int | None = None
    joined: bool = False
    last: int | None = None
    overwrites: list[Json] = field(default_factory=list)
    refusal: tuple[int, int, str] | None = None
    """What sending there is refused with: status, code and message."""
    is_hidden: bool = False
    """The bot is told nothing of it until something is said there."""

    def json(self) -> Json:
        known: Json = {"id": str(self.id), "type": self.type, "last_message_id": str(self.last) if self.last else None}
        if self.guild is None:
            return known | {"recipients": [ANN.json()]}
        known |= {"guild_id": str(self.guild.id), "name": self.name, "rate_limit_per_user": 0}
        known["parent_id"] = str(self.parent) if self.parent else None
        if self.type not in (PUBLIC_THREAD, PRIVATE_THREAD):
            places: Json = {"position": 0, "permission_overwrites": self.overwrites, "topic": None, "nsfw": False}
            forum: Json = {"available_tags": [], "default_reaction_emoji": None} if self.type == FORUM else {}
            return known | places | forum
        archived = {"archived": False, "auto_archive_duration": 1440, "archive_timestamp": now(), "locked": False}
        known |= {"owner_id": str(ANN.id), "message_count": 1, "member_count": 1, "thread_metadata": archived}
        return known | ({"member": {"join_timestamp": now(), "flags": 0}} if self.joined else {})


@dataclass(slots=True)
class Sent:
    """A message of the bot's, as the chat shows it now; ``texts`` holds every text that it has had.

    ``private``: only who gave the command sees it. ``files`` are name and bytes. ``buttons`` are rows of label, data.
    """

    id: int
    channel: int
    texts: list[str]
    reply_to: int | None = None
    files: list[tuple[str, bytes]] = field(default_factory=list)
    buttons: list[list[tuple[str, str]]] = field(default_factory=list)
    private: bool = False
    flags: int = 0
    pings: bool = False
    """Somebody was notified by a mention, at any time."""

    @property
    def text(self) -> str:
        return self.texts[-1]


def now() -> str:
    return datetime.now(UTC).isoformat()


class World(Loopback):
    """The state. ``sent`` are the messages that were taken from the bot, in order."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count()
        self.sent: list[Sent] = []
        self.messages: dict[int, Json] = {}
        self.channels: dict[int, Channel] = {}
        self.guilds: dict[int, Guild] = {}
        self.files: dict[str, bytes] = {}
        self.reactions: dict[int, str] = {}
        """The bot's sign on a message."""
        self.commands: list[Json] = []
        self.typed: list[int] = []
        self.interactions: dict[str, Json] = {}
        """Those that were begun, by token; ``acked`` once the bot answered."""
        self.dm = self.add(Channel(555555555555555555, DIRECT))

    # Places -----------------------------------------------------------------------------------------------------------

    def new_id(self, at: float | None = None) -> int:
        """A snowflake of now, or of ``at`` (seconds since 1970)."""
        milliseconds = int((time.time() if at is None else at) * 1000) - EPOCH_MS
        return milliseconds << 22 | next(self._numbers) & 0x3FFFFF

    def add(self, channel: Channel) -> Channel:
        self.channels[channel.id] = channel
        return channel

    def guild(self, name: str = "Garden", *, members: Iterable[User] = (ANN, BOB)) -> Guild:
        """A server that the bot is on."""
        guild = Guild(self.new_id(), name, members={user.id: [] for user in (BOT, *members)})
        self.guilds[guild.id] = guild
        return guild

    def channel(self, guild: Guild, name: str = "general", kind: int = TEXT) -> Channel:
        return self.add(Channel(self.new_id(), kind, name, guild))

    def thread(
        self,
        parent: Channel,
        name: str = "a thread",
        *,
        private: bool = False,
        joined: bool = True,
        of: int | None = None,
    ) -> Channel:
        """``of`` is the message it hangs on."""
        kind = PRIVATE_THREAD if private else PUBLIC_THREAD
        thread = self.add(Channel(of or self.new_id(), kind, name, parent.guild, parent.id, joined=joined))
        self.dispatch("THREAD_CREATE", thread.json())
        return thread

    # What people do ---------------------------------------------------------------------------------------------------

    def message(self, text: str, user: User = ANN, channel: Channel | None = None, **fields: Any) -> Json:
        """A message as the API shows it, without sending it to the bot. ``fields`` are further ones."""
        channel = channel or self.dm
        plain = _CODE.sub("", text)
        named = [self.user(int(one)) for one in dict.fromkeys(_NAMED.findall(plain))]
        message: Json = {
            "id": str(fields.pop("id", None) or self.new_id()),
            "channel_id": str(channel.id),
            "author": user.json(),
            "content": text,
            "timestamp": now(),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [one.json() for one in named],
            "mention_roles": list(dict.fromkeys(_ROLES.findall(plain))),
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            "flags": 0,
            "components": [],
        } | fields
        self.messages[int(message["id"])] = message
        channel.last = int(message["id"])
        return message

    def says(self, text: str, *, user: User = ANN, channel: Channel | None = None, **fields: Any) -> int:
        """A person writes; the id of the message. ``reply_to`` is the id of a message it answers."""
        channel = channel or self.dm
        reply_to = fields.pop("reply_to", None)
        if reply_to is not None:
            answered = self.messages.get(reply_to)
            fields |= {"type": 19, "referenced_message": answered}
            fields["message_reference"] = {"type": 0, "message_id": str(reply_to), "channel_id": str(channel.id)}
        message = self.message(text, user, channel, **fields)
        self.dispatch("MESSAGE_CREATE", self.live(message, user, channel))
        return int(message["id"])

    def live(self, message: Json, user: User, channel: Channel) -> Json:
        """As the gateway sends it: with the sender's place on the server."""
        if channel.guild is None:
            return message | {"channel_type": channel.type}
        member = {} if "webhook_id" in message else {"member": self.member(channel.guild, user)}
        return message | member | {"guild_id": str(channel.guild.id), "channel_type": channel.type}

    def member(self, guild: Guild, user: User, *, whole: bool = False) -> Json:
        roles = [str(role) for role in guild.members.get(user.id, ())]
        known = {"roles": roles, "joined_at": "2024-01-01T00:00:00+00:00", "deaf": False, "mute": False, "flags": 0}
        known |= {"nick": guild.nicks.get(user.id), "avatar": None, "premium_since": None, "pending": False}
        return known | ({"user": user.json()} if whole else {})

    def edits(self, message: int, text: str, *, user: User = ANN) -> None:
        """A person changes what they said."""
        held = self.messages[message]
        held |= {"content": text, "edited_timestamp": now()}
        channel = self.channels[int(held["channel_id"])]
        self.dispatch("MESSAGE_UPDATE", self.live(held, user, channel))

    def takes_back(self, message: int) -> None:
        held = self.messages.pop(message)
        where = self._where(self.channels[int(held["channel_id"])])
        self.dispatch("MESSAGE_DELETE", {"id": str(message), **where})

    def reacts(self, message: int, emoji: str, *, user: User = ANN, added: bool = True) -> None:
        channel = self.channels[int(self.messages[message]["channel_id"])]
        data = {"user_id": str(user.id), "message_id": str(message), "emoji": {"id": None, "name": emoji}, "type": 0}
        data |= self._where(channel)
        if added and channel.guild:
            data["member"] = self.member(channel.guild, user, whole=True)
        self.dispatch(f"MESSAGE_REACTION_{'ADD' if added else 'REMOVE'}", data | {"burst": False})

    def chooses(self, name: str, words: str = "", *, user: User = ANN, channel: Channel | None = None) -> Json:
        """A person chooses a slash command."""
        options = [{"type": 3, "name": "words", "value": words}] if words else []
        known = {command["name"]: command for command in self.commands}
        if name not in known or (words and not known[name].get("options")):
            raise AssertionError(f"/{name} is not offered like that")
        data = {"id": str(self.new_id()), "name": name, "type": 1, "options": options}
        return self.interacts(2, data, user=user, channel=channel)

    def presses(self, sent: Sent, label: str, *, user: User = ANN) -> Json:
        """A person presses a button of a message."""
        data = next(data for row in sent.buttons for text, data in row if text == label)
        channel = self.channels[sent.channel]
        message = self.messages[sent.id]
        held = {"custom_id": data, "component_type": 2, "id": 1}
        return self.interacts(3, held, user=user, channel=channel, message=message)

    def interacts(self, kind: int, data: Json, *, user: User, channel: Channel | None = None, **fields: Any) -> Json:
        channel = channel or self.dm
        token = f"itoken-{self.new_id()}"
        event: Json = {
            "id": str(self.new_id()),
            "application_id": str(BOT.id),
            "type": kind,
            "token": token,
            "version": 1,
        }
        event |= {"channel": channel.json() | {"permissions": str(ALL)}, "channel_id": str(channel.id), "data": data}
        event |= {"locale": "en-US", "entitlements": [], "authorizing_integration_owners": {}, "context": 1} | fields
        event |= {"app_permissions": str(ALL), "attachment_size_limit": 10 << 20}
        if channel.guild:
            member = self.member(channel.guild, user, whole=True) | {"permissions": str(ALL)}
            event |= {"guild_id": str(channel.guild.id), "member": member, "context": 0}
        else:
            event["user"] = user.json()
        self.interactions[token] = {"id": event["id"], "channel": channel.id, "kind": kind, "at": time.monotonic()}
        self.dispatch("INTERACTION_CREATE", event)
        return self.interactions[token]

    def attachment(self, name: str, data: bytes, media_type: str | None = None, **fields: Any) -> Json:
        """A file as a message holds it."""
        number = str(self.new_id())
        self.files[number] = data
        known = {"id": number, "filename": name, "size": len(data), "url": "", "proxy_url": "", **fields}
        return known | ({"content_type": media_type} if media_type else {})

    def deletes(self, sent: Sent) -> None:
        """Somebody deletes a message of the bot's."""
        self.sent.remove(sent)
        self.takes_back(sent.id)

    def user(self, number: int) -> User:
        return next((user for user in (ANN, BOB, BOT) if user.id == number), User(number, f"user{number}"))

    def _where(self, channel: Channel) -> Json:
        return {"channel_id": str(channel.id)} | ({"guild_id": str(channel.guild.id)} if channel.guild else {})

    @abstractmethod
    def dispatch(self, kind: str, data: Json) -> None:
        """Tell every session of an event that its bot may know of."""

    # What a test waits for --------------------------------------------------------------------------------------------

    async def wait_sent(self, number: int, seconds: float = 20) -> list[Sent]:
        """The messages sent, once there are ``number`` of them; raises TimeoutError after ``seconds``."""
        await self.until(lambda: len(self.sent) >= number, seconds)
        return self.sent
