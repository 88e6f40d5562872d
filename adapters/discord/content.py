"""What a Discord message holds: its text, its files, and in square brackets what is neither.

Text is Markdown already; ids in it become names, except in code, where Discord shows them as they are. Knows no sender
and no address. Works on Discord's own JSON, so that what can't be read of one message is a matter of that one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from adapters.discord.places import Guide
from adapters.message import Attachment
from adapters.text import sanitize

Json: TypeAlias = dict[str, Any]

_CODE = re.compile(r"(```.*?```|``.*?``|`[^`]*`)", re.DOTALL)
_TOKEN = re.compile(
    r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w+):\d+"
    r"|t:(?P<time>-?\d+)(?::\w)?|/(?P<command>[^:>]+):\d+)>"
)
_SALUTATION = re.compile(r"[\s,:;]*")
_SPACES = re.compile(r"[ \t]*")

_VOICE = 1 << 13
_STICKERS = {1: "png", 2: "png", 4: "gif"}
"""The forms of stickers that are pictures; the others are drawn by the app."""

_FILE_WORDS = {"image": "photo", "audio": "audio", "voice": "voice message", "video": "video", "document": "file"}


def name_of(user: Json, member: Json | None = None) -> str:
    """What people see: the name on this server, else everywhere."""
    given = (member or {}).get("nick") or user.get("global_name") or user.get("username") or ""
    return sanitize(given)


def mentioned(message: Json, user: str) -> bool:
    """Whether the text names ``user``, outside of code, and Discord counts it as a mention."""
    named = any(str(one.get("id")) == user for one in message.get("mentions", ()))
    return named and any(token["user"] == user for token in _tokens(message))


def named_roles(message: Json) -> frozenset[str]:
    return frozenset(str(role) for role in message.get("mention_roles", ()))


def names_another_bot(message: Json, me: str) -> bool:
    bots = {str(one["id"]) for one in message.get("mentions", ()) if one.get("bot") and str(one["id"]) != me}
    return any(token["user"] in bots for token in _tokens(message))


def markdown(
    message: Json, guide: Guide, space: str | None, me: str = "", my_roles: frozenset[str] = frozenset()
) -> str:
    """What the message says: what it is besides text and files, and below that its text.

    Mentions of ``me``, and of ``my_roles``, are cut out: they say to whom it was said.
    """
    snapshot = forwarded(message)
    text = _named(message, guide, space, me, my_roles).strip()
    inner = _named(snapshot, guide, space, "", frozenset()).strip() if snapshot else ""
    return _lines(_notes(message), _notes(snapshot) if snapshot else "", inner, text)


def quotation(message: Json, guide: Guide, space: str | None) -> str:
    """``message`` as others quote it: its files are named, because a quotation brings none."""
    files = (f"[{_FILE_WORDS.get(file.kind, file.kind)}]" for file in attachments(message) if file.kind != "sticker")
    return _lines(*files, markdown(message, guide, space))


def forwarded(message: Json) -> Json | None:
    """What was forwarded, as far as Discord shows it; None where nothing was."""
    snapshots = message.get("message_snapshots") or ()
    found = snapshots[0].get("message") if snapshots else None
    return found if isinstance(found, dict) else None


def _tokens(message: Json) -> Iterator[re.Match[str]]:
    for number, piece in enumerate(_CODE.split(message.get("content") or "")):
        if number % 2 == 0:
            yield from _TOKEN.finditer(piece)


def _named(message: Json, guide: Guide, space: str | None, me: str, my_roles: frozenset[str]) -> str:
    people = {str(one["id"]): name_of(one, one.get("member")) for one in message.get("mentions", ())}
    pieces = _CODE.split(message.get("content") or "")
    for number in range(0, len(pieces), 2):
        opens = number == 0
        pieces[number] = _without_us(pieces[number], me, my_roles, opens=opens) if me else pieces[number]
        pieces[number] = _TOKEN.sub(_namer(people, guide, space), pieces[number])
    return sanitize("".join(pieces))


def _without_us(text: str, me: str, my_roles: frozenset[str], *, opens: bool) -> str:
    """``text`` without our names; with "@bot, " before it, or in its middle, it would read oddly."""
    kept, place = [], 0
    for token in _TOKEN.finditer(text):
        if token["user"] != me and token["role"] not in my_roles:
            continue
        before = text[place : token.start()]
        kept.append(before)
        is_first = opens and not "".join(kept).strip()
        ends_word = is_first or before[-1:].isspace()
        rest = (_SALUTATION if is_first else _SPACES).match(text, token.end()) if ends_word else None
        place = rest.end() if rest else token.end()
    return "".join(kept) + text[place:]


def _namer(people: Mapping[str, str], guide: Guide, space: str | None) -> Callable[[re.Match[str]], str]:
    def name(token: re.Match[str]) -> str:
        kind = str(token.lastgroup)
        value = token[kind]
        match kind:
            case "user":
                return f"@{people.get(value) or value}"
            case "role":
                return f"@{guide.role(space, value) or value}"
            case "channel":
                return f"#{guide.channel(value) or value}"
            case "emoji":
                return f":{value}:"
            case "command":
                return f"/{value}"
        return _time(value)

    return name


def _time(seconds: str) -> str:
    try:
        return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return seconds


def _lines(*texts: str) -> str:
    return "\n".join(filter(None, texts))


# Notes --------------------------------------------------------------------------------------------------------------


def _notes(message: Json) -> str:
    """In brackets and on a line each; "" for text and for files."""
    return "\n".join(f"[{' '.join(sanitize(words).split())}]" for words in _words(message))


def _words(message: Json) -> Iterator[str]:
    for sticker in message.get("sticker_items") or ():
        yield f"sticker {sticker.get('name', '')}"
    if poll := message.get("poll"):
        options = "; ".join(_option(answer.get("poll_media") or {}) for answer in poll.get("answers", ()))
        yield f"poll: {(poll.get('question') or {}).get('text', '')} Options: {options}"
    if activity := message.get("activity"):
        yield f"invitation to an activity {activity.get('party_id', '')}"


def _option(media: Json) -> str:
    words = (media.get("text"), (media.get("emoji") or {}).get("name"))
    return " ".join(filter(None, words)) or "…"


# Files --------------------------------------------------------------------------------------------------------------


def attachments(message: Json) -> tuple[Attachment, ...]:
    """The files of a message, and of what it forwards. A ref names the message: Discord's own addresses expire."""
    found = []
    place = f"{message.get('channel_id')}/{message.get('id')}"
    for held in (message, forwarded(message) or {}):
        is_voice = bool(int(held.get("flags") or 0) & _VOICE)
        found += [_file(file, place, is_voice=is_voice) for file in held.get("attachments") or ()]
        found += [_sticker(one) for one in held.get("sticker_items") or () if one.get("format_type") in _STICKERS]
    return tuple(found)


def _file(file: Json, place: str, *, is_voice: bool) -> Attachment:
    media_type = sanitize(file.get("content_type") or "") or None
    name = "" if is_voice else sanitize(file.get("filename") or "")
    return Attachment(
        "voice" if is_voice else _kind(media_type),
        f"{place}/{file['id']}",
        name,
        file.get("size"),
        media_type,
        file.get("duration_secs"),
    )


def _kind(media_type: str | None) -> Literal["image", "audio", "video", "document"]:
    match (media_type or "").partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
    return "document"


def _sticker(sticker: Json) -> Attachment:
    ending = _STICKERS[sticker["format_type"]]
    return Attachment("sticker", f"sticker/{sticker['id']}.{ending}", "", None, f"image/{ending}")
