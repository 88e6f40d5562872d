"""What a model is sent: rules, bootstrap files, history, recalled notes and the question, in a cache-stable order.

The system text holds nothing that changes from turn to turn by itself, so that a provider's prefix cache holds; the
time and the recalled notes travel with the question. Knows no provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files

from agents.budget import tokens
from agents.conversation import fitting
from agents.model import ChatMessage, Limits, Request, UserMessage
from agents.quoting import Quotation, accompanied, one_line, quoted
from workspaces.memory import Hit
from workspaces.scope import Scope
from workspaces.workspace import INTERVIEW, Workspace

INSTRUCTIONS = frozenset({"AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md"})
"""Files that speak to the model; every other is memory and is quoted as data."""


def system_text(agent: str, workspace: Workspace, scope: Scope) -> str:
    """The stable prefix for one scope: rules, then the files that this scope may see."""
    rules = files("agents").joinpath("prompts/rules.md").read_text(encoding="utf-8").format(agent=agent)
    parts = [rules.strip()]
    for file in workspace.bootstrap(scope):
        if not file.text.strip() or file.name == INTERVIEW:  # the interview is led by the program
            continue
        name = file.name.rpartition("/")[2]
        parts.append(f"## {file.name}\n{file.text.strip()}" if name in INSTRUCTIONS else quoted(file.text, file.name))
    return "\n\n".join(parts)


def question_text(
    text: str, at: datetime, sender: str | None, recalled: Sequence[Hit], came: Sequence[Quotation] = ()
) -> str:
    """The person's words in their envelope, after what was recalled, and with the quotations that came with them.

    ``at`` is in the agent's zone; ``sender`` is None in a direct chat.
    """
    who = f" {one_line(sender, 60)}" if sender else ""
    said = accompanied(f"[{at:%a %Y-%m-%d %H:%M}{who}] {text}", came)
    if not recalled:
        return said
    notes = "\n".join(quoted(hit.text, hit.citation) for hit in recalled)
    return f"Notes from your memory that may help:\n{notes}\n\n{said}"


def request(system: str, history: Sequence[ChatMessage], said: ChatMessage, limits: Limits) -> Request:
    """The first request of a turn, its history cut to whole exchanges that fit.

    Of a window W, a quarter (20,000 tokens at most) is left for the answer.
    """
    reserve = min(20_000, limits.context // 4)
    question = said.text if isinstance(said, UserMessage) else ""
    room = limits.context - reserve - tokens(system) - tokens(question)
    return Request(system, (*fitting(history, max(0, room)), said))
