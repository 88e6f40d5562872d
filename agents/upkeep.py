"""The upkeep of a session: when its window is trimmed, flushed and compacted, and in which order.

``decide`` is pure; ``Upkeep`` carries out what it says, step by step, and yields each change as one mark for the
transcript. The caller appends a mark before it asks for the next: a crash leaves the old state or the new one, and what
was done is not done again. Nothing leaves the window that no flush has looked at, or was marked to be looked at later.
Knows no chat.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal, TypeAlias

import structlog

from agents import conversation
from agents.budget import Meter, estimate, tokens
from agents.compaction import SECONDS as SUMMARY_SECONDS
from agents.compaction import Summary, Summed, begin, cut, replaced, summarise
from agents.completion import Sleep, Spent
from agents.conversation import View, is_pending_tainted, pending, view
from agents.events import Notice
from agents.flush import SECONDS as FLUSH_SECONDS
from agents.flush import flush
from agents.model import Model, ToolResult
from agents.trimming import trimmable, trimmed
from agents.window import Window
from workspaces.memory import Memory
from workspaces.scope import Scope
from workspaces.transcript import Entry

log = structlog.get_logger(__name__)

Occasion: TypeAlias = Literal["turn", "call", "overflow", "asked"]
"""After a turn; before a model call; after one that the provider refused as too long; because a person asked for it."""

ResetWhy: TypeAlias = Literal["new", "reset", "idle", "daily"]

Step: TypeAlias = Literal["nothing", "trim", "flush", "compact"]

MOST_STEPS = 8
"""In one go; the longest there is has six: trim, flush, two summaries that fail, a hard trim, a trim of the rest."""

MOST_FAILURES = 2
"""Flushes that may fail in a row before the next loss point, and summaries before the hard trim."""

SWEEP_AFTER = timedelta(hours=1)
"""After a failed flush, until what left the window meanwhile is tried again."""

LEAST_FORCED = 400
"""Tokens that must go in a compaction that a person or a provider asks for; of itself it takes a summary's share."""

SLACK = 1.25
"""How far what was said since the flush may be over the tail and still stay."""

