"""From a question to scored pieces of text: through the index, or through the files where there is none.

First the words are looked up, then the question is embedded without those that are everywhere, then what is promising
is looked at closely, with what stands around it. Both legs look only into the areas they are given. Knows no scope's
name, no file format and no order of hits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workspaces import files
from workspaces.memory import documents, lookups, query, scan, vectors
from workspaces.memory.embedder import EmbedderError
from workspaces.memory.evidence import BESIDE, NOTHING, Background, Candidate, Masks, Scored, promising, scored
from workspaces.memory.index import Index, IndexUnavailable
from workspaces.memory.lookups import Extent, Passage

if TYPE_CHECKING:
    from workspaces.memory.encoder import Encoder
    from workspaces.memory.query import Term
    from workspaces.memory.settings import MemorySettings
    from workspaces.memory.sources import Sources
    from workspaces.memory.store import Store
    from workspaces.memory.vectors import Space


@dataclass(frozen=True, slots=True)
class Found:
    """``scored`` are best first, ``passages`` the texts of those that can be handed out.

    ``embedder`` is the id of the one whose vectors served, or would have; None where there are none. ``is_filling``:
    some units have no vector of it yet.
    """

    scored: Sequence[Scored]
    passages: Mapping[int, Passage]
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
class _Words:
    """What the look-up of the words gave: ``counts[i]`` units of the scope have term i, in their text or header.

    ``birth`` is the index's, ``space`` the one whose vectors serve.
    """

    birth: str
    areas: Collection[str]
    extent: Extent
    masks: Mapping[int, Masks]
    counts: tuple[int, ...]
    space: Space | None
    is_filling: bool


async def indexed(
    store: Store,
    encoders: Mapping[str, Encoder],
    question: str,
    terms: Sequence[Term],
    areas: Collection[str],
    most: int,
    settings: MemorySettings,
    *,
    alone: bool = False,
) -> Found:
    """Through the index, by meaning too where it has vectors and the embedder works; the texts of about ``most``.

    ``encoders`` by the id of their embedder; ``alone`` as for ``scored``. Raises IndexUnavailable.
    """
    for _ in range(TRIES):
        words = await store.run(_look_up, terms, areas, settings.postings)
        encoder = encoders.get(words.space.embedder) if words.space else None
        vector = None
        if encoder and words.extent.units:
            with suppress(EmbedderError):  # kept by the encoder, which the engine asks for what went wrong
                vector = await encoder.query(query.meaning(question, terms, words.counts, words.extent.units))
        found = await store.run(_weigh, words, vector, terms, most, settings, alone=alone)
        if found is not None:
            return found
    raise IndexUnavailable("it is made anew again and again")


async def latest(store: Store, areas: Collection[str], count: int) -> list[Passage]:
    """The newest units: by day, the last of a day first, then those of files without a day. Raises IndexUnavailable."""

    def read(index: Index) -> list[Passage]:
        with index.snapshot() as db:
            return lookups.latest(db, areas, count)

    return await store.run(read)


def scanned(
    sources: Sources, terms: Sequence[Term], areas: Collection[str], settings: MemorySettings, *, alone: bool = False
) -> Found:
    """Through the files, by words only."""
    found, passages = scan.search(_documents(sources, settings), terms, areas)
    counts = tuple(sum((one.has.text | one.has.header) >> i & 1 for one in found) for i in range(len(terms)))
    ranked = scored(found, terms, Background(len(found), counts), len(found), settings, alone=alone)
    return Found(ranked, passages)


def scanned_latest(sources: Sources, areas: Collection[str], count: int, settings: MemorySettings) -> list[Passage]:
    """As ``latest``, from the files."""
    _, passages = scan.search(_documents(sources, settings), (), areas)
    order = sorted(passages.values(), key=lambda found: found.place, reverse=True)
    order.sort(key=lambda found: (-(found.day.toordinal() if found.day else 0), found.path))
    return order[:count]


def _documents(sources: Sources, settings: MemorySettings) -> Iterator[documents.Document]:
    """Every memory file that can be read."""
    for path in sources.found().files:
        with suppress(OSError):
            yield documents.document(path, files.decode(sources.file(path).read_bytes()).text, settings)


def _look_up(index: Index, terms: Sequence[Term], areas: Collection[str], most: int) -> _Words:
    """Each term in the text, in the header and in the label of the units."""
    columns = ("{text grams}", "header", "label")
    with index.snapshot() as db:
        birth, space = index.birth(), index.serving()
        is_filling = space is not None and index.is_filling(space.embedder)
        extent = lookups.extent(db, areas)
        expressions = [f"{column} : ({term.match})" for term in terms for column in columns]
        found = lookups.postings(db, expressions, extent, most)
    bits: dict[int, int] = {}  # of a unit, those of its text, its header and its label, in one number
    counts: list[int] = []
    for i in range(len(terms)):
        own, above, _ = postings = found[3 * i : 3 * i + 3]
        for column, posting in enumerate(postings):
            bit = 1 << (column * _WIDTH + i)
            for unit in posting.units:
                bits[unit] = bits.get(unit, 0) | bit
        either = len({*own.units, *above.units}) if own.complete and above.complete else 0
        counts.append(max(either, own.total, above.total))
    known = {number: _masks(number) for number in set(bits.values())}
    masks = {unit: known[number] for unit, number in bits.items()}
    return _Words(birth, areas, extent, masks, tuple(counts), space, is_filling)


_WIDTH = query.MOST


def _masks(bits: int) -> Masks:
    every = (1 << _WIDTH) - 1
    return Masks(bits & every, bits >> _WIDTH & every, bits >> 2 * _WIDTH)


def _mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the standard deviation (``statistics`` has it exact, and 50 times slower)."""
    count = len(values) or 1
    mean = math.fsum(values) / count
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / count)


def _weigh(
    index: Index,
    words: _Words,
    vector: bytes | None,
    terms: Sequence[Term],
    most: int,
    settings: MemorySettings,
    *,
    alone: bool,
) -> Found | None:
    """Score what is promising, with what stands around it, and read the texts of the best ``most``.

    None where the ids in ``words`` are of an index that is no more.
    """
    background = Background(words.extent.units, words.counts)
    width = max(settings.candidates, most // SHARE)
    with index.snapshot() as db:
        space = index.serving() if vector is not None else None
        if index.birth() != words.birth or (space is not None and space != words.space):
            return None
        cosines: dict[int, float] = {}
        if vector is not None and space is not None:
            among = words.extent.units
            cosines = vectors.nearest(db, space, vector, words.extent.ranges, among, width, index.signs)
            usual = lookups.sampled(db, space, vector, words.extent)
            background = Background(words.extent.units, words.counts, *_mean_and_spread(usual))
        best = promising(words.masks, cosines, terms, background, width, settings)
        units = lookups.units(db, best, REACH)
        if vector is not None and space is not None:
            cosines |= vectors.cosines(db, space, vector, [unit.id for unit in units if unit.id not in cosines])
        candidates = [Candidate(unit, words.masks.get(unit.id, NOTHING), cosines.get(unit.id)) for unit in units]
        found = scored(candidates, terms, background, most, settings, alone=alone)
        passages = lookups.passages(db, [one.unit for one in found], words.areas)
    embedder = words.space.embedder if words.space else None
    return Found(found, passages, embedder, words.is_filling, index.takes_vectors())
