"""What a bot may call, but for getting updates: each method does to the chats what the real one does, or refuses."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.telegram_api.chats import Chat, Chats, Sent, User
from tests.fakes.telegram_api.checks import (
    Json,
    RefusalError,
    bad,
    buttons_of,
    caption_of,
    integer,
    reaction_of,
    text_of,
)
from tests.fakes.telegram_api.uploads import check_album, uploaded

_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a "
    "current content and reply markup of the message"
)
_OLD_QUERY = "query is too old and response timeout expired or query ID is invalid"
_ACTIONS = ("typing", "upload_photo", "record_voice", "upload_document")
_HANDED_OUT = 20 << 20
"""Bytes of the largest file that a bot may get."""


class Methods(Chats):
    """``menu``, ``drafts``, ``actions`` and ``reactions`` are what the bot showed besides messages."""

    def __init__(self, me: User) -> None:
        super().__init__(me)
        self.actions: list[tuple[int, str]] = []
        self.menu: list[tuple[str, str]] = []
        """The commands that the bot offers, each with its description."""
        self.left: list[str] = []
        """The chats that the bot left."""
        self.drafts: list[tuple[int, int, str]] = []
        """Chat, number and text of each."""
        self.reactions: dict[tuple[int, int], str] = {}
        """The bot's own, by chat and message."""
        self.privacy = True
        self.webhook = ""
        self.webhook_secret = ""
        self.webhook_error: Json = {}
        self.allowed: set[str] | None = None
        """The kinds of updates that the bot asked for; None for the usual ones."""
        self.methods: dict[str, Callable[[Json], Any]] = {
            "getme": self._get_me,
            "getchatmember": self._get_chat_member,
            "setwebhook": self._set_webhook,
            "deletewebhook": self._delete_webhook,
            "getwebhookinfo": self._get_webhook_info,
            "setmycommands": self._set_my_commands,
            "deletemessage": self._delete_message,
            "leavechat": self._leave_chat,
            "sendmessage": self._send_message,
            "sendphoto": lambda parameters: self._send_file("photo", parameters),
            "sendvideo": lambda parameters: self._send_file("video", parameters),
            "sendaudio": lambda parameters: self._send_file("audio", parameters),
            "sendvoice": lambda parameters: self._send_file("voice", parameters),
            "senddocument": lambda parameters: self._send_file("document", parameters),
            "sendmediagroup": self._send_media_group,
            "sendmessagedraft": self._send_message_draft,
            "editmessagetext": self._edit_message_text,
            "editmessagecaption": self._edit_message_caption,
            "setmessagereaction": self._set_message_reaction,
            "sendchataction": self._send_chat_action,
            "answercallbackquery": self._answer_callback_query,
            "getfile": self._get_file,
        }

    # The account ------------------------------------------------------------------------------------------------------

    def _get_me(self, parameters: Json) -> Json:
        return self.me.json() | {
            "can_join_groups": True,
            "can_read_all_group_messages": not self.privacy,
            "supports_inline_queries": False,
        }

    def _get_chat_member(self, parameters: Json) -> Json:
        chat = self._chat(parameters)
        return {"status": "member"} | self.rights.get(chat.id, {}) | {"user": self.me.json()}

    def _set_webhook(self, parameters: Json) -> bool:
        url = urlsplit(parameters["url"])
        if url.scheme != "https":
            raise bad("bad webhook: An HTTPS URL must be provided for webhook")
        if (url.port or 443) not in (80, 88, 443, 8443):
            raise bad("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
        secret = parameters.get("secret_token", "")
        if not re.fullmatch(r"[A-Za-z0-9_-]{0,256}", secret):
            raise bad("secret token contains unallowed characters")
        if not 1 <= int(parameters.get("max_connections", 40)) <= 100:
            raise bad("max_connections must be 1-100")
        self.webhook, self.webhook_secret, self.webhook_error = parameters["url"], secret, {}
        self._allow(parameters)
        self.change()
        return True

    def _delete_webhook(self, parameters: Json) -> bool:
        self.webhook = ""
        return True

    def _delete_message(self, parameters: Json) -> bool:
        chat = self._chat(parameters)
        number = integer(parameters.get("message_id"))
        found = next((sent for sent in self.sent if (sent.chat, sent.id) == (chat.id, number)), None)
        if found is None:
            raise bad("message to delete not found")
        self.delete(found)
        return True

    def _leave_chat(self, parameters: Json) -> bool:
        chat = str(parameters.get("chat_id"))
        if not chat.startswith("-"):
            raise bad("chat not found")
        self.left.append(chat)
        return True

    def _get_webhook_info(self, parameters: Json) -> Json:
        known = {"url": self.webhook, "has_custom_certificate": False, "pending_update_count": len(self.waiting)}
        return known | self.webhook_error

    def _allow(self, parameters: Json) -> None:
        if (kinds := parameters.get("allowed_updates")) is not None:
            self.allowed = set(kinds) or None

    def _set_my_commands(self, parameters: Json) -> bool:
        menu = [(str(command["command"]), str(command["description"])) for command in parameters["commands"]]
        if not all(re.fullmatch(r"[a-z0-9_]{1,32}", name) for name, _ in menu):
            raise bad("BOT_COMMAND_INVALID")
        if not all(0 < len(description) <= 256 for _, description in menu):
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
        self.menu = menu
        return True

    def _get_file(self, parameters: Json) -> Json:
        file_id = str(parameters.get("file_id"))
        if file_id not in self.files:
            raise bad("wrong file_id or the file is temporarily unavailable")
        size = len(self.files[file_id])
        if size > _HANDED_OUT:
            raise bad("file is too big")
        return {"file_id": file_id, "file_unique_id": "u", "file_size": size, "file_path": f"documents/{file_id}"}

    # Messages ---------------------------------------------------------------------------------------------------------

    def _send_message(self, parameters: Json) -> Json:
        text, entities = text_of(parameters)
        return self._send(parameters, "text", {"text": text, "entities": entities}, text, entities)

    def _send_file(self, kind: str, parameters: Json) -> Json:
        caption, entities = caption_of(parameters)
        shown, content = uploaded(kind, parameters.get(kind), len(self.sent))
        content |= {"caption": caption, "caption_entities": entities}
        return self._send(parameters, shown, content, caption, entities, file=parameters[kind])

    def _send_media_group(self, parameters: Json) -> list[Json]:
        media: list[Json] = parameters.get("media", [])
        check_album([one["type"] for one in media])
        ready = []
        for number, one in enumerate(media):
            file = parameters.get(one["media"].removeprefix("attach://"))
            caption, entities = caption_of(one)
            shown, content = uploaded(one["type"], file, len(self.sent) + number)
            ready.append((shown, content | {"caption": caption, "caption_entities": entities}, caption, entities, file))
        album = f"album{len(self.sent)}"
        return [
            self._send(parameters, shown, content | {"media_group_id": album}, text, entities, file=file, album=album)
            for shown, content, text, entities, file in ready
        ]

    def _send(
        self,
        parameters: Json,
        kind: str,
        content: Json,
        text: str,
        entities: list[Json],
        *,
        file: Any = None,
        album: str | None = None,
    ) -> Json:
        chat = self._chat(parameters)
        thread = self._thread(parameters, chat)
        buttons = buttons_of(parameters)
        reply = parameters.get("reply_parameters", {})
        reply_to = integer(reply.get("message_id"))
        if reply_to is not None and (chat.id, reply_to) not in self._messages:
            if not reply.get("allow_sending_without_reply"):
                raise bad("message to be replied not found")
            reply_to = None
        message = self.message(self.me, chat, **content)
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        if reply_to is not None:
            message["reply_to_message"] = self._messages[chat.id, reply_to]
        self.sent.append(
            Sent(
                message["message_id"],
                chat.id,
                [text],
                entities,
                thread,
                reply_to,
                kind,
                file,
                _labels(buttons),
                album,
            )
        )
        return message

    def _edit_message_text(self, parameters: Json) -> Json:
        sent = self._own(parameters)
        if sent.kind != "text":
            raise bad("there is no text in the message to edit")
        text, entities = text_of(parameters)
        return self._change_to(sent, text, entities, parameters, "text", "entities")

    def _edit_message_caption(self, parameters: Json) -> Json:
        sent = self._own(parameters)
        if sent.kind == "text":
            raise bad("there is no caption in the message to edit")
        caption, entities = caption_of(parameters)
        return self._change_to(sent, caption, entities, parameters, "caption", "caption_entities")

    def _change_to(
        self, sent: Sent, text: str, entities: list[Json], parameters: Json, text_field: str, entities_field: str
    ) -> Json:
        buttons = _labels(buttons_of(parameters))
        if (text, entities, buttons) == (sent.text, sent.entities, sent.buttons):
            raise bad(_NOT_MODIFIED)
        sent.texts.append(text)
        sent.entities, sent.buttons = entities, buttons
        message = self._messages[sent.chat, sent.id]
        message |= {text_field: text, entities_field: entities, "edit_date": int(time.time())}
        return message

    def _send_message_draft(self, parameters: Json) -> bool:
        chat = self._chat(parameters)
        if chat.type != "private":
            raise bad("TEXTDRAFT_PEER_INVALID")
        self._thread(parameters, chat)
        number = integer(parameters.get("draft_id"))
        if not number or abs(number) >= 1 << 63:
            raise bad("draft_id must be non-zero")
        text, _ = text_of(parameters, empty=True)
        self.drafts.append((chat.id, number, text))
        return True

    def _set_message_reaction(self, parameters: Json) -> bool:
        chat = self._chat(parameters)
        named = (chat.id, integer(parameters.get("message_id")) or 0)
        if named not in self._messages:
            raise bad("message to react not found")
        self.reactions[named] = reaction_of(parameters)
        return True

    def _send_chat_action(self, parameters: Json) -> bool:
        chat = self._chat(parameters)
        if parameters.get("action") not in _ACTIONS:
            raise bad("wrong parameter action in request")
        self.actions.append((chat.id, parameters["action"]))
        return True

    def _answer_callback_query(self, parameters: Json) -> bool:
        query = parameters.get("callback_query_id")
        if query not in self.presses:
            raise bad(_OLD_QUERY)
        self.presses.remove(query)
        return True

    # Places -----------------------------------------------------------------------------------------------------------

    def _chat(self, parameters: Json) -> Chat:
        chat = self._chats.get(integer(parameters.get("chat_id")) or 0)
        if chat is None:
            raise bad("chat not found")
        if chat.id in self.moved:
            upgraded = "Bad Request: group chat was upgraded to a supergroup chat"
            raise RefusalError(400, upgraded, migrate_to_chat_id=self.moved[chat.id])
        if chat.id in self.blocked:
            raise RefusalError(403, "Forbidden: bot was blocked by the user")
        return chat

    def _thread(self, parameters: Json, chat: Chat) -> int | None:
        thread = integer(parameters.get("message_thread_id"))
        if thread is not None and thread not in chat.topics:
            raise bad("message thread not found")
        return thread

    def _own(self, parameters: Json) -> Sent:
        named = (self._chat(parameters).id, integer(parameters.get("message_id")))
        sent = next((sent for sent in self.sent if (sent.chat, sent.id) == named), None)
        if sent is None:
            other = "message can't be edited" if named in self._messages else "message to edit not found"
            raise bad(other)
        return sent


def _labels(buttons: list[list[Json]]) -> list[list[tuple[str, str]]]:
    return [[(button["text"], button["callback_data"]) for button in row] for row in buttons]
