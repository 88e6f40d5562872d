"""The agents of one process: each built when it is first needed, all closed at the end.

Opening one agent touches its own workspace, index and sessions and nothing of another's. It builds no model: what
needs none works where none can be had.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

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
from workspaces.workspace import Workspace

if TYPE_CHECKING:
    from agents.model import Model
    from bot.config import Settings
    from bot.home import Home
    from workspaces.memory import Embedder


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
        stack: AsyncExitStack,
        *,
        model: Callable[[str], Model | None],
        small: Callable[[str], Model | None],
        clock: Callable[[], datetime],
        watch: bool,
    ) -> None:
        self._settings = settings
        self._home = home
        self._stack = stack
        self._model = model
        self._small = small
        self._clock = clock
        self._watch = watch
        self._embedders = functools.cache(lambda: embedders_of(settings, home))
        self._agents: dict[str, Agent] = {}
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
        async with AsyncExitStack() as stack:
            yield cls(settings, home, stack, model=model, small=small, clock=clock, watch=watch)

    @property
    def open_agents(self) -> Mapping[str, Agent]:
        """Those that were needed so far, by name."""
        return self._agents

    async def get(self, name: str) -> Agent:
        """The agent called ``name``: one of the configuration's, or made from a template of it, now if need be."""
        async with self._opening:
            if name not in self._agents:
                self._agents[name] = await self._build(name)
            return self._agents[name]

    async def _build(self, name: str) -> Agent:
        zone = zone_of(name, self._settings, self._home)
        folder, template = self._settings.workspace(name, self._home), template_of(name)
        if template is None:
            workspace = Workspace.open(folder, clock=self._clock, zone=zone)
        else:
            workspace = Workspace.made_from(self._home.templates / template, folder, clock=self._clock, zone=zone)
        model, small = (_Deferred(functools.partial(build, name)) for build in (self._model, self._small))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(model.close)
            stack.push_async_callback(small.close)
            opened = open_memory(name, self._settings, self._home, embedders=self._embedders(), clock=self._clock)
            memory = await stack.enter_async_context(opened)
            if self._watch:
                await stack.enter_async_context(memory.watch())
            self._stack.push_async_exit(stack.pop_all())
        own = self._settings.agent(name)
        copies = Copies(self._home.copies(name), self._clock)
        return Agent(
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
