"""Every tool there is, and which of them a turn is offered. A new family of tools is one more line in ``toolbox``.

The tools are made once for an agent. A turn is offered copies that carry its permission and ask it again when they run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agents.tools import files, memory
from agents.tools.permission import Permission
from agents.tools.tool import Tool
from workspaces.copies import Copies
from workspaces.memory import Memory


def toolbox(root: Path, notes: Memory, copies: Copies) -> tuple[Tool, ...]:
    """The tools of an agent whose workspace is ``root`` and whose memory is ``notes``.

    Files that they replace go to ``copies``. Where two have one name, the later is the better one, for those who may.
    """
    return (*memory.tools(notes, root), *files.tools(root, copies))


def offered(toolbox: Sequence[Tool], permission: Permission) -> tuple[Tool, ...]:
    """The tools of one turn, always in the same order."""
    allowed = {tool.spec.name: tool for tool in toolbox if permission.offers(tool.spec.name, tool.need)}
    longest = permission.settings.longest_result
    return tuple(replace(tool, permission=permission, longest=longest) for tool in allowed.values())
