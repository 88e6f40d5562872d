"""Runs the turns: one at a time per session, sessions in parallel, each from the inbox to the outbox.

What was claimed and not finished when the process died is claimed again and goes on from its transcript; three tries
that ended in a fault end in an apology. Knows no platform but through its adapter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

import structlog

from adapters.adapter import Adapter, Narrator, TurnReport
from adapters.message import Address, Message
from agents.agent import Agent, Question, Quotation
from agents.events import Answered, Broken, Delta, Noted, Notice, Recalled, Stepped, ToolStarted
from agents.model import Failed, Usage
from agents.quoting import one_line
from bot.delivery import parts_of
from bot.inbox import Item, SqliteInbox
from bot.lanes import Lanes
from bot.lock import Lock
from bot.outbox import SqliteOutbox
from bot.router import Route
from workspaces.names import portable_name
from workspaces.scope import Level

log = structlog.get_logger(__name__)

MOST_TURNS = 16
"""Turns at once: each holds a model call; a person waits behind at most a few others."""

MOST_TRIES = 3
TYPING_SECONDS = 4.5
"""Telegram and Discord show "typing" for about five seconds a call."""

TIRED = "I tried three times to answer this and never got to the end; I am sorry. Could you say it another way?"
STOPPED = "Stopped."
FORWARDED = "(I forward you this.)"
NOT_NOW = "I can't answer right now. Your message is kept: please try again later."

EXIT_FAILURE = 1
EXIT_TEMPORARY = 75
EXIT_INTERRUPTED = 130


@dataclass(slots=True)
class _Outcome:
    """What a turn came to, gathered from its events."""

    answer: str = ""
    failure: Failed | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    recalled: tuple[str, ...] = ()
    noted: int = 0
    stopped: bool = False
    complete: bool = True


class Turns:
    """The dispatcher of one hub."""

    def __init__(
        self,
        inbox: SqliteInbox,
        outbox: SqliteOutbox,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        admit: Callable[[Message], Awaitable[Route | None]],
        agent: Callable[[str], Awaitable[Agent]],
        locks: Path,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``admit`` decides anew who may talk, where to; ``locks`` is the folder of the sessions' locks."""
        self._inbox = inbox
        self._outbox = outbox
        self._adapters = adapters
        self._admit = admit
        self._agent = agent
        self._locks = locks
        self._sleep = sleep
        self._running: dict[str, tuple[Item, asyncio.Task[_Outcome]]] = {}
        self._lanes = Lanes(self._next, limit=MOST_TURNS, failed=_lane_failed)

    def wake(self, session: str) -> None:
        """A message of this session was committed."""
        self._lanes.wake(session)

    def stop(self, session: str, sender: str | None) -> bool:
        """End the turn that runs in ``session`` if it answers ``sender`` (None: whoever); False when none does."""
        item, task = self._running.get(session, (None, None))
        if item is None or task is None or sender not in (None, item.message.sender.id):
            return False
        return task.cancel()

    async def idle(self) -> None:
        """Wait until no turn runs or waits."""
        await self._lanes.idle()

    async def close(self, grace: float) -> None:
        """Begin no turn, give the running ones ``grace`` seconds; what is cut off goes on after the next start."""
        await self._lanes.close(grace)

    async def _next(self, session: str) -> bool:
        async with self._alone(session):
            item = await self._inbox.claim(session)
            if item is None:
                return False
            try:
                await self._run(item)
            except Exception:  # whatever it was, the message stays in the inbox and the next try counts
                log.exception("turn.failed", turn=item.turn, tries=item.tries)
                await self._sleep(float(item.tries))
            return True

    @asynccontextmanager
    async def _alone(self, session: str) -> AsyncIterator[None]:
        """One turn of a session at a time, between processes as well."""
        lock = Lock(self._locks / f"{portable_name(session)}.lock")
        await lock.wait()
        try:
            yield
        finally:
            lock.release()

    async def _run(self, item: Item) -> None:
        message = item.message
        adapter = self._adapters[message.address.channel, message.address.account]
        if item.tries > MOST_TRIES:
            await self._finish(item, adapter, _Outcome(answer=TIRED, complete=False), Level.OWNER)
            return
        route = await self._admit(message)
        if route is None:  # blocked or unpaired since it was accepted
            await self._inbox.done(item, ())
            return
        agent = await self._agent(route.agent)
        async with self._alone(route.session) if route.session != item.session else nullcontext():
            # The level or the link changed since it was accepted: the turn belongs to another session by now.
            outcome = await self._stoppable(item, self._answer(item, route, agent, adapter))
        await self._finish(item, adapter, outcome, route.scope.level)
        log.info(
            "turn",
            turn=item.turn,
            channel=message.address.channel,
            agent=agent.name,
            model=outcome.model,
            tokens=outcome.usage.input + outcome.usage.output,
            memories=len(outcome.recalled),
        )

    async def _stoppable(self, item: Item, turn: Coroutine[None, None, _Outcome]) -> _Outcome:
        """Run a turn that ``stop`` can end; a cancellation from outside passes through to it."""
        task = asyncio.create_task(turn, name=item.turn)
        self._running[item.session] = (item, task)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            del self._running[item.session]
        return _Outcome(answer=STOPPED, stopped=True) if task.cancelled() else task.result()

    async def _answer(self, item: Item, route: Route, agent: Agent, adapter: Adapter) -> _Outcome:
        message = item.message
        question = _question(item, route, may_interview=not isinstance(adapter, Narrator))
        outcome = _Outcome()
        async with _typing(adapter, message.address):
            async for event in agent.answer(question):
                match event:
                    case Delta(text=text):
                        await adapter.preview(message.address, message.id, text)
                    case Notice(text=text):
                        await _notice(adapter, message.address, text)
                    case Noted(text=text, citation=citation, is_told=is_told):
                        outcome.noted += 1
                        if not is_told:
                            await _notice(adapter, message.address, f"remembered: {text} ({citation})")
                    case Recalled(citations=citations):
                        outcome.recalled = citations
                    case Answered(text=text, model=model, usage=usage, complete=complete):
                        outcome.answer, outcome.model, outcome.usage = text, model, usage
                        outcome.complete = complete
                    case Broken(failure=failure):
                        outcome.failure = failure
                    case Stepped() | ToolStarted():
                        pass
                    case _:
                        assert_never(event)
        return outcome

    async def _finish(self, item: Item, adapter: Adapter, outcome: _Outcome, level: Level) -> None:
        """The answer is durable in the outbox and the message done, in one transaction; then it is sent."""
        message = item.message
        narrator = adapter if isinstance(adapter, Narrator) else None
        reply_to = message.id if narrator or message.address.kind != "direct" else None
        failed = outcome.failure
        if narrator is not None and (failed is not None or outcome.stopped):
            await self._inbox.done(item, ())
            if failed is None:
                await narrator.fail(message.address, message.id, STOPPED, EXIT_INTERRUPTED)
            else:
                code = EXIT_TEMPORARY if failed.may_retry else EXIT_FAILURE
                await narrator.fail(message.address, message.id, _apology(failed, level, message.address), code)
            return
        text = outcome.answer if failed is None else _apology(failed, level, message.address)
        parts = parts_of(text, message.address, adapter, reply_to)
        await self._inbox.done(item, parts)
        self._outbox.wake(parts)
        if narrator is not None:
            report = TurnReport(
                parts=len(parts),
                code=0 if outcome.complete else EXIT_FAILURE,
                model=outcome.model,
                session=item.session,
                input_tokens=outcome.usage.input or None,
                output_tokens=outcome.usage.output or None,
                memories=outcome.recalled,
                remembered=outcome.noted,
            )
            await narrator.done(message.address, message.id, report)


