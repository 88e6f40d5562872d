"""What we ask of Telegram: one method for each thing, which raises nothing but ``adapters.errors``.

Knows no outbox and no retry: each method makes one call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import httpx
from telegram import (
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    InputMediaAudio,
    InputMediaDocument,
    InputMediaPhoto,
    InputMediaVideo,
    LinkPreviewOptions,
    ReactionTypeEmoji,
    ReplyParameters,
)
from telegram.constants import ReactionEmoji, UpdateType

from adapters.errors import AdapterError, Rejected, Unreachable
from adapters.telegram.entities import rendered
from adapters.telegram.refusals import refusal
from adapters.telegram.settings import BotIdentity
from adapters.telegram.transport import Connection

if TYPE_CHECKING:
    from telegram import ChatMember, Message, WebhookInfo

    from adapters.message import Address, Button, Part
    from adapters.telegram.settings import TelegramSettings
    from adapters.telegram.uploads import Upload

_GET_UPDATES = "get__updates"
"""Becomes getUpdates. The library's own method parses all updates at once, so one bad update would lose the batch, and
it warns when ``do_api_request`` is given a name that it has a method for."""

_UPDATES = [
    *(UpdateType.MESSAGE, UpdateType.EDITED_MESSAGE, UpdateType.CHANNEL_POST, UpdateType.EDITED_CHANNEL_POST),
    *(UpdateType.MESSAGE_REACTION, UpdateType.CALLBACK_QUERY, UpdateType.MY_CHAT_MEMBER),
]

_PRESS_SECONDS = 5.0
_UPLOADED_SECONDS = 120.0
"""How long Telegram may think about files that it has, before the answer counts as lost."""

_MEDIA = {
    "photo": InputMediaPhoto,
    "video": InputMediaVideo,
    "audio": InputMediaAudio,
    "document": InputMediaDocument,
}
_DATA_BYTES = 64
_AS_EMOJI = "\ufe0f"
"""Asks for the coloured form of the character before it. Telegram names some reactions with it and some without."""

_REACTIONS = {emoji.replace(_AS_EMOJI, ""): emoji for emoji in ReactionEmoji}
_UNSEEN = LinkPreviewOptions(is_disabled=True)


class Client:
    """One bot at one server. Raises AuthFailed for a token that can't be one, before any call."""

    def __init__(self, settings: TelegramSettings) -> None:
        self._connection = Connection(settings)
        self._bot = self._connection.bot
        self._call = self._connection.call
        self._answer_seconds = settings.answer_seconds

    async def close(self) -> None:
        await self._connection.close()

    # Receiving --------------------------------------------------------------------------------------------------------

    async def identity(self) -> BotIdentity:
        me = await self._call(self._bot.get_me())
        return BotIdentity(
            str(me.id),
            me.username or "",
            me.full_name,
            can_join_groups=bool(me.can_join_groups),
            can_read_all_group_messages=bool(me.can_read_all_group_messages),
        )

    async def updates(self, offset: int | None, seconds: int) -> list[Any]:
        """What came in, as the server's JSON, oldest first; waits up to ``seconds`` for something to come.

        Everything before ``offset`` is forgotten by the server.
        """
        parameters = {"offset": offset, "timeout": seconds, "allowed_updates": _UPDATES}
        poll = self._bot.do_api_request(_GET_UPDATES, parameters, read_timeout=seconds + self._answer_seconds)
        updates = await self._call(poll)
        if not isinstance(updates, list):
            raise Unreachable("the answer to getUpdates holds no list: is the server a Bot API server?")
        return updates

    async def set_webhook(self, url: str, secret: str) -> None:
        """From now on Telegram brings updates to ``url``, one after the other, each with ``secret``."""
        self._connection.hide(secret)
        await self._call(self._bot.set_webhook(url, max_connections=1, allowed_updates=_UPDATES, secret_token=secret))

    async def webhook(self) -> WebhookInfo:
        """Where Telegram brings updates, and how that goes."""
        return await self._call(self._bot.get_webhook_info())

    async def remove_webhook(self) -> None:
        await self._call(self._bot.delete_webhook(drop_pending_updates=False))

    async def show_commands(self, commands: Sequence[tuple[str, str]]) -> None:
        """Put ``commands``, names and what they do, in the place of those that the bot's menu had."""
        await self._call(self._bot.set_my_commands(commands))

    async def erase(self, address: Address, message_id: str) -> None:
        await self._call(self._bot.delete_message(address.chat, int(message_id)))

    async def leave(self, address: Address) -> None:
        await self._call(self._bot.leave_chat(address.chat))

    async def member(self, chat: str, user: str) -> ChatMember:
        """What ``user`` is and may do in ``chat``."""
        return await self._call(self._bot.get_chat_member(chat, int(user)))

    async def confirm_press(self, query_id: str) -> None:
        """Let the button that was pressed stop waiting."""
        await self._call(self._bot.answer_callback_query(query_id, read_timeout=_PRESS_SECONDS))

    async def download(self, file_id: str, limit: int) -> AsyncIterator[bytes]:
        """The bytes of a file as they arrive; raises Rejected as soon as they are known to be more than ``limit``."""
        file = await self._call(self._bot.get_file(file_id))
        too_big = Rejected(f"the file is larger than {limit} bytes")
        if (file.file_size or 0) > limit:
            raise too_big
        url = file.file_path or ""
        if not url.startswith("http"):
            raise Rejected("the Bot API server keeps files on a disk of its own: start it without --local")
        failure: AdapterError
        try:
            async with (
                httpx.AsyncClient(timeout=self._answer_seconds, verify=self._connection.tls) as web,
                web.stream("GET", url) as answer,
            ):
                if answer.status_code == httpx.codes.OK:
                    arrived = 0
                    async for chunk in answer.aiter_bytes():
                        arrived += len(chunk)
                        if arrived > limit:
                            raise too_big
                        yield chunk
                    return
                failure = refusal("download", answer.status_code, b"")
        except httpx.HTTPError as error:
            failure = Unreachable(f"the download broke off ({type(error).__name__})")
        raise failure

    # Sending ----------------------------------------------------------------------------------------------------------

    async def send(self, part: Part) -> str | None:
        """The id of the message that the text of ``part`` became."""
        text, entities = rendered(part.text)
        message = await self._call(
            self._bot.send_message(
                part.address.chat,
                text,
                entities=entities,
                link_preview_options=_UNSEEN,
                reply_markup=_keyboard(part.buttons),
                **_place(part),
            )
        )
        return _id(message)

    async def send_files(self, part: Part, uploads: Sequence[Upload]) -> str | None:
        """The id of the message that the files of ``part`` became, the first of them where they are an album."""
        text, entities = rendered(part.text)
        caption = {"caption": text or None, "caption_entities": entities}
        place: dict[str, Any] = {**_place(part), "read_timeout": max(self._answer_seconds, _UPLOADED_SECONDS)}
        if len(uploads) > 1:
            media = [
                _MEDIA[upload.form](_input(upload, attach=True), **(caption if upload is uploads[0] else {}))
                for upload in uploads
            ]
            messages = await self._call(self._bot.send_media_group(part.address.chat, media, **place))
            return _id(messages[0])
        (upload,) = uploads
        method: Any = getattr(self._bot, f"send_{upload.form}")
        buttons = _keyboard(part.buttons)
        sent = method(part.address.chat, _input(upload), reply_markup=buttons, **caption, **place)
        return _id(await self._call(sent))

    async def edit(self, part: Part, message_id: str) -> None:
        """Replace the text of a message, or the caption where it has files, and the buttons."""
        text, entities = rendered(part.text)
        message: dict[str, Any] = {"chat_id": part.address.chat, "message_id": int(message_id)}
        message["reply_markup"] = _keyboard(part.buttons)
        if part.files:
            edit = self._bot.edit_message_caption(caption=text, caption_entities=entities, **message)
        else:
            edit = self._bot.edit_message_text(text, entities=entities, link_preview_options=_UNSEEN, **message)
        await self._call(edit)

    async def draft(self, part: Part, number: int) -> None:
        """Show what is being written; ``number`` is above 0 and the same for all of one message."""
        text, entities = rendered(part.text)
        await self._call(
            self._bot.send_message_draft(
                int(part.address.chat), number, text, message_thread_id=_thread(part.address), entities=entities
            )
        )

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """Put ``emoji`` on a message in the place of ours; "" takes it away. Raises Rejected for an unknown one."""
        known = _REACTIONS.get(emoji.replace(_AS_EMOJI, ""))
        if emoji and known is None:
            raise Rejected(f"{emoji} is no reaction of Telegram's")
        reaction = [ReactionTypeEmoji(known)] if known else []
        await self._call(self._bot.set_message_reaction(address.chat, int(message_id), reaction))

    async def show_typing(self, address: Address) -> None:
        await self._call(self._bot.send_chat_action(address.chat, "typing", message_thread_id=_thread(address)))


