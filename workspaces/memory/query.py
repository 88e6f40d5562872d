"""What a person types, as terms to look up: nothing in it is syntax, and no word has to be there.

Each term is looked up alone; how many of them a text has, weighed by how rare they are, is its score. Knows how an
FTS5 expression is quoted, and no table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from workspaces.memory import words

LONGEST = 4000
"""Characters of a query that are read; more is a pasted text, whose beginning says what it is about."""

MOST = 32
"""Terms that are looked up; the rest of a long text adds cost and little else."""

WEAK = 0.25
"""Weight of a word that questions are made with, and of an emoji."""

NAMED_DAY = re.compile(
    r"\b(\d{4}-\d\d|(19|20)\d\d|\d{1,2}[./]\d{1,2}[./]|yesterday|today|last (week|month|year|night)|ago"
    r"|(mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october"
    r"|november|december)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Term:
    """``match`` is an FTS5 expression that can't be malformed; ``weight`` is 1 for a word that carries meaning."""

    word: str
    match: str
    weight: float = 1.0


def terms(query: str) -> tuple[Term, ...]:
    """The terms of ``query``, those that carry meaning first, none twice; empty where nothing can be looked up."""
    text = query[:LONGEST]
    plain = words.words(words.without_runs(text))
    content = [word for word in plain if word not in words.STOP]
    if not content and len(set(plain)) == 1:
        content = plain[:1]
    lone = len(set(content)) == 1 and not set(plain) - set(content)
    found = [_term(word, 1.0 if lone or word not in words.WEAK else WEAK) for word in content]
    for run in words.runs(text):
        found += [_gram(pair) for pair in words.pairs(run)]
    found += [Term(name, f'grams : "{name}"', WEAK if found else 1.0) for name in words.emoji(text)]
    unique = {term.match: term for term in found}.values()
    return tuple(sorted(unique, key=lambda term: -term.weight)[:MOST])


def names_a_day(query: str) -> bool:
    """Whether the question is about a time: then age is no reason to rank a note lower."""
    return NAMED_DAY.search(query) is not None


def _term(word: str, weight: float) -> Term:
    quoted = '"' + word.replace('"', '""') + '"'
    return Term(word, quoted, weight)


def _gram(pair: str) -> Term:
    return Term(pair, f'grams : "{pair}"' + ("*" if len(pair) == 1 else ""))
