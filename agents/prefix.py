"""What comes first in every call of a session: rules and bootstrap files, frozen so that a provider's cache holds.

It is taken anew when somebody else changed one of the files, when the conversation was compacted or begun anew, and at
the agent's midnight; what the session writes itself stays out until then. Knows no model and no conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.resources import files

from agents.budget import OVERHEAD, tokens, tools_estimate
from agents.model import ToolSpec
from agents.quoting import quoted
from agents.window import CHARACTERS_PER_TOKEN, Window
from workspaces.scope import Scope
from workspaces.workspace import INTERVIEW, BootstrapFile, Stamp, Workspace

INSTRUCTIONS = frozenset({"AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md"})
"""Files that speak to the model; every other is memory and is quoted as data."""


class PrefixTooLong(Exception):
    """What may not be cut is longer than its share of the window; the message names the files and the mend."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """``system`` is the text; ``files`` what it was made of. ``stamps`` are the files as the session left them.
    ``size`` is the estimate in tokens, tools included.

    ``day`` and ``since`` (the mark in the transcript that it was taken after, "" for none) say until when it holds.
    """

    system: str
    files: tuple[BootstrapFile, ...]
    specs: tuple[ToolSpec, ...]
    day: date
    since: str
    stamps: Mapping[str, Stamp] = field(repr=False)
    size: int


def taken(
    agent: str, workspace: Workspace, scope: Scope, specs: Sequence[ToolSpec], window: Window, since: str
) -> Prefix:
    """The prefix as the files are now. Raises PrefixTooLong."""
    stamps, head, others = workspace.stamps(scope), rules(agent), tools_estimate(specs) + OVERHEAD
    room = window.prefix - others
    most = max(0, min(window.prefix_characters, (room - tokens(head)) * CHARACTERS_PER_TOKEN))
    for _ in range(3):  # a character may be more than a quarter of a token: then fewer of them fit
        found = tuple(file for file in workspace.bootstrap(scope, most) if file.name != INTERVIEW)
        system = "\n\n".join([head, *(shown(file) for file in found if file.text.strip())])
        over = tokens(system) - room
        if over <= 0:
            size = tokens(system) + others
            return Prefix(system, found, tuple(specs), workspace.today, since, stamps, size)
        most = max(0, most - over * CHARACTERS_PER_TOKEN)
    fixed = [file for file in found if file.text.strip()]
    names = ", ".join(f"{file.name} ({tokens(file.text):,} tokens)" for file in fixed) or "the rules and the tools"
    raise PrefixTooLong(
        f"{names} and what every call begins with are more than a quarter of this model's window of "
        f"{window.context:,} tokens. Shorten AGENTS.md, or choose a model with a larger window."
    )


def holds(prefix: Prefix, workspace: Workspace, scope: Scope, specs: Sequence[ToolSpec], since: str) -> bool:
    """Whether the prefix may be sent once more."""
    return (prefix.day, prefix.since, prefix.specs) == (
        workspace.today,
        since,
        tuple(specs),
    ) and prefix.stamps == workspace.stamps(scope)


def shown(file: BootstrapFile) -> str:
    """One file as the model reads it: an instruction as it is, memory as data."""
    if file.name.rpartition("/")[2] in INSTRUCTIONS:
        return f"## {file.name}\n{file.text.strip()}"
    return quoted(file.text, file.name)


def rules(agent: str) -> str:
    return _rules().format(agent=agent)


@cache
def _rules() -> str:
    return files("agents").joinpath("prompts/rules.md").read_text(encoding="utf-8").strip()
