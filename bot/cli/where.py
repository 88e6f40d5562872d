"""``limpet where``: the places of everything that is yours, for a person and for a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from bot.cli import output
from bot.cli.options import AgentOption, JsonOption
from bot.config_file import read
from bot.errors import ConfigError, UsageError
from bot.home import Home
from bot.spelling import did_you_mean


def command(ctx: typer.Context, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Print where the settings, the memory and everything else lie. Works with broken settings, too."""
    home: Home = ctx.obj
    agents = _agents(home)
    name = agent or ("main" if "main" in agents else next(iter(agents)))
    if name not in agents:
        raise UsageError(f"no agent is called {name!r}", did_you_mean(name, agents))
    places = {
        "config": home.config,
        "memory": agents[name] or home.workspace(name),
        "database": home.database,
        "sessions": home.sessions(name),
        "logs": home.logs,
        "models": home.models,
    }
    text = output.table([(what, str(path)) for what, path in places.items()])
    output.result(text, {"agent": name, **{what: str(path) for what, path in places.items()}}, as_json=json)


def _agents(home: Home) -> dict[str, Path | None]:
    """The agents and the folders that the file gives them, unchecked: this command has to help where others refuse."""
    try:
        tables: Any = read(home.config).data.get("agents")
    except ConfigError:
        tables = None
    found: dict[str, Path | None] = {}
    for name, table in tables.items() if isinstance(tables, dict) else ():
        folder = table.get("workspace") if isinstance(table, dict) else None
        found[name] = Path(folder).expanduser() if isinstance(folder, str) else None
    return found or {"main": None}
