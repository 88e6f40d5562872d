"""A part of an answer as the message that WhatsApp takes.

It is made here and not by the library, which would call whomever a number behind an ``@`` belongs to, and look up
pages for a preview. Here only those are called whom the account knows. Pure, but for the library's protobuf.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters.errors import Rejected
from adapters.message import Part
from adapters.text import FormattedText, utf16_length
from adapters.whatsapp.choices import with_choices
from adapters.whatsapp.library import load
from adapters.whatsapp.markup import rendered

if TYPE_CHECKING:
    from adapters.whatsapp.identity import Jid

TEXT_LIMIT = 4000
"""UTF-16 code units of one message: what people read in one piece. WhatsApp takes more."""

LONGEST = 65_000
"""UTF-16 code units of it with its marks, a little below what clients show."""

_MENTION = re.compile(r"```.+?```|`[^`\n]+`|@\+?([1-9]\d{4,14})(?!\d)", re.DOTALL)
"""Or code, in which nobody is called."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The message that is answered. WhatsApp shows as its words what the answer says they were: ``text``."""

    message: str
    author: Jid
    text: str


def text_of(part: Part) -> str:
    """What ``part`` says, with its choices. Raises Rejected where that is no message."""
    if not (part.text or part.buttons):
        raise Rejected("a blank message: WhatsApp shows none")
    if measure(part.text) > TEXT_LIMIT:
        raise Rejected(f"the text is longer than the {TEXT_LIMIT} characters of one message")
    text = rendered(with_choices(part.text, part.buttons))
    if utf16_length(text) > LONGEST:
        raise Rejected("its links make the text longer than WhatsApp takes", formatting=True)
    return text


def measure(text: FormattedText) -> int:
    """In UTF-16 code units, without the marks: the limit is ours, and far below WhatsApp's."""
    return utf16_length(text.plain)


def with_mentions(text: str, known: Callable[[str], Jid | None]) -> tuple[str, tuple[Jid, ...]]:
    """``text`` and whom it calls: those whom ``known`` has an address for by the number that stands behind an ``@``."""
    called: dict[Jid, None] = {}

    def named(found: re.Match[str]) -> str:
        jid = known(found[1]) if found[1] else None
        if jid is None:
            return found[0]
        called[jid] = None
        return f"@{jid.user}"

    return _MENTION.sub(named, text), tuple(called)


def context_of(answered: Answered | None, mentioned: Sequence[Jid] = ()) -> Any | None:
    """What a message answers, and whom it calls; None where it does neither."""
    if answered is None and not mentioned:
        return None
    bodies = load().bodies
    context = bodies.ContextInfo(mentionedJID=[str(jid) for jid in mentioned])
    if answered is not None:
        context.stanzaID = answered.message
        context.participant = str(answered.author)
        context.quotedMessage.conversation = answered.text
    return context


def body_of(text: str, context: Any | None = None) -> Any:
    """The message that says ``text``."""
    bodies = load().bodies
    if context is None:
        return bodies.Message(conversation=text)
    return bodies.Message(extendedTextMessage=bodies.ExtendedTextMessage(text=text, contextInfo=context))


def edit_of(text: str, chat: Jid, message: str, now_ms: int) -> Any:
    """The message that makes ``message``, an own one, say ``text``."""
    library = load()
    bodies = library.bodies
    change = bodies.ProtocolMessage(
        key=library.keys.MessageKey(fromMe=True, ID=message, remoteJID=str(chat)),
        type=bodies.ProtocolMessage.MESSAGE_EDIT,
        editedMessage=body_of(text),
        timestampMS=now_ms,
    )
    inner = bodies.Message(protocolMessage=change)
    return bodies.Message(editedMessage=bodies.FutureProofMessage(message=inner))


def reaction_of(emoji: str, chat: Jid, message: str, author: Jid | None, now_ms: int) -> Any:
    """The message that puts ``emoji`` on ``message``, and "" takes it away. ``author`` is None in a direct chat."""
    library = load()
    by = str(author) if author else None
    key = library.keys.MessageKey(fromMe=False, ID=message, remoteJID=str(chat), participant=by)
    reaction = library.bodies.ReactionMessage(key=key, text=emoji, senderTimestampMS=now_ms)
    return library.bodies.Message(reactionMessage=reaction)


def revoke_of(chat: Jid, message: str) -> Any:
    """The message that takes back ``message``, an own one."""
    library = load()
    key = library.keys.MessageKey(fromMe=True, ID=message, remoteJID=str(chat))
    change = library.bodies.ProtocolMessage(key=key, type=library.bodies.ProtocolMessage.REVOKE)
    return library.bodies.Message(protocolMessage=change)
