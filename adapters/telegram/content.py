"""What a Telegram message holds: its text, its files, and in square brackets what is neither.

Nothing that a person sent is passed over in silence: what this program has no words for is named as such. Only what
Telegram itself says (somebody joined, the title changed) says nothing here. Knows no sender and no chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from telegram import Message, MessageEntity

from adapters.message import Attachment
from adapters.telegram.entities import Range, as_markdown
from adapters.text import sanitize, utf16_length

if TYPE_CHECKING:
    from telegram import ExternalReplyInfo, Location, TelegramObject

_CUT_FROM = 3900
"""UTF-16 code units. Clients cut what is longer than 4,096 into several messages, at a space or a line where it can."""

ABOUT = frozenset(
    {
        *("author_signature", "business_connection_id", "direct_messages_topic", "edit_date", "effect_id"),
        *("external_reply", "forward_origin", "from_user", "guest_bot_caller_chat", "guest_bot_caller_user"),
        *("guest_query_id", "has_media_spoiler", "has_protected_content", "is_automatic_forward", "is_from_offline"),
        *("is_paid_post", "is_topic_message", "link_preview_options", "media_group_id", "message_thread_id"),
        *("paid_star_count", "quote", "reply_markup", "reply_to_checklist_task_id", "reply_to_message"),
        *("reply_to_poll_option_id", "reply_to_story", "sender_boost_count", "sender_business_bot", "sender_chat"),
        *("sender_tag", "show_caption_above_media", "suggested_post_info", "via_bot"),
    }
)
"""The fields that say something about a message; each of the others is what the message is."""

_FILE_WORDS = {"image": "photo", "audio": "audio", "voice": "voice message", "video": "video", "document": "file"}


def typed(said: Message) -> str:
    """The text as it was typed, be it a caption; entities count in it."""
    return said.text or said.caption or ""


def entities(said: Message) -> tuple[MessageEntity, ...]:
    return tuple(said.entities or said.caption_entities or ())


def is_cut(said: Message) -> bool:
    """Whether the rest of it may follow: clients cut a long text, but no caption."""
    return utf16_length(said.text or "") >= _CUT_FROM


def markdown(said: Message, cuts: Sequence[Range] = ()) -> str:
    """What the message says: what it is besides text and files, and below that its text without the ``cuts``."""
    return _lines(_note(said) or _unreadable(said), _marked(said, cuts))


def quotation(said: Message) -> str:
    """``said`` as others quote it: its files are named, because a quotation brings none."""
    return _lines(summary(said), _marked(said))


def summary(said: Message | ExternalReplyInfo) -> str:
    """What is there besides text, each thing in brackets; "" where there is nothing."""
    named = (_FILE_WORDS.get(file.kind) for file in attachments(said))
    return _lines(*(f"[{word}]" for word in named if word), _note(said))


def _marked(said: Message, cuts: Sequence[Range] = ()) -> str:
    return sanitize(as_markdown(typed(said), entities(said), cuts)).strip()


def _lines(*texts: str) -> str:
    return "\n".join(filter(None, texts))


# Notes --------------------------------------------------------------------------------------------------------------


def _note(said: Message | ExternalReplyInfo) -> str:
    """In brackets and on one line; "" for text, for files, and for what Telegram says of itself."""
    words = _words(said)
    return f"[{' '.join(sanitize(words).split())}]" if words else ""


def _words(said: Message | ExternalReplyInfo) -> str:
    if said.sticker:
        return f"sticker {said.sticker.emoji or ''}"
    if venue := said.venue:  # its location is there once more
        return f"place: {venue.title}, {venue.address} ({_where(venue.location)})"
    if said.location:
        return f"{'live ' if 'live_period' in said.location.to_dict() else ''}location: {_where(said.location)}"
    if contact := said.contact:
        name = f"{contact.first_name} {contact.last_name or ''}".strip()
        return f"contact: {name}, {contact.phone_number}"
    if poll := said.poll:
        options = "; ".join(option.text for option in poll.options)
        return f"{poll.type if poll.type == 'quiz' else 'poll'}: {poll.question} Options: {options}"
    if said.dice:
        return f"dice {said.dice.emoji}: {said.dice.value}"
    if checklist := said.checklist:
        tasks = "; ".join(f"{'☑' if task.completion_date else '☐'} {task.text}" for task in checklist.tasks)
        return f"checklist: {checklist.title}: {tasks}"
    if said.story:
        return f"story by {said.story.chat.effective_name or 'somebody'}"
    if paid := said.paid_media:
        return f"paid media for {paid.star_count} stars: {', '.join(media.type for media in paid.paid_media)}"
    if said.game:
        return f"game: {said.game.title}"
    if said.invoice:
        return f"invoice: {said.invoice.title}"
    if said.giveaway or said.giveaway_winners:
        return "giveaway" if said.giveaway else "winners of a giveaway"
    return ""


def _where(location: Location) -> str:
    """To about a metre."""
    return f"{round(location.latitude, 5)}, {round(location.longitude, 5)}"


def _unreadable(said: Message) -> str:
    """For what the library doesn't know yet, and for what only other kinds of bots can read."""
    is_known = any(getattr(said, name) for name in Message.__slots__ if name not in ABOUT and name[0] != "_")
    if said.passport_data or said.web_app_data:
        kind = "passport data" if said.passport_data else "data of a web app"
    else:
        kind = "" if is_known else next((name for name, value in said.api_kwargs.items() if value), "")
    return unreadable(kind) if kind else ""


def unreadable(kind: str) -> str:
    """What stands for something that can't be read; ``kind`` is what Telegram calls it."""
    return f"[something this program can't read: {kind.replace('_', ' ')}]"


# Files --------------------------------------------------------------------------------------------------------------


def attachments(said: Message | ExternalReplyInfo) -> tuple[Attachment, ...]:
    """At most one: Telegram sends an album as several messages. An animation comes as a document as well."""
    if said.photo:
        photo = max(said.photo, key=lambda size: size.width * size.height)
        return (Attachment("image", photo.file_id, "", photo.file_size, "image/jpeg"),)
    if voice := said.voice:
        return (Attachment("voice", voice.file_id, "", voice.file_size, _type(voice.mime_type), _seconds(voice)),)
    if note := said.video_note:
        return (Attachment("video", note.file_id, "", note.file_size, "video/mp4", _seconds(note)),)
    if said.sticker:
        return (Attachment("sticker", said.sticker.file_id, "", said.sticker.file_size),)
    if clip := said.video or said.animation:
        return (_file("video", clip),)
    if said.audio:
        return (_file("audio", said.audio),)
    if said.document:
        return (_file("document", said.document),)
    return ()


def _file(kind: Any, file: Any) -> Attachment:
    name = sanitize(file.file_name or "")
    return Attachment(kind, file.file_id, name, file.file_size, _type(file.mime_type), _seconds(file))


def _seconds(media: TelegramObject) -> float | None:
    """From the plain form: the attribute's type depends on an environment variable of the library's."""
    return media.to_dict().get("duration")


def _type(media_type: str | None) -> str | None:
    return sanitize(media_type or "") or None
