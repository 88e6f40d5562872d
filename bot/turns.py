"""Runs the turns: one at a time per session, sessions in parallel, each from the inbox to the outbox.

A turn is an agent's answer, or a command's. What was claimed and not finished when the process died is claimed again
and goes on from its transcript; three tries that ended in a fault end in an apology. Knows no platform but through its
adapter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import structlog
from structlog.contextvars import bound_contextvars

from adapters.adapter import Adapter, Narrator, TurnReport
from adapters.message import File, Message
from adapters.text import sanitize
from agents.agent import Agent
from agents.errors import ModelError
from agents.model import Failed
from agents.quoting import one_line
from bot import commands, metering
from bot.admission import Admission
from bot.asking import Asking
from bot.choices import Choices
from bot.delivery import WHOLE, Enclosure, bounded, enclosing, parts_of
from bot.hindrance import Hindrance
from bot.inbox import MOST_TRIES, Item, SqliteInbox
from bot.joining import may_enter
from bot.lanes import Lanes
from bot.lock import Lock
from bot.media import Media
from bot.outbox import SqliteOutbox
from bot.outcome import EXIT_FAILURE, Outcome, apology, followed, is_among_owners
from bot.outgoing import Outgoing
from bot.overheard import Overheard
from bot.presence import present
from bot.queueing import Queues, is_press
from bot.router import Route
from bot.streaming import Display, Hidden, Narrated, Stream
from bot.switching import Switch
from bot.usage import Ledger
from workspaces.confined import Confined
from workspaces.names import portable_name
from workspaces.scope import Level

log = structlog.get_logger(__name__)

MOST_TURNS = 16
"""Turns at once: each holds a model call; a person waits behind at most a few others."""

TIRED = "I tried three times to answer this and never got to the end; I am sorry. Could you say it another way?"
LONGEST_QUESTION = 60
"""Characters of a question that an answer to it names it by."""

MOST_PIECES = 20
"""How often more of a message that was sent in pieces is waited for."""

STOPPED = "Stopped."
LEFT_OUT = "Too much waits here, so I left this out."
NOTHING_RUNS = "Nothing is running."
NOTHING_RUNS_NOW = "Nothing is running any more."
"""What a stop says that a crash cut off: it may have ended something before."""

ASIDE = "/aside"
"""Ends the key under which a command waits that is answered at once: not behind the turns of its session. No session's
own key ends so: its parts are odd in number (``bot.session_key``)."""

EXIT_TEMPORARY = 75
EXIT_INTERRUPTED = 130


class Turns:
    """The dispatcher of one hub."""

    def __init__(
        self,
        inbox: SqliteInbox,
        outbox: SqliteOutbox,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        admit: Callable[[Message], Awaitable[Route | None]],
        admission: Admission,
        models: Switch,
        locks: Path,
        ledger: Ledger,
        media: Media,
        hindrance: Hindrance,
        overheard: Overheard,
        outgoing: Outgoing,
        queues: Queues,
        choices: Choices,
        streams: Collection[tuple[str, str]] = (),
        signs: Mapping[tuple[str, str], str] | None = None,
        advice: Callable[[str], str | None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``admit`` decides anew who may talk, where to; ``locks`` is the folder of the sessions' locks.

        ``streams`` are the channels and accounts where an answer is shown while it is being written. ``ledger`` knows
        what the models cost. ``advice`` is how the agent of that name gets a model, None where it has
        one.
        """
        self._inbox = inbox
        self._outbox = outbox
        self._adapters = adapters
        self._narrators = {key: adapter for key, adapter in adapters.items() if isinstance(adapter, Narrator)}
        self._admit = admit
        self._admission = admission
        self._models = models
        self._locks = locks
        self._ledger = ledger
        self._media = media
        self._hindrance = hindrance
        self._overheard = overheard
        self._outgoing = outgoing
        self._queues = queues
        self._choices = choices
        self._streams = streams
        self._signs = signs or {}
        self._advice = advice
        self._sleep = sleep
        self._running: dict[str, tuple[Item, asyncio.Task[Outcome | None]]] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, datetime] = {}
        self._lanes = Lanes(self._next, ready=self._ready, limit=MOST_TURNS, failed=hindrance.lane_failed)
        self._asides = Lanes(self._next, ready=self._ready, failed=hindrance.lane_failed)

    def talked(self) -> Mapping[str, datetime]:
        """The agents that answered in this process, each with when it last did."""
        return self._last

    async def take(self, message: Message, session: str) -> bool:
        """Store ``message`` durably, to be answered in ``session``; False when it was stored before.

        What waits there beyond its measure is dropped, and what the message interrupts is cut off.
        """
        key = place(message, session)
        if not await self._inbox.put(message, key):
            return False
        is_first = not self._lanes.has(key)  # whatever waited is taken: there is nothing to be crowded out
        self.wake(key)
        if key == session and not is_first:
            if session in self._running and (await self._queues.of(message.address, session)).mode == "interrupt":
                self._interrupt(session, message)
            for item in await self._inbox.crowd_out(session, self._queues.most):
                await self._say_left_out(item)
        return True

    def _interrupt(self, session: str, message: Message) -> None:
        """End the turn that ``message`` enters. It waits again then, and goes on from its transcript with both."""
        item, task = self._running.get(session, (None, None))
        if item is not None and task is not None and may_enter(message, item.message) and not is_command(item.message):
            task.cancel()

    async def _say_left_out(self, item: Item) -> None:
        address = item.message.address
        log.warning("message.left_out", turn=item.turn, channel=address.channel, session=item.session)
        if narrator := self._narrators.get((address.channel, address.account)):
            await narrator.fail(address, item.message.id, LEFT_OUT, EXIT_TEMPORARY)

    def wake(self, key: str) -> None:
        """A message was committed under this key (see ``place``)."""
        lanes = self._asides if key.endswith(ASIDE) else self._lanes
        lanes.wake(key)

    async def idle(self) -> None:
        """Wait until no turn runs or waits."""
        while self._lanes.are_busy or self._asides.are_busy:
            await self._lanes.idle()
            await self._asides.idle()

    async def close(self, grace: float) -> None:
        """Begin no turn, give the running ones ``grace`` seconds; what is cut off goes on after the next start."""
        await asyncio.gather(self._lanes.close(grace), self._asides.close(grace))

    async def _ready(self, key: str) -> bool:
        """Wait until what is to be answered next is whole; False where nothing is. Takes no place from others."""
        for _ in range(MOST_PIECES):
            seconds = await self._inbox.due(key)
            if not seconds:
                return seconds is not None
            await self._sleep(seconds)
        return True

    async def _next(self, key: str) -> bool:
        async with Lock(self._locks / f"{portable_name(key)}.lock"):  # also between processes
            item = await self._inbox.claim(key)
            if item is None:
                return False
            with bound_contextvars(turn=item.turn):  # every line of the log says whose it is
                await self._try(item)
            return True

    async def _try(self, item: Item) -> None:
        try:
            outcome = await self._run(item)
            if outcome is not None and _awaits_upkeep(outcome):
                await self._keep(item.session, outcome)
        except Exception as error:  # whatever it was, the message stays in the inbox and the next try counts
            if self._hindrance.of(error) is not None:  # but that is no fault of the turn's: the lane waits it out
                await self._inbox.put_back(item)
                raise
            log.exception("turn.failed", tries=item.tries)
            await self._sleep(float(item.tries))

    async def _run(self, item: Item) -> Outcome | None:
        """One turn, which ``_stop`` and ``_interrupt`` can end; a cancellation from outside passes through to it.

        None for one that was stopped, interrupted, moved, or is not to be answered.
        """
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
        if task.cancelled():
            await self._inbox.put_back(item)  # unless it was given up
            return None
        outcome = task.result()
        if outcome is not None:
            await self._finish(item, adapter, outcome)
        return outcome

    async def _keep(self, session: str, outcome: Outcome) -> None:
        """Note what would be lost, now that the answer is on its way; ``_stop`` ends it, and so does a fault."""
        task = self._keeping[session] = asyncio.create_task(self._kept(outcome))
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            del self._keeping[session]

    async def _kept(self, outcome: Outcome) -> None:
        assert outcome.agent is not None
        assert outcome.thread is not None
        try:
            agent = await self._models.agent(outcome.agent.name, outcome.thread.session)
            model = metering.keeper(agent)
            if outcome.model is None or model is None or await metering.refusal(model):
                return
            async for _ in agent.keep(outcome.thread):
                pass
        except Exception:  # the turn is done and answered: what was not noted now is with the next
            log.exception("upkeep.failed", session=outcome.session)

    async def _stop(self, stop: Item, session: str, sender: str | None) -> str:
        """End what runs and waits in ``session`` for ``sender`` (None: for anyone); what is left to say where it was
        said. ``stop`` is the command itself.
        """
        given_up = await self._inbox.give_up(session, sender, before=stop.turn)
        keeping = self._keeping.get(session)
        may_end = sender is None or stop.message.address.kind == "direct"  # it is for all in a group
        was_keeping = may_end and keeping is not None and keeping.cancel()
        if not given_up:
            if was_keeping:
                return STOPPED
            return NOTHING_RUNS if stop.tries == 1 else NOTHING_RUNS_NOW
        asked_at = stop.message.address
        item, task = self._running.get(session, (None, None))
        if task is not None and item is not None and item.turn in {one.turn for one in given_up}:
            task.cancel()
        told = False
        for item in given_up:
            address = item.message.address
            if narrator := self._narrators.get((address.channel, address.account)):
                told = told or (
                    address == asked_at and narrator.is_one_screen(address, stop.message.id, item.message.id)
                )
                await narrator.fail(address, item.message.id, STOPPED, EXIT_INTERRUPTED)
        return "" if told else STOPPED

    async def _outcome(self, item: Item, adapter: Adapter) -> Outcome | None:
        """The turn itself; None where there is nothing to answer here.

        Who the sender is counts now, under the session's lock. One who was blocked or unpaired since the message was
        accepted is not answered; one whose level or link changed has another session, where the message waits anew: a
        turn holds the lock of one session only, its own.
        """
        message = item.message
        if item.tries > MOST_TRIES:
            return Outcome(answer=TIRED, code=EXIT_FAILURE)
        route = await self._admit(message)
        if route is None:
            await self._inbox.done(item, ())
            return None
        key = place(message, route.session)
        if key != item.session:
            if await self._inbox.move(item, key):
                self.wake(key)
            return None
        given = commands.given(message)
        if given is not None:
            outcome = await self._obey(item, route, given)
        else:
            outcome = await self._answer(item, route, adapter)
        outcome.session, outcome.level = route.session, route.scope.level
        return outcome

    async def _obey(self, item: Item, route: Route, given: commands.Given) -> Outcome:
        message = item.message
        sender = None if route.scope.level is Level.OWNER else message.sender.id
        order = commands.Order(
            given,
            message,
            route,
            item.turn,
            agent=lambda: self._models.agent(route.agent, route.session),
            admission=self._admission,
            choices=self._choices,
            queues=self._queues,
            models=self._models,
            ledger=self._ledger,
            stop=lambda: self._stop(item, route.session, sender),
        )
        answer = await commands.answer(order)
        log.info("command", turn=item.turn, channel=message.address.channel, name=given.name, code=answer.code)
        return Outcome(answer=answer.text, code=answer.code, noted=answer.noted)

    async def _answer(self, item: Item, route: Route, adapter: Adapter) -> Outcome:
        message = item.message
        try:
            agent = await self._models.agent(route.agent, route.session)
            model = agent.model()
            refusal = model and await metering.refusal(model)
            if refusal:
                is_private = route.scope.level is Level.OWNER and message.address.kind == "direct"
                if is_private:
                    return Outcome(answer=refusal, code=EXIT_FAILURE)
                was_said = await self._ledger.was_said(route.session, item.turn)
                return Outcome(answer="" if was_said else metering.NOT_TODAY, code=EXIT_FAILURE)
            asking = self._asking(item, route, adapter, agent)
            async with present(adapter, message, self._signs.get((adapter.channel, adapter.account), "")):
                question = await asking.question()
                async with aclosing(agent.answer(question)) as events, self._displayed(item, adapter) as display:
                    outcome = await followed(events, message, adapter, display, self._ledger.cost)
                outcome.heard, outcome.left_out = asking.heard, asking.left_out
                await self._enclose(item, route, adapter, agent, outcome)
            if asking.unsaid:
                outcome.answer = f"{asking.unsaid}\n\n{outcome.answer}"
        except ModelError as error:  # nothing was kept of the turn; and only a person can mend it
            log.warning("turn.no_model", turn=item.turn, agent=route.agent, reason=str(error))
            return Outcome(failure=Failed("refused", str(error)), is_kept=False)
        outcome.agent, outcome.thread = agent, question.thread
        self._last[agent.name] = agent.clock()
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

    @asynccontextmanager
    async def _displayed(self, item: Item, adapter: Adapter) -> AsyncIterator[Display]:
        """Where the answer is shown while it is being written; when this ends nothing more is."""
        address = item.message.address
        key = (address.channel, address.account)
        display: Display = Hidden()
        if narrator := self._narrators.get(key):
            display = Narrated(narrator, address, item.message.id)
        elif key in self._streams:
            display = Stream(item.turn, address, adapter, self._outbox.previews, reply_to=_reply_to(item.newest))
        try:
            yield display
        finally:
            await display.end()

    def _asking(self, item: Item, route: Route, adapter: Adapter, agent: Agent) -> Asking:
        narrator = self._narrators.get((item.message.address.channel, item.message.address.account))
        return Asking(
            item,
            route,
            adapter,
            agent,
            inbox=self._inbox,
            overheard=self._overheard,
            media=self._media,
            queues=self._queues,
            admit=self._admit,
            may_interview=narrator is None or narrator.is_attended(item.message.address, item.message.id),
        )

    async def _enclose(self, item: Item, route: Route, adapter: Adapter, agent: Agent, outcome: Outcome) -> None:
        """Take the files that go with the answer; what can't be had is said in it."""
        if not outcome.enclosed:
            return
        reach, most = Confined(agent.workspace.root, route.scope), adapter.capabilities.file_limit
        came = await asyncio.to_thread(lambda: list(self._outgoing.gathered(item.turn, outcome.enclosed, reach, most)))
        outcome.enclosures = [one for one in came if isinstance(one, Enclosure)]
        outcome.answer = "\n\n".join(filter(None, [outcome.answer, *(one for one in came if isinstance(one, str))]))

    def _kept_whole(self, item: Item, said: str) -> File:
        return self._outgoing.keep(item.turn, 0, File("document", "", WHOLE), sanitize(said).encode())

    async def _finish(self, item: Item, adapter: Adapter, outcome: Outcome) -> None:
        """The answer is durable in the outbox and the message done, in one transaction; then it is sent."""
        message, failed = item.message, outcome.failure
        narrator = self._narrators.get((message.address.channel, message.address.account))
        said = outcome.answer if failed is None else apology(failed, outcome, message.address)
        if outcome.advice and narrator is None and is_among_owners(outcome, message.address):
            said = f"{said}\n\n{outcome.advice}"  # there is no other place to say it
        reply_to = message.id if narrator else _reply_to(item.newest)
        parts = [] if narrator and failed else parts_of(said, message.address, adapter, reply_to)
        parts = bounded(parts, adapter, lambda: self._kept_whole(item, said))
        parts += enclosing(outcome.enclosures, message.address, adapter)
        if narrator:  # it may be shown when whoever asked has long left
            parts = [replace(part, question=one_line(message.text, LONGEST_QUESTION)) for part in parts]
        later = await self._inbox.following(item) if outcome.joined else ()
        joined = [one for one in later if one.turn in outcome.joined]
        if not await self._inbox.done(item, parts, joined, outcome.heard, outcome.left_out):
            return  # it was given up meanwhile
        joined = [*item.pieces[1:], *joined]
        await self._outbox.wake(parts)
        if narrator is None:
            return
        if failed is not None:
            code = EXIT_TEMPORARY if failed.may_retry else EXIT_FAILURE
            for one in (item, *joined):
                await narrator.fail(one.message.address, one.message.id, said, code)
            return
        report = TurnReport(
            parts=len(parts),
            code=outcome.code,
            model=outcome.model,
            session=outcome.session,
            input_tokens=outcome.usage.input or None,
            output_tokens=outcome.usage.output or None,
            cost=outcome.cost if outcome.calls else None,
            memories=outcome.recalled,
            remembered=outcome.noted,
            advice=outcome.advice,
        )
        await narrator.done(message.address, message.id, report)
        for one in joined:  # the answer above is theirs too
            await narrator.done(one.message.address, one.message.id, TurnReport(parts=0))


def _awaits_upkeep(outcome: Outcome) -> bool:
    if outcome.agent is None or outcome.thread is None:
        return False
    try:
        return outcome.agent.awaits_upkeep(outcome.thread)
    except Exception:  # the upkeep will meet with the same, and say so
        return True


def _reply_to(message: Message) -> str | None:
    """What an answer shows that it answers: where several people speak, and not the press of a button."""
    return None if message.address.kind == "direct" or is_press(message) else message.id


def is_command(message: Message) -> bool:
    return commands.given(message) is not None


def place(message: Message, session: str) -> str:
    """The key under which ``message`` waits its turn: its session's, or beside it for a command answered at once."""
    given = commands.given(message)
    command = given and commands.find(given.name)
    return session + ASIDE if command and command.at_once else session
