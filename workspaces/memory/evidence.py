"""Evidence: how much of what was asked a unit has, and what stands around it adds. Pure functions.

The evidence for a unit is what it has of the question's words, the rare ones counting more, how much nearer its meaning
is than usual, and what the best of the lines beside it lends; multiplied by how much of the question its whole chunk
has, by the name it begins with, by its date. ``1 - exp(-evidence)`` is the score, 0 to 1. Whether a unit is a find at
all is decided by its absolute share of the question's words or its absolute cosine, so that it means the same in a
memory of one note and of a million. How each number was found is in docs/recall.md. Knows no text and no database.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from workspaces.memory.query import IMAGINED

if TYPE_CHECKING:
    from workspaces.memory.query import Term
    from workspaces.memory.settings import MemorySettings, Preset

PRESETS: Mapping[Preset, tuple[float, float]] = {"best": (0.4, 0.6), "semantic": (0.7, 0.3), "keyword": (0.4, 0.6)}
"""Weights of meaning and of words."""

ABSENT = 0.5
"""What a word that is nowhere in the scope counts of its weight: it may well be a synonym of one that is."""

HEADER = 0.8
"""What a word counts that is not in the unit but in its headings or its date."""

TYPICAL = 40
"""Tokens of a usual unit. The same words count half as much again in the shortest, half as much in one of 160."""

BESIDE: Mapping[int, float] = {1: 0.65, 2: 0.4, -1: 0.45, -2: 0.25}
"""How much of its own evidence a line lends to the next one, the one after that, the one before and so on.

The best of them counts, not their sum, and the pieces of one long line lend each other nothing: they would push every
other line out of the result.
"""

ASKS = 0.8
"""What is left of a line that ends in a question mark: the answer is another one."""

DATED = 0.5
"""How much more a unit counts whose header has the date that the question names."""

DEVIATIONS = 6
"""Standard deviations above the usual cosine that count as much as all words of the question."""

SPREAD = 0.1
"""Standard deviation of the cosines of unrelated texts, as those of the ``IMAGINED`` units; their mean is 0."""


class Unit(NamedTuple):
    """Where a unit stands: in a chunk and a section, ``place`` is its order there, on lines ``line`` to ``end_line``.

    ``section`` is the same for all units of a file that follow each other below the same headings. ``tokens`` are about
    as many as a model sees. ``item``: of a list. ``asks``: it ends in a question mark. (A tuple, as the next two,
    because a thousand are made for each search.)
    """

    id: int
    chunk: int
    section: int
    place: int
    line: int
    end_line: int
    tokens: int
    item: bool
    asks: bool


class Masks(NamedTuple):
    """Which of the query's terms a unit has, bit ``i`` for term ``i``: in its text, in its header, in its label."""

    text: int
    header: int
    label: int


NOTHING = Masks(0, 0, 0)


class Candidate(NamedTuple):
    """A unit as it is ranked. ``cosine`` is None where it has no vector, or where meaning isn't searched."""

    unit: Unit
    has: Masks
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Background:
    """What is usual in a scope of ``units`` units: how many of them have each term, in their text or their header, and
    the mean and the standard deviation of their cosines with the question."""

    units: int
    counts: tuple[int, ...]
    cosine: float = 0.0
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Scored:
    """``keyword`` is the share of the question's telling words that the unit has, ``vector`` its cosine; None where it
    has nothing of either. ``passes``: one of them is enough for a find."""

    unit: int
    evidence: float
    keyword: float | None
    vector: float | None
    passes: bool

    @property
    def score(self) -> float:
        return -math.expm1(-self.evidence)


def weights(settings: MemorySettings) -> tuple[float, float]:
    """The weights of meaning and of words, of sum 1. What is no weight (negative, not a number) counts as 0."""
    preset = PRESETS[settings.preset]
    chosen = (settings.vector_weight, settings.keyword_weight)
    vector, keyword = (_weight(own, usual) for own, usual in zip(chosen, preset, strict=True))
    total = vector + keyword
    return (vector / total, keyword / total) if total > 0 else preset


def _weight(own: float | None, usual: float) -> float:
    value = usual if own is None else own
    return min(value, 1e6) if value > 0 else 0.0  # not-a-number is not above 0 either


class _Question:
    """The terms, weighed: by how rare each is (Spärck Jones, 1972), over the scope and imagined units."""

    def __init__(self, terms: Sequence[Term], background: Background, settings: MemorySettings) -> None:
        units = max(background.units, *background.counts, 0) + IMAGINED
        self._values = [
            term.weight * math.log(units / max(count, 1)) for term, count in zip(terms, background.counts, strict=True)
        ]
        self.by_meaning, self.by_words = weights(settings)
        self._usual, self._spread = _usual(background)
        self._sums: dict[int, float] = {0: 0.0}
        self.strong = _mask(term.weight >= 1 for term in terms)
        self.dated = _mask(term.dated for term in terms)
        there = _mask(count > 0 for count in background.counts)
        everything = (1 << len(terms)) - 1
        self.whole = self.sum(there) + ABSENT * self.sum(everything & ~there)
        self.telling = self.sum(there & self.strong) + ABSENT * self.sum(self.strong & ~there)

    def sum(self, mask: int) -> float:
        """The value of the terms in ``mask``; few masks occur, each many times."""
        if (known := self._sums.get(mask)) is None:
            known = self._sums[mask] = sum(value for i, value in enumerate(self._values) if mask >> i & 1)
        return known

    def share(self, mask: int) -> float:
        """The part of the question that ``mask`` is, 0 to 1; above that only where ``ABSENT`` terms are in it."""
        return self.sum(mask) / self.whole if self.whole else 0.0

    def telling_share(self, has: Masks) -> float:
        """The same without the weak words, a word in the header counting ``HEADER``."""
        text, header = has.text & self.strong, has.header & self.strong
        return (self.sum(text) + HEADER * self.sum(header & ~text)) / self.telling if self.telling else 0.0

    def words(self, has: Masks) -> float:
        """The evidence of the words, in a unit of ``TYPICAL`` length."""
        return self.share(has.text) + HEADER * self.share(has.header & ~has.text)

    def meaning(self, cosine: float) -> float:
        """How far a cosine is above what is usual; 0 where it is not."""
        return max(0.0, cosine - self._usual) / (DEVIATIONS * self._spread)


