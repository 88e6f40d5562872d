"""``limpet memory``: search what an agent knows, read it, see where it lies, take the last note back."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import memory_index, output
from bot.cli.memory_use import FolderOption, Which, agent_called
from bot.cli.memory_use import count as counted
from bot.cli.options import AgentOption, JsonOption

if TYPE_CHECKING:
    from bot.home import Home
    from workspaces.memory import Change, Hit

app = typer.Typer(help="Search what an agent knows, read it, see where it lies, take the last note back.")

_MOST_LINES = 120
"""Of a file that is named without a place in it."""


@app.command()
def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for, in plain words.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50, help="How many notes at most.")] = 6,
    agent: AgentOption = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> int:
    """Find notes by words and by meaning, best first. Exit code 1: nothing fits."""
    from workspaces.scope import Scope

    which = Which(ctx.obj, agent, folder)
    result = which.use(lambda memory: memory.search(query, scope=Scope.home(), limit=limit))
    warnings = which.warned(result.warnings)
    for warning in warnings:
        output.note(warning)
    if not result.hits and not json:
        output.note("Nothing fits that.")
    text = "\n\n".join(_shown(hit, query) for hit in result.hits)
    data = {
        "query": query,
        "mode": result.mode,
        "warnings": warnings,
        "hits": [_as_dict(h) for h in result.hits],
    }
    output.result(text, data, as_json=json)
    return 0 if result.hits else 1


@app.command()
def get(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(help="A file or a place as a search names it: memory/2026-11-30.md#L3-L9")],
    start: Annotated[int | None, typer.Option(min=1, help="The first line.")] = None,
    lines: Annotated[int | None, typer.Option(min=1, help="How many lines.")] = None,
    agent: AgentOption = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> int:
    """Print a part of a memory file; what --start and --lines say goes before #L3-L9. Exit code 1: nothing is there."""
    from workspaces.memory import OutOfReach
    from workspaces.scope import Scope

    file, first, count = _place(path)
    first, count = start or first, lines or count
    try:
        which = Which(ctx.obj, agent, folder)
        excerpt = which.use(lambda memory: memory.get(file, scope=Scope.home(), start=first, lines=count))
    except OutOfReach as error:
        output.fail(str(error).rstrip("."), "find one: limpet memory search WORDS")
    if excerpt.note:
        output.note(excerpt.note)
    elif not excerpt.text:
        output.note(f"{file} has {counted(excerpt.total, 'line')}: there is nothing from line {first} on.")
    output.result(excerpt.text.rstrip("\n"), asdict(excerpt), as_json=json)
    return 0 if excerpt.text else 1


@app.command()
def path(ctx: typer.Context, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Print the folder of the agent's Markdown. It is yours: read, edit, diff and delete it with anything."""
    from bot.config import load

    home: Home = ctx.obj
    settings = load(home)
    folder = settings.workspace(agent_called(agent, settings, home), home)
    output.result(str(folder), {"path": str(folder)}, as_json=json)


@app.command()
def undo(ctx: typer.Context, agent: AgentOption = None, json: JsonOption = False) -> int:
    """Take back the last write, whatever it was. What you edited yourself since is left alone."""
    from workspaces.scope import Scope

    undone = Which(ctx.obj, agent).use(lambda memory: memory.undo(scope=Scope.home()))
    if undone is None:
        output.fail("there is nothing to take back", code=1)
    if undone.edited:
        output.note(undone.reason or f"You edited that note since, so it stays: {undone.path}")
    done = [f"Taken back from {undone.path}: {undone.text.strip()}"] if undone.text else []
    done += [f"Put back into {undone.path}: {undone.removed.strip()}"] if undone.removed else []
    output.result("" if undone.edited else "\n".join(done), asdict(undone), as_json=json)
    return 1 if undone.edited else 0


@app.command()
def changes(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")] = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """What the agent wrote, newest first, and what was taken back. Exit code 1: nothing yet."""
    from workspaces.scope import Scope

    found = Which(ctx.obj, agent).use(lambda memory: memory.changes(scope=Scope.home(), limit=limit))
    if not found and not json:
        output.note("Nothing was written yet.")
    output.result("\n\n".join(map(_change, found)), {"changes": [asdict(one) for one in found]}, as_json=json)
    return 0 if found else 1


for _command in (memory_index.status, memory_index.index, memory_index.rebuild, memory_index.watch, memory_index.bench):
    app.command()(_command)


def _change(change: Change) -> str:
    """When and where, then the lines that went and those that came."""
    by = f" by {change.by}" if change.by else ""
    fate = "  (taken back)" if change.taken_back else "  (you edited it since)" if change.edited else ""
    lines = [f"- {line}" for line in change.removed.splitlines()] + [f"+ {line}" for line in change.added.splitlines()]
    return "\n".join([f"{change.at:%Y-%m-%d %H:%M} {change.kind} {change.path}{by}{fate}", *lines])


def _place(text: str) -> tuple[str, int, int]:
    """The file, the first line and how many: all of ``memory/a.md#L3-L9``, where a search says so, or of a file."""
    cited = re.fullmatch(r"(.+)#L(\d+)(?:-L?(\d+))?", text)
    if cited is None:
        return text, 1, _MOST_LINES
    first = max(int(cited[2]), 1)
    return cited[1], first, max(int(cited[3] or first) - first + 1, 1)


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
