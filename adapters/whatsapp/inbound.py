"""What WhatsApp reports as neutral events.

Events of the library go in, as its protobuf has them, and out comes what they say; nothing is asked of anybody. Who may
talk to us, and whether we answer in a group, is decided elsewhere; here it is only said what WhatsApp said.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from adapters.message import (
    Address,
    Deleted,
    Edited,
    Inbound,
    Kind,
    Membership,
    Message,
    Moved,
    Quote,
    Reacted,
    Sender,
)
from adapters.text import sanitize
from adapters.whatsapp import content
from adapters.whatsapp.choices import Choices
from adapters.whatsapp.content import Content
from adapters.whatsapp.echoes import Echoes
from adapters.whatsapp.identity import GROUP, Identities, Jid, Person

log = logging.getLogger(__name__)

Event: TypeAlias = Any
"""``Neonize_pb2.Message``, ``JoinedGroup`` or ``GroupInfoEvent`` of the library."""

_MENTION = re.compile(r"@(\d{5,20})(?!\d)")
_SALUTATION = re.compile(r"[\s,:;]*")
_FORWARDED = "another chat"
_MILLISECONDS = 100_000_000_000
"""From here on a time is no number of seconds of this age."""


@dataclass(frozen=True, slots=True)
class Me:
    """The account: its addresses, ``name`` as others see it, and ``device``, the number this program is linked by."""

    jids: frozenset[Jid]
    name: str
    device: int = 0


@dataclass(frozen=True, slots=True)
class Reader:
    """For one account. ``self_chat``: what the account's owner writes to themselves is said to us."""

    account: str
    me: Me
    identities: Identities
    self_chat: bool = True
    echoes: Echoes = field(default_factory=Echoes)
    choices: Choices = field(default_factory=Choices)

    def events_of(self, event: Event, now: datetime) -> list[Inbound]:
        """What a message event says, in order; nothing for one that says nothing to us. ``now`` is aware."""
        source = event.Info.MessageSource
        chat = Jid.of(source.Chat)
        if chat is None or not (chat.is_person or chat.server == GROUP):
            return []  # a status, a list of recipients, a channel that is only read
        found = self._learned(source, now)
        said = self._said(event, chat, now)
        return [*found, said] if said is not None else found

    def joined(self, event: Event, now: datetime) -> list[Inbound]:
        """We are in a group from now on."""
        chat = Jid.of(event.GroupInfo.JID)
        if chat is None or chat.server != GROUP:
            return []
        by = Jid.of(event.Sender) or Jid.of(event.SenderPN)
        return [Membership(self._address(chat), self._sender(by or self._own(), ""), True, now)]

    def group_changed(self, event: Event, now: datetime) -> list[Inbound]:
        """Somebody came, left, or the group has another name: only what happened to us says something."""
        chat = Jid.of(event.JID)
        if chat is None or chat.server != GROUP:
            return []
        is_in, is_out = self._concerns_me(event.Join), self._concerns_me(event.Leave)
        if is_in == is_out:
            return []
        by = Jid.of(event.Sender) or self._own()
        return [Membership(self._address(chat), self._sender(by, ""), is_in, _time(event.Timestamp, now))]

    def _concerns_me(self, jids: Any) -> bool:
        return any(Jid.of(jid) in self.me.jids for jid in jids)

    def _learned(self, source: Any, now: datetime) -> list[Inbound]:
        """What the event tells of who is who, and which chat has another id by that."""
        told: list[tuple[Jid | None, ...]] = [(Jid.of(source.Sender), Jid.of(source.SenderAlt)), tuple(self.me.jids)]
        if source.IsFromMe and not source.IsGroup:
            told.append((Jid.of(source.Chat), Jid.of(source.RecipientAlt)))
        moved: dict[str, Inbound] = {}
        for jids in told:
            learned = self.identities.learn(jids)
            if learned is not None and learned.was is not None:
                moved[learned.was] = Moved(self._direct(learned.was), learned.person.id, now)
        return [*moved.values()]

    # What is said -----------------------------------------------------------------------------------------------------

    def _said(self, event: Event, chat: Jid, now: datetime) -> Inbound | None:
        said = content.opened(event.Message)
        if self._is_ours(event, chat, said):
            return None
        if said.body.HasField("protocolMessage"):
            return self._of_another(event, chat, said.body.protocolMessage, now)
        if said.body.HasField("reactionMessage"):
            return self._reacted(event, chat, said.body.reactionMessage, now)
        if not said.kind:
            if not said.body.ListFields():
                log.info("whatsapp/%s: message %s is empty, and ignored", self.account, event.Info.ID)
            return None
        message = self._message(event, chat, said, now)
        return None if message is None else self.choices.read(message)

    def _is_ours(self, event: Event, chat: Jid, said: Content) -> bool:
        """Whether the account itself said it, be it by another device: to us it speaks only in the chat with itself."""
        source = event.Info.MessageSource
        if not source.IsFromMe:
            return False
        if not self.self_chat or chat not in self.me.jids:
            return True
        by_this_device = bool(self.me.device) and source.Sender.Device == self.me.device
        return by_this_device or self.echoes.is_ours(self._address(chat).chat, event.Info.ID, content.typed(said))

    def _message(self, event: Event, chat: Jid, said: Content, now: datetime) -> Message | None:
        context = said.context
        text = content.markdown(said, self._renamed(context))
        attachments = content.attachments(said)
        called = context is not None and self._is_called(context)
        if not (text or attachments or called):
            log.info("whatsapp/%s: message %s is blank, and ignored", self.account, event.Info.ID)
            return None
        return Message(
            event.Info.ID,
            self._address(chat),
            self._author(event, chat),
            text,
            _time(event.Info.Timestamp, now),
            attachments=attachments,
            quote=self._quote(chat, context),
            reply_to=(context.stanzaID or None) if context is not None else None,
            forwarded_from=_FORWARDED if context is not None and context.isForwarded else None,
            mentions_me=called,
            album=said.album,
        )

    def _is_called(self, context: Any) -> bool:
        """By a mention, or by an answer to a message of ours that doesn't call somebody else."""
        if context.isForwarded:
            return False
        mentioned = {Jid.parse(text) for text in context.mentionedJID}
        if mentioned & self.me.jids:
            return True
        return not mentioned and bool(context.stanzaID) and Jid.parse(context.participant) in self.me.jids

    def _quote(self, chat: Jid, context: Any) -> Quote | None:
        """The message that this one answers, unless it is ours and so known."""
        if context is None or not context.HasField("quotedMessage"):
            return None
        by = Jid.parse(context.participant)
        if by in self.me.jids and chat not in self.me.jids:
            return None
        quoted = content.opened(context.quotedMessage)
        text, files = content.quotation(quoted, self._renamed(quoted.context)), content.attachments(quoted)
        return Quote(text, self._shown(by) if by else "", attachments=files) if text or files else None

    def _renamed(self, context: Any) -> Callable[[str], str]:
        """Numbers in mentions become what people know; a mention of us that comes first only says who is spoken to."""
        named = (Jid.parse(text) for text in (context.mentionedJID if context is not None else ()))
        mentioned = [jid for jid in named if jid and jid.is_person]  # what else stands there is the sender's own text
        names = {jid.user: self._shown(jid) for jid in mentioned}
        mine = {jid.user for jid in mentioned if jid in self.me.jids}

        def renamed(text: str) -> str:
            first = _MENTION.match(text.lstrip())
            if first and first[1] in mine:
                text = text.lstrip()[first.end() :]
                text = text[len(_SALUTATION.match(text)[0]) :]  # type: ignore[index]  # matches everywhere
            return _MENTION.sub(lambda found: f"@{names.get(found[1], found[1])}", text)

        return renamed

    def _shown(self, jid: Jid) -> str:
        """What a person is called where nobody says a name: by the phone number, if it is known."""
        if jid in self.me.jids:
            return self.me.name
        person = self.identities.person(jid)
        return (*person.aliases, jid.id.removesuffix("@lid"))[0]

    # What is said of another message ----------------------------------------------------------------------------------

    def _of_another(self, event: Event, chat: Jid, protocol: Any, now: datetime) -> Edited | Deleted | None:
        target = protocol.key.ID
        if not target:
            return None
        at = _time(protocol.timestampMS or event.Info.Timestamp, now)
        if protocol.type == protocol.REVOKE and protocol.HasField("type"):
            return Deleted(target, self._address(chat), at, self._author(event, chat))
        if protocol.type != protocol.MESSAGE_EDIT or not protocol.HasField("editedMessage"):
            return None
        said = content.opened(protocol.editedMessage)
        text = content.markdown(said, self._renamed(said.context))
        return Edited(target, self._address(chat), self._author(event, chat), text, at) if text else None

    def _reacted(self, event: Event, chat: Jid, reaction: Any, now: datetime) -> Reacted | None:
        """None for a reaction to somebody else's message: we are told of it, and it says nothing to us."""
        key = reaction.key
        by = Jid.parse(key.participant)
        is_ours = by in self.me.jids if by is not None else not key.fromMe and not event.Info.MessageSource.IsGroup
        if not is_ours or not key.ID:
            return None
        at = _time(reaction.senderTimestampMS or event.Info.Timestamp, now)
        return Reacted(key.ID, self._address(chat), self._author(event, chat), sanitize(reaction.text), at)

    # Where and who ----------------------------------------------------------------------------------------------------

    def _address(self, chat: Jid) -> Address:
        kind: Kind = "group" if chat.server == GROUP else "direct"
        return Address("whatsapp", self.account, self.identities.meet(chat).id, kind)

    def _direct(self, chat: str) -> Address:
        return Address("whatsapp", self.account, chat, "direct")

    def _author(self, event: Event, chat: Jid) -> Sender:
        return self._sender(Jid.of(event.Info.MessageSource.Sender) or chat, event.Info.Pushname)

    def _sender(self, jid: Jid, name: str) -> Sender:
        person: Person = self.identities.meet(jid)
        return Sender(person.id, sanitize(name), person.aliases)

    def _own(self) -> Jid:
        return min(self.me.jids, key=lambda jid: jid.server)


def _time(said: int, now: datetime) -> datetime:
    """Seconds or milliseconds since 1970; ``now`` where it is no time."""
    seconds = said / 1000 if said >= _MILLISECONDS else float(said)
    try:
        return datetime.fromtimestamp(seconds, UTC) if said > 0 else now
    except (OverflowError, ValueError, OSError):
        return now
