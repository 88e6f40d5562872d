"""The owner's yes to a call that waited for it.

While foreign text is in the window, a tool that does more than note waits for the owner. The program shows them which
call that is, in its own words: what the model says about it may be what the foreign text wants it to say. Their yes, as
the very next message in a chat of their own, lets that call run once, and no other. Knows no tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from agents.model import ToolCall
from agents.quoting import one_line
from workspaces.transcript import Entry

LONGEST = 300
"""Characters of a call's arguments that are shown."""

_YES = re.compile(
    r"[\s.,!。！]*(?:(?:yes|yep|yeah|ok|okay|sure|please|do it|go ahead|ja|mach(?: es)?|bitte|oui|s[ií]|vale|claro|hai"
    r"|好|はい|да)(?:[\s.,!。！]+|$))+",
    re.IGNORECASE,
)


def shown(calls: Iterable[ToolCall]) -> str:
    """What the owner is asked about ``calls``, "" for none."""
    lines = [f"- {one_line(call.name, 64)}: {one_line(call.arguments, LONGEST)}" for call in calls]
    return "\n".join(["This waits for your yes:", *lines]) if lines else ""


def waiting(entries: Iterable[Entry], turn: str) -> list[ToolCall]:
    """The calls of ``turn`` that were not run for want of the owner's yes, in order."""
    mine = [entry for entry in entries if entry.turn == turn]
    held = {str(entry.body.get("call_id")) for entry in mine if entry.kind == "tool" and entry.body.get("awaits_owner")}
    calls = (call for entry in mine if entry.kind == "assistant" for call in entry.body.get("tool_calls", ()))
    return [ToolCall(str(c["id"]), str(c["name"]), str(c["arguments"])) for c in calls if c.get("id") in held]


def approved(entries: Sequence[Entry], turn: str, text: str, at: datetime) -> frozenset[tuple[str, str]]:
    """The calls, by name and arguments, that ``text``, the words of ``turn`` said at ``at``, allows.

    They are those that the turn before left waiting and showed; none where ``text`` says anything else, or was said
    before they were shown.
    """
    if not _YES.fullmatch(text.strip()):
        return frozenset()
    last = None
    for entry in reversed(entries):
        if entry.kind == "reset":
            break
        if entry.turn != turn and entry.kind in ("user", "assistant", "tool"):
            last = entry
            break
    if last is None or last.kind != "assistant" or not _is_later(at, last.at):
        return frozenset()
    calls = waiting(entries, last.turn)
    if not calls or shown(calls) not in str(last.body.get("text", "")):
        return frozenset()
    return frozenset((call.name, call.arguments) for call in calls)


def _is_later(at: datetime, than: str) -> bool:
    try:
        return at >= datetime.fromisoformat(than)
    except (ValueError, TypeError):  # a time that is none, or has no zone
        return False
