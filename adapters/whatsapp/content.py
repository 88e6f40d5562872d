"""What a WhatsApp message holds: its text, its files, and in square brackets what is neither.

Nothing that a person sent is passed over in silence: what this program has no words for is named as such. What is to be
seen once is not kept. Knows no sender and no chat, and takes messages as the library's protobuf has them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from adapters.errors import Rejected
from adapters.message import Attachment
from adapters.text import sanitize

Body: TypeAlias = Any
"""``waE2E.Message`` of the library: one field of it is set, and says what it is."""

_DEEPEST = 8
"""A message lies in at most three others; more is an attack."""

_SILENT = frozenset(
    {
        *("messageContextInfo", "senderKeyDistributionMessage", "fastRatchetKeySenderKeyDistributionMessage"),
        *("protocolMessage", "reactionMessage", "encReactionMessage", "pollUpdateMessage", "pollResultSnapshotMessage"),
        *("pollResultSnapshotMessageV3", "pollAddOptionMessage", "keepInChatMessage", "pinInChatMessage"),
        *("encEventResponseMessage", "encCommentMessage", "call", "callLogMesssage", "bcallMessage", "chat"),
        *("stickerSyncRmrMessage", "albumMessage", "messageHistoryBundle", "messageHistoryNotice"),
        *("secretEncryptedMessage", "placeholderMessage", "groupRootKeyShare", "rootSecretDistributeMessage"),
        *("statusMentionMessage", "groupStatusMentionMessage", "limitSharingMessage", "acp2SettingMessage"),
        *("scheduledCallEditMessage", "splitPaymentUpdateMessage", "botTaskMessage"),
    }
)
"""What devices tell each other, and what is said of another message: nothing that starts a talk."""

_VIEW_ONCE = frozenset({"viewOnceMessage", "viewOnceMessageV2", "viewOnceMessageV2Extension"})
_FILE_WORDS = {"image": "photo", "audio": "audio", "voice": "voice message", "video": "video", "document": "file"}

_MEDIA: dict[str, Literal["image", "audio", "video", "document", "sticker"]] = {
    "imageMessage": "image",
    "audioMessage": "audio",
    "videoMessage": "video",
    "ptvMessage": "video",
    "documentMessage": "document",
    "stickerMessage": "sticker",
}
_KEYS = ("directPath", "mediaKey", "fileSHA256", "fileEncSHA256", "fileLength", "mimetype")
"""What it takes to fetch a file and to read it. Not its ``URL``: the sender wrote that, and it may lead anywhere."""

_CODE = re.compile(r"(```.+?```|`[^`\n]+`)", re.DOTALL)
_BOLD = re.compile(r"(?<![\w*])\*(?![\s*])([^*\n]*[^\s*])\*(?![\w*])")
_STRIKE = re.compile(r"(?<![\w~])~(?![\s~])([^~\n]*[^\s~])~(?![\w~])")
_VCARD_NUMBER = re.compile(r"^(?:\w+\.)?TEL[^:\n]*:(.+)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Content:
    """A message out of its wrappings. ``kind`` is what it is, as WhatsApp calls it; "" where it says nothing."""

    body: Body
    kind: str
    is_view_once: bool

    @property
    def own(self) -> Any:
        """What the message is: text, or one of the library's messages."""
        return getattr(self.body, self.kind)

    @property
    def context(self) -> Any:
        """What it answers and whom it names; None where it says nothing of that."""
        own = None if self.kind in ("", "conversation") else self.own
        if own is None or "contextInfo" not in own.DESCRIPTOR.fields_by_name or not own.HasField("contextInfo"):
            return None
        return own.contextInfo

    @property
    def album(self) -> str | None:
        """The message whose pictures this one is of."""
        context = self.body.messageContextInfo
        association = context.messageAssociation
        is_album = association.associationType == association.MEDIA_ALBUM
        return (association.parentMessageKey.ID or None) if is_album else None


def opened(body: Body) -> Content:
    """``body`` out of what WhatsApp wraps messages in: that they vanish, that they are to be seen once, and more."""
    is_view_once = False
    for _ in range(_DEEPEST):
        inner = next(((field.name, own.message) for field, own in body.ListFields() if _wraps(field, own)), None)
        if inner is None:
            break
        is_view_once = is_view_once or inner[0] in _VIEW_ONCE
        body = inner[1]
    kind = next((field.name for field, own in body.ListFields() if field.name not in _SILENT), "")
    own: Any = getattr(body, kind) if kind else None
    marked = kind not in ("", "conversation") and "viewOnce" in own.DESCRIPTOR.fields_by_name and own.viewOnce
    return Content(body, kind, bool(is_view_once or marked))


def _wraps(field: Any, own: Any) -> bool:
    kind = field.message_type
    return kind is not None and kind.name in ("FutureProofMessage", "DeviceSentMessage") and own.HasField("message")


# Text ---------------------------------------------------------------------------------------------------------------


def typed(said: Content) -> str:
    """The text as it was typed, be it a caption."""
    match said.kind:
        case "conversation":
            return str(said.own)
        case "extendedTextMessage":
            return str(said.own.text)
        case "imageMessage" | "videoMessage" | "ptvMessage" | "documentMessage" | "liveLocationMessage":
            return str(said.own.caption)
    return ""


