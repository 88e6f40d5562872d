"""How the memory commands get at a memory: an agent's, or that of any folder of Markdown (``--dir``).

An agent's is opened beside a running hub or without one. The index of a folder is kept in the home, so that nothing is
written into the folder itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from bot.agent_names import template_of
from bot.cli import output
from bot.errors import UsageError
from bot.spelling import did_you_mean

if TYPE_CHECKING:
    from bot.home import Home
    from workspaces.memory import Memory, SyncReport
    from workspaces.scope import Scope

FolderOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--dir", "-d", help="Any folder of Markdown, in place of an agent's memory.", show_default=False),
]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Which:
    """The memory that a command means: of ``folder`` where there is one, else of ``agent`` (None: the default one)."""

    home: Home
    agent: str | None = None
    folder: Path | None = None

    def use(self, work: Callable[[Memory], Awaitable[Result]]) -> Result:
        """Open it and do ``work``. Raises UsageError where there is no such agent or folder."""
        opened = self._opened()
        logging.getLogger("workspaces").addHandler(logging.NullHandler())  # what is amiss is in the results

        async def run() -> Result:
            async with opened as memory:
                return await work(memory)

        return asyncio.run(run())

    def everything(self) -> Scope:
        """A scope that reads all there is, every chat's notes included."""
        from bot.config import load
        from workspaces.scope import CHATS, HOME, SHARED, Level, Scope, area_of

        settings = load(self.home)
        root = self.folder or settings.workspace(agent_called(self.agent, settings, self.home), self.home)
        chats = (area_of(f"{CHATS}{path.name}/") for path in (root / CHATS).glob("*"))
        return Scope(HOME, frozenset({HOME, SHARED, *chats}), frozenset(), Level.OWNER)

    def warned(self, warnings: Sequence[str]) -> tuple[str, ...]:
        """What a memory has to say of itself, and that a stand-in finds the notes, which it learns only by asking."""
        from bot.config import load
        from bot.health import STAND_IN
        from bot.models import embedder_obstacle

        settings = load(self.home)
        problem = embedder_obstacle(settings, self.home)
        if problem is None or any(problem.message in warning for warning in warnings):
            return tuple(warnings)
        words = STAND_IN.format(name=settings.memory.embedder)
        return (f"{words[0].upper()}{words[1:]}: {problem}", *warnings)

    def _opened(self) -> AbstractAsyncContextManager[Memory]:
        from bot.config import load
        from bot.roster import open_memory

        settings = load(self.home)
        if self.folder is None:
            return open_memory(agent_called(self.agent, settings, self.home), settings, self.home)
        if self.agent is not None:
            raise UsageError("--agent and --dir name two memories", "give one of them")
        if not self.folder.is_dir():
            raise UsageError(f"{self.folder} is no folder", "name one that holds Markdown notes: --dir notes")
        from bot.models import embedders_of
        from workspaces.memory import ANY, Memory

        folder = self.folder.resolve()
        embedder, stand_in = embedders_of(settings, self.home)
        index = self.home.folder_index(hashlib.sha256(str(folder).encode()).hexdigest()[:16])
        tuned = settings.memory.model_copy(update={"extra": ()})
        return Memory.open(folder, index, patterns=ANY, embedder=embedder, stand_in=stand_in, settings=tuned)


def agent_called(name: str | None, settings: Any, home: Home) -> str:
    """The agent of that name, the default one for None. Raises UsageError where there is none."""
    if name is not None and name not in settings.agents:
        known = [*settings.agents, *(made for made in home.made_agents() if template_of(made) in settings.templates)]
        if name not in known:
            raise UsageError(f"no agent is called {name!r}", did_you_mean(name, known))
    return str(name or settings.default_agent)


async def sync(memory: Memory, *, anew: bool = False) -> SyncReport:
    """Make the index say what the files say, with a bar where that takes its time."""
    with output.progress("Reading notes", 1.0) as advance:
        shown = 0.0

        def progress(done: int, total: int) -> None:
            nonlocal shown
            advance(done / max(total, 1) - shown)
            shown = done / max(total, 1)

        return await (memory.rebuild if anew else memory.sync)(progress)


def count(number: int, noun: str) -> str:
    """ "1 file", "1,200 files"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
