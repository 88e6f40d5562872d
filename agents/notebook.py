"""Answers without a model: remember, forget, find and list notes.

Also the part of a small model's turn that the program does by itself. Knows no model.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence

from agents import person
from agents.events import Answered, Event, Noted, Recalled, TakenBack
from agents.intent import EVERYTHING, Forget, ListNotes, Question, Remember, TakeBack, Talk, intent
from agents.quoting import Quotation
from agents.taking_back import LEAST_AMONG_OTHERS, flat, not_done, taken_back
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

NOT_FOR_A_GUEST = (
    "The notes of this chat are for all in it, and I take none out for a guest. Ask a member or the person who runs me."
)
NOT_JUST_NOTED = (
    "I have noted nothing just now, so I have taken nothing out. Say what the note is about "
    '("forget the note about …"), or /undo for the last one I wrote.'
)
NOTHING_ABOUT_IT = "I have found nothing about that in my notes, and taken nothing out."
STILL_THERE = "This is in my notes, and still there:"
TAKE_OUT_LINES = (
    "Whole lines are yours to take out: delete them in the file (`limpet memory path` prints its folder) and I know "
    "them no more."
)
ASK_THE_OWNER = "I can't take it out myself: ask the person who runs me."
ALL_IS_YOURS = (
    "I don't delete everything, and have taken nothing out. Your notes are Markdown files: `limpet memory path` prints "
    "their folder, and what you delete there I know no more."
)

MOST_LISTED = 10
MOST_QUOTED = 3

_NOTED = "Noted: {text} ({citation})"
_WAS_NOTED = re.compile(r"^Noted: .* \((?P<citation>[^\s()]+#L\d+(?:-L\d+)?)\)", re.DOTALL)


async def answer(
    text: str,
    memory: Memory,
    scope: Scope,
    turn: str,
    before: str,
    came: Sequence[Quotation],
    *,
    among_others: bool,
) -> AsyncGenerator[Event, None]:
    """A whole turn in notes mode.

    ``turn`` is the same on every try of it, ``before`` what was answered last, and ``came`` what came with the text.
    ``among_others``: several people speak in this chat.
    """
    wish = intent(text)
    match wish:
        case Remember() | Forget() | TakeBack() | ListNotes():
            async for event in obey(wish, memory, scope, turn, before, came, among_others=among_others):
                yield event
        case Question(text=words) | Talk(text=words):
            hits = await recall(words, memory, scope)
            if hits:
                yield Recalled(tuple(hit.citation for hit in hits))
                yield Answered(quoted(hits), None)
            else:
                yield Answered(NOT_IN_MEMORY if isinstance(wish, Question) else NO_TALK, None, complete=False)


async def obey(
    wish: Remember | Forget | TakeBack | ListNotes,
    memory: Memory,
    scope: Scope,
    turn: str,
    before: str,
    came: Sequence[Quotation],
    *,
    among_others: bool,
) -> AsyncGenerator[Event, None]:
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
        case Forget() | TakeBack() if among_others and scope.level < LEAST_AMONG_OTHERS:
            yield Answered(NOT_FOR_A_GUEST, None)
        case Forget() | TakeBack():
            try:
                words, is_taken_back = await _forgotten(wish, memory, scope, turn, before)
            except (OutOfReach, OSError) as error:
                yield Answered(not_done(error), None, complete=False)
                return
            if is_taken_back:
                yield TakenBack()
            yield Answered(words, None)
        case ListNotes():
            notes = await memory.latest(scope=scope, limit=MOST_LISTED)
            yield Answered(_quotes(notes) if notes else NOTHING_NOTED, None)


async def recall(words: str, memory: Memory, scope: Scope, limit: int = MOST_QUOTED) -> tuple[Hit, ...]:
    """The single notes that pass the threshold, best first; before them what answers a question about the person."""
    own = await person.told(words, memory, scope)
    found = (await memory.search(words, scope=scope, limit=limit, alone=True)).hits
    return tuple({hit.citation: hit for hit in (*own, *found)}.values())[:limit]


async def _forgotten(wish: Forget | TakeBack, memory: Memory, scope: Scope, turn: str, before: str) -> tuple[str, bool]:
    """Take back what was noted a moment ago, if that is meant; else say where it is. Nothing is claimed beyond that.

    In words, and whether something was taken back.
    """
    what = wish.text if isinstance(wish, Forget) else ""
    if what == EVERYTHING:
        return ALL_IS_YOURS if scope.is_home else ASK_THE_OWNER, False
    noted = _WAS_NOTED.match(before)
    hits = await recall(what, memory, scope) if what else ()
    if isinstance(wish, TakeBack) or (noted and (not what or (hits and hits[0].citation == noted["citation"]))):
        words, code = taken_back(await memory.undo(scope=scope, by=turn))
        return words, code == 0
    if not hits:
        return NOTHING_ABOUT_IT if what else NOT_JUST_NOTED, False
    return f"{STILL_THERE}\n\n{_quotes(hits)}\n\n{TAKE_OUT_LINES if scope.is_home else ASK_THE_OWNER}", False


def quoted(hits: Sequence[Hit]) -> str:
    """The notes as an answer."""
    return f"From my notes:\n\n{_quotes(hits)}"


def _quotes(hits: Sequence[Hit]) -> str:
    return "\n".join(f"- {flat(hit.text)} ({hit.citation})" for hit in hits)
