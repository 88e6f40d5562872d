"""Slash commands: the hub's table as Discord wants it, and what somebody chose as the words it stands for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapters.adapter import Offered

_LONGEST = 100
_WORDS = "words"
_TEXT = 3
_EVERYWHERE = [0, 1]
"""On servers and in direct chats."""


def table_of(offered: Sequence[Offered]) -> list[dict[str, Any]]:
    """The commands as they are registered; what may stand behind one is an option of it."""
    return [_command(command) for command in offered]


def words_of(data: dict[str, Any]) -> str:
    """A chosen command as somebody would have typed it."""
    values = [str(option.get("value", "")) for option in data.get("options") or ()]
    return " ".join(filter(None, [f"/{data.get('name', '')}", *values]))


def _command(command: Offered) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": command.name,
        "description": command.summary[:_LONGEST],
        "type": 1,
        "contexts": _EVERYWHERE,
        "integration_types": [0],
    }
    if command.usage:
        written["options"] = [
            {"type": _TEXT, "name": _WORDS, "description": command.usage[:_LONGEST], "required": False}
        ]
    return written
