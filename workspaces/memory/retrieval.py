"""From a question to finds: through the index, or through the files where there is none.

First the words are looked up, then the question is embedded without those that are everywhere, then what is promising
is looked at closely, with what stands around it: in one step where the embedder is instant. Both legs look only into
the areas they are given. Knows no scope's name, no file format and no order of finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from workspaces import files
from workspaces.memory import documents, lookups, query, scan
from workspaces.memory.embedder import EmbedderError
from workspaces.memory.evidence import (
    BESIDE,
    Asked,
    Background,
    Candidate,
    Scored,
    having,
    masks,
    may_find,
    promising,
    scored,
)
from workspaces.memory.index import IndexUnavailable
from workspaces.memory.nearness import nearness
from workspaces.memory.ranking import as_hit

if TYPE_CHECKING:
    import sqlite3

    from workspaces.memory.encoder import Encoder
    from workspaces.memory.index import Index, State
    from workspaces.memory.lookups import Extent, Passage
    from workspaces.memory.query import Term
    from workspaces.memory.results import Hit
    from workspaces.memory.settings import MemorySettings
    from workspaces.memory.sources import Sources
    from workspaces.memory.store import Store

Rank: TypeAlias = "Callable[[Sequence[Scored], Mapping[int, Passage]], tuple[Hit, ...]]"
"""Makes finds of pieces that are scored, best first, and their passages."""


@dataclass(frozen=True, slots=True)
class Found:
    """``embedder`` is the id of the one whose vectors served, or would have; None where there are none. ``is_filling``:
    some units have no vector of it yet."""

    hits: tuple[Hit, ...]
    embedder: str | None = None
    is_filling: bool = False
    takes_vectors: bool = False


SHARE = 3
"""Of the pieces whose text may be read one in three is looked up by itself; the others stand around it."""

REACH = max(abs(distance) for distance in BESIDE)
"""How many lines away another may lend evidence."""

TRIES = 3
"""How often a search begins anew because the index was made anew under it."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for: ``terms`` of a ``question``, among the units of ``areas``.

    About ``most`` pieces are scored and given to ``rank``. ``alone`` as for ``scored``.
    """

    question: str
    terms: Sequence[Term]
    areas: frozenset[str]
    most: int
    rank: Rank
    settings: MemorySettings
    alone: bool = False


@dataclass(frozen=True, slots=True)
class _Words:
    """What the look-up of the words gave: ``counts[i]`` units of the scope have term i, in their text or header.

    ``units`` says of each that has a term which it has.
    """

    state: State
    extent: Extent
    units: Mapping[int, int]
    counts: tuple[int, ...]

    def meaning(self, sought: Sought) -> str:
        """What is to be embedded."""
        return query.meaning(sought.question, sought.terms, self.counts, self.extent.units)


async def indexed(store: Store, encoders: Mapping[str, Encoder], sought: Sought) -> Found:
    """Through the index, by meaning too where it has vectors and the embedder works.

    ``encoders`` by the id of their embedder. Raises IndexUnavailable.
    """
    for _ in range(TRIES):
        words, found = await store.run(_at_once, encoders, sought)
        encoder = encoders.get(words.state.space.embedder) if words.state.space else None
        if found is None:
            vector = None
            with suppress(EmbedderError):  # kept by the encoder, which the engine asks for what went wrong
                vector = await encoder.query(words.meaning(sought)) if encoder else None
            found = await store.run(_later, words, vector, sought)
        elif encoder is not None and encoder.is_instant:
            encoder.release_later()
        if found is not None:
            return found
    raise IndexUnavailable("it is made anew again and again")


async def latest(store: Store, areas: Collection[str], count: int, most: int) -> tuple[Hit, ...]:
    """The newest units, of at most ``most`` characters: by day, the last of a day first, then those of files without a
    day. Raises IndexUnavailable."""

    def read(index: Index) -> tuple[Hit, ...]:
        with index.snapshot() as db:
            return tuple(as_hit([passage], most) for passage in lookups.latest(db, areas, count))

    return await store.run(read)


def scanned(sources: Sources, sought: Sought) -> Found:
    """Through the files, by words only."""
    terms, settings = sought.terms, sought.settings
    found, passages = scan.search(_documents(sources, settings), terms, sought.areas)
    have = [text | header for text, header, _ in (masks(one.has) for one in found)]
    counts = tuple(sum(mask >> i & 1 for mask in have) for i in range(len(terms)))
    asked = Asked(terms, Background(len(found), counts), settings)
    ranked = scored(found, asked, len(found), alone=sought.alone)
    return Found(sought.rank(ranked, passages))


def scanned_latest(sources: Sources, areas: Collection[str], count: int, settings: MemorySettings) -> tuple[Hit, ...]:
    """As ``latest``, from the files."""
    _, passages = scan.search(_documents(sources, settings), (), areas)
    order = sorted(passages.values(), key=lambda found: found.place, reverse=True)
    order.sort(key=lambda found: (-(found.day.toordinal() if found.day else 0), found.path))
    return tuple(as_hit([passage], settings.max_characters) for passage in order[:count])


def _documents(sources: Sources, settings: MemorySettings) -> Iterator[documents.Document]:
    """Every memory file that can be read."""
    for path in sources.found().files:
        with suppress(OSError):
            yield documents.document(path, files.decode(sources.file(path).read_bytes()).text, settings)


def _at_once(index: Index, encoders: Mapping[str, Encoder], sought: Sought) -> tuple[_Words, Found | None]:
    """All of a search, in one step; None for what is found where the question has to be embedded elsewhere first."""
    with index.snapshot() as db:
        words = _look_up(db, index.state(), sought)
        space, vector = words.state.space, None
        encoder = encoders.get(space.embedder) if space else None
        if encoder and words.extent.units:
            if not encoder.is_instant:
                return words, None
            with suppress(EmbedderError):
                vector = encoder.query_now(words.meaning(sought))
        return words, _weigh(db, words.state, words, vector, sought)


def _later(index: Index, words: _Words, vector: bytes | None, sought: Sought) -> Found | None:
    """The rest of it, with the question's ``vector``; None where ``words`` are of an index that is no more."""
    with index.snapshot() as db:
        state = index.state()
        if state.birth != words.state.birth or (vector is not None and state.space != words.state.space):
            return None
        return _weigh(db, state, words, vector, sought)


