"""A gateway event as neutral events.

Pure: what Discord sent and where that is go in, events come out. Who may talk to us, and whether we answer, is decided
elsewhere; here it is only said what Discord said. A message that was looked up later is read in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from adapters.discord import content
from adapters.discord.commands import words_of
from adapters.discord.content import Json
from adapters.discord.places import Guide, Place
from adapters.message import Address, Deleted, Edited, Inbound, Message, Pressed, Quote, Reacted, Sender, Spoken
from adapters.text import sanitize

MESSAGES = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK")
REACTIONS = ("MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE")
INTERACTION = "INTERACTION_CREATE"

COMMAND, PRESS = 2, 3
"""Kinds of interactions."""

_SAID = (0, 19, 20, 23)
"""The kinds of messages that somebody wrote; the others are what Discord itself says (a pin, a boost, a new thread)."""

_EPOCH_MS = 1_420_070_400_000


@dataclass(frozen=True, slots=True)
class Reader:
    """What reading an event takes besides it. ``me`` is our id.

    ``follows``: what is said in a thread that we take part in is said to us. ``opens``: what is said to us in a channel
    is answered in a thread of its own, which will have the message's id.
    """

    me: str
    account: str
    guide: Guide
    follows: bool = False
    opens: bool = False


def events_of(reader: Reader, kind: str, data: Json, place: Place, now: datetime) -> list[Inbound]:
    """What an event of a ``kind`` at ``place`` says; nothing for one that says nothing to us.

    ``now`` is for what Discord doesn't date.
    """
    found: Sequence[Inbound | None]
    match kind:
        case "MESSAGE_CREATE":
            found = [_message(reader, data, place)]
        case "MESSAGE_UPDATE":
            found = [_edited(reader, data, place)]
        case "MESSAGE_DELETE":
            found = _deleted(reader, str(data["id"]), place, now)
        case "MESSAGE_DELETE_BULK":
            found = [event for one in data["ids"] for event in _deleted(reader, str(one), place, now)]
        case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE":
            found = [_reacted(reader, data, place, now, added=kind.endswith("ADD"))]
        case "INTERACTION_CREATE":
            found = [_interaction(reader, data, place)]
        case _:
            found = []
    return [event for event in found if event is not None]


def moment(snowflake: str) -> datetime:
    """When an id of Discord's was made."""
    return datetime.fromtimestamp(((int(snowflake) >> 22) + _EPOCH_MS) / 1000, UTC)


def snowflake(at: datetime) -> int:
    """The smallest id that could be made then."""
    return max(0, int(at.timestamp() * 1000) - _EPOCH_MS) << 22


def sender_of(author: Json, member: Json | None, *, is_shared: bool = False) -> Sender:
    return Sender(
        str(author["id"]),
        content.name_of(author, member),
        roles=tuple(str(role) for role in (member or {}).get("roles") or ()),
        is_bot=bool(author.get("bot")),
        is_shared=is_shared,
    )


# Messages -----------------------------------------------------------------------------------------------------------


def _message(reader: Reader, data: Json, place: Place) -> Message | None:
    if not _is_said(reader, data):
        return None
    roles = reader.guide.my_roles(place.space)
    text = content.markdown(data, reader.guide, place.space, reader.me, roles)
    if place.parent is not None and str(data["id"]) == place.chat:  # what opens a post of a forum
        text = f"# {place.name}\n\n{text}".strip()
    attachments = content.attachments(data)
    is_named = _is_named(reader, data, roles)
    if not (text or attachments or is_named):
        return None
    forwarded = content.forwarded(data)
    answered = None if forwarded is not None else _reference(data)
    address, is_to_me = _where(reader, data, place, is_named=is_named)
    return Message(
        id=str(data["id"]),
        address=address,
        sender=_sender(data),
        text=text,
        sent_at=_sent_at(data),
        attachments=attachments,
        quote=_quote(reader, data, place),
        reply_to=answered,
        forwarded_from=_origin(reader, data) if forwarded is not None else None,
        mentions_me=is_to_me,
    )


def _is_said(reader: Reader, data: Json) -> bool:
    author = data.get("author")
    return author is not None and str(author["id"]) != reader.me and data.get("type", 0) in _SAID


def _is_named(reader: Reader, data: Json, roles: frozenset[str]) -> bool:
    return content.mentioned(data, reader.me) or bool(roles & content.named_roles(data))


