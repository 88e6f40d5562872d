"""The composition root: builds the hub in order and stops it in reverse.

    adapters ─▶ accept: access, pairing ─▶ inbox ─▶ turns: router, agent ─▶ outbox ─▶ adapters

``limpet run`` is a hub with every configured channel; ``limpet chat`` without a running hub is one with the terminal
only. Several may share a home: each answers what it accepted itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, assert_never

import structlog

from adapters.adapter import Adapter, Menu, Narrator, TurnReport
from adapters.errors import AdapterError, AuthFailed
from adapters.message import (
    Address,
    Deleted,
    Edited,
    Inbound,
    Membership,
    Message,
    Moved,
    Part,
    Pressed,
    Reacted,
    Sender,
)
from adapters.text import FormattedText
from bot import commands
from bot.access import Decision, Policy, Verdict, decide
from bot.clock import now
from bot.health import HealthBoard
from bot.hindrance import Hindrance
from bot.housekeeping import Housekeeping
from bot.inbox import SqliteInbox
from bot.instance import Instances
from bot.metering import Metered
from bot.models import Chosen, model_of, prices_of, small_model_of
from bot.outbox import SqliteOutbox
from bot.pairing import Pairing
from bot.people import People
from bot.roster import Roster
from bot.router import Explanation, Route, route
from bot.state import State
from bot.told import Told
from bot.turns import EXIT_TEMPORARY, Turns, place
from bot.usage import Ledger
from bot.zone import machine_zone
from workspaces.database import sqlite
from workspaces.scope import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.model import Model
    from bot.config import Settings
    from bot.home import Home

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 20.0
"""How long a stop waits for running turns; what is cut off goes on after the next start."""

OVER = "That turn ended while the connection was lost. Ask again, or look at what was said: limpet chat"


class Gate:
    """Who may talk and where it leads: access and routing over the settings and the table of people."""

    def __init__(self, settings: Settings, people: People, policies: Mapping[tuple[str, str], Policy]) -> None:
        self._settings = settings
        self._people = people
        self._policies = policies

    def knows(self, agent: str) -> bool:
        return agent in self._settings.agents

    async def judge(self, message: Message) -> Verdict:
        """The verdict on one message, decided anew from ids."""
        address = await self._people.canonical(message.address)
        policy = self._policies.get((address.channel, address.account), Policy())
        level = await self._people.level(address, message.sender)
        return decide(message, address.chat, policy, level)

    async def explain(self, message: Message, verdict: Verdict) -> Explanation:
        """Where an allowed message goes, and why."""
        assert verdict.level is not None, "only an allowed message is routed"
        address = await self._people.canonical(message.address)
        identity = self._people.identity(address, message.sender)
        bindings, default = self._settings.routes(), self._settings.default_agent
        if address.channel == "terminal" and address.space is not None and self.knows(address.space):
            bindings, default = (), address.space  # limpet chat --agent NAME: what is said wins over what is bound
        return route(message, address, bindings, default, verdict.level, identity)

    async def admit(self, message: Message) -> Route | None:
        """The route of a message, None when its sender may not talk."""
        verdict = await self.judge(message)
        if verdict.decision is not Decision.ALLOW:
            return None
        return (await self.explain(message, verdict)).route


@dataclass(frozen=True, slots=True)
class Greeting:
    """Who answers at a console: ``model`` is None in notes mode; ``notices`` are said once, in order.

    ``commands`` are lines such as "/help — what I answer to".
    """

    agent: str
    model: str | None
    notices: tuple[str, ...]
    commands: tuple[str, ...]


class Hub:
    """One running hub. Made by ``open``; ``run`` ends when it is cancelled."""

    def __init__(
        self,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        gate: Gate,
        people: People,
        pairing: Pairing,
        inbox: SqliteInbox,
        outbox: SqliteOutbox,
        turns: Turns,
        health: HealthBoard,
        roster: Roster,
        chosen: Mapping[str, Chosen],
        told: Told,
        housekeeping: Housekeeping,
        hindrance: Hindrance,
        is_alive: Callable[[str], bool],
    ) -> None:
        self.roster = roster
        self.inbox = inbox
        self._adapters = adapters
        self._gate = gate
        self._people = people
        self._pairing = pairing
        self._outbox = outbox
        self._turns = turns
        self._health = health
        self._chosen = chosen
        self._told = told
        self._housekeeping = housekeeping
        self._hindrance = hindrance
        self._greeted: dict[str, Mapping[str, str | None]] = {}
        self._is_alive = is_alive

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
        chosen: dict[str, Chosen] = {}

        def model(agent: str) -> Model | None:
            chosen[agent] = model_of(agent, settings, home, metered=partial(Metered, ledger=ledger, agent=agent))
            return chosen[agent].model

        def small(agent: str) -> Model | None:
            return small_model_of(settings, home, metered=partial(Metered, ledger=ledger, agent=agent))

        by_account = {(adapter.channel, adapter.account): adapter for adapter in adapters}
        instances = Instances(home.state / "instances")
        with instances.join() as owner:
            async with (
                State.open(home.database) as state,
                Roster.open(settings, home, model=model, small=small, clock=clock, watch=watch) as roster,
            ):
                people = People(state, owners=settings.owners, identities=settings.identities, clock=clock)
                gate = Gate(settings, people, settings.policies())
                hindrance = Hindrance(home, by_account)
                outbox = SqliteOutbox(
                    state, by_account, owner, people=people, clock=clock, failed=hindrance.lane_failed
                )
                inbox = SqliteInbox(state, outbox, owner, clock)
                ledger = Ledger(
                    state,
                    prices=prices_of(settings, home),
                    daily_usd=settings.budget.daily_usd,
                    clock=clock,
                    zone=lambda: machine_zone() or UTC,
                )
                turns = Turns(
                    inbox,
                    outbox,
                    by_account,
                    admit=gate.admit,
                    agent=roster.get,
                    locks=home.state / "sessions",
                    ledger=ledger,
                    hindrance=hindrance,
                    advice=lambda name: chosen[name].notice if chosen[name].model is None else None,
                )
                yield cls(
                    by_account,
                    gate=gate,
                    people=people,
                    pairing=Pairing(state, people, clock=clock),
                    inbox=inbox,
                    outbox=outbox,
                    turns=turns,
                    health=HealthBoard(state, adapters, clock),
                    roster=roster,
                    chosen=chosen,
                    told=Told(home.state / "told.json"),
                    housekeeping=Housekeeping(
                        settings, home, roster.open_agents, last_turn=turns.last_turn, clock=clock
                    ),
                    hindrance=hindrance,
                    is_alive=instances.is_alive,
                )

    async def run(self) -> None:
        """Take up what dead processes left, then serve until cancelled."""
        menu = [(command.name, command.summary) for command in commands.COMMANDS if command.is_listed]
        for adapter in self._adapters.values():
            if isinstance(adapter, Menu):
                adapter.offer(menu)
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
        tasks.append(asyncio.create_task(self._health.keep(), name="health"))
        tasks.append(asyncio.create_task(self._housekeeping.keep(), name="housekeeping"))
        try:
            await asyncio.gather(*tasks)
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
        """Run one channel; its failure is its own and is shown in ``limpet status``."""
        try:
            await adapter.run(self.accept)
        except AuthFailed as error:
            log.error("channel.failed", channel=adapter.channel, account=adapter.account, reason=str(error))
        except AdapterError as error:
            log.error("channel.failed", channel=adapter.channel, account=adapter.account, reason=str(error))
        except Exception:  # a fault in one channel must not stop the others
            log.exception("channel.crashed", channel=adapter.channel, account=adapter.account)

    async def accept(self, event: Inbound) -> None:
        """Take one inbound event; what has to be durable is durable when this returns."""
        match event:
            case Message():
                try:
                    await self._message(event)
                except (OSError, sqlite().Error) as error:  # it can't be stored now: the platform brings it again
                    if told := self._hindrance.of(error):
                        raise told from error
                    raise
                except Exception:  # its own fault: read again and again it would hold up everything behind it
                    log.exception("message.refused", channel=event.address.channel, account=event.address.account)
            case Moved(address=address, to_chat=to_chat):
                await self._people.move(address, to_chat)
            case Edited() | Deleted() | Reacted() | Pressed() | Membership():
                log.debug("event.ignored", kind=type(event).__name__)  # none of them starts a turn
            case _:
                assert_never(event)

    async def _message(self, message: Message) -> None:
        verdict = await self._gate.judge(message)
        match verdict.decision:
            case Decision.DENY:
                log.info("message.denied", channel=message.address.channel, reason=verdict.reason)
            case Decision.PAIR:
                await self._ask_to_pair(message)
            case Decision.ALLOW:
                key = place(message, (await self._gate.explain(message, verdict)).route.session)
                if await self.inbox.put(message, key):
                    self._turns.wake(key)
                else:
                    await self._said_again(message)
            case _:
                assert_never(verdict.decision)

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

    async def _said_again(self, message: Message) -> None:
        """A replay is a no-op; but a console that asks again after a break has to hear what became of its turn."""
        address = message.address
        adapter = self._adapters[address.channel, address.account]
        known = await self.inbox.turn_of(message)
        if not isinstance(adapter, Narrator) or known is None or not known[1]:
            return
        parts = await self._outbox.unsent(known[0])
        if parts or commands.given(message):  # to a command there is nothing more to say
            await adapter.done(address, message.id, TurnReport(parts=parts))
        else:
            await adapter.fail(address, message.id, OVER, EXIT_TEMPORARY)

    async def _ask_to_pair(self, message: Message) -> None:
        words = await self._pairing.ask(message)
        if words is not None:
            await self._outbox.put(_turn_of(message), [Part(message.address, FormattedText(words))])


def _turn_of(message: Message) -> str:
    """The outbox's turn of a pairing code: the same for a replay of ``message``."""
    address = message.address
    return "/".join(("pairing", address.channel, address.account, address.chat, message.id))
