"""Evidence: how much of what was asked a unit has, and what stands around it adds. Pure functions.

The evidence for a unit is what it has of the question's words, the rare ones counting more, how much nearer its meaning
is than usual, and what the best of the lines beside it lends; multiplied by how much of the question its whole chunk
has, by the name it begins with, by its date. ``1 - exp(-evidence)`` is the score, 0 to 1. Whether a unit is a find at
all is decided by its absolute share of the question's words or its absolute cosine, so that it means the same in a
memory of one note and of a million. How each number was found is in docs/recall.md. Knows no text and no database.
"""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from workspaces.memory.query import IMAGINED, MOST

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
    because hundreds are made for each search; sorted, they are in the order of the text.)
    """

    section: int
    place: int
    id: int
    chunk: int
    line: int
    end_line: int
    tokens: int
    item: bool
    asks: bool


def having(text: int, header: int, label: int) -> int:
    """Which of the query's terms a unit has, as one number: bit ``i`` of each for term ``i``, in its text, in its
    header, in its label."""
    return text | header << MOST | label << 2 * MOST


def masks(has: int) -> tuple[int, int, int]:
    """The three of ``having``."""
    return has & _EVERY, has >> MOST & _EVERY, has >> 2 * MOST


_EVERY = (1 << MOST) - 1


class Candidate(NamedTuple):
    """A unit as it is ranked. ``has`` are its terms (see ``having``); ``cosine`` is None where it has no vector, or
    where meaning isn't searched."""

    unit: Unit
    has: int
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Background:
    """What is usual in a scope of ``units`` units: how many of them have each term, in their text or their header, and
    the mean and the standard deviation of their cosines with the question."""

    units: int
    counts: tuple[int, ...]
    cosine: float = 0.0
    spread: float = 0.0


class Scored(NamedTuple):
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


class Asked:
    """The terms, weighed: by how rare each is (Spärck Jones, 1972), over the scope and imagined units."""

    def __init__(self, terms: Sequence[Term], background: Background, settings: MemorySettings) -> None:
        self.settings = settings
        units = max(background.units, *background.counts, 0) + IMAGINED
        self._values = [
            term.weight * math.log(units / max(count, 1)) for term, count in zip(terms, background.counts, strict=True)
        ]
        self.by_meaning, self.by_words = weights(settings)
        self._usual, spread = _usual(background)
        self._much = DEVIATIONS * spread
        self._sums: dict[int, float] = {0: 0.0}
        self._telling: dict[int, float] = {}
        strong = _mask(term.weight >= 1 for term in terms)
        self._strong, self._dated = having(strong, strong, 0), _mask(term.dated for term in terms)
        there = _mask(count > 0 for count in background.counts)
        everything = (1 << len(terms)) - 1
        self.whole = self.sum(there) + ABSENT * self.sum(everything & ~there)
        self.telling = self.sum(there & strong) + ABSENT * self.sum(strong & ~there)

    def sum(self, mask: int) -> float:
        """The value of the terms in ``mask``; few masks occur, each many times."""
        if (known := self._sums.get(mask)) is None:
            known = self._sums[mask] = sum(value for i, value in enumerate(self._values) if mask >> i & 1)
        return known

    def share(self, mask: int) -> float:
        """The part of the question that ``mask`` is, 0 to 1; above that only where ``ABSENT`` terms are in it."""
        return self.sum(mask) / self.whole if self.whole else 0.0

    def telling_share(self, has: int) -> float:
        """The same without the weak words, a word in the header counting ``HEADER``."""
        if (known := self._telling.get(has)) is None:
            text, header, _ = masks(has & self._strong)
            known = (self.sum(text) + HEADER * self.sum(header & ~text)) / self.telling if self.telling else 0.0
            self._telling[has] = known
        return known

    def words(self, has: int) -> float:
        """The evidence of the words, in a unit of ``TYPICAL`` length."""
        text, header, _ = masks(has)
        return self.share(text) + HEADER * self.share(header & ~text)

    def favour(self, has: int) -> float:
        """What multiplies the evidence of a unit, whatever it is made of."""
        _, header, label = masks(has)
        factor = 1 + self.settings.label_boost if label else 1.0
        if self._dated:
            factor *= 1 + DATED * self.sum(header & self._dated) / max(self.sum(self._dated), 1e-9)
        return factor

    def tells(self, has: int) -> bool:
        """Whether a unit with these terms is a find by its words."""
        return min(self.telling_share(has), 1.0) >= self.settings.min_score

    def is_near(self, cosine: float) -> bool:
        """Whether a unit is a find by its meaning."""
        return cosine >= self.settings.min_cosine and self.by_meaning > 0

    def meaning(self, cosine: float) -> float:
        """How far a cosine is above what is usual; 0 where it is not."""
        return (cosine - self._usual) / self._much if cosine > self._usual else 0.0


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


