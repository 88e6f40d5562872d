"""Telegram's Bot API on loopback: real HTTP and long polling, no Telegram.

It checks what the real server checks in the methods it has (texts, lengths, entities in UTF-16 units, threads,
replies), keeps updates until an offset confirms them, and can fail, stall, hang up and lie on demand. It shares no
code with the adapter that it tests.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import Any, TypeAlias

from aiohttp import web

Json: TypeAlias = dict[str, Any]

TOKEN = "123456789:AAFakeFakeFakeFakeFakeFakeFakeFakeXYZ"
TEXT_LIMIT = 4096
"""UTF-16 code units."""

_COMMAND = re.compile(r"(?<!\S)/\w{1,32}(?:@\w+)?")
_MENTION = re.compile(r"(?<![\w`])@\w{4,32}\b")
_ENTITY_TYPE = re.compile(
    "blockquote|bold|bot_command|cashtag|code|custom_emoji|date_time|email|expandable_blockquote|hashtag|italic|"
    "mention|phone_number|pre|spoiler|strikethrough|text_link|text_mention|underline|url"
)
_WEBHOOK_IS_SET = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
_OTHER_POLLER = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
_NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a "
    "current content and reply markup of the message"
)


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
    """A message of the bot's, as the chat shows it now; ``texts`` holds every text it has had."""

    id: int
    chat: int
    texts: list[str]
    entities: list[Json]
    thread: int | None = None
    reply_to: int | None = None

    @property
    def text(self) -> str:
        return self.texts[-1]


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call.

    ``status`` 0 answers as if nothing were wrong. ``after`` lets the call have its effect first; ``drop`` closes the
    connection instead of answering. ``delay`` is in seconds. ``body`` replaces the answer byte for byte, and
    ``as_http`` its HTTP status (a proxy that says 200).
    """

    status: int = 0
    description: str = ""
    retry_after: int | None = None
    migrate_to_chat_id: int | None = None
    after: bool = False
    drop: bool = False
    delay: float = 0.0
    body: bytes | None = None
    as_http: int | None = None


class _RefusalError(Exception):
    def __init__(self, status: int, description: str, **parameters: object) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


class TelegramApi:
    """One bot's Bot API. ``calls`` are all calls with their parameters, ``sent`` the messages it took, in order."""

    def __init__(self, *, token: str = TOKEN, username: str = "limpet_bot") -> None:
        self.token = token
        self.me = User(int(token.partition(":")[0]), "Limpet", username, is_bot=True)
        self.url = ""
        """The root for ``base_url``; set by ``start``."""
        self.port = 0
        self.calls: list[tuple[str, Json]] = []
        self.sent: list[Sent] = []
        self.actions: list[tuple[int, str]] = []
        self.menu: list[tuple[str, str]] = []
        """The commands that the bot offers, each with its description."""
        self.waiting: list[Json] = []
        """Updates that no offset has confirmed."""
        self.files: dict[str, bytes] = {}
        self.blocked: set[int] = set()
        """Chats whose user has blocked the bot."""
        self.moved: dict[int, int] = {}
        """Groups that became supergroups, by their old id; messages to that are refused."""
        self.webhook = ""
        self._faults: dict[str, list[Fault]] = {}
        self._chats: dict[int, Chat] = {}
        self._messages: dict[tuple[int, int], Json] = {}
        self._message_ids = count(1)
        self._update_ids = count(1000)
        self._changed = asyncio.Event()
        self._poll: object = None
        self._stopping = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._methods: dict[str, Callable[[Json], Any]] = {
            "getme": self._get_me,
            "deletewebhook": self._delete_webhook,
            "setmycommands": self._set_my_commands,
            "sendmessage": self._send_message,
            "editmessagetext": self._edit_message_text,
            "sendchataction": self._send_chat_action,
            "getfile": self._get_file,
        }

    # Running ----------------------------------------------------------------------------------------------------------

    async def start(self, port: int = 0) -> TelegramApi:
        """Listen on 127.0.0.1; ``port`` 0 takes a free one. After ``stop`` it may be started again with its state."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        app.router.add_get("/file/bot{token}/{path:.*}", self._download)
        self._stopping = asyncio.Event()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        host, self.port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{self.port}"
        return self

    async def stop(self) -> None:
        self._stopping.set()
        self._change()
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> TelegramApi:
        return await self.start()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    # What a test does -------------------------------------------------------------------------------------------------

    def fail(self, method: str, *faults: Fault, times: int = 1) -> None:
        """Let the next calls of ``method`` meet ``faults`` in order, ``times`` over."""
        self._faults.setdefault(method.lower(), []).extend(faults * times)

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
        marks = _detected(text) if entities is None else entities
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

    def push(self, **update: Any) -> int:
        """Queue an update, well formed or not; its id."""
        update = {"update_id": next(self._update_ids)} | update
        self.waiting.append(update)
        self._change()
        return int(update["update_id"])

    def add_file(self, file_id: str, data: bytes) -> None:
        """A file that the bot may ask for; messages name it by ``file_id``."""
        self.files[file_id] = data

    async def wait_sent(self, number: int, seconds: float = 10) -> list[Sent]:
        """The messages sent, once there are ``number`` of them; raises TimeoutError after ``seconds``."""
        await self._until(lambda: len(self.sent) >= number, seconds)
        return self.sent

    async def wait_confirmed(self, seconds: float = 10) -> None:
        """Returns once the bot has confirmed every update."""
        await self._until(lambda: not self.waiting, seconds)

    async def wait_called(self, method: str, number: int = 1, seconds: float = 10) -> list[Json]:
        """The parameters of every call of ``method``, once there are ``number`` of them."""
        await self._until(lambda: len(self.called(method)) >= number, seconds)
        return self.called(method)

    def called(self, method: str) -> list[Json]:
        return [parameters for name, parameters in self.calls if name.lower() == method.lower()]

    # The server -------------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.token:
            looks_right = re.fullmatch(r"\d+:[\w-]{30,}", request.match_info["token"])
            return _refused(_RefusalError(401, "Unauthorized") if looks_right else _RefusalError(404, "Not Found"))
        method = request.match_info["method"]
        parameters = await _parameters(request)
        self.calls.append((method, parameters))
        self._change()
        faults = self._faults.get(method.lower())
        fault = faults.pop(0) if faults else Fault()
        if fault.delay and not fault.after:
            await self._pause(fault.delay)
        if not fault.after and (fault.drop or fault.status or fault.body is not None):
            return _faulty(request, fault)
        try:
            if method.lower() == "getupdates":
                result = await self._get_updates(parameters)
            elif handler := self._methods.get(method.lower()):
                result = handler(parameters)
            else:
                raise _RefusalError(404, "Not Found")
        except _RefusalError as refusal:
            return _refused(refusal)
        self._change()
        if fault.after:
            await self._pause(fault.delay)
            return _faulty(request, fault)
        return web.json_response({"ok": True, "result": result})

    async def _get_updates(self, parameters: Json) -> list[Json]:
        if self.webhook:
            raise _RefusalError(409, _WEBHOOK_IS_SET)
        offset, limit = int(parameters.get("offset", 0)), int(parameters.get("limit", 100))
        self.waiting = [update for update in self.waiting if update["update_id"] >= offset]
        self._poll = me = object()
        self._change()
        deadline = time.monotonic() + float(parameters.get("timeout", 0))
        while not self.waiting and self._poll is me and not self._stopping.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return []
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()
        if self._poll is not me:
            raise _RefusalError(409, _OTHER_POLLER)
        return self.waiting[:limit]

    def _get_me(self, parameters: Json) -> Json:
        return self.me.json() | {
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "supports_inline_queries": False,
        }

    def _delete_webhook(self, parameters: Json) -> bool:
        self.webhook = ""
        return True

    def _set_my_commands(self, parameters: Json) -> bool:
        menu = [(str(command["command"]), str(command["description"])) for command in parameters["commands"]]
        if not all(re.fullmatch(r"[a-z0-9_]{1,32}", name) for name, _ in menu):
            raise _RefusalError(400, "Bad Request: BOT_COMMAND_INVALID")
        if not all(0 < len(description) <= 256 for _, description in menu):
            raise _RefusalError(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        self.menu = menu
        return True

    def _send_message(self, parameters: Json) -> Json:
        chat = self._chat(parameters)
        thread = _integer(parameters.get("message_thread_id"))
        if thread is not None and thread not in chat.topics:
            raise _RefusalError(400, "Bad Request: message thread not found")
        text, entities = _checked_text(parameters)
        reply = parameters.get("reply_parameters", {})
        reply_to = _integer(reply.get("message_id"))
        if reply_to is not None and (chat.id, reply_to) not in self._messages:
            if not reply.get("allow_sending_without_reply"):
                raise _RefusalError(400, "Bad Request: message to be replied not found")
            reply_to = None
        message = self.message(self.me, chat, text=text, entities=entities)
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        if reply_to is not None:
            message["reply_to_message"] = self._messages[chat.id, reply_to]
        self.sent.append(Sent(message["message_id"], chat.id, [text], entities, thread, reply_to))
        return message

    def _edit_message_text(self, parameters: Json) -> Json:
        chat = self._chat(parameters)
        named = (chat.id, _integer(parameters.get("message_id")))
        sent = next((sent for sent in self.sent if (sent.chat, sent.id) == named), None)
        if sent is None:
            raise _RefusalError(400, "Bad Request: message to edit not found")
        text, entities = _checked_text(parameters)
        if (text, entities) == (sent.text, sent.entities):
            raise _RefusalError(400, _NOT_MODIFIED)
        sent.texts.append(text)
        sent.entities = entities
        message = self._messages[chat.id, sent.id]
        message |= {"text": text, "entities": entities, "edit_date": int(time.time())}
        return message

    def _send_chat_action(self, parameters: Json) -> bool:
        chat = self._chat(parameters)
        if parameters.get("action") not in ("typing", "upload_photo", "record_voice", "upload_document"):
            raise _RefusalError(400, "Bad Request: wrong parameter action in request")
        self.actions.append((chat.id, parameters["action"]))
        return True

    def _get_file(self, parameters: Json) -> Json:
        file_id = str(parameters.get("file_id"))
        if file_id not in self.files:
            raise _RefusalError(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        size = len(self.files[file_id])
        return {"file_id": file_id, "file_unique_id": "u", "file_size": size, "file_path": f"documents/{file_id}"}

    async def _download(self, request: web.Request) -> web.Response:
        file_id = request.match_info["path"].rpartition("/")[2]
        if request.match_info["token"] != self.token or file_id not in self.files:
            raise web.HTTPNotFound
        return web.Response(body=self.files[file_id])

    def _chat(self, parameters: Json) -> Chat:
        chat = self._chats.get(_integer(parameters.get("chat_id")) or 0)
        if chat is None:
            raise _RefusalError(400, "Bad Request: chat not found")
        if chat.id in self.moved:
            upgraded = "Bad Request: group chat was upgraded to a supergroup chat"
            raise _RefusalError(400, upgraded, migrate_to_chat_id=self.moved[chat.id])
        if chat.id in self.blocked:
            raise _RefusalError(403, "Forbidden: bot was blocked by the user")
        return chat

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than the server runs."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await self._changed.wait()

    def _change(self) -> None:
        """Wake all who wait for something to happen; each looks for itself whether it was that."""
        self._changed.set()
        self._changed = asyncio.Event()


async def _parameters(request: web.Request) -> Json:
    """The parameters from the query, a form or JSON; those that hold JSON are read."""
    body: Json = {}
    if request.content_type == "application/json":
        body = await request.json()
    elif request.can_read_body:
        body = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
    parameters: Json = {**request.query, **body}
    for name, value in parameters.items():
        if isinstance(value, str) and value[:1] in ("[", "{") and name != "text":
            parameters[name] = json.loads(value)
    return parameters


def _integer(value: object) -> int | None:
    return int(value) if isinstance(value, int | str) and str(value).lstrip("-").isdecimal() else None


def _checked_text(parameters: Json) -> tuple[str, list[Json]]:
    text = str(parameters.get("text", ""))
    if not text.strip():
        raise _RefusalError(400, "Bad Request: message text is empty")
    if _units(text) > TEXT_LIMIT:
        raise _RefusalError(400, "Bad Request: message is too long")
    entities: list[Json] = parameters.get("entities", [])
    _check_entities(text, entities)
    return text, entities


def _check_entities(text: str, entities: list[Json]) -> None:
    """Refuse what the real server refuses: unknown kinds, ranges that leave the text, cut a character or cross."""
    bounds = {0, *accumulate(_units(char) for char in text)}
    ends: list[int] = []
    for entity in sorted(entities, key=lambda e: (e["offset"], -e["length"])):
        start, end = entity["offset"], entity["offset"] + entity["length"]
        if not _ENTITY_TYPE.fullmatch(entity["type"]):
            raise _RefusalError(400, "Bad Request: can't parse MessageEntity: Unsupported type specified")
        if start < 0 or entity["length"] <= 0:
            raise _RefusalError(400, f"Bad Request: receive an entity with incorrect offset {start}")
        ends = [outer for outer in ends if outer > start]
        if end > _units(text) or (ends and end > ends[-1]):
            place = f"beginning at UTF-16 offset {start} ends after the end of the text at UTF-16 offset {end}"
            raise _RefusalError(400, f"Bad Request: entity {place}")
        if not {start, end} <= bounds:
            raise _RefusalError(400, "Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 0")
        if entity["type"] == "text_link" and "." not in entity["url"].partition("://")[2].partition("/")[0]:
            raise _RefusalError(400, f"Bad Request: entity URL '{entity['url']}' is invalid: Wrong HTTP URL")
        ends.append(end)


def _detected(text: str) -> list[Json]:
    """The commands and mentions that the real server marks by itself."""
    found = [("bot_command", match) for match in _COMMAND.finditer(text)]
    found += [("mention", match) for match in _MENTION.finditer(text) if not match[0].endswith("@")]
    commands = [match.span() for kind, match in found if kind == "bot_command"]
    return [
        {"type": kind, "offset": _units(text[: match.start()]), "length": _units(match[0])}
        for kind, match in sorted(found, key=lambda mark: mark[1].start())
        if kind == "bot_command" or not any(start <= match.start() < end for start, end in commands)
    ]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _refused(refusal: _RefusalError, http_status: int | None = None) -> web.Response:
    answer = {"ok": False, "error_code": refusal.status, "description": refusal.description}
    if refusal.parameters:
        answer["parameters"] = refusal.parameters
    return web.json_response(answer, status=http_status or refusal.status)


def _faulty(request: web.Request, fault: Fault) -> web.Response:
    if fault.drop or not fault.status:
        if request.transport is not None:
            request.transport.close()
        raise asyncio.CancelledError
    if fault.body is not None:
        return web.Response(status=fault.as_http or fault.status, body=fault.body)
    wanted = {"retry_after": fault.retry_after, "migrate_to_chat_id": fault.migrate_to_chat_id}
    parameters = {name: value for name, value in wanted.items() if value is not None}
    return _refused(_RefusalError(fault.status, fault.description or "fault", **parameters), fault.as_http)
