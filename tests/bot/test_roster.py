"""The agents of one process: each is opened once, without its model, and what can't be opened leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.errors import ModelError
from agents.model import Model
from bot.config import load
from bot.home import Home
from bot.models import model_of
from bot.roster import Roster, open_memory
from tests.bot.conftest import Clock
from tests.fakes.model import FakeModel
from workspaces.memory.static_embedder import StaticEmbedder
from workspaces.scope import Scope


@asynccontextmanager
async def roster_of(home: Home, model: Callable[[str], Model | None] | None = None) -> AsyncIterator[Roster]:
    """``model`` None: those of the settings."""
    settings = load(home, {})
    built = model or (lambda name: model_of(name, settings, home).model)
    async with Roster.open(settings, home, model=built, clock=lambda: datetime.now(UTC), watch=True) as roster:
        yield roster


def threads() -> int:
    """How many there are beside those of the loop's pool, which stay."""
    return sum(not thread.name.startswith("asyncio") for thread in threading.enumerate())


@pytest.mark.parametrize("model", ["nonsense", "local/nowhere"])
async def test_an_agent_whose_model_cant_be_built_still_remembers(home: Home, model: str) -> None:
    """And leaves no thread behind, however often it is tried: a message a second for a day would be as many."""
    home.root.mkdir()
    home.config.write_text(f'[agents.main]\n[agents.broken]\nmodel = "{model}"\n')
    async with roster_of(home) as roster:
        before = threads()
        agent = await roster.get("broken")
        await agent.memory.append("the dog is called Biscuit", scope=Scope.home())
        assert (await agent.memory.search("dog", scope=Scope.home())).hits
        opened = threads()
        for _ in range(5):
            with pytest.raises(ModelError):
                agent.model()
            assert await roster.get("broken") is agent
        assert threads() == opened
        assert await roster.get("main") is await roster.get("main")
    async with asyncio.timeout(10):
        while threads() > before:
            await asyncio.sleep(0.01)


class Closing(FakeModel):
    closed = 0

    async def close(self) -> None:
        self.closed += 1


async def test_a_model_is_built_when_it_is_asked_for_and_closed_once(home: Home) -> None:
    """Notes mode is an answer too, and not asked for again."""
    home.root.mkdir()
    home.config.write_text("[agents.main]\n[agents.notes]\n[agents.idle]\n")
    models = {"main": Closing([]), "notes": None, "idle": Closing([])}
    built: list[str] = []

    def build(name: str) -> Model | None:
        built.append(name)
        return models[name]

    async with roster_of(home, build) as roster:
        agents = [await roster.get(name) for name in models]
        assert built == []
        assert [agent.model() for agent in agents[:2] * 3] == [models["main"], None] * 3
        assert built == ["main", "notes"]
    assert [model.closed for model in models.values() if model is not None] == [1, 0]
    assert built == ["main", "notes"]


async def test_a_model_that_was_mended_meanwhile_is_used(home: Home) -> None:
    """`limpet models pull` beside a running hub is all that it takes."""
    home.root.mkdir()
    home.config.write_text("[agents.main]\n")
    model = Closing([])
    there = False

    def build(name: str) -> Model | None:
        if not there:
            raise ModelError("its weights are not here")
        return model

    async with roster_of(home, build) as roster:
        agent = await roster.get("main")
        with pytest.raises(ModelError):
            agent.model()
        there = True
        assert agent.model() is model
    assert model.closed == 1


def tables() -> int:
    """How many embedders there are that hold a table of weights each."""
    gc.collect()
    return sum(isinstance(thing, StaticEmbedder) for thing in gc.get_objects())


async def test_agents_share_what_holds_weights(home: Home) -> None:
    """A home with ten agents reads the table of the embedder once."""
    before = tables()
    home.root.mkdir()
    home.config.write_text("[agents.main]\n[agents.second]\n[agents.third]\n")
    async with roster_of(home) as roster:
        for name in ("main", "second", "third"):
            agent = await roster.get(name)
            await agent.memory.append("the dog is called Biscuit", scope=Scope.home())
            assert (await agent.memory.search("what is my pet called?", scope=Scope.home())).mode == "hybrid"
        assert tables() == before + 1


