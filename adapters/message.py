"""The neutral messages every door speaks: what comes in, and what goes out.

All values are frozen. Nothing platform-specific leaks through, and there is no bag of extra keys: what a platform
adds is either a field here or it is lost. Knows no agent, no workspace and no platform library.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from adapters.text import FormattedText

Kind: TypeAlias = Literal["direct", "group", "channel"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a message was said, and so where its answer belongs.

    ``channel`` is the platform ("telegram", "terminal"), ``account`` the name of our bot there as the configuration
    calls it, ``space`` the guild or team that holds the chat, ``chat`` the platform's own id of the conversation,
    ``parent`` the chat that ``thread`` belongs to when the platform gives threads ids of their own. ``private`` is
    true where the audience is smaller than that of the parent. ``None`` means the platform has no such thing here.
    """

    channel: str
    account: str
    chat: str
    kind: Kind
    space: str | None = None
    parent: str | None = None
    thread: str | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class Sender:
    """Who said it. Only ``id`` and ``aliases`` ever decide anything: names can be changed by their owner at will.

    ``aliases`` are other ids of the same person on the same platform (a phone number beside a LID). ``is_shared`` is
    true for an id that several people speak through (an anonymous group admin, a channel post, a webhook): such an
    id never holds a level.
    """

    id: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    is_bot: bool = False
    is_shared: bool = False

    @property
    def ids(self) -> frozenset[str]:
        """All ids of the person."""
        return frozenset((self.id, *self.aliases))

    def is_person_of(self, other: Sender) -> bool:
        """Whether the two are one person on one platform."""
        return not self.ids.isdisjoint(other.ids)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message. Its bytes are had from ``Adapter.fetch(ref, limit)``.

    ``size`` is in bytes and ``seconds`` how long it plays, None when the platform does not say. ``ref`` is opaque and
    stays valid across a restart.
    """

    kind: Literal["image", "audio", "voice", "video", "document", "sticker"]
    ref: str
    name: str = ""
    size: int | None = None
    media_type: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """The part of an earlier message that this one quotes: foreign text, whoever wrote it.

    ``below``: it follows the words, which speak of it (what a pipe brought), instead of preceding them.
    ``attachments`` are the files of that message: who answers a picture speaks of the picture.
    """

    text: str
    author: str = ""
    below: bool = False
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something that ``sender`` said before, in Markdown; None for us. The hub decides whether it may be known."""

    sender: Sender | None
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """Something a person said. ``text`` is Markdown; ``sent_at`` is aware; ``id`` is unique within the chat.

    ``context`` is what stands above it there and was not handed on: oldest first, of a thread that we were called into.

    ``album`` is the same for messages that were sent as one (pictures, each with its caption), and ``is_cut`` is true
    where the text is so long that the rest of it may come as the next message.
    """

    id: str
    address: Address
    sender: Sender
    text: str
    sent_at: datetime
    attachments: tuple[Attachment, ...] = ()
    quote: Quote | None = None
    reply_to: str | None = None
    forwarded_from: str | None = None
    mentions_me: bool = False
    album: str | None = None
    is_cut: bool = False
    context: tuple[Spoken, ...] = ()


@dataclass(frozen=True, slots=True)
class Edited:
    """A person changed what they had said. Never a second turn."""

    id: str
    address: Address
    sender: Sender
    text: str
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Deleted:
    """A message was taken back; ``id`` is the message's own.

    ``sender`` did it; None where the platform sees to it that only those do who may.
    """

    id: str
    address: Address
    sent_at: datetime
    sender: Sender | None = None


@dataclass(frozen=True, slots=True)
class Reacted:
    """``emoji`` was put on message ``id``; an empty ``emoji`` means that the reaction was taken back."""

    id: str
    address: Address
    sender: Sender
    emoji: str
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button of message ``message_id`` was pressed; ``data`` is what the button carries, as ``sender``'s words."""

    id: str
    address: Address
    sender: Sender
    message_id: str
    data: str
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Moved:
    """The chat has a new id from now on (a Telegram group that became a supergroup); it is the same chat."""

    address: Address
    to_chat: str
    sent_at: datetime


@dataclass(frozen=True, slots=True)
class Membership:
    """We were added to a chat (``present``) or are no longer in it. ``sender`` did it."""

    address: Address
    sender: Sender
    present: bool
    sent_at: datetime


Inbound: TypeAlias = Message | Edited | Deleted | Reacted | Pressed | Moved | Membership


@dataclass(frozen=True, slots=True)
class File:
    """A file to send: its bytes lie at ``path`` on this disk, and people see it as ``name``.

    A "voice" is played in the chat; where a platform can't play it in the form it has, it is sent as "audio".
    """

    kind: Literal["image", "audio", "voice", "video", "document"]
    path: str
    name: str


@dataclass(frozen=True, slots=True)
class Button:
    """What a person can press instead of writing ``data``, which comes back as ``Pressed``: at most 64 bytes."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class Part:
    """One send: at most one platform message, or one album. ``reply_to`` is a message id in the same chat, or None.

    ``files`` are sent with ``text`` as their caption: as many as ``Capabilities.album`` takes, with a text within its
    ``caption_limit``. ``buttons`` are rows below the text. ``question`` is what it answers, shortened to a line, for a
    place that shows it long after it was asked; else "".
    """

    address: Address
    text: FormattedText
    reply_to: str | None = None
    question: str = ""
    files: tuple[File, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The platform took the part: its message id there, None where the platform gives none (the terminal)."""

    message_id: str | None
