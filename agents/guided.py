"""A turn with a model that can't call tools: the program drives the memory, the model only words the answer.

An explicit request to remember is kept in the person's own words, one to forget is never left to the model; a question
gets the best notes in a short prompt; and what is in no note is said to be unknown instead of asking a model that would
invent it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from agents import notebook
from agents.budget import tokens
from agents.events import Answered, Delta, Event, Notice, Recalled, Stepped
from agents.intent import Forget, ListNotes, Question, Remember, TakeBack, Talk, intent
from agents.loop import Turn, run
from agents.model import AssistantMessage, ChatMessage, Model, Request, UserMessage
from agents.person import bare
from agents.quoting import Quotation, accompanied
from workspaces.memory import Hit, Memory
from workspaces.profile import FIELDS, FILE
from workspaces.scope import Scope

MOST_NOTES = 3
"""With 50 questions over 98 notes the embedded model answered 46 from three notes, the best one last and in the second
person; 41 with the best one first, and 5 in 10 from eight notes without examples."""

MOST_CHARACTERS = 300
"""Of one note: three of them and the examples stay under 500 tokens."""

MOST_OUTPUT = 80
"""Tokens of an answer from notes: one or two sentences."""

TALK = "You are Limpet, a friendly assistant. Answer in one or two short sentences."


async def answer(
    text: str,
    model: Model,
    memory: Memory,
    scope: Scope,
    turn: str,
    before: str,
    came: Sequence[Quotation],
    *,
    among_others: bool,
) -> AsyncGenerator[Event, None]:
    """A whole turn. What was said earlier is left out: a small model repeats it instead of answering.

    ``turn`` is the same on every try of it, ``before`` what was answered last, and ``came`` what came with the text.
    ``among_others``: several people speak in this chat.
    """
    wish = intent(text)
    match wish:
        case Remember() | Forget() | TakeBack() | ListNotes():
            events = notebook.obey(wish, memory, scope, turn, before, came, among_others=among_others)
        case Question(text=words) if not came:
            hits = await notebook.recall(words, memory, scope, MOST_NOTES)
            if not hits:
                yield Answered(notebook.NOT_IN_MEMORY, None)
                return
            yield Recalled(tuple(hit.citation for hit in hits))
            events = _checked(run(Turn(model, from_notes(words, hits), marks_cut=False)), words, hits)
        case Question(text=words) | Talk(text=words):
            fitting, left_out = _within(came, model.limits.context)
            if left_out:
                yield Notice(f"Too long for {model.name}: {left_out:,} characters at the end were left out.")
            request = Request(TALK, (UserMessage(accompanied(words, fitting)),), max_output=MOST_OUTPUT)
            events = run(Turn(model, request, marks_cut=False))
    async with aclosing(events):
        async for event in events:
            yield event


def _within(came: Sequence[Quotation], window: int) -> tuple[list[Quotation], int]:
    """The quotations cut to an eighth of a ``window`` of tokens, and how many characters were left out."""
    room, fitting, left_out = window // 8, [], 0
    for quotation in came:
        text = quotation.text
        while (cost := tokens(text)) > room:
            text = text[: len(text) * room // cost]
        fitting.append(replace(quotation, text=text))
        room -= cost
        left_out += len(quotation.text) - len(text)
    return fitting, left_out


@dataclass(frozen=True, slots=True)
class _Example:
    notes: tuple[str, ...]
    question: str
    answer: str


_EXAMPLES = (
    _Example(
        ("The gym opens at 7.", "The car needs new tyres.", "Your sister Ruth lives in Oslo."),
        "Where does my sister live?",
        "Your sister Ruth lives in Oslo.",
    ),
    _Example(
        ("You prefer tea to coffee.", "The meeting moved to Tuesday.", "Your locker code is 4411."),
        "What is my locker code?",
        "Your locker code is 4411.",
    ),
)

_OF_EXAMPLES = frozenset({"ruth", "oslo", "locker", "gym", "tyres"})
"""What is in an answer by the examples alone, beside their numbers."""

_SECOND_PERSON = (
    (r"\bI am\b", "you are"),
    (r"\bI'm\b", "you're"),
    (r"\b[Mm]y\b", "your"),
    (r"\bmine\b", "yours"),
    (r"\b(?:me|I)\b", "you"),
    (r"\b[Oo]ur\b", "your"),
    (r"\b[Ww]e\b", "you"),
)


def from_notes(question: str, hits: Sequence[Hit]) -> Request:
    """The two-shot prompt: under 500 tokens for three notes. ``hits`` are best first."""
    turns: list[ChatMessage] = []
    for example in _EXAMPLES:
        turns += [UserMessage(_ask(example.notes, example.question)), AssistantMessage(example.answer)]
    notes = [_to_you(_sentence(hit)[:MOST_CHARACTERS]) for hit in reversed(hits)]
    return Request(
        "Answer the question from the notes in one short sentence.",
        (*turns, UserMessage(_ask(notes, question))),
        max_output=MOST_OUTPUT,
        temperature=0.0,
    )


async def _checked(
    events: AsyncGenerator[Event, None], question: str, hits: Sequence[Hit]
) -> AsyncGenerator[Event, None]:
    """The answer once it is whole; where it says what is in no note, the notes in its place.

    A small model that finds nothing fitting makes up a number, or takes one from the examples.
    """
    known = _facts("\n".join((question, *(hit.text for hit in hits))))
    async with aclosing(events):
        async for event in events:
            match event:
                case Delta():
                    continue
                case Stepped(message=AssistantMessage() as said) if _facts(said.text) - known:
                    yield Stepped(AssistantMessage(notebook.quoted(hits)))
                case Answered() if _facts(event.text) - known:
                    yield replace(event, text=notebook.quoted(hits), model=None)
                case _:
                    yield event


def _facts(text: str) -> set[str]:
    """The numbers in ``text``, and what the examples speak of."""
    words = set(re.findall(r"\w+", text.casefold()))
    return {word for word in words if any(sign.isdigit() for sign in word)} | (words & _OF_EXAMPLES)


def _sentence(hit: Hit) -> str:
    """A note as it reads aloud: a line of USER.md such as "Name: Ann" says whose name it is."""
    field, colon, value = bare(hit.text).partition(": ")
    return f"My {field.lower()} is {value}" if colon and hit.path == FILE and field in FIELDS else bare(hit.text)


def _to_you(note: str) -> str:
    """What a person said of themselves, said to them: a small model would repeat "my dog" as its own."""
    for pattern, words in _SECOND_PERSON:
        note = re.sub(pattern, words, note)
    return note[:1].upper() + note[1:]


def _ask(notes: Sequence[str], question: str) -> str:
    listed = "\n".join(f"- {note}" for note in notes)
    return f"Notes:\n{listed}\n\nQuestion: {question}"