def may_find(units: Mapping[int, int], cosines: Mapping[int, float], asked: Asked) -> bool:
    """Whether any of the units passes; where none does, which is most of what people say, all else is for nothing.

    ``units`` and ``cosines`` as for ``promising``, of which none that is left out may be nearer.
    """
    return any(map(asked.is_near, cosines.values())) or any(map(asked.tells, {0, *units.values()}))


def promising(units: Mapping[int, int], cosines: Mapping[int, float], asked: Asked, most: int) -> list[int]:
    """The ``most`` units with the best evidence of their own, best first, before anything but that is known.

    ``units`` says of each that has any of the terms which it has; ``cosines`` are those that are nearest, if there is
    any meaning.
    """
    share = asked.by_words if cosines else 1.0
    kinds = Counter(units.values())
    worth = {has: share * asked.words(has) for has in kinds}
    enough = _enough(kinds, worth, most)
    rough = {unit: worth[has] for unit, has in units.items() if has in enough}
    for unit, cosine in cosines.items():
        rough[unit] = worth.get(units.get(unit, 0), 0.0) + asked.by_meaning * asked.meaning(cosine)
    best = nlargest(most, zip(rough.values(), rough.keys(), strict=True))
    return [unit for _, unit in best]


def _enough(kinds: Mapping[int, int], worth: Mapping[int, float], most: int) -> set[int]:
    """Of ``kinds``, with the number of each, those that are worth most and have ``most`` units together; all that are
    worth as much as the last of them too."""
    chosen, number, least = set[int](), 0, 0.0
    for has in sorted(worth, key=worth.__getitem__, reverse=True):
        if number >= most and worth[has] < least:
            break
        chosen.add(has)
        number, least = number + kinds[has], worth[has]
    return chosen


def scored(candidates: Iterable[Candidate], asked: Asked, most: int, *, alone: bool = False) -> list[Scored]:
    """The ``most`` candidates with the best evidence, best first; none without any.

    ``alone``: each is weighed by itself, and none lends to another.
    """
    order = sorted(candidates)
    kinds = {has for _, has, _ in order}  # few, so what depends on them alone is worked out once
    words, favours = {has: asked.words(has) for has in kinds}, {has: asked.favour(has) for has in kinds}
    own: list[float] = []
    chunks: dict[int, int] = defaultdict(int)
    for unit, has, cosine in order:
        evidence = words[has] * _brevity(unit.tokens)
        if cosine is not None:
            evidence = asked.by_words * evidence + asked.by_meaning * asked.meaning(cosine)
        own.append(evidence)
        chunks[unit.chunk] |= has
    passages = {chunk: 1 + asked.share(masks(has)[0]) for chunk, has in chunks.items()}
    found: list[tuple[float, int, Candidate]] = []
    for one, evidence in zip(order, own if alone else _with_lent(order, own), strict=True):
        if evidence > 0:
            favour = favours[one.has] * (ASKS if one.unit.asks else 1.0) * passages[one.unit.chunk]
            found.append((evidence * favour, -one.unit.id, one))
    found.sort(reverse=True)
    return [_found(one, evidence, asked) for evidence, _, one in found[:most]]


def _with_lent(order: Sequence[Candidate], own: Sequence[float]) -> list[float]:
    """The evidence of each, ``own``, with the best that the lines around it lend it; ``order`` is that of the text.

    Lines adjoin that are items of one list, or of one stretch without a gap; two pieces of one line do not.
    """
    lent = [0.0] * len(own)
    section, place, _, _, line, end, _, item, _ = zip(*(one.unit for one in order), strict=True) if order else [()] * 9
    for further in range(1, _FURTHEST + 1):
        for at in range(len(own) - further):
            later = at + further
            if section[later] != section[at] or not (own[at] or own[later]):
                continue
            distance, apart = place[later] - place[at], line[later] - end[at]
            if distance <= _FURTHEST and apart > 0 and (apart <= distance or (item[at] and item[later])):
                lent[later] = max(lent[later], BESIDE[distance] * own[at])
                lent[at] = max(lent[at], BESIDE[-distance] * own[later])
    return list(map(operator.add, own, lent))


_FURTHEST = max(BESIDE)


def _found(candidate: Candidate, evidence: float, asked: Asked) -> Scored:
    unit, has, cosine = candidate
    share = min(asked.telling_share(has), 1.0)
    vector = min(cosine, 1.0) if cosine is not None and cosine > 0 else None
    passes = asked.tells(has) or (cosine is not None and asked.is_near(cosine))
    return Scored(unit.id, evidence, share or None, vector, passes)
