"""A turn with a model that can't call tools: the program drives the memory, the model only words the answer.

An explicit request to remember is kept in the person's own words; a question gets the best notes in a short prompt; and
what is in no note is said to be unknown instead of asking a model that would invent it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from agents import notebook
from agents.events import Answered, Event, Recalled
from agents.intent import ListNotes, Question, Remember, Talk, intent
from agents.loop import Turn, run
from agents.model import AssistantMessage, ChatMessage, Model, Request, UserMessage
from workspaces.memory import Hit, Memory
from workspaces.scope import Scope

MOST_NOTES = 3
"""Three notes in a two-shot prompt were answered right 8 times of 10, eight notes without examples 5 of 10."""

MOST_CHARACTERS = 300
"""Of one note: three of them and the examples stay under 500 tokens."""

MOST_OUTPUT = 80
"""Tokens of an answer from notes: one or two sentences."""

TALK = "You are Limpet, a friendly assistant. Answer in one or two short sentences."


async def answer(text: str, model: Model, memory: Memory, scope: Scope) -> AsyncIterator[Event]:
    """A whole turn. What was said before is left out: a small model repeats it instead of answering."""
    match intent(text):
        case Remember(text=what):
            async for event in notebook.remember(what, memory, scope):
                yield event
        case ListNotes():
            yield Answered(await notebook.listing(memory, scope), None)
        case Question(text=words):
            hits = await notebook.recall(words, memory, scope, MOST_NOTES)
            if not hits:
                yield Answered(notebook.NOT_IN_MEMORY, None)
                return
            yield Recalled(tuple(hit.citation for hit in hits))
            async for event in run(Turn(model, from_notes(words, hits))):
                yield event
        case Talk(text=words):
            request = Request(TALK, (UserMessage(words),), max_output=MOST_OUTPUT)
            async for event in run(Turn(model, request)):
                yield event


@dataclass(frozen=True, slots=True)
class _Example:
    notes: str
    question: str
    answer: str


_EXAMPLES = (
    _Example(
        "- My sister Ruth lives in Oslo.\n- The car needs new tyres.",
        "Where does my sister live?",
        "Your sister Ruth lives in Oslo.",
    ),
    _Example(
        "- I prefer tea to coffee.\n- My locker code is 4411.",
        "What is my locker code?",
        "Your locker code is 4411.",
    ),
)


def from_notes(question: str, hits: Sequence[Hit]) -> Request:
    """The two-shot prompt: under 500 tokens for three notes."""
    turns: list[ChatMessage] = []
    for example in _EXAMPLES:
        turns += [UserMessage(_ask(example.notes, example.question)), AssistantMessage(example.answer)]
    notes = "\n".join(f"- {_bare(hit.text)[:MOST_CHARACTERS]}" for hit in hits)
    return Request(
        "Answer the question from the notes in one short sentence.",
        (*turns, UserMessage(_ask(notes, question))),
        max_output=MOST_OUTPUT,
        temperature=0.0,
    )


def _bare(note: str) -> str:
    """A note as a sentence: without its bullet and the time it was written at."""
    return re.sub(r"^[-*] (?:\d\d:\d\d )?", "", " ".join(note.split()))


def _ask(notes: str, question: str) -> str:
    return f"Notes:\n{notes}\n\nQuestion: {question}"
