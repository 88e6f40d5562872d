"""What a person types, as terms to look up: nothing in it is syntax, and no word has to be there.

Each term is looked up alone; how many of them a text has, weighed by how rare they are, is what it is ranked by. Knows
how an FTS5 expression is quoted, and no table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from workspaces.memory import words

LONGEST = 4000
"""Characters of a query that are read; more is a pasted text, whose beginning says what it is about."""

MOST = 32
"""Terms that are looked up; the rest of a long text adds cost and little else."""

WEAK = 0.5
"""Weight of a word that questions are made with, and of an emoji. Recall is flat from 0.4 to 0.8."""

COMMON = 0.4
"""A word in more than this share of the units says nothing about which of them is meant (see ``meaning``)."""

IMAGINED = 100
"""Units that any memory is taken to have beside its own, so that in a memory of two notes no word is common."""

NAMED_DAY = re.compile(
    r"\b(\d{4}-\d\d|(19|20)\d\d|\d{1,2}[./]\d{1,2}[./]|yesterday|today|last (week|month|year|night)|ago"
    r"|(mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october"
    r"|november|december)\b",
    re.IGNORECASE,
)

_DATED = re.compile(
    r"\d{1,2}|(19|20)\d\d|(mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august"
    r"|september|october|november|december"
)

_GREETING = re.compile(r"\bgood (morning|afternoon|evening|night)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Term:
    """``match`` is an FTS5 expression that can't be malformed; ``weight`` is 1 for a word that carries meaning.

    ``dated``: the word may be part of a date, which is in the header of a daily note.
    """

    word: str
    match: str
    weight: float = 1.0
    dated: bool = False


def terms(query: str) -> tuple[Term, ...]:
    """The terms of ``query``, those that carry meaning first, none twice; empty where nothing can be looked up.

    Where only weak words are left ("What is my name?"), they are what is asked for and have their full weight.
    """
    text = _GREETING.sub(" ", query[:LONGEST])
    plain = words.words(words.without_runs(text))
    content = [word for word in plain if word not in words.STOP]
    if not content and len(set(plain)) == 1:
        content = plain[:1]
    runs = words.runs(text)
    strong = runs or any(word not in words.WEAK for word in content)
    found = [_term(word, WEAK if strong and word in words.WEAK else 1.0) for word in content]
    for run in runs:
        found += [_gram(pair) for pair in words.pairs(run)]
    found += [Term(name, f'grams : "{name}"', WEAK if found else 1.0) for name in words.emoji(text)]
    unique = {term.match: term for term in found}.values()
    return tuple(sorted(unique, key=lambda term: -term.weight)[:MOST])


def meaning(question: str, terms: Sequence[Term], counts: Sequence[int], units: int) -> str:
    """What of ``question`` goes to the embedder: all but the words that a large part of the memory has.

    In the notes about two people their names are everywhere, and pull every question to the same place: without them
    the ten nearest lines hold half as much evidence again. ``counts[i]`` of ``units`` have term ``i``.
    """
    most = COMMON * (units + IMAGINED)
    common = {term.word for term, count in zip(terms, counts, strict=True) if count > most}
    text = question[:LONGEST]
    if not common:
        return text
    return " ".join(part for part in text.split() if not _within(words.words(part), common)) or text


def names_a_day(query: str) -> bool:
    """Whether the question is about a time: then age is no reason to rank a note lower."""
    return NAMED_DAY.search(query) is not None


def _within(found: list[str], common: set[str]) -> bool:
    return bool(found) and common.issuperset(found)


def _term(word: str, weight: float) -> Term:
    quoted = '"' + word.replace('"', '""') + '"'
    return Term(word, quoted, weight, _DATED.fullmatch(word) is not None)


def _gram(pair: str) -> Term:
    return Term(pair, f'grams : "{pair}"' + ("*" if len(pair) == 1 else ""))
