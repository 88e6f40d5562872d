"""One whole call of a model that no person waits for: what it said, or why it failed, with few tries.

For the silent turns (flush, summary, curation). Knows no conversation and no tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from agents.model import Failed, Finished, Model, ReasoningDelta, Request, TextDelta, ToolCall, Usage

TRIES = 2

LONGEST_WAIT_SECONDS = 10.0

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call cost: ``usage`` by the provider's count, of the ``model`` that answered."""

    model: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Completion:
    """``is_cut``: it ran into its output limit, so ``calls`` must not be run. ``is_filtered``: the provider withheld
    the rest of it."""

    text: str
    spent: Spent
    calls: tuple[ToolCall, ...] = ()
    is_cut: bool = False
    is_filtered: bool = False


async def complete(model: Model, request: Request, *, sleep: Sleep = asyncio.sleep) -> Completion | Failed:
    """Ask, and ask once more after a failure that may pass. ``sleep`` waits in between, in seconds."""
    failure = Failed("network", f"{model.name} ended without an answer.")
    for attempt in range(1, TRIES + 1):
        answer = await _once(model, request, failure)
        if isinstance(answer, Completion):
            return answer
        failure = answer
        if not failure.may_retry or attempt == TRIES:
            break
        await sleep(min(failure.retry_after or 2.0 ** (attempt - 1), LONGEST_WAIT_SECONDS))
    return failure


async def _once(model: Model, request: Request, silent: Failed) -> Completion | Failed:
    text: list[str] = []
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text=piece):
                    text.append(piece)
                case ReasoningDelta():
                    pass
                case Finished(reason=reason, calls=calls, usage=usage):
                    spent = Spent(event.model or model.name, usage)
                    return Completion("".join(text), spent, calls, reason == "length", reason == "filtered")
                case Failed():
                    return event
                case _:
                    assert_never(event)
    return silent