def _question(item: Item, route: Route, *, may_interview: bool) -> Question:
    """The message as its agent gets it: what others wrote in it is a quotation, never the sender's own words."""
    message = item.message
    text, quotations = message.text, []
    if message.quote is not None:
        author = message.quote.author or "an earlier message"
        quotations.append(Quotation(message.quote.text, f"quoted from {author}"))
    if message.forwarded_from is not None:
        quotations.append(Quotation(text, f"forwarded from {message.forwarded_from or 'somebody'}"))
        text = FORWARDED
    files = [f"[{' '.join((a.kind, one_line(a.name, 80))).strip()}]" for a in message.attachments]
    return Question(
        turn=item.turn,
        session=route.session,
        scope=route.scope,
        text="\n".join(part for part in (text, *files) if part),
        at=message.sent_at,
        sender=None if message.address.kind == "direct" else message.sender.name or message.sender.id,
        quotations=tuple(quotations),
        may_interview=may_interview,  # a console was asked when it said hello
    )


def _apology(failure: Failed, level: Level, address: Address) -> str:
    """What a person reads when the model failed: cause and mend for the owner among themselves, not for others."""
    if level is not Level.OWNER or address.kind != "direct":
        return NOT_NOW
    return f"{failure.message} Your message is kept."


async def _notice(adapter: Adapter, address: Address, text: str) -> None:
    if isinstance(adapter, Narrator):
        await adapter.notice(address, text)


@asynccontextmanager
async def _typing(adapter: Adapter, address: Address) -> AsyncIterator[None]:
    """Keep "typing" shown while the block runs, and never after it."""
    if not adapter.capabilities.typing:
        yield
        return

    async def keep() -> None:
        while True:
            await adapter.typing(address)
            await asyncio.sleep(TYPING_SECONDS)

    task = asyncio.create_task(keep())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _lane_failed(session: str, error: Exception) -> None:
    log.error("turns.lane_failed", session=session, exc_info=error)
