"""What is said in one workspace: by people, for a test to say, and by the bot, for a test to look at."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.fakes.loopback import Loopback
from tests.fakes.slack_api.checks import Json, buttons_of, plain

TEAM = "T0GARDEN1"
_MENTION = re.compile(r"<@(\w+)>|<#(\w+)(?:\|[^>]*)?>")


@dataclass(frozen=True, slots=True)
class User:
    """Somebody in the workspace."""

    id: str
    name: str
    bot: str = ""
    """The bot's own id, beside its user's."""

    def json(self) -> Json:
        profile = {"display_name": self.name, "real_name": f"{self.name} Example"}
        return {"id": self.id, "team_id": TEAM, "name": self.name.lower(), "is_bot": bool(self.bot), "profile": profile}


ANN = User("U0ANN0001", "Ann")
BOB = User("U0BOB0001", "Bob")
OTHER_BOT = User("U0OTHER01", "Deployer", "B0OTHER01")


@dataclass(slots=True)
class Chat:
    """``kind`` is what events call it: im, mpim, channel or group (a private channel); the bot is a member or not."""

    id: str
    kind: str
    name: str = ""
    members: set[str] = field(default_factory=set)
    is_archived: bool = False
    messages: list[Json] = field(default_factory=list)
    """Oldest first, those of threads among them."""

    def json(self, me: str) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "is_im": self.kind == "im",
            "is_mpim": self.kind == "mpim",
            "is_channel": self.kind == "channel",
            "is_group": self.kind == "group",
            "is_private": self.kind != "channel",
            "is_member": me in self.members,
            "is_archived": self.is_archived,
        }

    def find(self, ts: str) -> Json | None:
        return next((message for message in self.messages if message["ts"] == ts), None)


@dataclass(slots=True)
class Sent:
    """A message of the bot's, as the chat shows it now; ``texts`` holds all that it has shown.

    ``notice`` is what notifications say, ``files`` what was uploaded, and ``only`` who alone sees it.
    """

    id: str
    chat: str
    texts: list[str]
    notice: str
    blocks: list[Json]
    thread: str | None = None
    metadata: Json | None = None
    files: list[Json] = field(default_factory=list)
    only: str | None = None

    @property
    def text(self) -> str:
        return self.texts[-1]

    @property
    def buttons(self) -> list[list[tuple[str, str]]]:
        return buttons_of(self.blocks)


class Workspace(Loopback):
    """The state of one workspace. ``sent`` are the messages it took from the bot, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.me = User("U0LIMPET1", "limpet", "B0LIMPET1")
        self.users = {user.id: user for user in (self.me, ANN, BOB, OTHER_BOT)}
        self.chats: dict[str, Chat] = {}
        self.direct = self.add_chat("D0ANN0001", "im", members=(ANN,))
        self.sent: list[Sent] = []
        self.waiting: list[Json] = []
        """Envelopes that the bot has not acknowledged, oldest first."""
        self.files: dict[str, Json] = {}
        self.contents: dict[str, bytes] = {}
        self.reactions: set[tuple[str, str, str]] = set()
        """Ours: chat, message and name."""
        self.statuses: dict[tuple[str, str], str] = {}
        self._numbers = count(1)
        self._last = 0.0

    # Chats ------------------------------------------------------------------------------------------------------------

    def add_chat(
        self, chat_id: str, kind: str, name: str = "", *, members: Iterable[User] = (ANN, BOB), with_bot: bool = True
    ) -> Chat:
        ids = {user.id for user in members} | ({self.me.id} if with_bot else set())
        return self.chats.setdefault(chat_id, Chat(chat_id, kind, name, ids))

    def channel(self, name: str = "garden", **known: Any) -> Chat:
        """A public channel that the bot is in."""
        return self.add_chat(f"C0{name.upper()}", "channel", name, **known)

    # What people do ---------------------------------------------------------------------------------------------------

    def says(
        self,
        text: str,
        *,
        user: User = ANN,
        chat: Chat | None = None,
        thread: str | None = None,
        told: bool = True,
        **fields: Any,
    ) -> str:
        """A person writes; the id of the message.

        ``text`` is mrkdwn, as the server stores it, with the rich text beside it as a client sends it. ``fields`` are
        further fields of the message, or replace its own (None takes one out). ``told`` False: the bot hears nothing.
        """
        chat = chat or self.direct
        message = self.message(text, user=user, chat=chat, thread=thread, **fields)
        if told:
            self._tell(chat, message)
        return str(message["ts"])

    def message(
        self, text: str, *, user: User = ANN, chat: Chat | None = None, thread: str | None = None, **fields: Any
    ) -> Json:
        """A message as the history keeps it, without telling the bot of it."""
        chat = chat or self.direct
        message: Json = {"type": "message", "user": user.id, "text": text, "ts": self.ts(), "team": TEAM}
        if text and "blocks" not in fields:
            message["blocks"] = [rich_text(text)]
        if user.bot:
            message |= {"bot_id": user.bot, "bot_profile": {"id": user.bot, "name": user.name}}
        if thread is not None:
            message |= {"thread_ts": thread}
            if parent := chat.find(thread):
                message["parent_user_id"] = parent.get("user")
        message = {name: value for name, value in (message | fields).items() if value is not None}
        chat.messages.append(message)
        self._count_replies(chat, thread)
        return message

    def shares(self, data: bytes, name: str, text: str = "", *, chat: Chat | None = None, **fields: Any) -> str:
        """A person sends a file."""
        file = self.add_file(data, name, **{key: fields.pop(key) for key in ("mimetype", "subtype") if key in fields})
        return self.says(text, chat=chat, subtype="file_share", files=[file], **fields)

    def edits(self, ts: str, text: str, *, chat: Chat | None = None) -> None:
        """A person changes what they said."""
        chat = chat or self.direct
        message = chat.find(ts)
        assert message is not None
        before = copy.deepcopy(message)
        message |= {"text": text, "blocks": [rich_text(text)], "edited": {"user": message["user"], "ts": self.ts()}}
        self._change_event(chat, message, before)

    def unfurls(self, ts: str, *, chat: Chat | None = None) -> None:
        """The server adds a preview to a message, and reports that as a change of the message."""
        chat = chat or self.direct
        message = chat.find(ts)
        assert message is not None
        before = copy.deepcopy(message)
        message["attachments"] = [{"from_url": "https://ex.test", "title": "A page", "fallback": "A page", "id": 1}]
        self._change_event(chat, message, before)

    def _change_event(self, chat: Chat, message: Json, before: Json) -> None:
        self.event(
            type="message",
            subtype="message_changed",
            channel=chat.id,
            channel_type=chat.kind,
            message=copy.deepcopy(message),
            previous_message=before,
            ts=self.ts(),
            hidden=True,
        )

    def deletes(self, ts: str, *, chat: Chat | None = None) -> None:
        """A person takes back a message, of theirs or of the bot's."""
        chat = chat or self.direct
        message = chat.find(ts)
        assert message is not None
        chat.messages.remove(message)
        self.sent = [sent for sent in self.sent if (sent.chat, sent.id) != (chat.id, ts)]
        self.event(
            type="message",
            subtype="message_deleted",
            channel=chat.id,
            channel_type=chat.kind,
            deleted_ts=ts,
            previous_message=message,
            ts=self.ts(),
            hidden=True,
        )

    def reacts(self, ts: str, name: str, *, user: User = ANN, chat: Chat | None = None, on: bool = True) -> None:
        chat = chat or self.direct
        message = chat.find(ts)
        assert message is not None
        item = {"type": "message", "channel": chat.id, "ts": ts}
        kind = "reaction_added" if on else "reaction_removed"
        self.event(type=kind, user=user.id, reaction=name, item=item, item_user=message["user"])

    def presses(self, sent: Sent, label: str, *, user: User = ANN) -> None:
        """A person presses a button of a message."""
        blocks = [block for block in sent.blocks if block["type"] == "actions"]
        button = next(one for block in blocks for one in block["elements"] if one["text"]["text"] == label)
        container = {"type": "message", "message_ts": sent.id, "channel_id": sent.chat, "is_ephemeral": False}
        chat = self.chats[sent.chat]
        payload = {
            "type": "block_actions",
            "user": {"id": user.id, "username": user.name.lower(), "team_id": TEAM},
            "team": {"id": TEAM},
            "container": container | ({"thread_ts": sent.thread} if sent.thread else {}),
            "channel": {"id": chat.id, "name": chat.name},
            "message": chat.find(sent.id),
            "trigger_id": f"trigger-{next(self._numbers)}",
            "actions": [button | {"action_ts": self.ts(), "block_id": "b"}],
        }
        self._push("interactive", payload)

    def commands(self, text: str, *, user: User = ANN, chat: Chat | None = None, trigger: str = "") -> None:
        """A person gives the app's slash command."""
        chat = chat or self.direct
        payload = {
            "command": "/limpet",
            "text": text,
            "user_id": user.id,
            "user_name": user.name.lower(),
            "channel_id": chat.id,
            "channel_name": {"im": "directmessage", "group": "privategroup"}.get(chat.kind, chat.name),
            "team_id": TEAM,
            "response_url": f"{self.url}/response",
            "trigger_id": trigger or f"trigger-{next(self._numbers)}",
        }
        self._push("slash_commands", payload)

    def invites(self, chat: Chat, *, user: User = ANN) -> None:
        chat.members.add(self.me.id)
        kind = "G" if chat.kind == "group" else "C"
        self.event(type="member_joined_channel", user=self.me.id, channel=chat.id, channel_type=kind, inviter=user.id)

    def event(self, **event: Any) -> str:
        """Report an event, well formed or not; the id of its envelope."""
        return self._push("events_api", self.event_payload({"event_ts": self.ts()} | event))

    def event_payload(self, event: Json, event_id: str = "") -> Json:
        return {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": "A0LIMPET1",
            "event": event,
            "event_id": event_id or f"Ev{next(self._numbers)}",
            "event_time": int(time.time()),
            "authorizations": [{"team_id": TEAM, "user_id": self.me.id, "is_bot": True}],
        }

    def _tell(self, chat: Chat, message: Json) -> None:
        if self.me.id not in chat.members:
            return
        place = {"channel": chat.id, "channel_type": chat.kind, "event_ts": message["ts"]}
        self.event(**copy.deepcopy(message) | place)
        if f"<@{self.me.id}>" in message.get("text", "") and chat.kind != "im":
            mention = {
                name: message[name] for name in ("user", "text", "ts", "blocks", "thread_ts", "team") if name in message
            }
            self.event(type="app_mention", channel=chat.id, event_ts=message["ts"], **copy.deepcopy(mention))

    def _push(self, kind: str, payload: Json) -> str:
        envelope: Json = {"envelope_id": f"env-{next(self._numbers)}", "type": kind, "payload": payload}
        envelope["accepts_response_payload"] = kind != "events_api"
        if kind == "events_api":
            envelope |= {"retry_attempt": 0, "retry_reason": ""}
        self.waiting.append(envelope)
        self.change()
        return str(envelope["envelope_id"])

    def _count_replies(self, chat: Chat, thread: str | None) -> None:
        parent = chat.find(thread) if thread else None
        if parent is not None:
            replies = [one for one in chat.messages if one.get("thread_ts") == thread and one["ts"] != thread]
            parent |= {"thread_ts": thread, "reply_count": len(replies), "latest_reply": replies[-1]["ts"]}

    # Files ------------------------------------------------------------------------------------------------------------

    def add_file(
        self,
        data: bytes,
        name: str,
        mimetype: str = "application/octet-stream",
        subtype: str = "",
        mode: str = "hosted",
    ) -> Json:
        """A file that a person uploaded."""
        number = f"F0FILE{next(self._numbers):04}"
        self.contents[number] = data
        file = {
            "id": number,
            "name": name,
            "title": name,
            "mimetype": mimetype,
            "mode": mode,
            "size": len(data),
            "url_private": f"{self.url}/files/{number}",
            "url_private_download": f"{self.url}/files/{number}",
        }
        self.files[number] = file | ({"subtype": subtype} if subtype else {})
        return self.files[number]

    # The bot's own ----------------------------------------------------------------------------------------------------

    def post(self, chat: Chat, text: str, blocks: list[Json], **fields: Any) -> Sent:
        """The bot's message, kept and shown."""
        fields = {name: value for name, value in fields.items() if value is not None}
        message = {"type": "message", "user": self.me.id, "bot_id": self.me.bot, "team": TEAM, "text": text}
        message |= {"ts": self.ts(), "blocks": blocks} | fields
        chat.messages.append(message)
        thread = fields.get("thread_ts")
        self._count_replies(chat, thread)
        shown = plain(text, blocks)
        metadata, files = fields.get("metadata"), fields.get("files", [])
        sent = Sent(message["ts"], chat.id, [shown], text, blocks, thread, metadata, files)
        self.sent.append(sent)
        self.statuses.pop((chat.id, thread or ""), None)
        self.change()
        return sent

    def ts(self) -> str:
        """A new time, later than all before it, to the microsecond."""
        self._last = max(time.time(), self._last + 0.000002)
        return f"{self._last:.6f}"

    # What a test waits for --------------------------------------------------------------------------------------------

    async def wait_sent(self, number: int, seconds: float = 10) -> list[Sent]:
        """The messages sent, once there are ``number`` of them; raises TimeoutError after ``seconds``."""
        await self.until(lambda: len(self.sent) >= number, seconds)
        return self.sent

    async def wait_acknowledged(self, seconds: float = 10) -> None:
        """Returns once the bot has acknowledged everything."""
        await self.until(lambda: not self.waiting, seconds)


def rich_text(text: str) -> Json:
    """The block that a client sends with a plain text in which people and channels may be mentioned."""
    elements: list[Json] = []
    place = 0
    for found in _MENTION.finditer(text):
        elements += [_text(text[place : found.start()])] if found.start() > place else []
        one = {"type": "user", "user_id": found[1]} if found[1] else {"type": "channel", "channel_id": found[2]}
        elements.append(one)
        place = found.end()
    elements += [_text(text[place:])] if place < len(text) else []
    return {"type": "rich_text", "block_id": "x", "elements": [{"type": "rich_text_section", "elements": elements}]}


def _text(text: str) -> Json:
    return {"type": "text", "text": text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")}
