"""What becomes of each inbound event: a turn, something to know for the next one, or nothing.

A message that is for us waits in the inbox; what others say in a group is kept as context; a change is one of the
message as long as it waits, and context once it was answered; a pressed button is its presser's words. None but a
message and a press ever starts a turn. Knows no platform and no agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

import structlog

from adapters.adapter import Adapter, Narrator, TurnReport
from adapters.message import (
    Deleted,
    Edited,
    Inbound,
    Membership,
    Message,
    Moved,
    Part,
    Pressed,
    Reacted,
)
from adapters.text import FormattedText
from bot import commands
from bot.access import Decision, Verdict
from bot.queueing import PRESS
from bot.turns import EXIT_TEMPORARY, Turns
from workspaces.database import sqlite
from workspaces.scope import Level

if TYPE_CHECKING:
    from bot.admission import Admission
    from bot.gate import Gate
    from bot.hindrance import Hindrance
    from bot.inbox import SqliteInbox
    from bot.limits import Limits
    from bot.outbox import SqliteOutbox
    from bot.overheard import Overheard
    from bot.owners import Owners

log = structlog.get_logger(__name__)

OVER = "That turn ended while the connection was lost. Ask again, or look at what was said: limpet chat"


class Reception:
    """Takes what the adapters hand on. What has to be durable is durable when ``accept`` returns."""

    def __init__(
        self,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        gate: Gate,
        admission: Admission,
        owners: Owners,
        inbox: SqliteInbox,
        outbox: SqliteOutbox,
        overheard: Overheard,
        turns: Turns,
        hindrance: Hindrance,
        limits: Limits,
    ) -> None:
        self._adapters = adapters
        self._gate = gate
        self._people = gate.people
        self._admission = admission
        self._owners = owners
        self._inbox = inbox
        self._outbox = outbox
        self._overheard = overheard
        self._turns = turns
        self._hindrance = hindrance
        self._limits = limits

    async def accept(self, event: Inbound) -> None:
        """Take one event. Raises only where it can't be stored now, so that the platform brings it again."""
        try:
            await self._take(event)
        except (OSError, sqlite().Error) as error:
            if told := self._hindrance.of(error):
                raise told from error
            raise
        except Exception:  # its own fault: read again and again it would hold up everything behind it
            kind, address = type(event).__name__.lower(), event.address
            log.exception("event.refused", kind=kind, channel=address.channel, account=address.account)

    async def _take(self, event: Inbound) -> None:
        match event:
            case Message():
                await self._message(event)
            case Pressed():
                await self._message(_pressed(event))
            case Edited():
                await self._edited(event)
            case Deleted(id=message, address=address, sender=by):
                await self._overheard.drop(address, message)
                if await self._inbox.retract(address, message, by):
                    log.info("message.retracted", channel=address.channel)
            case Reacted():
                await self._reacted(event)
            case Moved(address=address, to_chat=to_chat):
                await self._people.move(address, to_chat)
            case Membership():
                await self._admission.joined(event)
            case _:
                assert_never(event)

    async def _message(self, message: Message) -> None:
        verdict = await self._gate.judge(message)
        match verdict.decision:
            case Decision.DENY:
                log.info("message.denied", channel=message.address.channel, reason=verdict.reason)
            case Decision.PAIR:
                await self._admission.ask_to_pair(message)
            case Decision.OVERHEAR:
                await self._hear(message, verdict)
            case Decision.ALLOW if await self._inbox.turn_of(message) is not None:
                await self._said_again(message)  # a replay counts for nothing
            case Decision.ALLOW if (refusal := self._limits.refusal(message)) is not None:
                await self._refuse(message, refusal)
            case Decision.ALLOW:
                if verdict.level is Level.OWNER and message.address.kind == "direct":
                    await self._owners.wrote(message.address, message.sender)
                if not await self._turns.take(message, (await self._gate.explain(message, verdict)).route.session):
                    await self._said_again(message)
            case _:
                assert_never(verdict.decision)

    async def _refuse(self, message: Message, words: str) -> None:
        """Say ``words`` of a message that is not read, "" for nothing more."""
        address = message.address
        log.warning("message.over_limit", channel=address.channel, account=address.account, chat=address.chat)
        if words:
            turn = "/".join(("limit", address.channel, address.account, address.chat, message.id))
            await self._outbox.put(turn, [Part(address, FormattedText(words))])

    async def _hear(self, message: Message, verdict: Verdict) -> None:
        session = (await self._gate.explain(message, verdict)).route.session
        files = [f"[{file.kind}]" for file in message.attachments]
        text = " ".join(part for part in (*files, message.text) if part)
        name = message.sender.name or message.sender.id
        await self._overheard.keep(session, message.address, message.id, kind="said", name=name, text=text)

    async def _edited(self, event: Edited) -> None:
        """A message that waits changes; one that was answered is not answered again, but its change is known.

        What somebody says in it who may not be heard any more is not known.
        """
        said = Message(event.id, event.address, event.sender, event.text, event.sent_at, mentions_me=True)
        if (await self._gate.judge(said)).decision is not Decision.ALLOW:
            return
        if await self._inbox.amend(event) or await self._overheard.amend(event.address, event.id, event.text):
            return
        if await self._inbox.turn_of(said) is not None and (session := await self._session(said)):
            name = event.sender.name or event.sender.id
            await self._overheard.keep(session, event.address, event.id, kind="changed", name=name, text=event.text)

    async def _reacted(self, event: Reacted) -> None:
        """What people make of our own messages is worth knowing; of others', it is not. Platforms tell of no thread."""
        where = await self._outbox.sent(event.address, event.id)
        if where is None:
            return
        said = Message(event.id, where, event.sender, event.emoji, event.sent_at, mentions_me=True)
        if session := await self._session(said):
            name = event.sender.name or event.sender.id
            await self._overheard.keep(session, event.address, event.id, kind="reacted", name=name, text=event.emoji)

    async def _session(self, message: Message) -> str | None:
        """Where ``message`` would be answered; None where its sender may not talk."""
        admitted = await self._gate.admit(message)
        return admitted.session if admitted else None

    async def _said_again(self, message: Message) -> None:
        """A replay is a no-op; but a console that asks again after a break has to hear what became of its turn."""
        address = message.address
        adapter = self._adapters[address.channel, address.account]
        known = await self._inbox.turn_of(message)
        if not isinstance(adapter, Narrator) or known is None or not known[1]:
            return
        parts = await self._outbox.unsent(known[0])
        if parts or commands.given(message):  # to a command there is nothing more to say
            await adapter.done(address, message.id, TurnReport(parts=parts))
        else:
            await adapter.fail(address, message.id, OVER, EXIT_TEMPORARY)


def _pressed(event: Pressed) -> Message:
    """What the button says, as if its presser had written it to us."""
    return Message(f"{PRESS}{event.id}", event.address, event.sender, event.data, event.sent_at, mentions_me=True)
