"""Which agents a settings file names, and which of them is the default one; from its values as they are written.

Standard library only, and forgiving: the Tab key and ``limpet where`` ask here too, also about a file that is broken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
