"""The composition root: builds the hub in order and stops it in reverse.

    adapters ─▶ accept: access, pairing ─▶ inbox ─▶ turns: router, agent ─▶ outbox ─▶ adapters

``limpet run`` is a hub with every configured channel; ``limpet chat`` without a running hub is one with the terminal
only. Several may share a home: each answers what it accepted itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import structlog

from adapters.adapter import Adapter, Backfiller, Menu, Offered
from adapters.errors import AdapterError
from adapters.message import (
    Address,
    Message,
    Sender,
)
from agents.quoting import one_line
from bot import commands
from bot.admission import Admission
from bot.choices import Choices
from bot.clock import now
from bot.gate import Gate
from bot.health import HealthBoard, ModelHealth
from bot.hindrance import Hindrance
from bot.housekeeping import Housekeeping
from bot.inbox import SqliteInbox
from bot.instance import Instances
from bot.limits import Limits
from bot.media import Media
from bot.metering import Metered, transcribed
from bot.models import Chosen, model_of, prices_of, small_model_of, transcriber_of
from bot.outbox import SqliteOutbox
from bot.outgoing import Outgoing
from bot.overheard import Overheard
from bot.owners import Owners
from bot.pairing import Pairing
from bot.queueing import Queues
from bot.reception import Reception
from bot.roster import Roster
from bot.state import State
from bot.switching import Switch
from bot.told import Told
from bot.turns import Turns
from bot.usage import Ledger
from bot.zone import machine_zone
from workspaces.scope import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.model import Model
    from bot.config import Settings
    from bot.home import Home

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 20.0
"""How long a stop waits for running turns; what is cut off goes on after the next start."""

LONGEST_PAUSE = 300.0
"""Seconds between two starts of a channel that crashes each time."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """Who answers at a console: ``model`` is None in notes mode; ``notices`` are said once, in order.

    ``commands`` are lines such as "/help — what I answer to".
    """

    agent: str
    model: str | None
    notices: tuple[str, ...]
    commands: tuple[str, ...]


class _Models:
    """The models of all agents, each metered. ``chosen`` has those asked for, by agent; ``health`` how they do."""

    def __init__(self, settings: Settings, home: Home, ledger: Ledger) -> None:
        self.chosen: dict[str, Chosen] = {}
        self.health = ModelHealth()
        self._settings = settings
        self._home = home
        self._ledger = ledger

    def metered(self, model: Model, agent: str) -> Model:
        return Metered(model, self._ledger, agent, health=self.health)

    def of(self, agent: str) -> Model | None:
        """What ``agent`` talks with; None for notes mode."""
        metered = partial(self.metered, agent=agent)
        self.chosen[agent] = model_of(agent, self._settings, self._home, metered=metered)
        return self.chosen[agent].model

    def small_of(self, agent: str) -> Model | None:
        """What notes and sums up for ``agent``; None where that is its own model."""
        return small_model_of(self._settings, self._home, metered=partial(self.metered, agent=agent))

    def advice(self, agent: str) -> str | None:
        """How ``agent`` comes to have a model; None where it has one."""
        chosen = self.chosen.get(agent)
        return chosen.notice if chosen is not None and chosen.model is None else None


def _ledger(settings: Settings, home: Home, state: State, clock: Callable[[], datetime]) -> Ledger:
    return Ledger(
        state,
        prices=prices_of(settings, home),
        daily_usd=settings.budget.daily_usd,
        clock=clock,
        zone=lambda: machine_zone() or UTC,
    )


def _media(settings: Settings, home: Home, ledger: Ledger) -> Media:
    transcriber = transcriber_of(settings, home)
    return Media(settings.media, partial(transcribed, transcriber, ledger) if transcriber is not None else None)


class Hub:
    """One running hub. Made by ``open``; ``run`` ends when it is cancelled."""

    def __init__(
        self,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        gate: Gate,
        reception: Reception,
        inbox: SqliteInbox,
        outbox: SqliteOutbox,
        turns: Turns,
        owners: Owners,
        health: HealthBoard,
        roster: Roster,
        chosen: Mapping[str, Chosen],
        told: Told,
        housekeeping: Housekeeping,
        is_alive: Callable[[str], bool],
        state: State,
    ) -> None:
        self.roster = roster
        self.inbox = inbox
        self.accept = reception.accept
        self._adapters = adapters
        self._gate = gate
        self._outbox = outbox
        self._turns = turns
        self._owners = owners
        self._health = health
        self._chosen = chosen
        self._told = told
        self._housekeeping = housekeeping
        self._greeted: dict[str, Mapping[str, str | None]] = {}
        self._is_alive = is_alive
        self._state = state

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings,
        home: Home,
        adapters: Sequence[Adapter],
        *,
        clock: Callable[[], datetime] = now,
        watch: bool = False,
    ) -> AsyncIterator[Hub]:
        """Open the state and the parts around ``adapters``; all of it is closed at the end of the block."""
        by_account = {(adapter.channel, adapter.account): adapter for adapter in adapters}
        instances = Instances(home.state / "instances")
        with instances.join() as owner:
            async with State.open(home.database) as state, AsyncExitStack() as stack:
                ledger = _ledger(settings, home, state, clock)
                models = _Models(settings, home, ledger)
                opened = Roster.open(settings, home, model=models.of, small=models.small_of, clock=clock, watch=watch)
                roster = await stack.enter_async_context(opened)
                gate = Gate.of(settings, state, clock)
                hindrance = Hindrance(home, by_account)
                outgoing = Outgoing(home.state / "outgoing")
                outbox = SqliteOutbox(
                    state,
                    by_account,
                    owner,
                    people=gate.people,
                    outgoing=outgoing,
                    clock=clock,
                    failed=hindrance.lane_failed,
                )
                choices = Choices(state)
                queues = Queues(choices, settings.queue.queue, settings.queues())
                inbox = SqliteInbox(state, outbox, owner, clock, queue=queues.of)
                overheard = Overheard(state, clock)
                pairing = Pairing(state, gate.people, clock=clock)
                owners = Owners(state, by_account, gate.people, outbox)
                admission = Admission(by_account, gate=gate, pairing=pairing, outbox=outbox, owners=owners)
                turns = Turns(
                    inbox,
                    outbox,
                    by_account,
                    admit=gate.admit,
                    admission=admission,
                    models=Switch(settings, home, stack, roster=roster.get, choices=choices, metered=models.metered),
                    locks=home.state / "sessions",
                    ledger=ledger,
                    media=_media(settings, home, ledger),
                    hindrance=hindrance,
                    overheard=overheard,
                    outgoing=outgoing,
                    queues=queues,
                    choices=choices,
                    streams=settings.streams(),
                    signs=settings.signs(),
                    advice=models.advice,
                )
                reception = Reception(
                    by_account,
                    gate=gate,
                    admission=admission,
                    owners=owners,
                    inbox=inbox,
                    outbox=outbox,
                    overheard=overheard,
                    turns=turns,
                    hindrance=hindrance,
                    limits=Limits(settings.limits.per_sender, settings.limits.per_chat, clock),
                )
                yield cls(
                    by_account,
                    gate=gate,
                    reception=reception,
                    inbox=inbox,
                    outbox=outbox,
                    turns=turns,
                    owners=owners,
                    health=HealthBoard(state, adapters, clock, models.health),
                    roster=roster,
                    chosen=models.chosen,
                    told=Told(home.state / "told.json"),
                    housekeeping=Housekeeping(settings, home, roster, talked=turns.talked, clock=clock),
                    is_alive=instances.is_alive,
                    state=state,
                )

    async def run(self) -> None:
        """Take up what dead processes left, then serve until cancelled."""
        menu = [Offered(each.name, each.summary, each.usage) for each in commands.COMMANDS if each.is_listed]
        for (channel, account), adapter in self._adapters.items():
            if isinstance(adapter, Menu):
                adapter.offer(menu)
            if isinstance(adapter, Backfiller):
                newest = await self.inbox.newest(channel, account)
                adapter.resume(newest, await self._health.heard_at(channel, account))
        sessions = await self.inbox.adopt(self._adapters, self._is_alive)
        for session in sessions:
            self._turns.wake(session)
        unsent = await self._outbox.recover(self._is_alive)
        if sessions or unsent:
            log.info("hub.recovered", to_answer=len(sessions), to_send=unsent)
        tasks = [
            asyncio.create_task(self._serve(adapter), name=f"{adapter.channel}/{adapter.account}")
            for adapter in self._adapters.values()
        ]
        tasks.append(asyncio.create_task(self._state.keep(), name="state"))
        tasks.append(asyncio.create_task(self._health.keep(), name="health"))
        tasks.append(asyncio.create_task(self._housekeeping.keep(), name="housekeeping"))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            await self._stop(tasks)

    async def idle(self) -> None:
        """Wait until nothing is left to answer, to note down after an answer, or to send."""
        await self._turns.idle()
        await self._outbox.idle()

    async def _stop(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Receive nothing more, let the running turns end and their answers leave, then close the doors."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._turns.close(DRAIN_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS / 4):
                await self._outbox.idle()
        await self._outbox.close(0)
        for adapter in self._adapters.values():
            await adapter.close()
        await self._health.stopped()

    async def _serve(self, adapter: Adapter) -> None:
        """Run one channel; its failure is its own and is shown in ``limpet status``.

        What a person has to mend ends it; a fault in the adapter itself starts it anew, ever more slowly.
        """
        seconds = 1.0
        while True:
            try:
                await adapter.run(self.accept)
            except AdapterError as error:
                await self._health.refresh()  # whoever reads the line and asks ``limpet status`` is told why
                log.error("channel.failed", channel=adapter.channel, account=adapter.account, reason=str(error))
                await self._tell_owners(adapter, str(error))
                return
            except (Exception, asyncio.CancelledError) as error:  # it must not stop the others
                if isinstance(error, asyncio.CancelledError) and _is_told_to_end():
                    raise
                again = f"started anew in {seconds:.0f} s; the log has where it was"
                detail = f"a fault in the channel itself ({type(error).__name__}): {again}"
                adapter.health = replace(adapter.health, state="failed", detail=detail)
                await self._health.refresh()
                log.exception("channel.crashed", channel=adapter.channel, account=adapter.account, seconds=seconds)
            else:
                return
            await asyncio.sleep(seconds)
            seconds = min(2 * seconds, LONGEST_PAUSE)

    async def _tell_owners(self, adapter: Adapter, reason: str) -> None:
        """That a channel waits for a person, by the other ones; once, until it worked again in between."""
        subject = f"channel {adapter.channel}/{adapter.account}"
        if adapter.health.heard_at is None and not self._told.news({subject: reason}):
            return
        turn = f"failed/{adapter.channel}/{adapter.account}/{now().isoformat()}"
        words = f"My channel {adapter.account} works no more: {one_line(reason, 400)}"
        try:
            if await self._owners.tell(turn, words, but=(adapter.channel, adapter.account)):
                self._told.keep({subject: reason})
        except Exception:  # the other channels go on, also on a disk that is full
            log.exception("owners.untold", channel=adapter.channel, account=adapter.account)

    async def greet(self, agent: str | None, *, opening: bool) -> Greeting | None:
        """The word to a console: who answers there; None when there is no such agent. Opens the agent with its model.

        What it has to say counts as told once the console ``arrived``. Raises ModelError where that can't be built.
        """
        if agent is not None and not self._gate.knows(agent):
            return None
        address = Address("terminal", "terminal", "local", "direct", space=agent)
        probe = Message("hello", address, Sender("local"), "", now())
        route = (await self._gate.explain(probe, await self._gate.judge(probe))).route
        found = await self.roster.get(route.agent)
        found.model()
        chosen = self._chosen[route.agent]
        told = {f"model of {route.agent}": chosen.notice, f"zone of {route.agent}": found.misgiving()}
        notices = [*self._told.news(told)]
        if opening and (words := found.opening(route.session, route.scope)):
            notices.append(words)
        self._greeted[route.agent] = told
        offered = tuple(command.line for command in commands.listed(Level.OWNER, "direct"))
        return Greeting(route.agent, chosen.name, tuple(notices), offered)

    def arrived(self, address: Address) -> None:
        """A console is there, and was greeted: what waited for it is sent."""
        if (told := self._greeted.pop(address.space or "", None)) is not None:
            self._told.keep(told)
        self._outbox.arrived(address)


def _is_told_to_end() -> bool:
    """Whether somebody cancelled the task that runs; else the cancellation is that of something it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
