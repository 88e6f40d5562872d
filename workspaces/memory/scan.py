"""Search without an index: the Markdown itself, read and matched in memory. The last step before no recall at all.

It offers what the index offers, so that ranking is the same. A word matches by its beginning, a poor man's stem.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from workspaces.memory import words
from workspaces.memory.documents import Document, Entry, Part
from workspaces.memory.evidence import Candidate, Unit, having
from workspaces.memory.lookups import Passage
from workspaces.memory.query import Term


def search(
    documents: Iterable[Document], terms: Sequence[Term], areas: Collection[str]
) -> tuple[list[Candidate], dict[int, Passage]]:
    """Every unit in the documents of ``areas``, and its text."""
    found: list[Candidate] = []
    passages: dict[int, Passage] = {}
    stems = [words.stem(term.word) for term in terms]
    for unit, passage, part, entry in _units(documents, areas):
        passages[unit.id] = passage
        own = _stems(passage.text[passage.start : passage.end]) | set(entry.grams.split())
        header, label = _stems(part.header), _stems(entry.label)
        text = sum(1 << i for i, stem in enumerate(stems) if stem in own or _begins(stem, own))
        above = sum(1 << i for i, stem in enumerate(stems) if stem in header)
        names = sum(1 << i for i, stem in enumerate(stems) if stem in label)
        found.append(Candidate(unit, having(text, above, names), None))
    return found, passages


def _units(documents: Iterable[Document], areas: Collection[str]) -> Iterator[tuple[Unit, Passage, Part, Entry]]:
    count = 0
    for number, document in enumerate(documents):
        place = 0
        for part in document.parts if document.area in areas else ():
            chunk, owner = part.chunk, count
            for entry in part.entries:
                cut = entry.unit
                lines = (cut.start_line, cut.end_line)
                where = (number << 24 | part.section, place, count, owner, *lines)
                unit = Unit(*where, entry.tokens, entry.item, entry.asks)
                span = (cut.start, cut.end, *lines)
                passage = Passage(count, owner, document.path, place, chunk.text, *span, chunk.trail, document.day)
                yield unit, passage, part, entry
                count, place = count + 1, place + 1


def _stems(text: str) -> set[str]:
    return {words.stem(word) for word in words.words(text)}


def _begins(stem: str, own: set[str]) -> bool:
    """One character of a script without spaces is found as the beginning of a pair."""
    return len(stem) == 1 and not stem.isascii() and any(word[0] == stem for word in own)
