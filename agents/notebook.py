"""Answers without a model: remember, find and list notes, and say how to add a model.

Also the part of a small model's turn that the program does by itself. Knows no model.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from agents.events import Answered, Event, Noted, Recalled
from agents.intent import ListNotes, Question, Remember, Talk, intent
from workspaces.memory import Hit, Memory
from workspaces.scope import Scope

HOW_TO_ADD_A_MODEL = (
    "To talk, I need a model. The small embedded one: limpet models pull smollm2. "
    "A hosted one: export OPENAI_API_KEY=…, or see limpet init."
)
NOTHING_NOTED = 'There is nothing in my notes yet. Say "remember that …" and I keep it.'
NOT_IN_MEMORY = 'That isn\'t in my memory. Tell me "remember that …" and it will be.'

WITHHELD = "I left a password or key out of it: those don't belong into notes."

MOST_LISTED = 10
MOST_QUOTED = 3


async def answer(text: str, memory: Memory, scope: Scope) -> AsyncIterator[Event]:
    """A whole turn in notes mode."""
    wish = intent(text)
    match wish:
        case Remember(text=what):
            async for event in remember(what, memory, scope):
                yield event
        case ListNotes():
            yield Answered(await listing(memory, scope), None)
        case Question(text=words) | Talk(text=words):
            hits = await recall(words, memory, scope)
            if hits:
                yield Recalled(tuple(hit.citation for hit in hits))
                yield Answered(f"From my notes:\n\n{_quotes(hits)}\n\n{HOW_TO_ADD_A_MODEL}", None)
            elif isinstance(wish, Question):
                yield Answered(f"{NOT_IN_MEMORY}\n\n{HOW_TO_ADD_A_MODEL}", None, complete=False)
            else:
                yield Answered(HOW_TO_ADD_A_MODEL, None, complete=False)


async def remember(what: str, memory: Memory, scope: Scope) -> AsyncIterator[Event]:
    """Keep the person's own words and say where."""
    written = await memory.append(what, scope=scope)
    yield Noted(written.text, written.citation, is_told=True)
    left_out = f"\n\n{WITHHELD}" if written.withheld else ""
    yield Answered(f"Noted: {written.text} ({written.citation}){left_out}", None)


async def listing(memory: Memory, scope: Scope) -> str:
    """The newest notes of the scope, as a list."""
    notes = await memory.latest(scope=scope, limit=MOST_LISTED)
    return _quotes(notes) if notes else NOTHING_NOTED


async def recall(words: str, memory: Memory, scope: Scope, limit: int = MOST_QUOTED) -> tuple[Hit, ...]:
    """The single notes that pass the threshold, best first."""
    return (await memory.search(words, scope=scope, limit=limit, alone=True)).hits


def _quotes(hits: Sequence[Hit]) -> str:
    return "\n".join(f"- {' '.join(hit.text.split()).removeprefix('- ')} ({hit.citation})" for hit in hits)
