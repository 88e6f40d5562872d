"""What may come next on a command line, for the shell's Tab key.

Commands and verbs come from the table, names from the files themselves: a person waits for every Tab, so nothing heavy
is imported. Only for an option the command itself is loaded. Anything that goes wrong completes nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bot.agent_names import agent_tables, default_agent
from bot.cli.help import COMMANDS, find
from bot.home import Home

_MOST = 200
"""Notes offered at once; more than that is no help to anyone."""


def complete(words: list[str], home: Home | None = None) -> list[str]:
    """Candidates for the last of ``words`` (those after "limpet"), which may be empty. ``home`` None: the usual one."""
    *before, start = words or [""]
    try:
        candidates = _candidates(before, start, home or Home.locate())
        return sorted(word for word in set(candidates) if word.startswith(start))[:_MOST]
    except Exception:  # a message in the middle of a command line would be worse than no help
        return []


def _candidates(before: list[str], start: str, home: Home) -> Iterable[str]:
    if not before:
        return ["--config", "--color", "--help", "--version"] if start.startswith("-") else [e.name for e in COMMANDS]
    entry = find(before[0])
    if entry is None:
        return []
    if before[-1] in ("--agent", "-a"):
        return agent_tables(_settings(home))
    if start.startswith("-"):
        return _options(before)
    if entry.verbs and len(before) == 1:
        return entry.verbs
    match [word for word in before if not word.startswith("-")]:
        case ["completion"]:
            return ["bash", "zsh", "fish"]
        case ["channels", "add"]:
            from adapters import registry

            return registry.names()
        case ["channels", "remove"]:
            return list(_settings(home).get("channels", {}))
        case ["models", "pull"]:
            return ["smollm2"]
        case ["models", "remove"]:
            return [path.stem for path in home.models.glob("*.gguf")]
        case ["pairing", "approve"]:
            return [*_stored(home, _CODES), *_stored(home, _ACCOUNTS)]
        case ["pairing", "deny"]:
            return _stored(home, _CODES)
        case ["pairing", "revoke"]:
            return _stored(home, _ACCOUNTS)
        case ["memory", "get"]:
            return _notes(home)
        case ["config", "get" | "set" | "unset"]:
            return _keys("", _settings(home))
    return []


def _options(before: list[str]) -> Iterable[str]:
    from bot.cli.app import load

    command = load(before[0])
    if len(before) > 1 and before[1] in getattr(command, "commands", {}):
        command = command.commands[before[1]]
    return [name for param in command.params for name in param.opts if name.startswith("--")]


def _settings(home: Home) -> dict[str, Any]:
    return tomllib.loads(home.config.read_text("utf-8-sig")) if home.config.exists() else {}


_CODES = "SELECT code FROM pairing WHERE expires_at > ?1"
_ACCOUNTS = "SELECT channel || ':' || sender FROM people WHERE ?1 <> ''"


def _stored(home: Home, query: str) -> list[str]:
    """The first column of what the hub's database says; ``?1`` in ``query`` is the present moment."""
    import sqlite3
    from contextlib import closing
    from datetime import UTC, datetime

    if not home.database.exists():
        return []
    with closing(sqlite3.connect(f"{home.database.as_uri()}?mode=ro", uri=True, timeout=0.2)) as db:
        return [str(row[0]) for row in db.execute(query, (datetime.now(UTC).isoformat(),))]


def _keys(prefix: str, table: Mapping[str, Any]) -> Iterable[str]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _keys(f"{prefix}{name}.", value)
        else:
            yield prefix + name


def _notes(home: Home) -> list[str]:
    """The Markdown files of the default agent, relative to its workspace."""
    settings = _settings(home)
    name = default_agent(settings)
    root = Path(agent_tables(settings)[name].get("workspace") or home.workspace(name)).expanduser()
    return [path.relative_to(root).as_posix() for path in root.rglob("*.md") if path.is_file()]
