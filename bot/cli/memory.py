"""``limpet memory``: search what an agent knows, read it, see where it lies, take the last note back."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bot.cli import output
from bot.cli.options import AgentOption, JsonOption

if TYPE_CHECKING:
    from bot.home import Home
    from workspaces.memory import Hit, Memory

app = typer.Typer(help="Search what an agent knows, read it, see where it lies, take the last note back.")

Result = TypeVar("Result")


@app.command()
def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for, in plain words.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50, help="How many notes at most.")] = 6,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Find notes by words and by meaning, best first. Exit code 1: nothing fits."""
    from workspaces.scope import Scope

    result = _with(ctx.obj, agent, lambda memory: memory.search(query, scope=Scope.home(), limit=limit))
    for warning in result.warnings:
        output.note(warning)
    if not result.hits and not json:
        output.note("Nothing fits that.")
    text = "\n\n".join(_shown(hit, query) for hit in result.hits)
    data = {
        "query": query,
        "mode": result.mode,
        "warnings": result.warnings,
        "hits": [_as_dict(h) for h in result.hits],
    }
    output.result(text, data, as_json=json)
    return 0 if result.hits else 1


@app.command()
def get(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(help="A file as a search names it: memory/2026-11-30.md")],
    start: Annotated[int, typer.Option(min=1, help="The first line.")] = 1,
    lines: Annotated[int, typer.Option(min=1, help="How many lines.")] = 120,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Print a part of a memory file."""
    from workspaces.memory import OutOfReach
    from workspaces.scope import Scope

    try:
        excerpt = _with(ctx.obj, agent, lambda memory: memory.get(path, scope=Scope.home(), start=start, lines=lines))
    except OutOfReach as error:
        output.fail(str(error), "name a file as limpet memory search shows it")
    if excerpt.note:
        output.note(excerpt.note)
    output.result(excerpt.text.rstrip("\n"), asdict(excerpt), as_json=json)
    return 0 if excerpt.text else 1


@app.command()
def status(ctx: typer.Context, agent: AgentOption = None, json: JsonOption = False) -> int:
    """What is indexed and how it is searched. Exit code 1 when something is amiss."""
    found = _with(ctx.obj, agent, lambda memory: memory.status())
    how = {
        "hybrid": f"by words and by meaning ({found.embedder})",
        "keyword": "by words only; by meaning as well: limpet config set memory.embedder static",
        "scan": "by reading every file, without an index",
    }[found.mode]
    rows = [
        ("search", how),
        ("indexed", f"{found.files} files, {found.chunks} pieces, {found.vectors} of them by meaning"),
        ("index", f"{found.index_path} ({found.index_bytes / 1000:.0f} kB)"),
        *(("warning", warning) for warning in found.warnings),
    ]
    output.result(output.table(rows), asdict(found), as_json=json)
    return 1 if found.warnings else 0


@app.command()
def index(ctx: typer.Context, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Bring the index up to date now. Searching does it by itself; this shows how far it is."""

    async def sync(memory: Memory) -> Any:
        with output.progress("Reading notes", 1.0) as advance:
            shown = 0.0

            def progress(done: int, total: int) -> None:
                nonlocal shown
                advance(done / max(total, 1) - shown)
                shown = done / max(total, 1)

            return await memory.sync(progress)

    report = _with(ctx.obj, agent, sync)
    text = (
        f"{report.added} files added, {report.changed} changed, {report.removed} removed, {report.unchanged} unchanged"
        f"; {report.embedded} pieces embedded"
    )
    output.result(text, asdict(report), as_json=json)


@app.command()
def path(ctx: typer.Context, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Print the folder of the agent's Markdown. It is yours: read, edit, diff and delete it with anything."""
    from bot.config import load

    home: Home = ctx.obj
    settings = load(home)
    folder = settings.workspace(_agent(agent, settings), home)
    output.result(str(folder), {"path": str(folder)}, as_json=json)


@app.command()
def undo(ctx: typer.Context, agent: AgentOption = None, json: JsonOption = False) -> int:
    """Take back the last note that was written. What you edited yourself since is left alone."""
    from workspaces.scope import Scope

    undone = _with(ctx.obj, agent, lambda memory: memory.undo(scope=Scope.home()))
    if undone is None:
        output.fail("there is nothing to take back", code=1)
    if undone.edited:
        output.note(f"You edited that note since, so it stays: {undone.path}")
    text = "" if undone.edited else f"Taken back from {undone.path}: {undone.text.strip()}"
    output.result(text, asdict(undone), as_json=json)
    return 1 if undone.edited else 0


def _agent(name: str | None, settings: Any) -> str:
    from bot.errors import UsageError
    from bot.spelling import did_you_mean

    if name is not None and name not in settings.agents:
        raise UsageError(f"no agent is called {name!r}", did_you_mean(name, settings.agents))
    return name or settings.default_agent


def _with(home: Home, agent: str | None, use: Callable[[Memory], Awaitable[Result]]) -> Result:
    """Use the memory of ``agent``, beside a running hub or without one."""
    from bot.config import load
    from bot.roster import open_memory

    settings = load(home)
    name = _agent(agent, settings)

    async def run() -> Result:
        async with open_memory(name, settings, home) as memory:
            return await use(memory)

    return asyncio.run(run())


def _as_dict(hit: Hit) -> dict[str, Any]:
    return {**asdict(hit), "citation": hit.citation}


def _shown(hit: Hit, query: str) -> str:
    """A hit for a person: where and how well, then the text with the words of the query in bold."""
    where = " › ".join([hit.citation, *hit.trail])
    text = hit.text.strip("\n")
    if output.has_colour(sys.stdout):
        words = [re.escape(word) for word in re.findall(r"\w{3,}", query)]
        if words:
            text = re.sub(rf"(?i)\b(?:{'|'.join(words)})", lambda m: output.bold(m[0]), text)
    return f"{where}  {hit.score:.2f}\n{text}"
