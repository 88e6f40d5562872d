"""The agents of one process: each built when it is first needed, closed when nobody needs it, all of them at the end.

There may be ten thousand of them: only those that are talked to are open, and a limited number at once. Opening one
touches its own workspace, index and sessions and nothing of another's. It builds no model: what needs none works where
none can be had.
"""

from __future__ import annotations

import asyncio
import functools
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import structlog

from agents.agent import Agent
from agents.resets import Resets
from agents.tools.registry import toolbox
from bot.agent_names import template_of
from bot.clock import now
from bot.models import embedders_of
from bot.zone import machine_zone, suggested
from workspaces.copies import Copies
from workspaces.memory import Memory
from workspaces.profile import read_profile
from workspaces.workspace import Workspace, furnished

if TYPE_CHECKING:
    from agents.model import Model
    from bot.config import Settings
    from bot.home import Home
    from workspaces.memory import Embedder
    from workspaces.memory.sharing import Shared


log = structlog.get_logger(__name__)

MOST_OPEN = 64
"""How many agents are kept open beyond those in use: each has its index open and its folder watched."""

IDLE = timedelta(minutes=20)
"""How long an agent stays open that nobody uses."""


@dataclass(slots=True)
class _Open:
    """An open agent, what closes it, and the tasks that use it."""

    agent: Agent
    stack: AsyncExitStack
    used_at: datetime
    users: set[asyncio.Task[object]] = field(default_factory=set)


class Roster:
    """``model`` builds the model of an agent by its name, None for notes mode; ``small`` the one for its silent turns,
    None for the same.

    They are called when a model is first asked for, and again only where they raised ModelError: a person may have
    mended that meanwhile. The embedders, which hold weights in memory, are shared by all agents.
    """

    def __init__(
        self,
        settings: Settings,
        home: Home,
        *,
        model: Callable[[str], Model | None],
        small: Callable[[str], Model | None],
        clock: Callable[[], datetime],
        watch: bool,
    ) -> None:
        self._settings = settings
        self._home = home
        self._model = model
        self._small = small
        self._clock = clock
        self._watch = watch
        self._embedders = functools.cache(self._shared)
        self._furnished = functools.cache(lambda template: furnished(home.templates / template))
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._opening = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings,
        home: Home,
        *,
        model: Callable[[str], Model | None],
        small: Callable[[str], Model | None] = lambda _: None,
        clock: Callable[[], datetime],
        watch: bool = False,
    ) -> AsyncIterator[Roster]:
        """``watch`` keeps the index of each open agent up to date in the background."""
        roster = cls(settings, home, model=model, small=small, clock=clock, watch=watch)
        try:
            yield roster
        finally:
            await roster.close()

    def _shared(self) -> tuple[Shared | None, Shared | None]:
        """The embedders of all agents."""
        from workspaces.memory.sharing import Shared

        preferred, stand_in = embedders_of(self._settings, self._home)
        return Shared(preferred) if preferred else None, Shared(stand_in) if stand_in else None

    async def get(self, name: str) -> Agent:
        """The agent called ``name``: one of the configuration's, or made from a template of it, now if need be.

        It stays open as long as the task runs that asked for it, and after that until others need its place.
        """
        async with self._opening:
            if name not in self._open:
                self._open[name] = await self._build(name)
            opened = self._open[name]
            self._open.move_to_end(name)
            opened.used_at = self._clock()
            _hold(opened)
            unused = [each for each, its in self._open.items() if not its.users]
            for other in unused[: max(0, len(self._open) - MOST_OPEN)]:
                await self._close(other)
            return opened.agent

    async def close_idle(self) -> None:
        """Close what nobody has used for a while."""
        async with self._opening:
            last = self._clock() - IDLE
            for name in [name for name, its in self._open.items() if not its.users and its.used_at <= last]:
                await self._close(name)
            self._release()

    @property
    def open_count(self) -> int:
        """How many agents are open."""
        return len(self._open)

    async def close(self) -> None:
        """Close all of them."""
        async with self._opening:
            for name in list(self._open):
                await self._close(name)
            self._release(at_once=True)

    def _release(self, *, at_once: bool = False) -> None:
        """What the last closed agents held with others is given back, if nobody uses it any more."""
        for embedder in self._embedders() if self._embedders.cache_info().currsize else ():
            if embedder is not None:
                (embedder.let_go if at_once else embedder.release)()

    async def _close(self, name: str) -> None:
        """A fault in closing one is no fault of another's."""
        opened = self._open.pop(name)
        try:
            await opened.stack.aclose()
        except Exception:
            log.exception("agent.not_closed", agent=name)

    async def _build(self, name: str) -> _Open:
        zone = zone_of(name, self._settings, self._home)
        folder, template = self._settings.workspace(name, self._home), template_of(name)
        if template is None:
            workspace = Workspace.open(folder, clock=self._clock, zone=zone)
        else:
            workspace = Workspace.made_from(self._furnished(template), folder, clock=self._clock, zone=zone)
        model, small = (_Deferred(functools.partial(build, name)) for build in (self._model, self._small))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(model.close)
            stack.push_async_callback(small.close)
            opened = open_memory(name, self._settings, self._home, embedders=self._embedders(), clock=self._clock)
            memory = await stack.enter_async_context(opened)
            if self._watch:
                await stack.enter_async_context(memory.watch())
            kept = stack.pop_all()
        own = self._settings.agent(name)
        copies = Copies(self._home.copies(name), self._clock)
        agent = Agent(
            name=name,
            workspace=workspace,
            memory=memory,
            model=model,
            sessions=self._home.sessions(name),
            zone=zone,
            clock=self._clock,
            recall=own.recall,
            zone_like=suggested,
            small=small,
            toolbox=toolbox(workspace.root, memory, copies),
            tools=own.tools,
            resets=Resets(own.reset_after_idle, own.reset_daily_at),
        )
        return _Open(agent, kept, self._clock())