def _id(message: Message) -> str | None:
    """None for a message that Telegram puts off, such as a video in a large chat, and so gives no id yet."""
    return str(message.message_id) if message.message_id else None


def _place(part: Part) -> dict[str, Any]:
    """Where a new message belongs. A reply to a message that is gone is sent without the reply."""
    answered = ReplyParameters(int(part.reply_to), allow_sending_without_reply=True) if part.reply_to else None
    return {"message_thread_id": _thread(part.address), "reply_parameters": answered}


def _thread(address: Address) -> int | None:
    return int(address.thread) if address.thread else None


def _input(upload: Upload, *, attach: bool = False) -> InputFile:
    """The open file itself, which is read while it is sent."""
    return InputFile(upload.content, filename=upload.name, attach=attach, read_file_handle=False)


def _keyboard(rows: Sequence[Sequence[Button]]) -> InlineKeyboardMarkup | None:
    """None takes away the buttons that a message had. Raises Rejected for what Telegram doesn't take as a button."""
    for button in (button for row in rows for button in row):
        size = len(button.data.encode())
        if not button.label.strip() or not 0 < size <= _DATA_BYTES:
            raise Rejected(
                f"the button {button.label!r} carries {size} bytes: Telegram wants a label and 1 to {_DATA_BYTES} bytes"
            )
    keys = [[InlineKeyboardButton(button.label, callback_data=button.data) for button in row] for row in rows if row]
    return InlineKeyboardMarkup(keys) if keys else None
