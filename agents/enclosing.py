"""The files that go with an answer: those that the model sent in its turn.

They are told by the transcript, where each step is durable before the next: so an answer that is given again after a
crash has them too. Knows no channel and reads no file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workspaces.transcript import Entry

SEND_FILE = "send_file"
"""The tool by which a model sends one."""


@dataclass(frozen=True, slots=True)
class Enclosed:
    """``path`` is relative to the workspace; ``caption`` is Markdown, "" for none."""

    path: str
    caption: str = ""


def enclosed(entries: Sequence[Entry], turn: str) -> tuple[Enclosed, ...]:
    """What was sent in ``turn``, in order, each path once: with its last caption."""
    mine = [entry.body for entry in entries if entry.turn == turn]
    sent = {
        str(body.get("call_id"))
        for body in mine
        if body.get("name") == SEND_FILE
        and "call_id" in body
        and not (body.get("is_error") or body.get("awaits_owner"))
    }
    calls = (call for body in mine for call in body.get("tool_calls", ()) if str(call.get("id")) in sent)
    found = {one.path: one for call in calls for one in [_enclosed(call)]}
    return tuple(found.values())


def _enclosed(call: dict[str, Any]) -> Enclosed:
    arguments = json.loads(str(call.get("arguments") or "{}"))
    return Enclosed(str(arguments["path"]), str(arguments.get("caption") or ""))
