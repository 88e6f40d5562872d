"""The owner's yes to a call that waited for it.

While foreign text is in the window, a tool that does more than note waits for the owner. Their yes, as the very next
message in a chat of their own, lets the same call run once more, and no other. Knows no tool.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from workspaces.transcript import Entry

_YES = re.compile(
    r"\W*(?:(?:yes|yep|yeah|ok|okay|sure|please|do it|go ahead|go on"
    r"|ja|mach(?: es)?|bitte|oui|s[ií]|vale|claro|da|hai|好|はい|да)(?:\W+|$))+",
    re.IGNORECASE,
)


def approved(entries: Sequence[Entry], turn: str, text: str) -> frozenset[tuple[str, str]]:
    """The calls, by name and arguments, that ``text``, the words of ``turn``, allows: those that the turn before left
    waiting; none where it says anything else."""
    if not _YES.fullmatch(text):
        return frozenset()
    before = [entry for entry in entries if entry.kind in ("user", "assistant", "tool") and entry.turn != turn]
    if not before:
        return frozenset()
    last = [entry for entry in before if entry.turn == before[-1].turn]
    waiting = {
        str(entry.body.get("call_id")) for entry in last if entry.kind == "tool" and entry.body.get("awaits_owner")
    }
    calls = (call for entry in last if entry.kind == "assistant" for call in entry.body.get("tool_calls", ()))
    return frozenset((str(call["name"]), str(call["arguments"])) for call in calls if call.get("id") in waiting)