def _brevity(tokens: int) -> float:
    """What the evidence of words is multiplied by: the same in fewer tokens is more."""
    return max(0.5, 1.5 / (1 + tokens / (2 * TYPICAL)))


def _usual(background: Background) -> tuple[float, float]:
    """The mean and the standard deviation of the cosines in the scope and in the imagined units."""
    units = background.units + IMAGINED
    mean = background.units * background.cosine / units
    squares = background.units * (background.spread**2 + background.cosine**2) + IMAGINED * SPREAD**2
    return mean, math.sqrt(max(squares / units - mean**2, 1e-6))


def _mask(bits: Iterable[bool]) -> int:
    return sum(1 << i for i, bit in enumerate(bits) if bit)


def promising(
    masks: Mapping[int, Masks],
    cosines: Mapping[int, float],
    terms: Sequence[Term],
    background: Background,
    most: int,
    settings: MemorySettings,
) -> list[int]:
    """The ``most`` units with the best evidence of their own, best first, before anything but that is known.

    ``masks`` has each unit that has any of the terms, ``cosines`` those that are nearest, if there is any meaning.
    """
    asked = _Question(terms, background, settings)
    share = asked.by_words if cosines else 1.0
    worth = {has: share * asked.words(has) for has in set(masks.values())}
    rough = {unit: worth[has] for unit, has in masks.items()}
    for unit, cosine in cosines.items():
        rough[unit] = rough.get(unit, 0.0) + asked.by_meaning * asked.meaning(cosine)
    best = nlargest(most, zip(rough.values(), rough.keys(), strict=True))
    return [unit for _, unit in best]


def scored(
    candidates: Sequence[Candidate],
    terms: Sequence[Term],
    background: Background,
    most: int,
    settings: MemorySettings,
    *,
    alone: bool = False,
) -> list[Scored]:
    """The ``most`` candidates with the best evidence, best first; none without any.

    ``alone``: each is weighed by itself, and none lends to another.
    """
    asked = _Question(terms, background, settings)
    kinds = {has for _, has, _ in candidates}  # few, so what depends on them alone is worked out once
    words = {has: asked.words(has) for has in kinds}
    favours = {has: _favour(has, asked, settings) for has in kinds}
    own: list[tuple[Unit, float]] = []
    chunks: dict[int, int] = defaultdict(int)
    for unit, has, cosine in candidates:
        evidence = words[has] * _brevity(unit.tokens)
        if cosine is not None:
            evidence = asked.by_words * evidence + asked.by_meaning * asked.meaning(cosine)
        own.append((unit, evidence))
        chunks[unit.chunk] |= has.text
    passages = {chunk: 1 + asked.share(mask) for chunk, mask in chunks.items()}
    lent = {} if alone else _lent(own)
    found: list[tuple[float, int, Candidate]] = []
    for candidate, (unit, evidence) in zip(candidates, own, strict=True):
        evidence += lent.get(unit.id, 0.0)
        if evidence > 0:
            favour = favours[candidate.has] * (ASKS if unit.asks else 1.0) * passages[unit.chunk]
            found.append((evidence * favour, -unit.id, candidate))
    found.sort(reverse=True)
    return [_found(one, evidence, asked, settings) for evidence, _, one in found[:most]]


def _lent(own: Sequence[tuple[Unit, float]]) -> dict[int, float]:
    """The best evidence that the lines around a unit lend it."""
    best: dict[int, float] = defaultdict(float)
    ordered = sorted(own, key=lambda one: (one[0].section, one[0].place))
    for further in range(1, max(BESIDE) + 1):
        for (unit, evidence), (later, other) in zip(ordered, ordered[further:], strict=False):
            distance = later.place - unit.place
            if later.section == unit.section and distance in BESIDE and _adjoin(unit, later, distance):
                best[later.id] = max(best[later.id], BESIDE[distance] * evidence)
                best[unit.id] = max(best[unit.id], BESIDE[-distance] * other)
    return best


def _adjoin(unit: Unit, later: Unit, distance: int) -> bool:
    """Whether they are lines of one list, or of one stretch without a gap; two pieces of one line are not."""
    apart = later.line - unit.end_line
    return apart > 0 and (apart <= distance or (unit.item and later.item))


def _favour(has: Masks, asked: _Question, settings: MemorySettings) -> float:
    """What multiplies the evidence of a unit, whatever it is made of."""
    factor = 1 + settings.label_boost if has.label else 1.0
    if asked.dated:
        factor *= 1 + DATED * asked.sum(has.header & asked.dated) / max(asked.sum(asked.dated), 1e-9)
    return factor


def _found(candidate: Candidate, evidence: float, asked: _Question, settings: MemorySettings) -> Scored:
    unit, has, cosine = candidate
    share = min(asked.telling_share(has), 1.0)
    near = cosine is not None and cosine >= settings.min_cosine and asked.by_meaning > 0
    vector = min(cosine, 1.0) if cosine is not None and cosine > 0 else None
    return Scored(unit.id, evidence, share or None, vector, passes=share >= settings.min_score or near)
