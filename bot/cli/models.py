"""``limpet models``: the models whose weights are on this machine, and where an agent's answers come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import output
from bot.cli.options import JsonOption

if TYPE_CHECKING:
    from agents.weights import WeightsStore
    from bot.home import Home

app = typer.Typer(help="The embedded model: see what is here, get it, remove it.")

MEGABYTE = 1_000_000


def _store(home: Home) -> WeightsStore:
    from agents.weights import WeightsStore

    return WeightsStore(home.models)


@app.command("list")
def list_models(ctx: typer.Context, json: JsonOption = False) -> None:
    """The model that each agent talks with, and the weights that are here."""
    from agents.catalog import found_keys
    from bot.config import load
    from bot.environment import Environment
    from bot.models import choice_of

    home: Home = ctx.obj
    settings = load(home)
    choices = {agent: choice_of(agent, settings, home) for agent in settings.agents}
    weights = _store(home).list()
    keys = found_keys(Environment.of(home).variables)
    rows: list[tuple[str, str, str]] = [
        (f"agent {agent}", choice.name if choice else "none: notes only", choice.why if choice else "")
        for agent, choice in choices.items()
    ]
    rows += [(f"local/{w.name}", f"{w.size / MEGABYTE:.0f} MB", str(w.path)) for w in weights]
    rows += [(key, "set", "") for key in keys]
    if not weights:
        output.note("No weights are here. The small embedded model: limpet models pull smollm2")
    data = {
        "agents": {
            agent: {"model": choice.name, "why": choice.why} if choice else None for agent, choice in choices.items()
        },
        "weights": [{"name": w.name, "bytes": w.size, "path": str(w.path)} for w in weights],
        "keys": list(keys),
    }
    output.result(output.table(rows), data, as_json=json)


@app.command()
def pull(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(help="smollm2, or the path or address of a GGUF file.")] = "smollm2",
    sha256: Annotated[str | None, typer.Option(help="The SHA-256 that the file must have, in hexadecimal.")] = None,
    json: JsonOption = False,
) -> None:
    """Get the weights of a model. smollm2 (98 MB, Apache-2.0) needs no account; an interrupted download goes on."""
    done = 0.0
    with output.progress(f"Getting {what}", 1.0) as advance:

        def progress(bytes_done: int, bytes_total: int | None) -> None:
            nonlocal done
            if bytes_total:
                advance(bytes_done / bytes_total - done)
                done = bytes_done / bytes_total

        pulled = _store(ctx.obj).pull(what, sha256=sha256, progress=progress)
    text = f"local/{pulled.name} is here ({pulled.size / MEGABYTE:.0f} MB): {pulled.path}"
    output.result(text, {"name": pulled.name, "bytes": pulled.size, "path": str(pulled.path)}, as_json=json)


@app.command()
def remove(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="As limpet models list shows it, without local/.")],
    json: JsonOption = False,
) -> None:
    """Delete the weights of a model."""
    _store(ctx.obj).remove(name.removeprefix("local/"))
    output.result(f"local/{name.removeprefix('local/')} is removed.", {"removed": name}, as_json=json)
