"""What a person wants, read from the words alone: for models that can't be trusted to call a tool.

Deliberately narrow. Only an explicit request to remember or to forget is taken as one; whatever else is said goes to
the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep ``text``, the person's own words; "" for what came with them, or was not said."""

    text: str


EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class Forget:
    """Take out what ``text`` is about: "" for what was noted a moment ago, ``EVERYTHING`` for all there is."""

    text: str


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Undo the last note, whatever it is."""


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


Intent: TypeAlias = Remember | Forget | TakeBack | Question | ListNotes | Talk

_FLAGS = re.IGNORECASE | re.DOTALL | re.VERBOSE

_ASKED_FIRST = re.compile(
    r"""^(?:(?:hey|hi|hello|hallo|ok|okay|please|bitte|por\ favor|and|also|now|limpet|(?:can|could|would|will)\ you)
        [\s,:!]+)*
    (?:
        (?:请|請)?(?:帮我|幫我)?(?:记住|記住|记下|記下|记一下|記一下|メモして)[\s:：,，、]*
      |
        (?:remember|memori[sz]e|keep\ in\ mind|don'?t\ forget|do\ not\ forget|never\ forget|
           note\ down|write\ down|(?:take|make)\ a\ note|merke?\ dir|recuerda|souviens-toi|retiens|ricorda(?:ti)?|
           lembra-te|onthoud|запомни)
        (?:\s+(?:this|the\ following|for\ me|down|of|bitte|por\ favor))*
        \s*(?:[:,;]|\bthat\b)?
      |
        (?:note|save|notiere?|anota)\s*(?:(?:this|for\ me)\s*)?(?::|\bthat\b)
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
_ASKING = r"(?:(?:hey|hi|hello|ok|okay|no|please|and|also|now|limpet|(?:can|could|would|will)\ you)[\s,:!]+)*"
_TAKE = r"(?:forget|delete|remove|erase|scratch|undo|take\ back)"
_KEEP_THIS = re.compile(
    rf"""^{_ASKING}(?:remember|memori[sz]e|note(?:\ down)?|write\ down|save|keep|don'?t\ forget)\ (?:this|that|it)
    (?:\ (?:for\ me|down|in\ mind))?(?:[\s,]*please)?[\s.!:]*$""",
    _FLAGS,
)
_NOTE = r"(?:note|memory|memories|entry|entries|fact|line|reminder)s?"
_TAKE_BACK = re.compile(
    rf"""^{_ASKING}(?:
        {_TAKE}\ (?:(?:the|that|this|your|my)\ )?(?:last|latest|newest|most\ recent)\ (?:{_NOTE}|thing|one)
            (?:\ (?:you|I)(?:\ just)?\ \w+(?:\ (?:you|down))?)?
      | undo(?:\ (?:that|it|this))?
    )(?:[\s,]*(?:again|now|then|please))*[\s.!?]*$""",
    _FLAGS,
)
_FORGET = re.compile(
    rf"""^{_ASKING}(?:
        (?:forget|vergiss|olvida|oublie)\b(?!-)(?!\ me\ not)(?P<what>.*)
      | (?:delete|remove|erase|drop|scratch|take)\b(?P<taken>.+)\ (?:out\ of|from|off)\ (?:your|my|the)\ {_NOTE}
      | (?:delete|remove|erase|drop|scratch|take\ out|get\ rid\ of)\b(?P<noted>.*?\b{_NOTE}\b.*)
      | (?:delete|remove|erase|scratch|take)\b(?P<that>\ (?:that|this|it|them))(?:\ back)?
    )[\s.!?]*$""",
    _FLAGS,
)
_LEADING = re.compile(
    rf"""^(?:[\s,:"“]*\b(?:the|that|this|these|those|it|them|one|my|your|any|of|fact|{_NOTE}|thing|what|which|where|
    says?|saying|I|you|we|just|told|said|noted|wrote|know|have|about|on|with|dass|que|qu|
    (?:all|every|everything|anything)(?=\s+\w))\b)+""",
    _FLAGS,
)
"""What stands between a request to forget and what it is about."""

_TRAILING = re.compile(r"(?:[\s,]*\b(?:again|now|then|please|for\ me|bitte))*[\s,.!?？\"”]*$", _FLAGS)
_EVERYTHING = re.compile(r"\b(?:all|every|everything|notes|memories|about\ (?:me|us))\b", _FLAGS)
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


_WOULD_YOU = re.compile(r"(?:please[\s,]+)?(?:can|could|would|will)\ you\b", _FLAGS)

_TAIL = 200
"""Characters from the end in which a closing "remember that" is looked for."""

_LONGEST_REQUEST = 500
"""Characters of a request that has few words of its own (to forget, to undo): what is longer tells a story."""


def intent(text: str) -> Intent:
    """The intent of one message."""
    said = text.strip()
    if _LIST.match(said):
        return ListNotes()
    brief = said if len(said) <= _LONGEST_REQUEST else ""
    if _KEEP_THIS.match(brief):
        return Remember("")
    if what := _to_remember(said):
        return Remember(what)
    if _TAKE_BACK.match(brief):
        return TakeBack()
    if forget := _to_forget(brief):
        return forget
    if said.endswith(("?", "？", "؟")) or _QUESTION.match(said):
        return Talk(said) if _ABOUT_US.search(said) and not _ABOUT_THEM.search(said) else Question(said)
    return Talk(said)


def _asked_last(said: str) -> str | None:
    """What stands before a request to remember at the very end; only the end is looked at, however long the text."""
    head, tail = said[:-_TAIL], said[-_TAIL:]
    match = _ASKED_LAST.match(tail)
    return head + match["what"] if match else None


def _to_forget(said: str) -> Forget | None:
    """The request to forget something; None where that isn't asked for."""
    asked = _FORGET.match(said)
    if asked is None or (said.endswith(("?", "？")) and not _WOULD_YOU.match(said)):
        return None
    words = next(group for group in asked.groups() if group is not None)
    about = _LEADING.sub("", words[: _start(_TRAILING, words)]).strip(' \t\n,:"“')
    if about.casefold() in ("", "me", "us", "all", "everything"):
        return Forget(EVERYTHING if _EVERYTHING.search(words) else "")
    return Forget(about)


def _start(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return match.start() if match else len(text)


def _to_remember(said: str) -> str | None:
    if said.endswith(("?", "？")) and not _WOULD_YOU.match(said):
        return None
    first = _ASKED_FIRST.match(said)
    for what in (first["what"] if first else None, _asked_last(said)):
        if what is None:
            continue
        what = what.strip().strip('"“”').rstrip("?？")
        if len(what) > 2 and not _NOTHING_TO_KEEP.match(what):
            return what
    return None
