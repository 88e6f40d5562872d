"""``limpet models``: the models whose weights are on this machine, and where an agent's answers come from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

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
    rows = [(f"agent {agent}", _name(own), _standing(own)) for agent, own in agents.items()]
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


@contextmanager
def _refusals(home: Home) -> Iterator[None]:
    """What the machine refused, with the mend and the exit code that it has everywhere."""
    from agents.errors import WeightsError
    from agents.weight_sources import is_no_room
    from bot.errors import Unavailable
    from bot.refusals import refusal

    try:
        yield
    except WeightsError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and is_no_room(cause):  # it knows better how much is wanted, and where
            raise Unavailable(error.what, error.mend) from error
        if isinstance(cause, OSError) and (told := refusal(cause, home)):
            raise told from error
        raise


def _of_agent(agent: str, settings: Settings, home: Home) -> dict[str, Any]:
    """The model's name, what is asked in its place, why it is that one (None: notes only), and what is amiss."""
    from agents.errors import ModelError
    from bot.models import choices_of, named_for, obstacle

    names = [name for name in named_for(agent, settings) if name is not None]
    why: str | None = "configured"
    with suppress(ModelError):  # the obstacle says it
        choices = choices_of(agent, settings, home)
        names, why = [choice.name for choice in choices], choices[0].why if choices else None
    problems = [obstacle(name, settings, home) for name in named_for(agent, settings)]
    found = next(filter(None, problems), None)
    return {
        "model": names[0] if names else None,
        "fallbacks": names[1:],
        "why": why,
        "problem": found.message if found else None,
        "mend": found.mend if found else None,
    }


def _name(own: dict[str, Any]) -> str:
    return ", then ".join([own["model"], *own["fallbacks"]]) if own["model"] else "none: notes only"


def _standing(own: dict[str, Any]) -> str:
    if own["problem"]:
        what = "one of them can't answer" if own["fallbacks"] else "can't answer"
        return f"{what}: {own['problem']}" + (f" — {own['mend']}" if own["mend"] else "")
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

        with _refusals(ctx.obj):
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
    with _refusals(ctx.obj):
        _store(ctx.obj).remove(name.removeprefix("local/"))
    output.result(f"local/{name.removeprefix('local/')} is removed.", {"removed": name}, as_json=json)
