"""Runs the turns: one at a time per session, sessions in parallel, each from the inbox to the outbox.

A turn is an agent's answer, or a command's. What was claimed and not finished when the process died is claimed again
and goes on from its transcript; three tries that ended in a fault end in an apology. Knows no platform but through its
adapter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

import structlog

from adapters.adapter import Adapter, Narrator, TurnReport
from adapters.message import Address, Message
from agents.agent import Agent, Question
from agents.errors import ModelError
from agents.events import Answered, Broken, Delta, Noted, Notice, Recalled, Stepped, ToolStarted
from agents.model import Failed, Usage
from agents.quoting import Quotation, one_line
from bot import commands
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
NOTHING_RUNS = "Nothing is running."
NOT_NOW = "I can't answer right now. Your message is kept: please try again later."

ASIDE = "/aside"
"""Ends the key under which a command waits that is answered at once: not behind the turns of its session. No session's
own key ends so: its parts are odd in number (``bot.session_key``)."""

EXIT_FAILURE = 1
EXIT_TEMPORARY = 75
EXIT_INTERRUPTED = 130


@dataclass(slots=True)
class _Outcome:
    """What a turn came to. ``code`` is the exit code of a single question.

    ``level`` is that of the turn; ``is_kept``: the transcript has the message.
    """

    answer: str = ""
    level: Level = Level.GUEST
    failure: Failed | None = None
    is_kept: bool = True
    code: int = 0
    session: str | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    recalled: tuple[str, ...] = ()
    advice: str = ""
    noted: int = 0


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
        advice: Callable[[str], str | None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``admit`` decides anew who may talk, where to; ``locks`` is the folder of the sessions' locks.

        ``advice`` is how the agent of that name gets a model, None where it has one.
        """
        self._inbox = inbox
        self._outbox = outbox
        self._adapters = adapters
        self._admit = admit
        self._agent = agent
        self._locks = locks
        self._advice = advice
        self._sleep = sleep
        self._running: dict[str, tuple[Item, asyncio.Task[_Outcome | None]]] = {}
        self._lanes = Lanes(self._next, limit=MOST_TURNS, failed=_lane_failed)
        self._asides = Lanes(self._next, failed=_lane_failed)

    def wake(self, key: str) -> None:
        """A message was committed under this key (see ``place``)."""
        lanes = self._asides if key.endswith(ASIDE) else self._lanes
        lanes.wake(key)

    async def idle(self) -> None:
        """Wait until no turn runs or waits."""
        await asyncio.gather(self._lanes.idle(), self._asides.idle())

    async def close(self, grace: float) -> None:
        """Begin no turn, give the running ones ``grace`` seconds; what is cut off goes on after the next start."""
        await asyncio.gather(self._lanes.close(grace), self._asides.close(grace))

    async def _next(self, key: str) -> bool:
        async with self._alone(key):
            item = await self._inbox.claim(key)
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
        """One turn, which ``_stop`` can end; a cancellation from outside passes through to it."""
        adapter = self._adapters[item.message.address.channel, item.message.address.account]
        task = asyncio.create_task(self._outcome(item, adapter), name=item.turn)
        self._running[item.session] = (item, task)  # no await since it was claimed: a stop finds it here or waiting
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            del self._running[item.session]
        if not task.cancelled():  # else it was given up, and whoever stopped it said so
            await self._finish(item, adapter, task.result())

    async def _stop(self, session: str, sender: str | None) -> str:
        """End what runs and waits in ``session`` for ``sender`` (None: for anyone); what is left to say of it."""
        given_up = await self._inbox.give_up(session, sender)
        if not given_up:
            return NOTHING_RUNS
        item, task = self._running.get(session, (None, None))
        if task is not None and item in given_up:
            task.cancel()
        told = False
        for item in given_up:
            address = item.message.address
            adapter = self._adapters[address.channel, address.account]
            if isinstance(adapter, Narrator):
                told = True
                await adapter.fail(address, item.message.id, STOPPED, EXIT_INTERRUPTED)
        return "" if told else STOPPED

    async def _outcome(self, item: Item, adapter: Adapter) -> _Outcome | None:
        """The turn itself; None for a sender who was blocked or unpaired since the message was accepted."""
        message = item.message
        if item.tries > MOST_TRIES:
            return _Outcome(answer=TIRED, code=EXIT_FAILURE)
        route = await self._admit(message)
        if route is None:
            return None
        given = commands.given(message)
        # The level or the link changed since it was accepted: the turn belongs to another session by now.
        is_own = item.session in (route.session, route.session + ASIDE)
        async with nullcontext() if is_own else self._alone(route.session):
            if given is not None:
                outcome = await self._obey(item, route, given)
            else:
                outcome = await self._answer(item, route, adapter)
        outcome.session, outcome.level = route.session, route.scope.level
        return outcome

    async def _obey(self, item: Item, route: Route, given: commands.Given) -> _Outcome:
        message = item.message
        sender = None if route.scope.level is Level.OWNER else message.sender.id
        order = commands.Order(
            given,
            message,
            route,
            item.turn,
            agent=lambda: self._agent(route.agent),
            stop=lambda: self._stop(route.session, sender),
        )
        answer = await commands.answer(order)
        log.info("command", turn=item.turn, channel=message.address.channel, name=given.name, code=answer.code)
        return _Outcome(answer=answer.text, code=answer.code)

    async def _answer(self, item: Item, route: Route, adapter: Adapter) -> _Outcome:
        message = item.message
        try:
            agent = await self._agent(route.agent)
        except ModelError as error:  # only a person can mend it: to try again would not
            log.warning("turn.no_model", turn=item.turn, agent=route.agent, reason=str(error))
            return _Outcome(failure=Failed("refused", str(error)), is_kept=False)
        outcome = _Outcome()
        may_interview = not isinstance(adapter, Narrator) or adapter.is_attended(message.address, message.id)
        async with _typing(adapter, message.address):
            async for event in agent.answer(_question(item, route, may_interview=may_interview)):
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
                        outcome.code = 0 if complete else EXIT_FAILURE
                    case Broken(failure=failure):
                        outcome.failure = failure
                    case Stepped() | ToolStarted():
                        pass
                    case _:
                        assert_never(event)
        if outcome.code and outcome.model is None and outcome.failure is None:
            outcome.advice = self._advice(agent.name) or ""
        log.info(
            "turn",
            turn=item.turn,
            channel=message.address.channel,
            agent=agent.name,
            model=outcome.model,
            tokens=outcome.usage.input + outcome.usage.output,
            memories=len(outcome.recalled),
        )
        return outcome

    async def _finish(self, item: Item, adapter: Adapter, outcome: _Outcome | None) -> None:
        """The answer is durable in the outbox and the message done, in one transaction; then it is sent."""
        if outcome is None:
            await self._inbox.done(item, ())
            return
        message, failed = item.message, outcome.failure
        narrator = adapter if isinstance(adapter, Narrator) else None
        said = outcome.answer if failed is None else _apology(failed, outcome, message.address)
        if outcome.advice and narrator is None and _is_among_owners(outcome, message.address):
            said = f"{said}\n\n{outcome.advice}"  # there is no other place to say it
        reply_to = message.id if narrator or message.address.kind != "direct" else None
        parts = [] if narrator and failed else parts_of(said, message.address, adapter, reply_to)
        if not await self._inbox.done(item, parts):
            return  # it was given up meanwhile
        await self._outbox.wake(parts)
        if narrator is None:
            return
        if failed is not None:
            code = EXIT_TEMPORARY if failed.may_retry else EXIT_FAILURE
            await narrator.fail(message.address, message.id, said, code)
            return
        report = TurnReport(
            parts=len(parts),
            code=outcome.code,
            model=outcome.model,
            session=outcome.session,
            input_tokens=outcome.usage.input or None,
            output_tokens=outcome.usage.output or None,
            memories=outcome.recalled,
            remembered=outcome.noted,
            advice=outcome.advice,
        )
        await narrator.done(message.address, message.id, report)


def place(message: Message, session: str) -> str:
    """The key under which ``message`` waits its turn: its session's, or beside it for a command answered at once."""
    given = commands.given(message)
    command = given and commands.find(given.name)
    return session + ASIDE if command and command.at_once else session


def _question(item: Item, route: Route, *, may_interview: bool) -> Question:
    """The message as its agent gets it: what others wrote in it is a quotation, never the sender's own words."""
    message = item.message
    text, quotations = message.text, []
    if message.quote is not None:
        author = message.quote.author or "an earlier message"
        quotations.append(Quotation(message.quote.text, f"quoted from {author}", message.quote.below))
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
        may_interview=may_interview,
    )


def _is_among_owners(outcome: _Outcome, address: Address) -> bool:
    """Whether nobody else reads what is amiss and how it is mended."""
    return outcome.level is Level.OWNER and address.kind == "direct"


def _apology(failure: Failed, outcome: _Outcome, address: Address) -> str:
    """What a person reads when the model failed: cause and mend for the owner among themselves, not for others."""
    if not _is_among_owners(outcome, address):
        return NOT_NOW if outcome.is_kept else commands.NO_AGENT
    return f"{failure.message} Your message is kept." if outcome.is_kept else failure.message


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