def _where(reader: Reader, data: Json, place: Place, *, is_named: bool) -> tuple[Address, bool]:
    """Where it is to be answered, and whether it is said to us."""
    address = place.address(reader.account)
    is_to_me = is_named or _answers_me(reader, data) or (reader.follows and place.is_mine)
    if is_to_me and reader.opens and place.kind == "channel" and place.parent is None:
        own = str(data["id"])  # the id that a thread below this message has
        address = replace(address, chat=own, parent=place.chat, thread=own)
    return address, is_to_me


def _answers_me(reader: Reader, data: Json) -> bool:
    """A reply to a message of ours, unless it calls another bot."""
    answered = data.get("referenced_message")
    if not answered or content.forwarded(data) is not None or str(answered["author"]["id"]) != reader.me:
        return False
    return not content.names_another_bot(data, reader.me)


def _sender(data: Json) -> Sender:
    return sender_of(data["author"], data.get("member"), is_shared="webhook_id" in data)


def _sent_at(data: Json) -> datetime:
    return datetime.fromisoformat(data["timestamp"]) if data.get("timestamp") else moment(str(data["id"]))


def _reference(data: Json) -> str | None:
    reference = data.get("message_reference") or {}
    return str(reference["message_id"]) if reference.get("message_id") else None


def _quote(reader: Reader, data: Json, place: Place) -> Quote | None:
    """The message that this one answers, unless it is ours and so known."""
    answered = data.get("referenced_message")
    if not answered or str(answered["author"]["id"]) == reader.me:
        return None
    text = content.quotation(answered, reader.guide, place.space)
    return Quote(text, content.name_of(answered["author"], answered.get("member"))) if text else None


def spoken(reader: Reader, data: Json, place: Place) -> Spoken | None:
    """A message of whomever as something said before, be it by us; None where it says nothing."""
    text = content.quotation(data, reader.guide, place.space)
    is_ours = str(data["author"]["id"]) == reader.me
    return Spoken(None if is_ours else _sender(data), text) if text else None


def _origin(reader: Reader, data: Json) -> str:
    """Discord doesn't say who wrote what was forwarded, only where."""
    channel = (data.get("message_reference") or {}).get("channel_id")
    name = reader.guide.channel(str(channel)) if channel else ""
    return f"#{name}" if name else "another chat"


def _edited(reader: Reader, data: Json, place: Place) -> Edited | None:
    """None where nobody changed it: Discord says the same when it looked up a link."""
    if not data.get("edited_timestamp") or not _is_said(reader, data):
        return None
    roles = reader.guide.my_roles(place.space)
    text = content.markdown(data, reader.guide, place.space, reader.me, roles)
    if not text:
        return None
    address, _ = _where(reader, data, place, is_named=_is_named(reader, data, roles))
    return Edited(str(data["id"]), address, _sender(data), text, datetime.fromisoformat(data["edited_timestamp"]))


def _deleted(reader: Reader, message: str, place: Place, now: datetime) -> list[Inbound]:
    """Discord doesn't say what it said: where threads are opened, it may have been taken there."""
    address = place.address(reader.account)
    found: list[Inbound] = [Deleted(message, address, now)]
    if reader.opens and place.kind == "channel" and place.parent is None:
        found.append(Deleted(message, replace(address, chat=message, parent=place.chat, thread=message), now))
    return found


def _reacted(reader: Reader, data: Json, place: Place, now: datetime, *, added: bool) -> Reacted | None:
    user = str(data["user_id"])
    if user == reader.me:
        return None
    member = data.get("member") or {}
    who = sender_of(member.get("user") or {"id": user}, member)
    emoji = data.get("emoji") or {}
    shown = f":{emoji.get('name')}:" if emoji.get("id") else str(emoji.get("name") or "")
    address = place.address(reader.account)
    return Reacted(str(data["message_id"]), address, who, sanitize(shown) if added else "", now)


# Interactions -------------------------------------------------------------------------------------------------------


def _interaction(reader: Reader, data: Json, place: Place) -> Message | Pressed | None:
    who = _interacting(data)
    address, at = place.address(reader.account), moment(str(data["id"]))
    held: dict[str, Any] = data.get("data") or {}
    if data["type"] == COMMAND:
        return Message(str(data["id"]), address, who, sanitize(words_of(held)), at, mentions_me=True)
    if data["type"] == PRESS and held.get("custom_id"):
        pressed = sanitize(str(held["custom_id"]))
        return Pressed(str(data["id"]), address, who, str(data["message"]["id"]), pressed, at)
    return None


def _interacting(data: Json) -> Sender:
    member = data.get("member")
    return sender_of(member["user"] if member else data["user"], member)