def _hold(opened: _Open) -> None:
    """The running task uses the agent until it ends."""
    task = asyncio.current_task()
    if task is not None and task not in opened.users:
        opened.users.add(task)
        task.add_done_callback(opened.users.discard)


class _Deferred:
    """A model that is built when it is first asked for, and kept. ``build`` gives None for notes mode."""

    def __init__(self, build: Callable[[], Model | None]) -> None:
        self._build = functools.cache(build)  # an exception is not kept: the next call tries again

    def __call__(self) -> Model | None:
        return self._build()

    async def close(self) -> None:
        """Close the model if it was built."""
        if self._build.cache_info().currsize and (model := self._build()) is not None:
            await model.close()


def open_memory(
    name: str,
    settings: Settings,
    home: Home,
    *,
    embedders: tuple[Embedder | None, Embedder | None] | None = None,
    clock: Callable[[], datetime] = now,
) -> AbstractAsyncContextManager[Memory]:
    """The memory of one agent, as its own process or another's sees it. ``embedders`` None: those of the settings.

    Other files that it may recall (``memory.extra``) are never the home's or another agent's. What is made from a
    template recalls none: they are the owner's own.
    """
    own = settings.memory if template_of(name) is None else settings.memory.model_copy(update={"extra": ()})
    embedder, stand_in = embedders or embedders_of(settings, home)
    others = (settings.workspace(other, home) for other in settings.agents if other != name)
    return Memory.open(
        settings.workspace(name, home),
        home.index(name),
        apart=(home.root, *others),
        embedder=embedder,
        stand_in=stand_in,
        settings=own,
        history=home.history(name),
        clock=clock,
        zone=zone_of(name, settings, home),
    )


def zone_of(name: str, settings: Settings, home: Home) -> Callable[[], tzinfo]:
    """The agent's time zone, asked anew each time: USER.md may change while we run.

    The configured zone, else the one in USER.md, else the machine's, else UTC.
    """
    own = settings.agent(name).time_zone
    folder = settings.workspace(name, home)

    def zone() -> tzinfo:
        return ZoneInfo(own) if own else read_profile(folder).zone or machine_zone() or ZoneInfo("UTC")

    return zone
