"""``limpet agents``: who there is, declared or made from a template, and how to have one more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import output
from bot.cli.options import JsonOption
from bot.errors import UsageError
from bot.spelling import did_you_mean

if TYPE_CHECKING:
    from bot.home import Home

app = typer.Typer(help="Who there is, and how to have one more.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A name of your own: a-z, 0-9 and -.")]
AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="As `limpet agents list` shows it.")]


@app.command("list")
def show(ctx: typer.Context, json: JsonOption = False) -> None:
    """Show every agent: those of the settings, and those that were made for a chat or a sender."""
    from bot.agent_names import template_of
    from bot.config import load
    from bot.models import named_for

    home: Home = ctx.obj
    settings = load(home)
    made = home.made_agents()
    rows = []
    for name in (*settings.agents, *made):
        template = template_of(name)
        if template is not None and template not in settings.templates:
            model, origin = "none", f"made from {template}, which is no template any more"
        else:
            model = ", ".join(each or "the default one" for each in named_for(name, settings))
            origin = f"made from {template}" if template else "settings"
        rows.append({"agent": name, "model": model, "origin": origin, "folder": str(settings.workspace(name, home))})
    unused = [name for name in settings.templates if not any(template_of(agent) == name for agent in made)]
    for name in unused:
        output.note(f"Nobody has a workspace from the template {name} yet: it is made with the first message.")
    table = [("agent", "model", "from", "folder"), *(tuple(row.values()) for row in rows)]
    output.result(output.table(table), {"agents": rows, "templates": list(settings.templates)}, as_json=json)


@app.command()
def add(
    ctx: typer.Context,
    name: NameArgument,
    model: Annotated[
        str | None, typer.Option(help="Its model, as provider/model; the default one if not given.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Declare one more agent, with its own workspace and memory. A binding says where it answers."""
    from bot.config import change, load
    from bot.start_record import advice

    home: Home = ctx.obj
    settings = load(home)
    if name in (*settings.agents, *settings.templates):
        kind = "an agent" if name in settings.agents else "a template"
        raise UsageError(f"{name!r} is {kind} already", "see: limpet agents list")
    settings = change(home, {("agents", name): {"model": model} if model else {}})
    folder = settings.workspace(name, home)
    lines = [
        f"{name} is an agent now; its memory will be in {folder}.",
        f"Talk to it here: limpet chat --agent {name}",
        f'Where it answers elsewhere a binding says: [[bindings]] agent = "{name}", channel = "telegram", chat = "…"',
    ]
    if word := advice(home):
        lines.append(word)
    output.result("\n".join(lines), {"agent": name, "model": model, "folder": str(folder)}, as_json=json)


@app.command()
def eject(ctx: typer.Context, agent: AgentArgument, json: JsonOption = False) -> None:
    """Give an agent that was made from a template its own copy of each file: no change of the template reaches it."""
    from bot.agent_names import template_of
    from bot.config import load
    from workspaces.workspace import Workspace, furnished

    home: Home = ctx.obj
    settings = load(home)
    made = home.made_agents()
    template = template_of(agent)
    if agent not in made or template is None:
        if agent in settings.agents:
            raise UsageError(f"{agent} has all its files itself: it was made from no template", None)
        raise UsageError(f"no agent is called {agent!r}", did_you_mean(agent, made) or "see: limpet agents list")
    workspace = Workspace.made_from(furnished(home.templates / template), settings.workspace(agent, home))
    copied = workspace.eject()
    text = f"Copied into {workspace.root}: {', '.join(copied)}" if copied else "It has all its files itself already."
    output.result(text, {"agent": agent, "copied": copied, "folder": str(workspace.root)}, as_json=json)