@pytest.mark.parametrize("agent", ["main", "second"])
async def test_no_pattern_for_other_files_reaches_into_the_home_or_another_agent(
    home: Home, tmp_path: Path, agent: str
) -> None:
    """One agent never has a path into another's folder; nor is a guest's chat found by its whole path."""
    theirs, elsewhere = tmp_path / "theirs", tmp_path / "elsewhere"
    home.root.mkdir()
    home.config.write_text(
        f'[agents.main]\n[agents.second]\n[agents.third]\nworkspace = "{theirs}"\n\n'
        f'[memory]\nextra = ["{home.root}/**/*.md", "{theirs}/**/*.md", "{elsewhere}/*.md"]\n'
    )
    own = home.workspace(agent)
    other = home.workspace("second" if agent == "main" else "main")
    for folder in (own, other, theirs):
        (folder / "memory" / "chats" / "guest").mkdir(parents=True)
        (folder / "memory" / "2026-11-30.md").write_text("- the canary sings\n")
        (folder / "memory" / "chats" / "guest" / "2026-11-30.md").write_text("- the canary of a guest\n")
    (home.root / "canary.md").write_text("- a canary of the home\n")
    elsewhere.mkdir()
    (elsewhere / "notes.md").write_text("- the canary is yellow\n")
    async with open_memory(agent, load(home, {}), home) as memory:
        await memory.sync()
        listed = {file.path for file in await memory.list(scope=Scope.home())}
        found = {hit.path for hit in (await memory.search("canary", scope=Scope.home(), limit=50)).hits}
    assert {path for path in listed if "canary" in path or path.startswith("/")} == {f"{elsewhere}/notes.md"}
    assert found == {"memory/2026-11-30.md", f"{elsewhere}/notes.md"}


async def test_only_so_many_agents_are_open_and_none_in_use_is_closed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand workspaces cost nothing but their disk."""
    monkeypatch.setattr("bot.roster.MOST_OPEN", 3)
    home.root.mkdir()
    home.config.write_text("[templates.support]\n")
    names = [f"support/telegram/t/direct/{number}" for number in range(12)]
    async with roster_of(home, lambda _: None) as roster:
        held, may_end = asyncio.Event(), asyncio.Event()

        async def use() -> None:
            agent = await roster.get(names[0])
            await agent.memory.append("the dog is called Biscuit", scope=Scope.home())
            held.set()
            await may_end.wait()
            assert (await agent.memory.search("dog", scope=Scope.home())).hits, "it was not closed meanwhile"
            assert await roster.get(names[0]) is agent

        task = asyncio.create_task(use())
        await held.wait()
        before = threads()
        for name in names[1:]:
            await asyncio.create_task(_note(roster, name))
        assert roster.open_count == 3
        assert threads() <= before + 3 * 4, "what was closed left its threads"
        may_end.set()
        await task
        again = await asyncio.create_task(_found(roster, names[1]))
        assert again == 1, "what was noted is there when it is opened again"


async def _note(roster: Roster, name: str) -> None:
    await (await roster.get(name)).memory.append("the cat is called Miso", scope=Scope.home())


async def _found(roster: Roster, name: str) -> int:
    return len((await (await roster.get(name)).memory.search("cat", scope=Scope.home())).hits)


async def test_an_agent_that_nobody_uses_is_closed_after_a_while(home: Home, clock: Clock) -> None:
    home.root.mkdir()
    home.config.write_text("[agents.main]\n[agents.garden]\n")
    settings = load(home, {})
    async with Roster.open(settings, home, model=lambda _: None, clock=clock) as roster:
        await asyncio.create_task(_note(roster, "main"))
        clock.move(minutes=15)
        await asyncio.create_task(_note(roster, "garden"))
        clock.move(minutes=6)
        await roster.close_idle()
        assert roster.open_count == 1
        agent = await roster.get("garden")
        clock.move(hours=5)
        await roster.close_idle()
        assert await roster.get("garden") is agent, "this task uses it"
