"""The names of agents: those that a settings file has, the default one, and those of workspaces made from a template.

Standard library only, and forgiving: the Tab key and ``limpet where`` ask here too, also about a file that is broken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

MAIN = "main"


def agent_tables(data: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of ``[agents]`` by name. ``main`` is always among them: a table for one more takes nobody away."""
    tables = data.get("agents")
    found = dict(tables) if isinstance(tables, Mapping) else {}
    return found if MAIN in found else {MAIN: {}, **found}


def default_agent(data: Mapping[str, Any]) -> str:
    """Who answers what no other binding claims: the agent of a binding without any key, else ``main``."""
    bindings = data.get("bindings")
    for binding in bindings if isinstance(bindings, list | tuple) else ():
        if isinstance(binding, Mapping) and binding.keys() == {"agent"} and binding["agent"] in [*agent_tables(data)]:
            return str(binding["agent"])
    return MAIN


def made_name(template: str, parts: Sequence[str]) -> str:
    """The agent that ``template`` gives to the chat or sender whom ``parts`` tell from every other; one to one.

    It reads "support/telegram/team/direct/123456789". No name in the settings has a slash.
    """
    return "/".join([template, *(quote(part, safe="") for part in parts)])


def template_of(agent: str) -> str | None:
    """The template that ``agent`` was made from; None for one that the settings name."""
    template, slash, _ = agent.partition("/")
    return template if slash else None
