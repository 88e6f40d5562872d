"""Puts the tool calls of one answer together from the pieces in which a provider streams them.

Pieces belong together by id, then by index: some providers stream parallel calls all with index 0, some give no ids,
some give one id to two calls, and joining by index alone makes one wrong call of two. Whatever comes in, the calls
that come out have ids that are present and unique. Arguments stay the text that the model wrote; they are parsed
where they are run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.call_ids import free_id
from agents.model import ToolCall
from agents.surrogates import mended


@dataclass(slots=True)
class _Draft:
    id: str
    index: int | None
    name: str = ""
    arguments: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are a complete JSON object, so that more of them would be another call's."""
        if not self.arguments.rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads(self.arguments), dict)
        except ValueError:
            return False


class CallAssembler:
    """``taken`` are the ids of earlier calls in the same conversation, looked at once there are calls: a provider that
    counts from zero in every answer gets new ones, since ids have to be unique in the whole of a request.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = taken
        self._drafts: list[_Draft] = []

    def add(self, piece: Mapping[str, Any]) -> None:
        """One entry of a delta's ``tool_calls``, or of a whole message's where ``index`` is its position."""
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        name, arguments = _text(function.get("name")), _json_text(function.get("arguments"))
        index = piece.get("index")
        index = index if isinstance(index, int) else None
        draft = self._draft_of(_text(piece.get("id")), index, name, arguments)
        if name != draft.name:
            draft.name += name
        draft.arguments += arguments

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in the order in which they began; exact repetitions are dropped, empty ids filled in.

        No arguments at all become ``{}``. A call that names no tool is kept only if it has arguments, as "unknown".
        """
        if not self._drafts:
            return ()
        used, seen, calls = set(self._taken), set(), []
        for draft in self._drafts:
            if not (draft.name or draft.arguments):
                continue
            same = (draft.id, draft.name, draft.arguments)
            if draft.id and same in seen:
                continue
            seen.add(same)
            call_id = draft.id if draft.id and draft.id not in used else free_id(used)
            used.add(call_id)
            calls.append(ToolCall(call_id, mended(draft.name) or "unknown", mended(draft.arguments) or "{}"))
        return tuple(calls)

    def _draft_of(self, call_id: str, index: int | None, name: str, arguments: str) -> _Draft:
        found = self._continued(call_id, index)
        if found is None or _begins_another(found, call_id, name, arguments):
            found = _Draft(call_id, index)
            self._drafts.append(found)
        found.id = found.id or call_id
        return found

    def _continued(self, call_id: str, index: int | None) -> _Draft | None:
        """The newest call that a piece with this id and index can be part of."""
        for draft in reversed(self._drafts):
            same_place = index is None or draft.index is None or draft.index == index
            if same_place and (not call_id or draft.id == call_id or not draft.id):
                return draft
        return None


def _begins_another(draft: _Draft, call_id: str, name: str, arguments: str) -> bool:
    if not name:
        return False
    if call_id and not draft.id and draft.name:
        return True
    if not (call_id or draft.id) and draft.name and name != draft.name:
        return True
    return bool(arguments) and draft.is_whole


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _json_text(value: object) -> str:
    """Arguments as text; a few servers send the parsed object."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
