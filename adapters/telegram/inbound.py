"""A Telegram update as a neutral event.

Pure: an update and who we are go in, an event or nothing comes out. Who may talk to us, and whether we answer in a
group, is decided elsewhere; here it is only said what Telegram said.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from telegram import (
    ChatMemberRestricted,
    MessageEntity,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
)
from telegram.constants import ChatMemberStatus, ChatType

from adapters.message import (
    Address,
    Attachment,
    Edited,
    Inbound,
    Kind,
    Membership,
    Message,
    Moved,
    Quote,
    Sender,
)
from adapters.telegram.entities import Range, as_markdown, located
from adapters.text import sanitize

if TYPE_CHECKING:
    from telegram import Chat, ChatMember, ChatMemberUpdated, MessageOrigin, Update, User
    from telegram import Message as TelegramMessage

    from adapters.telegram.settings import BotIdentity

_KINDS: dict[str, Kind] = {
    ChatType.PRIVATE: "direct",
    ChatType.GROUP: "group",
    ChatType.SUPERGROUP: "group",
    ChatType.CHANNEL: "channel",
}

_GENERAL_TOPIC = 1
"""The topic every forum has. A message to it must not name it, or Telegram finds no such thread."""

_SALUTATION = re.compile(r"[\s,:;]*")
_SPACES = re.compile(r"[ \t]*")


def event_of(update: Update, me: BotIdentity, account: str) -> Inbound | None:
    """What ``update`` says; None for one that says nothing to us (a service message, a command for another bot)."""
    if update.my_chat_member:
        return _membership(update.my_chat_member, account)
    if said := update.message or update.channel_post:
        if moved := _moved(said, account):
            return moved
        return _message(said, me, account)
    if said := update.edited_message or update.edited_channel_post:
        return _edited(said, me, account)
    return None


def _moved(said: TelegramMessage, account: str) -> Moved | None:
    """A group that became a supergroup says so in both: the old chat names the new id, the new one the old."""
    address = _address(said, account)
    if said.migrate_to_chat_id:
        return Moved(address, str(said.migrate_to_chat_id), said.date)
    if said.migrate_from_chat_id:
        return Moved(replace(address, chat=str(said.migrate_from_chat_id)), address.chat, said.date)
    return None


def _message(said: TelegramMessage, me: BotIdentity, account: str) -> Message | None:
    attachments = tuple(_attachments(said))
    if not (_text(said) or attachments) or _is_command_for_another(said, me):
        return None
    mentions = [] if said.forward_origin else _mentions(said, me)
    return Message(
        id=str(said.message_id),
        address=_address(said, account),
        sender=_sender(said),
        text=_markdown(said, mentions),
        sent_at=said.date,
        attachments=attachments,
        quote=_quote(said, me),
        reply_to=str(answered.message_id) if (answered := _answered(said)) else None,
        forwarded_from=_origin(said.forward_origin) if said.forward_origin else None,
        mentions_me=bool(mentions) or _answers_me(said, me),
    )


def _edited(said: TelegramMessage, me: BotIdentity, account: str) -> Edited | None:
    """None where only something else changed: a live location moved on, a poll was closed."""
    if not _text(said) or _is_command_for_another(said, me):
        return None
    return Edited(
        id=str(said.message_id),
        address=_address(said, account),
        sender=_sender(said),
        text=_markdown(said, _mentions(said, me)),
        sent_at=said.edit_date or said.date,
    )


def _membership(change: ChatMemberUpdated, account: str) -> Membership | None:
    """None where we stay what we were, with other rights."""
    was, present = (_is_present(member) for member in (change.old_chat_member, change.new_chat_member))
    if was == present:
        return None
    address = Address("telegram", account, str(change.chat.id), _KINDS[change.chat.type])
    return Membership(address, _person(change.from_user), present, change.date)


def _is_present(member: ChatMember) -> bool:
    """A restricted member may be in the chat or not; of the others the status says it."""
    if isinstance(member, ChatMemberRestricted):
        return member.is_member
    return member.status not in (ChatMemberStatus.LEFT, ChatMemberStatus.BANNED)


# Where and who ------------------------------------------------------------------------------------------------------


def _address(said: TelegramMessage, account: str) -> Address:
    """A thread only for a topic: a plain reply in a group carries a thread id as well."""
    topic = said.message_thread_id if said.is_topic_message else None
    thread = str(topic) if topic and topic != _GENERAL_TOPIC else None
    return Address("telegram", account, str(said.chat.id), _KINDS[said.chat.type], thread=thread)


def _sender(said: TelegramMessage) -> Sender:
    """An anonymous admin and a channel speak with the voice of a chat; the user beside it is a stand-in."""
    if said.sender_chat:
        return Sender(str(said.sender_chat.id), _title(said.sender_chat), is_shared=True)
    if said.from_user:
        return _person(said.from_user)
    return Sender(str(said.chat.id), _title(said.chat), is_shared=True)


def _person(user: User) -> Sender:
    return Sender(str(user.id), sanitize(user.full_name), is_bot=user.is_bot)


def _title(chat: Chat) -> str:
    return sanitize(chat.effective_name or "")


def _origin(origin: MessageOrigin) -> str:
    """A name for people to read: who first wrote what was forwarded."""
    match origin:
        case MessageOriginUser():
            return sanitize(origin.sender_user.full_name)
        case MessageOriginHiddenUser():
            return sanitize(origin.sender_user_name)
        case MessageOriginChat():
            return _title(origin.sender_chat)
        case MessageOriginChannel():
            return _title(origin.chat)
    return "someone"


# What ---------------------------------------------------------------------------------------------------------------


def _text(said: TelegramMessage) -> str:
    return said.text or said.caption or ""


def _entities(said: TelegramMessage) -> tuple[MessageEntity, ...]:
    return tuple(said.entities or said.caption_entities or ())


def _markdown(said: TelegramMessage, mentions: list[Range]) -> str:
    """The text without the mentions of us: with "@bot, " before it, or in its middle, it would read oddly."""
    text = _text(said)
    cuts = []
    for start, end in mentions:
        opens = not text[:start].strip()
        if text[start - 1 : start].isspace() or opens:
            rest = (_SALUTATION if opens else _SPACES).match(text, end)
            end = rest.end() if rest else end
        cuts.append((start, end))
    return sanitize(as_markdown(text, _entities(said), cuts)).strip()


def _mentions(said: TelegramMessage, me: BotIdentity) -> list[Range]:
    """Where the text names us, as Telegram marked it: a name in code, in an address or in a longer name is none."""
    text = _text(said)
    ours = f"@{me.username}".lower()
    found = []
    for entity, (start, end) in located(text, _entities(said)):
        named = text[start:end].lower()
        if (entity.type == MessageEntity.MENTION and named == ours) or (
            entity.type == MessageEntity.TEXT_MENTION and entity.user and str(entity.user.id) == me.id
        ):
            found.append((start, end))
        elif entity.type == MessageEntity.BOT_COMMAND and named.endswith(ours):
            found.append((end - len(ours), end))
    return found


def _is_command_for_another(said: TelegramMessage, me: BotIdentity) -> bool:
    """Whether the text opens with "/command@otherbot"."""
    text = _text(said)
    for entity, (start, end) in located(text, _entities(said)):
        if entity.type == MessageEntity.BOT_COMMAND and start == 0:
            _, _, name = text[:end].partition("@")
            return bool(name) and name.lower() != me.username.lower()
    return False


def _answered(said: TelegramMessage) -> TelegramMessage | None:
    """The message this one answers; every message in a topic claims to answer the one that opened the topic."""
    answered = said.reply_to_message
    return None if answered is None or answered.forum_topic_created else answered


def _answers_me(said: TelegramMessage, me: BotIdentity) -> bool:
    """A reply to a message of ours, unless it calls another bot by name (their names end in "bot")."""
    answered = _answered(said)
    if answered is None or answered.from_user is None or str(answered.from_user.id) != me.id:
        return False
    text = _text(said)
    named = [text[a:b] for entity, (a, b) in located(text, _entities(said)) if entity.type == MessageEntity.MENTION]
    return not any(name.lower().endswith("bot") for name in named)


def _quote(said: TelegramMessage, me: BotIdentity) -> Quote | None:
    """What the sender marked in the message they answer, else that whole message, unless it is ours and so known."""
    answered = _answered(said)
    author = _sender(answered) if answered else None
    if said.quote:
        name = author.name if author else _origin(said.external_reply.origin) if said.external_reply else ""
        return Quote(sanitize(said.quote.text), name)
    if answered is None or author is None or author.id == me.id or not _text(answered):
        return None
    return Quote(sanitize(as_markdown(_text(answered), _entities(answered))), author.name)


def _attachments(said: TelegramMessage) -> list[Attachment]:
    """At most one: Telegram sends an album as several messages. An animation comes as a document as well."""
    if said.photo:
        photo = max(said.photo, key=lambda size: size.width * size.height)
        return [Attachment("image", photo.file_id, "", photo.file_size, "image/jpeg")]
    if said.voice:
        return [Attachment("voice", said.voice.file_id, "", said.voice.file_size, _type(said.voice.mime_type))]
    if said.video_note:
        return [Attachment("video", said.video_note.file_id, "", said.video_note.file_size, "video/mp4")]
    if said.sticker:
        return [Attachment("sticker", said.sticker.file_id, "", said.sticker.file_size)]
    if clip := said.video or said.animation:
        return [Attachment("video", clip.file_id, _name(clip.file_name), clip.file_size, _type(clip.mime_type))]
    if said.audio:
        audio = said.audio
        return [Attachment("audio", audio.file_id, _name(audio.file_name), audio.file_size, _type(audio.mime_type))]
    if file := said.document:
        return [Attachment("document", file.file_id, _name(file.file_name), file.file_size, _type(file.mime_type))]
    return []


def _type(media_type: str | None) -> str | None:
    return _name(media_type) or None


def _name(name: str | None) -> str:
    return sanitize(name or "")
