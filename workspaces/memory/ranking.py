"""Ranking: pure functions from what the legs found to what is handed out, best first.

A score is 0 to 1 and means the same in an index of one note and of a million: the words' share is absolute (how much
of what was asked is there), and so is the meaning's (how far above unrelated texts). Knows no database and no file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from workspaces.memory.results import Hit

if TYPE_CHECKING:
    from workspaces.memory.index import Passage
    from workspaces.memory.settings import MemorySettings, Preset

PRESETS: Mapping[Preset, tuple[float, float]] = {"best": (0.4, 0.6), "semantic": (0.7, 0.3), "keyword": (0.4, 0.6)}
"""Weights of meaning and of words."""

BACKGROUND = 100
"""Units that any index is taken to have beside its own: so a rare word stays rare in an index of two notes."""

ABSENT = 0.75
"""What a word that is nowhere in the scope counts of its weight: it may well be a synonym of one that is."""

PRESENCE = 0.75
"""The share of a word's score for being there at all; the rest is by BM25, so by how short and how full of it."""


ALONE = 1.4
"""How much more a meaning counts where it stands alone, for reaching the minimum score only. At a cosine of 0.4 the
static embedder has found "my puppy" for "my dog"; unrelated notes stay below 0.3."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A unit's score and those of the legs that found it, all 0 to 1; None where a leg did not find it."""

    unit: int
    score: float
    keyword: float | None
    vector: float | None


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


def keyword_scores(found: Sequence[Mapping[int, float]], term_weights: Sequence[float], total: int) -> dict[int, float]:
    """For each unit, the share of the query's terms that it has, the rare ones counting more.

    ``found[i]`` maps the units that have term ``i`` to a strength of 0 to 1. The rarity is that of BM25 (Robertson and
    Spärck Jones, 1976, in Lucene's form that is never negative), over ``total`` and ``BACKGROUND`` units. Where no term
    carries meaning by itself, the best score is the best weight.
    """
    scores: dict[int, float] = {}
    asked = 0.0
    for postings, weight in zip(found, term_weights, strict=True):
        count = max(len(postings), 1)
        rarity = math.log1p((total + BACKGROUND - count + 0.5) / (count + 0.5))
        value = weight * rarity
        asked += value if postings else value * ABSENT
        for unit, strength in postings.items():
            scores[unit] = scores.get(unit, 0.0) + value * (PRESENCE + (1 - PRESENCE) * strength)
    best = max(term_weights, default=1.0)
    return {unit: best * score / asked for unit, score in scores.items()}


def fused(keyword: Mapping[int, float], cosines: Mapping[int, float] | None, settings: MemorySettings) -> list[Scored]:
    """The convex sum of both legs, best first.

    A cosine counts by how far it is above ``cosine_floor``, and one that is far above it lifts a unit to the minimum
    score though it has none of the words. A unit without a vector has its keyword score as it is, and so has every
    unit where ``cosines`` is None: then there was no search by meaning.
    """
    by_meaning, by_words = weights(settings)
    scored: list[Scored] = []
    for unit in keyword.keys() | (cosines or {}).keys():
        words = keyword.get(unit)
        if cosines is None or unit not in cosines:
            scored.append(Scored(unit, words or 0.0, words, None))
            continue
        above = min((cosines[unit] - settings.cosine_floor) / (1 - settings.cosine_floor), 1.0)
        vector = above if above > 0 else None
        score = by_words * (words or 0.0) + by_meaning * (vector or 0.0)
        if by_meaning and score < settings.min_score <= ALONE * (vector or 0.0):
            score = settings.min_score
        scored.append(Scored(unit, score, words, vector))
    return sorted(scored, key=lambda found: (-found.score, found.unit))


def decayed(score: float, day: date | None, today: date, *, half_life: float, floor: float) -> float:
    """A dated note's score after its age in days; a curated file (``day`` None) and a day to come keep theirs."""
    if day is None or day >= today:
        return score
    return score * max(floor, math.exp2(-(today - day).days / half_life))


def hits(
    scored: Iterable[Scored],
    passages: Mapping[int, Passage],
    today: date | None,
    limit: int,
    settings: MemorySettings,
    *,
    alone: bool = False,
) -> tuple[Hit, ...]:
    """The best finds as texts. ``today`` None means that age doesn't count.

    Where nothing reaches ``min_score`` there is no find; once something does, others come along down to ``tail`` of it.
    A find is a unit and, unless ``alone``, those next to it in its chunk that pass too, within ``max_characters``; no
    unit is in two finds, and a text that says the same as a better one is left out.
    """
    known = [found for found in scored if found.unit in passages and found.score > 0]
    passing = {found.unit for found in known if found.score >= settings.min_score}
    if not passing:
        return ()
    final = {found.unit: _aged(found.score, passages[found.unit].day, today, settings) for found in known}
    chosen: list[Hit] = []
    used: set[int] = set()
    said: set[str] = set()
    for best in sorted(known, key=lambda found: (-final[found.unit], *_place(passages[found.unit]))):
        if len(chosen) == limit:
            break
        if best.unit in used or best.score < settings.min_score * settings.tail:
            continue
        run = [best.unit] if alone else _run(best.unit, passages, passing - used, settings.max_characters)
        used.update(run)
        hit = as_hit([passages[unit] for unit in run], settings.max_characters, best, final[best.unit])
        essence = " ".join(hit.text.casefold().split())
        if essence not in said:
            said.add(essence)
            chosen.append(hit)
    return tuple(chosen)


def _aged(score: float, day: date | None, today: date | None, settings: MemorySettings) -> float:
    if today is None:
        return score
    return decayed(score, day, today, half_life=settings.half_life_days, floor=settings.decay_floor)


def _place(passage: Passage) -> tuple[int, str, int]:
    """Among equals the newer note comes first, then the order of the files."""
    return -(passage.day.toordinal() if passage.day else 0), passage.path, passage.start_line


def _run(best: int, passages: Mapping[int, Passage], found: Iterable[int], most: int) -> list[int]:
    """``best`` and its found neighbours in the same chunk, in order, while they fit; ids of a chunk are consecutive."""
    candidates = set(found)
    run = [best]
    for step in (1, -1):
        unit = best + step
        while unit in candidates and passages[unit].chunk == passages[best].chunk:
            first, last = min(run[0], unit), max(run[-1], unit)
            if passages[last].end - passages[first].start > most:
                break
            run = [*run, unit] if step > 0 else [unit, *run]
            unit += step
    return run


def as_hit(run: Sequence[Passage], most: int, best: Scored | None = None, score: float = 1.0) -> Hit:
    """Neighbouring units as one text of at most ``most`` characters; ``best`` None for a text nobody looked for."""
    first, last = run[0], run[-1]
    text = first.text[first.start : last.end]
    end_line = last.end_line - text.count("\n", most)
    return Hit(
        path=first.path,
        start_line=first.start_line,
        end_line=end_line,
        text=text[:most],
        score=min(score, 1.0),
        keyword_score=best.keyword if best else None,
        vector_score=best.vector if best else None,
        trail=first.trail,
        day=first.day,
    )