def markdown(said: Content, renamed: Callable[[str], str] = str) -> str:
    """What it says: what it is besides text and files, and below that its text, in which ``renamed`` changed names."""
    if said.is_view_once:
        what = "photo" if said.kind == "imageMessage" else "video" if said.kind == "videoMessage" else "message"
        return f"[a {what} to be seen once: it is not kept, and can't be seen here]"
    return _lines(_note(said), as_markdown(sanitize(renamed(typed(said)))).strip())


def quotation(said: Content, renamed: Callable[[str], str] = str) -> str:
    """``said`` as others quote it: its files are named."""
    named = [f"[{word}]" for file in attachments(said) if (word := _FILE_WORDS.get(file.kind))]
    return _lines(*named, markdown(said, renamed))


def as_markdown(text: str) -> str:
    """WhatsApp's marks as Markdown's; italic and code are the same in both. What was typed is not escaped."""
    pieces = _CODE.split(text)
    for place in range(0, len(pieces), 2):
        pieces[place] = _STRIKE.sub(r"~~\1~~", _BOLD.sub(r"**\1**", pieces[place]))
    return "".join(pieces)


def _lines(*texts: str) -> str:
    return "\n".join(filter(None, texts))


# Notes --------------------------------------------------------------------------------------------------------------


def _note(said: Content) -> str:
    """In brackets and on one line; "" for text and for files."""
    words = _words(said)
    return f"[{' '.join(sanitize(words).split())}]" if words else ""


def _words(said: Content) -> str:
    own: Any = said.own if said.kind else None
    match said.kind:
        case "" | "conversation" | "extendedTextMessage":
            return ""
        case "stickerMessage":
            return f"sticker {own.emojis or own.accessibilityLabel}"
        case kind if kind in _MEDIA:
            return ""
        case "locationMessage":
            named = ", ".join(filter(None, (own.name, own.address)))
            return f"place: {named} ({_where(own)})" if named else f"location: {_where(own)}"
        case "liveLocationMessage":
            return f"live location: {_where(own)}"
        case "contactMessage":
            return f"contact: {_contact(own)}"
        case "contactsArrayMessage":
            return f"contacts: {'; '.join(_contact(one) for one in own.contacts)}"
        case kind if kind.startswith("pollCreationMessage") and hasattr(own, "options"):
            return f"poll: {own.name} Options: {'; '.join(option.optionName for option in own.options)}"
        case "eventMessage":
            return f"event: {': '.join(filter(None, (own.name, own.description)))}"
        case "groupInviteMessage":
            return f"invitation to the group {own.groupName}"
        case "buttonsResponseMessage":
            return f"choice: {own.selectedDisplayText}"
        case "listResponseMessage":
            return f"choice: {own.title}"
        case "templateButtonReplyMessage":
            return f"choice: {own.selectedDisplayText}"
    return f"something this program can't read: {said.kind}"


def _where(own: Any) -> str:
    """To about a metre."""
    return f"{round(own.degreesLatitude, 5)}, {round(own.degreesLongitude, 5)}"


def _contact(own: Any) -> str:
    return ", ".join(filter(None, (own.displayName, *(found.strip() for found in _VCARD_NUMBER.findall(own.vcard)))))


# Files --------------------------------------------------------------------------------------------------------------


def attachments(said: Content) -> tuple[Attachment, ...]:
    """At most one: an album comes as several messages. None of what is to be seen once."""
    kind = _MEDIA.get(said.kind)
    if kind is None or said.is_view_once or not said.own.mediaKey:
        return ()
    own = said.own
    is_voice = kind == "audio" and own.PTT
    name = (own.fileName or own.title) if kind == "document" else ""
    seconds = float(own.seconds) if kind in ("audio", "video") and own.HasField("seconds") else None
    size = int(own.fileLength) if own.HasField("fileLength") else None
    media_type = sanitize(own.mimetype).partition(";")[0].strip() or None
    return (Attachment("voice" if is_voice else kind, _ref(said), sanitize(name), size, media_type, seconds),)


def _ref(said: Content) -> str:
    """The message with nothing but what it takes to fetch its file: all of it is in the message, and nowhere else."""
    body = type(said.body)()
    own = getattr(body, "videoMessage" if said.kind == "ptvMessage" else said.kind)
    for key in _KEYS:
        if said.own.HasField(key):
            setattr(own, key, getattr(said.own, key))
    return base64.urlsafe_b64encode(body.SerializeToString(deterministic=True)).decode().rstrip("=")


def file_of(ref: str, make: Callable[[], Body]) -> Content:
    """The message that ``ref`` stands for; ``make`` makes an empty one. Raises Rejected for what is no ref of ours."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it has no types

    body = make()
    try:
        body.ParseFromString(base64.b64decode(ref + "=" * (-len(ref) % 4), altchars=b"-_", validate=True))
        said = opened(body)
    except (ValueError, DecodeError):
        said = None
    if said is None or said.kind not in _MEDIA or not said.own.mediaKey:
        raise Rejected(f"no file of WhatsApp is called {ref[:20]!r}")
    return said
