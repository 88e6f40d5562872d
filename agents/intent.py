"""What a person wants, read from the words alone: for models that can't be trusted to call a tool.

Deliberately narrow. Only an explicit request to remember is taken as one; whatever else is said goes to the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep ``text``, the person's own words."""

    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """Something that the memory may answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ListNotes:
    """Show what was noted lately."""


@dataclass(frozen=True, slots=True)
class Talk:
    """Anything else: a greeting, a statement, a request."""

    text: str


Intent: TypeAlias = Remember | Question | ListNotes | Talk

_FLAGS = re.IGNORECASE | re.DOTALL | re.VERBOSE

_ASKED_FIRST = re.compile(
    r"""^(?:(?:hey|hi|hello|ok|okay|please|and|also|now|limpet|(?:can|could|would|will)\ you)[\s,:!]+)*
    (?:
        (?:remember|memori[sz]e|keep\ in\ mind|don'?t\ forget|do\ not\ forget|never\ forget|
           note\ down|write\ down|(?:take|make)\ a\ note|merke?\ dir|recuerda|souviens-toi|retiens|ricorda(?:ti)?|
           lembra-te|onthoud)
        (?:\s+(?:this|the\ following|for\ me|down|of|bitte|por\ favor))*
        \s*(?:[:,;]|\bthat\b)?
      |
        (?:note|save|notiere?|anota)\s*(?:this|for\ me)?\s*(?::|\bthat\b)
    )
    \s*(?:\b(?:that|dass|que|che|dat)\b)?
    \s*(?P<what>.+)$""",
    _FLAGS,
)
_ASKED_LAST = re.compile(
    r"""^(?P<what>.+?)[\s,.;:!–—-]+
    (?:and\s+)?(?:please\s+)?(?:(?:can|could)\ you\s+)?(?:please\s+)?
    (?:remember|note|keep|save|don'?t\ forget|memori[sz]e)\s+(?:that|this|it)
    (?:\s+(?:for\ me|in\ mind|down))?(?:,?\s*please)?[.!]*$""",
    _FLAGS,
)
_NOTHING_TO_KEEP = re.compile(
    r"""^(?:(?:when|how|what|why|who|where|if|whether|to\ me|anything|nothing|everything)\b
    |(?:me|us|this|that|it)[\s.!:]*$
    |(?:i|we|you|they|he|she)(?:'ll|\ will|\ can|\ could|\ do|\ don'?t|\ must|\ should)?$)""",
    _FLAGS,
)
_QUESTION = re.compile(
    r"""^(?:(?:hey|hi|limpet|please|and|so|but)[\s,]+)*
    (?:(?:tell|remind)\ me\b|do\ you\ (?:know|remember)\b|
    (?:who|whom|whose|what|when|where|which|why|how|did|do|does|is|are|was|were|am|can|could|should|shall|will|would|
    has|have|had|name\ (?:of|the)|list)\b)""",
    _FLAGS,
)
_LIST = re.compile(
    r"""^(?:(?:please\s+)?(?:list|show)(?:\ me)?(?:\ all)?\ (?:my|your|the)\ (?:notes|memories|memory)|
    what\ do\ you\ (?:remember|know)(?:\ about\ me)?|what\ have\ you\ (?:noted|remembered|learned|learnt))[\s?.!]*$""",
    _FLAGS,
)


_ABOUT_US = re.compile(r"\b(?:you|your|yours|you're|yourself)\b", _FLAGS)
_ABOUT_THEM = re.compile(
    r"\b(?:i|i'm|me|my|mine|we|us|our|know|knew|remember|recall|note[ds]?|told|said|say|heard|memory)\b", _FLAGS
)
"""A question about us that speaks of nothing that could be in a note is small talk ("how are you?")."""


_TAIL = 200
"""Characters from the end in which a closing "remember that" is looked for."""


def intent(text: str) -> Intent:
    """The intent of one message."""
    said = text.strip()
    if _LIST.match(said):
        return ListNotes()
    if what := _to_remember(said):
        return Remember(what)
    if said.endswith(("?", "？", "؟")) or _QUESTION.match(said):
        return Talk(said) if _ABOUT_US.search(said) and not _ABOUT_THEM.search(said) else Question(said)
    return Talk(said)


def _asked_last(said: str) -> str | None:
    """What stands before a request to remember at the very end; only the end is looked at, however long the text."""
    head, tail = said[:-_TAIL], said[-_TAIL:]
    match = _ASKED_LAST.match(tail)
    return head + match["what"] if match else None


def _to_remember(said: str) -> str | None:
    if said.endswith(("?", "？")) and not re.match(r"^(?:can|could|would|will) you\b", said, re.IGNORECASE):
        return None
    first = _ASKED_FIRST.match(said)
    for what in (first["what"] if first else None, _asked_last(said)):
        if what is None:
            continue
        what = what.strip().strip('"“”').rstrip("?？")
        if len(what) > 2 and not _NOTHING_TO_KEEP.match(what):
            return what
    return None