def _look_up(db: sqlite3.Connection, state: State, sought: Sought) -> _Words:
    """Each term in the text, in the header and in the label of the units."""
    extent = state.extent(db, sought.areas)
    there = lookups.present(db, [term.match for term in sought.terms], extent)
    asked = [(i, column) for i, term in enumerate(sought.terms) if term.match in there for column in _COLUMNS]
    expressions = [f"{column} : ({sought.terms[i].match})" for i, column in asked]
    found = dict(zip(asked, lookups.postings(db, expressions, extent, sought.settings.postings), strict=True))
    units: dict[int, int] = {}
    counts = [0] * len(sought.terms)
    for i in dict.fromkeys(i for i, _ in asked):
        own, above, _ = postings = [found[i, column] for column in _COLUMNS]
        for posting, bit in zip(
            postings, (having(1 << i, 0, 0), having(0, 1 << i, 0), having(0, 0, 1 << i)), strict=True
        ):
            more = dict.fromkeys(posting.units, bit)
            for unit in units.keys() & more.keys():
                more[unit] |= units[unit]
            units |= more
        either = len({*own.units, *above.units}) if own.complete and above.complete else 0
        counts[i] = max(either, own.total, above.total)
    return _Words(state, extent, units, tuple(counts))


_COLUMNS = ("{text grams}", "header", "label")


def _mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the standard deviation (``statistics`` has it exact, and 50 times slower)."""
    count = len(values) or 1
    mean = math.fsum(values) / count
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / count)


def _weigh(db: sqlite3.Connection, state: State, words: _Words, vector: bytes | None, sought: Sought) -> Found:
    """Score what is promising, with what stands around it, and make finds of the best."""
    settings = sought.settings
    usual = Background(words.extent.units, words.counts)
    width = max(settings.candidates, sought.most // SHARE)
    near, cosines = None, dict[int, float]()
    if vector is not None and state.space is not None:
        near = nearness(db, state.space, vector, words.extent, state.signs)
        cosines = near.nearest(width)
    embedder = state.space.embedder if state.space else None
    is_exact = near is None or near.is_exact
    if is_exact and not may_find(words.units, cosines, Asked(sought.terms, usual, settings)):
        return Found((), embedder, state.is_filling, state.takes_vectors)
    if near is not None:
        usual = Background(words.extent.units, words.counts, *_mean_and_spread(near.sample()))
    asked = Asked(sought.terms, usual, settings)
    best = promising(words.units, cosines, asked, width)
    units = lookups.units(db, best, REACH)
    if near is not None:
        cosines |= near.of([unit.id for unit in units if unit.id not in cosines])
    candidates = [Candidate(unit, words.units.get(unit.id, 0), cosines.get(unit.id)) for unit in units]
    found = scored(candidates, asked, sought.most, alone=sought.alone)
    hits = sought.rank(found, lookups.passages(db, [one.unit for one in found], sought.areas))
    return Found(hits, embedder, state.is_filling, state.takes_vectors)
