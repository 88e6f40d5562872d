"""Ranking: from scored units to what is handed out, best first. Pure functions.

A find is a run of units that are about as good, or a whole chunk; age lowers its score, what says the same is left out,
and where no unit is a find by itself there is none. Knows no database and no file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from workspaces.memory.evidence import Scored
from workspaces.memory.results import Hit

if TYPE_CHECKING:
    from workspaces.memory.lookups import Passage
    from workspaces.memory.settings import MemorySettings

TOGETHER = 25
"""Of this many best units those that touch are one find. They would be handed out anyway: nothing else is pushed out of
what a budget holds, and a line is read with its answer below it."""

NEXT_BEST = 0.5
"""What each next best unit of a chunk adds to the chunk's evidence."""


def hits(
    found: Iterable[Scored],
    passages: Mapping[int, Passage],
    today: date | None,
    limit: int,
    settings: MemorySettings,
    *,
    alone: bool = False,
) -> tuple[Hit, ...]:
    """The best finds as texts. ``today`` None means that age doesn't count.

    Where no unit passes there is no find; once one does, others come along down to ``tail`` of the best score, or, when
    ``alone``, those that pass too. A find is a unit and, unless ``alone``, those of the best that touch it,
    within ``max_characters``; or its whole chunk, where the settings say so. No unit is in two finds, and a text that
    says the same as a better one is left out.
    """
    known = {one.unit: one for one in found if one.unit in passages and one.evidence > 0}
    if not any(one.passes for one in known.values()):
        return ()
    if settings.finds == "chunks" and not alone:
        known = _by_chunk(known, passages)
    left = {day: _left(day, today, settings) for day in {passages[unit].day for unit in known}}
    final = {unit: one.score * left[passages[unit].day] for unit, one in known.items()}
    least = settings.tail * max(final.values())
    chosen: list[Hit] = []
    used: set[int] = set()
    said: set[str] = set()
    order = sorted(known.values(), key=lambda one: (-final[one.unit], *_place(passages[one.unit])))
    places: dict[int, dict[int, int]] = defaultdict(dict)
    for one in order[:TOGETHER]:
        places[passages[one.unit].chunk][passages[one.unit].place] = one.unit
    for best in order:
        if len(chosen) == limit or final[best.unit] < least:
            break
        if best.unit in used or (alone and not best.passes):
            continue
        if settings.finds == "chunks" and not alone:
            hit = _whole(passages[best.unit], best, final[best.unit])
        else:
            beside = {} if alone else places[passages[best.unit].chunk]
            run = _run(best, passages, known, beside, settings.max_characters)
            used.update(run)
            for unit in run:
                places[passages[unit].chunk].pop(passages[unit].place, None)
            hit = as_hit([passages[unit] for unit in run], settings.max_characters, best, final[best.unit])
        essence = " ".join(hit.text.casefold().split())
        if essence not in said:
            said.add(essence)
            chosen.append(hit)
    return tuple(chosen)


def _left(day: date | None, today: date | None, settings: MemorySettings) -> float:
    """What age leaves of a score, 1 for all of it."""
    if (
        day is None or today is None or day >= today
    ):  # a curated file, a question where age doesn't count, a day to come
        return 1.0
    return max(settings.decay_floor, math.exp2(-(today - day).days / settings.half_life_days))


def _place(passage: Passage) -> tuple[int, str, int]:
    """Among equals the newer note comes first, then the order of the files."""
    return -(passage.day.toordinal() if passage.day else 0), passage.path, passage.start_line


def _run(
    best: Scored, passages: Mapping[int, Passage], known: Mapping[int, Scored], beside: Mapping[int, int], most: int
) -> list[int]:
    """``best`` and what touches it, the better side first. ``beside`` has what may be taken of its chunk, by place."""
    run = [best.unit]
    while True:
        first, last = passages[run[0]], passages[run[-1]]
        sides = [
            unit
            for place in (first.place - 1, last.place + 1)
            if (unit := beside.get(place)) is not None
            and _touch(passages[unit], first, last)
            and _extent(passages[unit], first, last) <= most
        ]
        if not sides:
            return run
        unit = max(sides, key=lambda side: known[side].evidence)
        run = [unit, *run] if passages[unit].place < first.place else [*run, unit]


def _touch(passage: Passage, first: Passage, last: Passage) -> bool:
    """Whether no line lies between it and the run from ``first`` to ``last``: a blank one parts two thoughts."""
    return passage.end_line + 1 >= first.start_line and passage.start_line <= last.end_line + 1


def _extent(*run: Passage) -> int:
    """Characters from the first to the last."""
    return max(passage.end for passage in run) - min(passage.start for passage in run)


def _by_chunk(known: Mapping[int, Scored], passages: Mapping[int, Passage]) -> dict[int, Scored]:
    """The best unit of each chunk, with the evidence of the chunk: of the units that its text shows, those that it
    shares with the chunk before it included."""
    chunks: dict[int, list[Scored]] = defaultdict(list)
    lines: dict[str, list[Scored]] = defaultdict(list)
    for one in known.values():
        chunks[passages[one.unit].chunk].append(one)
        lines[passages[one.unit].path].append(one)
    result: dict[int, Scored] = {}
    for own in chunks.values():
        best = max(own, key=lambda one: (one.evidence, -one.unit))
        first, last = _span(passages[best.unit])
        shown = [one for one in lines[passages[best.unit].path] if first <= passages[one.unit].start_line <= last]
        ranked = sorted((one.evidence for one in shown), reverse=True)
        evidence = sum(value * NEXT_BEST**rank for rank, value in enumerate(ranked))
        passes = any(one.passes for one in shown)
        result[best.unit] = Scored(best.unit, evidence, best.keyword, best.vector, passes)
    return result


def _span(passage: Passage) -> tuple[int, int]:
    """The lines of the passage's chunk."""
    first = passage.start_line - passage.text.count("\n", 0, passage.start)
    return first, first + passage.text.count("\n")


def _whole(passage: Passage, best: Scored, score: float) -> Hit:
    first, last = _span(passage)
    return Hit(passage.path, first, last, passage.text, score, best.keyword, best.vector, passage.trail, passage.day)


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
