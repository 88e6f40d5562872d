"""What is said in the chats of one bot: by people, for a test to say, and by the bot, for a test to look at."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.fakes.loopback import Loopback
from tests.fakes.telegram_api.checks import Json, detected


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who writes to the bot."""

    id: int
    first_name: str
    username: str = ""
    is_bot: bool = False

    def json(self) -> Json:
        known = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name, "language_code": "en"}
        return known | ({"username": self.username} if self.username else {})


ANN = User(7, "Ann", "ann")
BOB = User(8, "Bob", "bob")


@dataclass(frozen=True, slots=True)
class Chat:
    """``topics`` are the thread ids that exist in a forum."""

    id: int
    type: str
    title: str = ""
    topics: set[int] = field(default_factory=set, compare=False)

    def json(self) -> Json:
        if self.type == "private":
            return {"id": self.id, "type": self.type, "first_name": self.title}
        return {"id": self.id, "type": self.type, "title": self.title, "is_forum": bool(self.topics)}


@dataclass(slots=True)
class Sent:
    """A message of the bot's, as the chat shows it now; ``texts`` holds every text or caption it has had.

    ``kind`` is what it is shown as ("text", "photo", …) and ``file`` what was uploaded. ``buttons`` are rows of label
    and data. Messages of one album have the same ``album``.
    """

    id: int
    chat: int
    texts: list[str]
    entities: list[Json]
    thread: int | None = None
    reply_to: int | None = None
    kind: str = "text"
    file: Any = None
    buttons: list[list[tuple[str, str]]] = field(default_factory=list)
    album: str | None = None

    @property
    def text(self) -> str:
        return self.texts[-1]


class Chats(Loopback):
    """The state of one bot's account. ``sent`` are the messages it took from the bot, in order."""

    def __init__(self, me: User) -> None:
        super().__init__()
        self.me = me
        self.sent: list[Sent] = []
        self.waiting: list[Json] = []
        """Updates that the bot has not confirmed."""
        self.presses: set[str] = set()
        """Pressed buttons that wait for an answer."""
        self.rights: dict[int, Json] = {}
        """By chat, what the bot is there; a member of all others that there are."""
        self.files: dict[str, bytes] = {}
        self.blocked: set[int] = set()
        """Chats whose user has blocked the bot."""
        self.moved: dict[int, int] = {}
        """Groups that became supergroups, by their old id; messages to that are refused."""
        self._chats: dict[int, Chat] = {}
        self._messages: dict[tuple[int, int], Json] = {}
        self._message_ids = count(1)
        self._update_ids = count(1000)
        self._query_ids = count(1)

    # What people do ---------------------------------------------------------------------------------------------------

    def group(self, chat_id: int = -1001, title: str = "Garden", *, topics: Iterable[int] = ()) -> Chat:
        """A supergroup that the bot is in; a forum where there are ``topics``."""
        return self._chats.setdefault(chat_id, Chat(chat_id, "supergroup", title, set(topics)))

    def upgrade(self, chat: Chat, chat_id: int, *, told: bool = True) -> Chat:
        """The group becomes a supergroup of another id; ``told``: the bot gets the two messages that say so."""
        new = self.group(chat_id, chat.title)
        self.moved[chat.id] = new.id
        if told:
            self.push(message=self.message(ANN, chat, migrate_to_chat_id=new.id))
            self.push(message=self.message(ANN, new, migrate_from_chat_id=chat.id))
        return new

    def says(
        self,
        text: str,
        *,
        user: User = ANN,
        chat: Chat | None = None,
        topic: int | None = None,
        reply_to: int | None = None,
        entities: list[Json] | None = None,
        **fields: Any,
    ) -> int:
        """A person writes; the id of the message.

        ``entities`` None marks commands and mentions as the real server does. ``fields`` are further fields of the
        message, or replace its own.
        """
        marks = detected(text) if entities is None else entities
        message = self.message(user, chat, text=text, **({"entities": marks} if marks else {}))
        if topic is not None:
            message |= {"message_thread_id": topic, "is_topic_message": True}
        if reply_to is not None:
            message["reply_to_message"] = self._messages[message["chat"]["id"], reply_to]
        message |= fields
        self.push(message=message)
        return int(message["message_id"])

    def message(self, user: User = ANN, chat: Chat | None = None, **fields: Any) -> Json:
        """A message as the API shows it, without sending it to the bot: for updates that ``says`` has no words for."""
        chat = chat or Chat(user.id, "private", user.first_name)
        chat = self._chats.setdefault(chat.id, chat)
        message = {"message_id": next(self._message_ids), "date": int(time.time())}
        message |= {"chat": chat.json(), "from": user.json()} | fields
        self._messages[chat.id, message["message_id"]] = message
        return message

    def edits(self, message_id: int, text: str, *, user: User = ANN, chat: Chat | None = None) -> None:
        """A person changes what they said."""
        message = self._messages[chat.id if chat else user.id, message_id]
        message |= {"text": text, "edit_date": int(time.time())}
        self.push(edited_message=message)

    def press(self, sent: Sent, label: str, *, user: User = ANN) -> str:
        """A person presses a button of a message; the id of the query that the bot has to answer."""
        data = next(data for row in sent.buttons for text, data in row if text == label)
        query = str(next(self._query_ids))
        self.presses.add(query)
        message = self._messages[sent.chat, sent.id]
        self.push(
            callback_query={"id": query, "from": user.json(), "chat_instance": "1", "message": message, "data": data}
        )
        return query

    def react(self, message_id: int, emoji: str, *, was: str = "", user: User = ANN, chat: Chat | None = None) -> None:
        """A person puts ``emoji`` on a message in the place of ``was``; "" is none."""
        chat = chat or Chat(user.id, "private", user.first_name)
        old, new = ([{"type": "emoji", "emoji": one}] if one else [] for one in (was, emoji))
        change = {"chat": chat.json(), "message_id": message_id, "user": user.json(), "date": int(time.time())}
        self.push(message_reaction=change | {"old_reaction": old, "new_reaction": new})

    def delete(self, sent: Sent) -> None:
        """A person deletes a message of the bot's, who hears nothing of it."""
        self.sent.remove(sent)
        del self._messages[sent.chat, sent.id]

    def push(self, **update: Any) -> int:
        """Queue an update, well formed or not; its id."""
        update = {"update_id": next(self._update_ids)} | update
        self.waiting.append(update)
        self.change()
        return int(update["update_id"])

    def add_file(self, file_id: str, data: bytes) -> None:
        """A file that the bot may ask for; messages name it by ``file_id``."""
        self.files[file_id] = data

    # What a test waits for --------------------------------------------------------------------------------------------

    async def wait_sent(self, number: int, seconds: float = 10) -> list[Sent]:
        """The messages sent, once there are ``number`` of them; raises TimeoutError after ``seconds``."""
        await self.until(lambda: len(self.sent) >= number, seconds)
        return self.sent

    async def wait_confirmed(self, seconds: float = 10) -> None:
        """Returns once the bot has confirmed every update."""
        await self.until(lambda: not self.waiting, seconds)
