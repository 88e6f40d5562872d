"""Search without an index: the Markdown itself, read and matched in memory. The last step before no recall at all.

It offers what the index offers, so that ranking is the same. A word matches by its beginning, a poor man's stem.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from workspaces.memory import words
from workspaces.memory.documents import Document, Entry, Part
from workspaces.memory.index import Passage, Postings
from workspaces.memory.query import Term

_ENDINGS = ("ings", "ing", "ies", "edly", "ed", "es", "ly", "s", "e", "y")


def search(
    documents: Iterable[Document], terms: Sequence[Term], areas: Collection[str]
) -> tuple[Postings, dict[int, Passage]]:
    """Where the terms are in the documents of ``areas``, and the text of every unit there."""
    passages: dict[int, Passage] = {}
    found: list[dict[int, float]] = [{} for _ in terms]
    stems = [_stem(term.word) for term in terms]
    for passage, part, entry in _units(documents, areas):
        passages[passage.id] = passage
        own = _stems(passage.text[passage.start : passage.end]) | set(entry.grams.split())
        header = _stems(part.header)
        for postings, stem in zip(found, stems, strict=True):
            if stem in own or (not stem.isascii() and len(stem) == 1 and any(word[0] == stem for word in own)):
                postings[passage.id] = 1.0
            elif stem in header:
                postings[passage.id] = 0.5
    return Postings(tuple(found), len(passages)), passages


def _units(documents: Iterable[Document], areas: Collection[str]) -> Iterator[tuple[Passage, Part, Entry]]:
    count = 0
    for document in documents:
        for part in document.parts if document.area in areas else ():
            chunk = part.chunk
            owner = count
            for entry in part.entries:
                count += 1
                unit = entry.unit
                span = (unit.start, unit.end, unit.start_line, unit.end_line)
                yield Passage(count, owner, document.path, chunk.text, *span, chunk.trail, document.day), part, entry


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in words.words(text)}


def _stem(word: str) -> str:
    """The word without the first of the endings that leaves three letters of it."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
