"""The composition root: builds the hub in order and stops it in reverse.

    adapters ─▶ accept: access, pairing ─▶ inbox ─▶ turns: router, agent ─▶ outbox ─▶ adapters

``limpet run`` is a hub with every configured channel; ``limpet chat`` without a running hub is one with the terminal
only. Several may share a home: each answers what it accepted itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, assert_never

import structlog

from adapters.adapter import Adapter
from adapters.errors import AdapterError, AuthFailed
from adapters.message import Deleted, Edited, Inbound, Membership, Message, Moved, Part, Pressed, Reacted
from adapters.text import FormattedText
from bot.access import Decision, Policy, Verdict, decide
from bot.health import HealthBoard
from bot.inbox import SqliteInbox
from bot.instance import Instances
from bot.outbox import SqliteOutbox
from bot.pairing import Pairing
from bot.people import People
from bot.roster import Roster
from bot.router import Explanation, Route, route
from bot.state import State
from bot.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.config import Settings
    from bot.home import Home

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 20.0
"""How long a stop waits for running turns; what is cut off goes on after the next start."""

ASK_TO_PAIR = (
    "Hello! I don't know you yet. Your pairing code is {code} (good for an hour).\n"
    "Ask the person who runs me to approve it: limpet pairing approve {code}"
)


def now() -> datetime:
    return datetime.now(UTC)


class Gate:
    """Who may talk and where it leads: access and routing over the settings and the table of people."""

    def __init__(self, settings: Settings, people: People, policies: Mapping[tuple[str, str], Policy]) -> None:
        self._settings = settings
        self._people = people
        self._policies = policies

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
        default = self._settings.default_agent
        if address.channel == "terminal" and address.space in self._settings.agents:
            default = address.space or default  # limpet chat --agent NAME
        return route(message, address, self._settings.routes(), default, verdict.level, identity)

    async def admit(self, message: Message) -> Route | None:
        """The route of a message, None when its sender may not talk."""
        verdict = await self.judge(message)
        if verdict.decision is not Decision.ALLOW:
            return None
        return (await self.explain(message, verdict)).route


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
        self._is_alive = is_alive

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings,
        home: Home,
        adapters: Sequence[Adapter],
        *,
        build_model: Callable[[str], object],
        clock: Callable[[], datetime] = now,
        watch: bool = False,
    ) -> AsyncIterator[Hub]:
        """Open the state and the parts around ``adapters``; all of it is closed at the end of the block."""
        by_account = {(adapter.channel, adapter.account): adapter for adapter in adapters}
        instances = Instances(home.state / "instances")
        with instances.join() as owner:
            async with (
                State.open(home.database) as state,
                Roster.open(settings, home, model=build_model, clock=clock, watch=watch) as roster,
            ):
                people = People(state, owners=settings.owners, identities=settings.identities, clock=clock)
                gate = Gate(settings, people, settings.policies())
                outbox = SqliteOutbox(state, by_account, clock=clock)
                inbox = SqliteInbox(state, outbox, owner, clock)
                turns = Turns(
                    inbox,
                    outbox,
                    by_account,
                    admit=gate.admit,
                    agent=roster.get,
                    locks=home.state / "sessions",
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
                    is_alive=instances.is_alive,
                )

    async def run(self, *, adopt: bool) -> None:
        """Serve until cancelled. ``adopt`` takes up what an earlier hub left; only the lock's holder may."""
        if adopt:
            channels = [key for key in self._adapters if key[0] != "terminal"]
            for session in await self.inbox.adopt(channels):
                self._turns.wake(session)
            await self._outbox.recover()
        tasks = [
            asyncio.create_task(self._serve(adapter), name=f"{adapter.channel}/{adapter.account}")
            for adapter in self._adapters.values()
        ]
        tasks.append(asyncio.create_task(self._health.keep(), name="health"))
        try:
            await asyncio.gather(*tasks)
        finally:
            await self._stop(tasks)

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
                await self._message(event)
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
                session = (await self._gate.explain(message, verdict)).route.session
                if not await self.inbox.put(message, session):
                    again = await self.inbox.reclaim(message, self._is_alive)
                    if again is None:
                        return
                    session = again
                self._turns.wake(session)
            case _:
                assert_never(verdict.decision)

    async def _ask_to_pair(self, message: Message) -> None:
        code = await self._pairing.ask(message)
        if code is None:
            return
        address = message.address
        log.info(
            "pairing.asked",
            channel=address.channel,
            name=message.sender.name,
            approve=f"limpet pairing approve {code}",
        )
        turn = f"pairing/{address.channel}/{address.account}/{address.chat}/{message.id}"
        await self._outbox.put(turn, [Part(address, FormattedText(ASK_TO_PAIR.format(code=code)))])
