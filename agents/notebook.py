"""Answers without a model: remember, forget, find and list notes.

Also the part of a small model's turn that the program does by itself. Knows no model.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence

from agents import person
from agents.events import Answered, Event, Noted, Recalled
from agents.intent import EVERYTHING, Forget, ListNotes, Question, Remember, TakeBack, Talk, intent
from agents.quoting import Quotation
from workspaces.memory import Hit, Memory, OutOfReach, WriteRefused
from workspaces.scope import Scope

HOW_TO_ADD_A_MODEL = (
    "Notes only: there is no model here. The small embedded one: `limpet models pull smollm2`. "
    "A hosted one: `export OPENAI_API_KEY=…`, or see `limpet init`."
)
"""What the owner can do about it; said beside an answer, and never in it."""

NO_TALK = "I keep what you ask me to remember, and find it again; to talk, I would need a model."
NOTHING_NOTED = 'There is nothing in my notes yet. Say "remember that …" and I keep it.'
NOT_IN_MEMORY = 'That isn\'t in my memory. Tell me "remember that …" and it will be.'

NOTHING_TO_KEEP = 'What shall I keep? Say it in one message: "remember that …". So far I have noted nothing.'
NOT_NOTED = "I could not note that, and have not. {why}"
WITHHELD = "I left a password or key out of it: those don't belong into notes."

NOTHING_TO_TAKE_BACK = "I have noted nothing here that I could take back."
STAYS = "My last note is not in {path} as I wrote it any more, so nothing was changed."
UNREACHABLE = "My last note is in {path}, which leads out of the memory by now: nothing was changed."
NOT_JUST_NOTED = (
    "I have noted nothing just now, so I have taken nothing out. Say what the note is about "
    '("forget the note about …"), or /undo for the last one I wrote.'
)
NOTHING_ABOUT_IT = "I have found nothing about that in my notes, and taken nothing out."
STILL_THERE = "This is in my notes, and still there:"
TAKE_OUT_LINES = (
    "Whole lines are yours to take out: delete them in the file (`limpet memory path` prints its folder) and I know "
    "them no more. /undo takes back the last note I wrote."
)
ASK_THE_OWNER = "I can't take it out myself: ask the person who runs me. /undo takes back the last note I wrote."
ALL_IS_YOURS = (
    "I don't delete everything, and have taken nothing out. Your notes are Markdown files: `limpet memory path` prints "
    "their folder, and what you delete there I know no more."
)

MOST_LISTED = 10
MOST_QUOTED = 3

_NOTED = "Noted: {text} ({citation})"
_WAS_NOTED = re.compile(r"^Noted: .* \((?P<citation>[^\s()]+#L\d+(?:-L\d+)?)\)", re.DOTALL)


async def answer(
    text: str, memory: Memory, scope: Scope, turn: str, before: str = "", came: Sequence[Quotation] = ()
) -> AsyncIterator[Event]:
    """A whole turn in notes mode.

    ``turn`` is the same on every try of it, ``before`` what was answered last, and ``came`` what came with the text.
    """
    wish = intent(text)
    match wish:
        case Remember() | Forget() | TakeBack() | ListNotes():
            async for event in obey(wish, memory, scope, turn, before, came):
                yield event
        case Question(text=words) | Talk(text=words):
            hits = await recall(words, memory, scope)
            if hits:
                yield Recalled(tuple(hit.citation for hit in hits))
                yield Answered(f"From my notes:\n\n{_quotes(hits)}", None)
            else:
                yield Answered(NOT_IN_MEMORY if isinstance(wish, Question) else NO_TALK, None, complete=False)


async def obey(
    wish: Remember | Forget | TakeBack | ListNotes,
    memory: Memory,
    scope: Scope,
    turn: str,
    before: str,
    came: Sequence[Quotation],
) -> AsyncIterator[Event]:
    """What needs no model, whether there is one or not."""
    match wish:
        case Remember(text=what):
            what = what or "\n".join(c.text if c.below else f"{c.text} ({c.source})" for c in came)
            if not what.strip():
                yield Answered(NOTHING_TO_KEEP, None)
                return
            try:
                written = await memory.append(what, scope=scope)
            except (WriteRefused, OSError) as error:
                yield Answered(NOT_NOTED.format(why=getattr(error, "strerror", None) or error), None, complete=False)
                return
            yield Noted(written.text, written.citation, is_told=True)
            left_out = f"\n\n{WITHHELD}" if written.withheld else ""
            yield Answered(_NOTED.format(text=written.text, citation=written.citation) + left_out, None)
        case Forget(text=what):
            yield Answered(await _forgotten(what, memory, scope, turn, before), None)
        case TakeBack():
            yield Answered(await _taken_back(memory, scope, turn), None)
        case ListNotes():
            notes = await memory.latest(scope=scope, limit=MOST_LISTED)
            yield Answered(_quotes(notes) if notes else NOTHING_NOTED, None)


async def recall(words: str, memory: Memory, scope: Scope, limit: int = MOST_QUOTED) -> tuple[Hit, ...]:
    """The single notes that pass the threshold, best first; before them what answers a question about the person."""
    own = await person.told(words, memory, scope)
    found = (await memory.search(words, scope=scope, limit=limit, alone=True)).hits
    return tuple({hit.citation: hit for hit in (*own, *found)}.values())[:limit]


async def _forgotten(what: str, memory: Memory, scope: Scope, turn: str, before: str) -> str:
    """Take back what was noted a moment ago, if that is meant; else say where it is. Nothing is claimed beyond that."""
    if what == EVERYTHING:
        return ALL_IS_YOURS if scope.is_home else ASK_THE_OWNER
    noted = _WAS_NOTED.match(before)
    hits = await recall(what, memory, scope) if what else ()
    if noted and (not what or (hits and hits[0].citation == noted["citation"])):
        return await _taken_back(memory, scope, turn)
    if not hits:
        return NOTHING_ABOUT_IT if what else NOT_JUST_NOTED
    return f"{STILL_THERE}\n\n{_quotes(hits)}\n\n{TAKE_OUT_LINES if scope.is_home else ASK_THE_OWNER}"


async def _taken_back(memory: Memory, scope: Scope, turn: str) -> str:
    """Undo the last write of this scope, and say what became of it."""
    try:
        undone = await memory.undo(scope=scope, by=turn)
    except OutOfReach as error:
        return UNREACHABLE.format(path=error.path)
    if undone is None:
        return NOTHING_TO_TAKE_BACK
    if undone.edited:
        return STAYS.format(path=undone.path)
    taken = [f"Taken back from {undone.path}: {_flat(undone.text)}"] if undone.text.strip() else []
    given = [f"Put back into {undone.path}: {_flat(undone.removed)}"] if undone.removed.strip() else []
    return "\n\n".join(taken + given)


def _quotes(hits: Sequence[Hit]) -> str:
    return "\n".join(f"- {_flat(hit.text)} ({hit.citation})" for hit in hits)


def _flat(note: str) -> str:
    return " ".join(note.split()).removeprefix("- ")
