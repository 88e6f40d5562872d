"""One event of the library on its way in: read, stored by the hub, and only then done.

One after the other, as the library reports them. What can't be read is skipped by itself, and logged without a word of
what it says. Knows no thread and no connection.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from adapters.adapter import Accept
from adapters.message import Inbound, Message, Moved, Pressed
from adapters.rounds import StoreError
from adapters.whatsapp import content
from adapters.whatsapp.acquaintances import Acquaintances
from adapters.whatsapp.heard import Heard, Said
from adapters.whatsapp.identity import LID, Jid
from adapters.whatsapp.inbound import Reader
from adapters.whatsapp.ours import Ours

log = logging.getLogger(__name__)

SAID = ("Message", "JoinedGroup", "GroupInfoEvent")
"""The events that may say something."""


class Directory(Protocol):
    """Who knows which addresses are the same person's. Both give None where that is not known."""

    async def phone_of(self, lid: Jid) -> Jid | None: ...
    async def lid_of(self, phone: Jid) -> Jid | None: ...


class Intake:
    """Hands the events of one account to ``accept``, but for messages from before ``since``. ``now`` is aware."""

    def __init__(
        self,
        reader: Reader,
        accept: Accept,
        ours: Ours,
        heard: Heard,
        acquaintances: Acquaintances,
        *,
        since: datetime,
        now: Callable[[], datetime],
    ) -> None:
        self.reader = reader
        self.since = since
        self._accept = accept
        self._ours = ours
        self._heard = heard
        self._acquaintances = acquaintances
        self._now = now
        self._taking = asyncio.Lock()
        self._old = 0

    async def take(self, kind: str, event: Any, directory: Directory | None = None) -> None:
        """Returns once all of it that has to be kept is. Raises StoreError where it could not be: it is to come again.

        ``directory`` is asked who wrote it, where the event does not say; None where nobody can be asked.
        """
        async with self._taking:
            found = await self._read(kind, event, directory)
            await self._save()  # first: what the hub stores it stores by these ids
            for said in found:
                if isinstance(said, Message | Pressed):
                    await self._note(said, event)  # first as well: it may be answered before the hub returns
                await self._store(said)
                if isinstance(said, Moved):  # until then it is said again
                    self.reader.identities.moved(said.address.chat)

    def summed_up(self) -> None:
        """All that came while we were away was reported by now."""
        if self._old:
            what = "whatsapp/%s: messages that are older than history_hours, and not answered: %d"
            log.warning(what, self.reader.account, self._old)
            self._old = 0

    async def _read(self, kind: str, event: Any, directory: Directory | None) -> list[Inbound]:
        now = self._now()
        try:
            match kind:
                case "JoinedGroup":
                    return self.reader.joined(event, now)
                case "GroupInfoEvent":
                    return self.reader.group_changed(event, now)
            if directory is not None:
                await self._complete(event.Info.MessageSource, directory)
            await self._take_back(event)
            found = self.reader.events_of(event, now)
        except Exception as error:  # one that can't be read must not hold up those behind it
            log.warning("whatsapp/%s: an event was skipped, it can't be read: %s", self.reader.account, _where(error))
            return []
        return [said for said in found if not self._is_old(said)]

    def _is_old(self, said: Inbound) -> bool:
        is_old = isinstance(said, Message | Pressed) and said.sent_at < self.since
        self._old += is_old
        return is_old

    async def _complete(self, source: Any, directory: Directory) -> None:
        """Fill in the other address of a person who is known by one only."""
        told = [(source.Sender, source.SenderAlt)]
        if source.IsFromMe and not source.IsGroup:
            told.append((source.Chat, source.RecipientAlt))
        for jid, alt in told:
            known = Jid.of(jid)
            if known is None or Jid.of(alt) is not None or self.reader.identities.person(known).aliases:
                continue
            other = await _other(known, directory)
            if other is not None:
                alt.User, alt.Server = other.user, other.server

    async def _take_back(self, event: Any) -> None:
        """A message of ours that we take back, on another device, is there no more.

        What others say of it counts for nothing: anybody in the chat can say so, and the answer would come again.
        """
        body = content.opened(event.Message).body
        protocol = body.protocolMessage
        chat = Jid.of(event.Info.MessageSource.Chat)
        is_revoked = body.HasField("protocolMessage") and protocol.HasField("type") and protocol.type == protocol.REVOKE
        if chat is not None and is_revoked and event.Info.MessageSource.IsFromMe:
            await self._ours.gone(self.reader.identities.person(chat).id, protocol.key.ID)

    async def _store(self, said: Inbound) -> None:
        try:
            await self._accept(said)
        except Exception as error:
            raise StoreError(f"a message could not be stored ({type(error).__name__}): it is tried again") from error

    async def _note(self, said: Message | Pressed, event: Any) -> None:
        """That it was heard, and that its author may be written to."""
        source = event.Info.MessageSource
        chat, author = Jid.of(source.Chat), Jid.of(source.Sender)
        if chat is None or author is None:
            return
        await self._ours.wrote(said.address.chat)
        if isinstance(said, Pressed):
            await self._ours.taken(said.address.chat, said.message_id)
        text = said.text if isinstance(said, Message) else ""
        self._heard.note(said.address.chat, said.id, Said(chat, author, text), is_own=source.IsFromMe)

    async def _save(self) -> None:
        try:
            await asyncio.to_thread(self._acquaintances.save, self.reader.identities)
        except OSError as error:
            log.warning("whatsapp/%s: who is who could not be kept: %s", self.reader.account, error)


async def _other(known: Jid, directory: Directory) -> Jid | None:
    if not known.is_person:
        return None
    return await (directory.phone_of(known) if known.server == LID else directory.lid_of(known))


def _where(error: Exception) -> str:
    """The kind of a fault and the line it came from: its words may be a person's."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