DROPPED = (
    "I could not sum up our older messages, so I have set them aside: what was noted is in the memory, and every word "
    "is on disk."
)
SET_ASIDE = "Our older messages no longer fit, and I have set them aside; every word is on disk."
KEPT = "I could not sum up our older messages, and they stay as they are for now: {why}."
NOTHING_TO_COMPACT = "There is nothing to compact yet."
NO_SUMMARY = "this model is not able to"


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry for the transcript, to be appended before the next one is asked for."""

    kind: conversation.Mark
    body: Mapping[str, Any]


Kept: TypeAlias = Mark | Spent | Notice


@dataclass(frozen=True, slots=True)
class Load:
    """What is in a window: a ``view``, and ``fixed``, the estimate for all else that a call sends (system, tools)."""

    window: Window
    meter: Meter
    view: View
    fixed: int

    @property
    def projected(self) -> int:
        """Tokens that the next call sends at least."""
        return self.meter.counted(self.fixed + self.view.tokens)

    @property
    def is_full(self) -> bool:
        return self.projected >= self.window.compact_at

    @property
    def cut(self) -> int:
        """Where a compaction would cut, 0 for nowhere.

        In a small window the turn that reaches ``compact_at`` may take what was said since the flush a little over the
        tail; then the cut is at the watermark, since that is better than a second flush in the cycle.
        """
        room = self.meter.estimated(self.window.tail)
        at, seen = cut(self.view, room), self.view
        unseen = seen.lines[seen.unflushed :]
        if begin(seen) < seen.unflushed < at and not isinstance(unseen[0].message, ToolResult):
            return seen.unflushed if sum(line.tokens for line in unseen) <= room * SLACK else at
        return at

    def saving(self, first: int) -> int:
        """Tokens that showing the first lines shorter would save."""
        shown = ((line, trimmed(line.message)) for line in self.view.lines[:first])
        saved = (line.tokens - estimate(short) for line, short in shown if short is not line.message)
        return self.meter.counted(sum(saved))


def decide(load: Load, occasion: Occasion, now: datetime, *, may_flush: bool) -> Step:
    """What is to be done next; asked again after each step, it comes to "nothing".

    ``may_flush`` is False without a model that can be trusted to do it, and after a flush in the same go: one that
    failed never holds up what has to be done.
    """
    seen, window = load.view, load.window
    is_over = load.is_full or occasion in ("overflow", "asked")
    is_soft = occasion == "turn" and load.projected >= window.flush_at
    if is_over or is_soft:
        at = load.cut
        if occasion != "asked" and load.saving(at) >= window.summary:
            return "trim"
        if is_over and _is_worth_it(load, at, window.summary if occasion in ("turn", "call") else LEAST_FORCED):
            is_seen = seen.unflushed >= (len(seen.lines) if occasion == "asked" else at)
            return "compact" if is_seen or not may_flush else "flush"
        if is_over and occasion != "asked" and load.saving(len(seen.lines)) > 0:
            return "trim"
    if not may_flush:
        return "nothing"
    wants = is_soft and not seen.is_flushed and seen.unflushed < len(seen.lines)
    if wants and seen.flush_failures < MOST_FAILURES:
        return "flush"
    return "flush" if occasion == "turn" and seen.is_behind and _is_due(seen, now) else "nothing"


def _is_worth_it(load: Load, at: int, least: int) -> bool:
    return at > 0 and load.meter.counted(replaced(load.view, at)) >= least


def _is_due(seen: View, now: datetime) -> bool:
    """Whether what left the window unseen is to be looked at again."""
    try:
        return not seen.failed_at or now - datetime.fromisoformat(seen.failed_at) >= SWEEP_AFTER
    except (ValueError, TypeError):  # a time that is none, or has no zone
        return True


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What keeps one session. ``model`` flushes and sums up, and may be a cheaper one than answers; None for none.

    ``window`` is that of the model that answers. ``entries`` gives the transcript as it stands, asked before each step.
    ``clock`` gives aware times; ``zone`` is where the agent's days begin, None for the machine's. Times are in seconds.
    ``view`` is ``conversation.view``, or one that remembers.
    """

    model: Model | None
    window: Window
    memory: Memory
    scope: Scope
    entries: Callable[[], Sequence[Entry]]
    clock: Callable[[], datetime]
    zone: tzinfo | None = None
    sleep: Sleep = asyncio.sleep
    flush_seconds: float = FLUSH_SECONDS
    summary_seconds: float = SUMMARY_SECONDS
    view: Callable[[Sequence[Entry]], View] = view

    async def keep(self, occasion: Occasion, meter: Meter, fixed: int, focus: str = "") -> AsyncGenerator[Kept, None]:
        """Make the room that ``occasion`` calls for; yields nothing when there is enough.

        ``fixed`` is the estimate for all that a call sends beside the view. ``focus`` is what a person who asks for a
        compaction wants kept in particular.
        """
        may_flush, asked = self._model is not None, occasion == "asked"
        for _ in range(MOST_STEPS):
            load = Load(self.window, meter, self.view(self.entries()), fixed)
            step = decide(load, occasion, self.clock(), may_flush=may_flush)
            if step != "nothing":
                log.info("upkeep.step", step=step, occasion=occasion, projected=load.projected, of=self.window.context)
            match step:
                case "nothing":
                    if asked:
                        yield Notice(NOTHING_TO_COMPACT)
                    return
                case "trim":
                    yield self._trim(load)
                case "flush":
                    may_flush = False
                    async for kept in self._flush():
                        yield kept
                case "compact":
                    is_done = False
                    async for kept in self._compact(load, focus, may_drop=not asked or load.is_full):
                        is_done = is_done or (isinstance(kept, Mark) and kept.kind == "compacted")
                        yield kept
                    if asked or (occasion == "turn" and not is_done):
                        return
                    if is_done and occasion == "overflow":
                        occasion = "call"

    async def reset(self, why: ResetWhy) -> AsyncGenerator[Kept, None]:
        """Begin anew, after a flush of what none has looked at. An empty session stays as it is."""
        seen = self.view(self.entries())
        if not seen.lines:
            return
        if self._model is not None and (seen.is_behind or seen.unflushed < len(seen.lines)):
            async for kept in self._flush():
                yield kept
        yield Mark("reset", {"why": why})

    @property
    def _model(self) -> Model | None:
        """None for one that can't be trusted with a tool: it would write fiction into notes and summaries."""
        return self.model if self.model is not None and self.model.uses_tools else None

    def _trim(self, load: Load) -> Mark:
        """Shorten what is before the tail; where nothing of that can be saved, all there is."""
        at = load.cut
        first = trimmable(load.view.messages[: at if load.saving(at) >= load.window.summary else None])
        after = load.projected - load.saving(first)
        return Mark("trimmed", {"through": load.view.ids[first - 1], "before": load.projected, "after": after})

    async def _flush(self) -> AsyncGenerator[Kept, None]:
        entries = self.entries()
        lines = pending(entries)
        if self._model is None or not lines:
            return
        async for done in flush(
            self._model,
            lines,
            self.memory,
            self.scope,
            clock=self.clock,
            zone=self.zone,
            is_tainted=is_pending_tainted(entries),
            seconds=self.flush_seconds,
            sleep=self.sleep,
        ):
            for spent in done.spent:
                yield spent
            body: dict[str, Any] = {"through": done.last, "noted": list(done.noted), "outcome": done.outcome}
            if done.why:
                last = lines[-1].id if done.outcome == "failed" else done.last
                body |= {"from": done.first, "through": last, "why": done.why}
            yield Mark("flushed", body)

    async def _compact(self, load: Load, focus: str, *, may_drop: bool) -> AsyncGenerator[Kept, None]:
        """Put a summary in the place of what is before the cut; after two that failed, or without a model, nothing.

        ``may_drop`` is False where there is room, so that a summary that failed is no reason to lose anything.
        """
        at = load.cut
        summed = await self._summed(load, at, focus)
        if summed is not None:
            for spent in summed.spent:
                yield spent
        if isinstance(summed, Summary):
            yield self._compacted(load, at, summed.text, is_trimmed=False)
            return
        if summed is not None:
            yield Mark("refused", {"why": summed.why})
        if not may_drop or (summed is not None and load.view.refusals + 1 < MOST_FAILURES):
            yield Notice(KEPT.format(why=summed.why.rstrip(".") if summed else NO_SUMMARY))
            return
        yield self._compacted(load, at, load.view.summary, is_trimmed=True)
        yield Notice(DROPPED if summed else SET_ASIDE)

    async def _summed(self, load: Load, at: int, focus: str) -> Summed | None:
        if self._model is None:
            return None
        most = min(self.window.summary, replaced(load.view, at) // 2)
        return await summarise(
            self._model,
            load.view,
            at,
            most=most,
            zone=self.zone,
            focus=focus,
            seconds=self.summary_seconds,
            sleep=self.sleep,
        )

    def _compacted(self, load: Load, at: int, summary: str, *, is_trimmed: bool) -> Mark:
        seen = load.view
        after = load.meter.counted(load.fixed + tokens(summary) + sum(line.tokens for line in seen.lines[at:]))
        body = {
            "summary": summary,
            "from": seen.ids[at],
            "before": load.projected,
            "after": after,
            "trimmed": is_trimmed,
            "foreign": seen.is_tainted,
        }
        return Mark("compacted", body)
