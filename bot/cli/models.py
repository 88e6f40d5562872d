"""``limpet models``: the models whose weights are on this machine, and where an agent's answers come from."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import output
from bot.cli.options import JsonOption

if TYPE_CHECKING:
    from agents.weights import WeightsStore
    from bot.home import Home
    from bot.settings import Settings

app = typer.Typer(help="The embedded model: see what is here, get it, remove it.")


def _size(size: int) -> str:
    return f"{size / 1_000_000:.0f} MB"


def _store(home: Home) -> WeightsStore:
    from agents.weights import WeightsStore

    return WeightsStore(home.models)


@app.command("list")
def list_models(ctx: typer.Context, json: JsonOption = False) -> None:
    """The model that each agent talks with, what keeps it from answering, and the weights that are here."""
    from agents.catalog import found_keys
    from bot.config import load
    from bot.environment import Environment

    home: Home = ctx.obj
    settings = load(home)
    agents = {agent: _of_agent(agent, settings, home) for agent in settings.agents}
    weights = _store(home).list()
    keys = found_keys(Environment.of(home).variables)
    rows = [(f"agent {agent}", own["model"] or "none: notes only", _standing(own)) for agent, own in agents.items()]
    rows += [(f"local/{w.name}", _size(w.size), str(w.path) if w.is_whole else f"damaged: {w.path}") for w in weights]
    rows += [(key, "set", "") for key in keys]
    if not weights:
        output.note("No weights are here. The small embedded model: limpet models pull smollm2")
    data = {
        "agents": agents,
        "weights": [{"name": w.name, "bytes": w.size, "path": str(w.path), "whole": w.is_whole} for w in weights],
        "keys": list(keys),
    }
    output.result(output.table(rows), data, as_json=json)


def _of_agent(agent: str, settings: Settings, home: Home) -> dict[str, str | None]:
    """The model's name and why it is that one (None: notes only), and what keeps it from answering with the mend."""
    from agents.errors import ModelError
    from bot.models import choice_of, obstacle

    named = settings.agents[agent].model
    found = obstacle(named, settings, home)
    model: str | None = named or settings.models.default
    why: str | None = "configured"
    with suppress(ModelError):  # the obstacle says it
        choice = choice_of(agent, settings, home)
        model, why = (choice.name, choice.why) if choice else (None, None)
    return {
        "model": model,
        "why": why,
        "problem": found.message if found else None,
        "mend": found.mend if found else None,
    }


def _standing(own: dict[str, str | None]) -> str:
    if own["problem"]:
        return f"can't answer: {own['problem']}" + (f" — {own['mend']}" if own["mend"] else "")
    return own["why"] or ""


@app.command()
def pull(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(help="smollm2, or the path or address of a GGUF file.")] = "smollm2",
    sha256: Annotated[str | None, typer.Option(help="The SHA-256 that the file must have, in hexadecimal.")] = None,
    json: JsonOption = False,
) -> None:
    """Get the weights of a model, or mend damaged ones. smollm2 (98 MB, Apache-2.0) needs no account."""
    done = 0.0
    with output.progress(f"Getting {what}", 1.0) as advance:

        def progress(bytes_done: int, bytes_total: int | None) -> None:
            nonlocal done
            if bytes_total:
                advance(bytes_done / bytes_total - done)
                done = bytes_done / bytes_total

        pulled = _store(ctx.obj).pull(what, sha256=sha256, progress=progress)
    weights = pulled.weights
    said = {"fetched": "is here", "kept": "was here already, and is whole", "mended": "was damaged, and is mended"}
    text = f"local/{weights.name} {said[pulled.how]} ({_size(weights.size)}): {weights.path}"
    data = {"name": weights.name, "bytes": weights.size, "path": str(weights.path), "how": pulled.how}
    output.result(text, data, as_json=json)


@app.command()
def remove(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="As `limpet models list` shows it, without local/.")],
    json: JsonOption = False,
) -> None:
    """Delete the weights of a model."""
    _store(ctx.obj).remove(name.removeprefix("local/"))
    output.result(f"local/{name.removeprefix('local/')} is removed.", {"removed": name}, as_json=json)
