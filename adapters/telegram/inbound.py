"""A Telegram update as a neutral event.

Pure: an update and who we are go in, an event or nothing comes out. Who may talk to us, and whether we answer in a
group, is decided elsewhere; here it is only said what Telegram said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from telegram import (
    ChatMemberRestricted,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
    ReactionTypeEmoji,
    ReactionTypePaid,
)
from telegram.constants import ChatMemberStatus, ChatType

from adapters.message import (
    Address,
    Edited,
    Inbound,
    Kind,
    Membership,
    Message,
    Moved,
    Pressed,
    Quote,
    Reacted,
    Sender,
)
from adapters.telegram import content
from adapters.telegram.mentions import is_for_another, mentions, names_another, salutations
from adapters.text import sanitize

if TYPE_CHECKING:
    from datetime import datetime

    from telegram import (
        CallbackQuery,
        Chat,
        ChatMember,
        ChatMemberUpdated,
        MessageOrigin,
        MessageReactionUpdated,
        ReactionType,
        Update,
        User,
    )
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

_FRAME = ("message_id", "date", "chat", "from", "sender_chat", "message_thread_id", "is_topic_message")
"""What a message has, whatever it is."""


def event_of(update: Update, me: BotIdentity, account: str, now: datetime) -> Inbound | None:
    """What ``update`` says; None for one that says nothing to us (a service message, a command for another bot).

    ``now`` is for what Telegram doesn't date.
    """
    if update.my_chat_member:
        return _membership(update.my_chat_member, account)
    if update.message_reaction:
        return _reacted(update.message_reaction, account)
    if update.callback_query:
        return _pressed(update.callback_query, account, now)
    said = update.message or update.channel_post or update.edited_message or update.edited_channel_post
    if said is None or said.chat.is_direct_messages:
        return None
    if update.edited_message or update.edited_channel_post:
        return _edited(said, me, account)
    return _moved(said, account) or _message(said, me, account)


def reduced(raw: dict[str, Any]) -> dict[str, Any] | None:
    """An update that the library can't read, with a word for what is in it; None for one that is no new message."""
    field = next((name for name in ("message", "channel_post") if isinstance(raw.get(name), dict)), None)
    if field is None:
        return None
    message = raw[field]
    kind = next((name for name in message if name not in _FRAME and name not in content.ABOUT), "")
    frame = {name: message[name] for name in _FRAME if name in message}
    return {"update_id": raw["update_id"], field: frame | {"text": content.unreadable(kind)}}


def _moved(said: TelegramMessage, account: str) -> Moved | None:
    """A group that became a supergroup says so in both: the old chat names the new id, the new one the old."""
    address = _address(said, account)
    if said.migrate_to_chat_id:
        return Moved(address, str(said.migrate_to_chat_id), said.date)
    if said.migrate_from_chat_id:
        return Moved(replace(address, chat=str(said.migrate_from_chat_id)), address.chat, said.date)
    return None


def _message(said: TelegramMessage, me: BotIdentity, account: str) -> Message | None:
    found = [] if said.forward_origin else mentions(said, me)
    text = content.markdown(said, salutations(said, found))
    attachments = content.attachments(said)
    if not (text or attachments or found) or is_for_another(said, me):
        return None
    answered = _answered(said)
    return Message(
        id=str(said.message_id),
        address=_address(said, account),
        sender=_sender(said),
        text=text,
        sent_at=said.date,
        attachments=attachments,
        quote=_quote(said, me),
        reply_to=str(answered.message_id) if answered else None,
        forwarded_from=_origin(said.forward_origin) if said.forward_origin else None,
        mentions_me=bool(found) or _answers_me(said, me),
        album=said.media_group_id,
        is_cut=content.is_cut(said),
    )


def _edited(said: TelegramMessage, me: BotIdentity, account: str) -> Edited | None:
    """None where there is nothing to read, and for a live location, which moves on all the time."""
    text = content.markdown(said, salutations(said, mentions(said, me)))
    if said.location or not text or is_for_another(said, me):
        return None
    return Edited(str(said.message_id), _address(said, account), _sender(said), text, said.edit_date or said.date)


def _reacted(change: MessageReactionUpdated, account: str) -> Reacted | None:
    """The reaction that was added, else that one was taken back; None where nobody says whose it is."""
    who = _person(change.user) if change.user else _voice(change.actor_chat) if change.actor_chat else None
    if who is None:
        return None
    added = next((one for one in change.new_reaction if one not in change.old_reaction), None)
    address = Address("telegram", account, str(change.chat.id), _KINDS[change.chat.type])
    return Reacted(str(change.message_id), address, who, _emoji(added) if added else "", change.date)


def _emoji(reaction: ReactionType) -> str:
    match reaction:
        case ReactionTypeEmoji():
            return reaction.emoji
        case ReactionTypePaid():
            return "⭐"
    return "[an emoji of their own]"


def _pressed(query: CallbackQuery, account: str, now: datetime) -> Pressed | None:
    """None for a button of a game, or of a message that was sent in our name elsewhere."""
    if query.message is None or query.data is None:
        return None
    # The library makes a message of it even where Telegram shows no more than its id and chat.
    message = cast("TelegramMessage", query.message)
    data = sanitize(query.data)
    return Pressed(query.id, _address(message, account), _person(query.from_user), str(message.message_id), data, now)


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
        return _voice(said.sender_chat)
    return _person(said.from_user) if said.from_user else _voice(said.chat)


def _person(user: User) -> Sender:
    return Sender(str(user.id), sanitize(user.full_name), is_bot=user.is_bot)


def _voice(chat: Chat) -> Sender:
    """Whoever may speak in the name of ``chat``."""
    return Sender(str(chat.id), _title(chat), is_shared=True)


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


# What it answers ----------------------------------------------------------------------------------------------------


def _answered(said: TelegramMessage) -> TelegramMessage | None:
    """The message this one answers; every message in a topic claims to answer the one that opened the topic."""
    answered = said.reply_to_message
    return None if answered is None or answered.forum_topic_created else answered


def _answers_me(said: TelegramMessage, me: BotIdentity) -> bool:
    """A reply to a message of ours, unless it calls another bot by name."""
    answered = _answered(said)
    if answered is None or answered.from_user is None or str(answered.from_user.id) != me.id:
        return False
    return not names_another(said)


def _quote(said: TelegramMessage, me: BotIdentity) -> Quote | None:
    """What the sender marked in the message they answer, else that whole message, unless it is ours and so known."""
    answered, elsewhere = _answered(said), said.external_reply
    author = _sender(answered) if answered else None
    name = author.name if author else _origin(elsewhere.origin) if elsewhere else ""
    source = answered or elsewhere
    files = content.attachments(source) if source is not None else ()
    if said.quote:
        return Quote(sanitize(said.quote.text), name, attachments=files)
    if said.reply_to_story:
        return Quote("[story]", _title(said.reply_to_story.chat))
    if answered is not None and author is not None:
        text = "" if author.id == me.id else content.quotation(answered)
    else:
        text = content.summary(elsewhere) if elsewhere else ""
    return Quote(text, name, attachments=files) if text or files else None
