"""Whose words a text is: the agent's own notes and instructions, or words from elsewhere, which are data and no order.

It is told from where a file lies, and for a note from who wrote it. Knows no tool and no conversation.
"""

from __future__ import annotations

from pathlib import Path

from agents.tools.permission import is_instruction
from workspaces.memory.sources import Sources

TAINTED = "tainted"
"""Who wrote a note, in ``memory changes``, while foreign text was in the conversation: the note may be its doing."""

_NOTES = Sources(Path("/"))
"""Only asked by name; the folder is of no account."""


def is_foreign_path(path: str) -> bool:
    """Whether a file holds words from elsewhere, by its path in the workspace in normal form, or its whole path."""
    return not (_NOTES.includes(path) or is_instruction(path))
