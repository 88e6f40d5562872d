"""``limpet where``: the places of everything that is yours, for a person and for a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from bot.agent_names import agent_tables, default_agent
from bot.cli import output
from bot.cli.options import AgentOption, JsonOption
from bot.config_file import read
from bot.errors import ConfigError, UsageError
from bot.home import Home
from bot.spelling import did_you_mean


def command(ctx: typer.Context, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Print where the settings, the memory and everything else lie. Works with broken settings, too."""
    home: Home = ctx.obj
    data = _written(home)
    agents = agent_tables(data)
    name = agent or default_agent(data)
    if name not in agents:
        raise UsageError(f"no agent is called {name!r}", did_you_mean(name, agents))
    places = {
        "config": home.config,
        "memory": _folder(agents[name]) or home.workspace(name),
        "database": home.database,
        "sessions": home.sessions(name),
        "logs": home.logs,
        "models": home.models,
    }
    text = output.table([(what, str(path)) for what, path in places.items()])
    output.result(text, {"agent": name, **{what: str(path) for what, path in places.items()}}, as_json=json)


def _written(home: Home) -> dict[str, Any]:
    """What the file says, unchecked, {} for a broken one: this command has to help where others refuse."""
    try:
        return read(home.config).data
    except ConfigError:
        return {}


def _folder(agent: Any) -> Path | None:
    """The folder that an agent's table names for its Markdown; None where it names none."""
    folder = agent.get("workspace") if isinstance(agent, dict) else None
    return Path(folder).expanduser() if isinstance(folder, str) else None
