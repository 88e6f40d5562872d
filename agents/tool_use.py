"""The tool calls of one step, run: those that only read together, every other by itself and in order.

What can't be run gets a result as well, so that each call has one: an unknown tool, arguments that were cut, the same
call for the fourth time. Knows no particular tool.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from agents.events import Event, Noted, Stepped, ToolStarted, ToolUpdated
from agents.model import ToolCall, ToolResult
from agents.tools.tool import Outcome, Tool

MOST_EQUAL = 3
"""How often a call that gives the same result is run: a model that asks once more would ask for ever."""

CUT = "Not run: your output was cut off at its limit, so the arguments may be incomplete. Send less at once."
AGAIN = f"Not run: this call gave the same result {MOST_EQUAL} times. Answer with what you know."


@dataclass(slots=True)
class Repeats:
    """How often each call of a turn gave the same result. ``refused`` counts the calls that were not run for it."""

    refused: int = 0
    _seen: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def count(self, call: ToolCall) -> int:
        return self._seen.get(_essence(call), ("", 0))[1]

    def add(self, call: ToolCall, result: str) -> None:
        last, count = self._seen.get(_essence(call), ("", 0))
        self._seen[_essence(call)] = (result, count + 1 if result == last else 1)


async def used(
    tools: Mapping[str, Tool], calls: Sequence[ToolCall], repeats: Repeats, *, is_cut: bool
) -> AsyncGenerator[Event, None]:
    """Run the calls of one message; the results come in the order of the calls, each as ``Stepped``."""
    for reads, group in itertools.groupby(calls, lambda call: call.name in tools and tools[call.name].read_only):
        for together in [list(group)] if reads else [[call] for call in group]:
            async with aclosing(_together(tools, together, repeats, is_cut=is_cut)) as events:
                async for event in events:
                    yield event


async def _together(
    tools: Mapping[str, Tool], calls: Sequence[ToolCall], repeats: Repeats, *, is_cut: bool
) -> AsyncGenerator[Event, None]:
    for call in calls:
        yield ToolStarted(call)
    said: asyncio.Queue[ToolUpdated | None] = asyncio.Queue()
    running: list[asyncio.Task[Outcome]] = []
    for at, call in enumerate(calls):
        before = sum(_essence(other) == _essence(call) for other in calls[:at])
        refusal = _refusal(tools, call, repeats, before, is_cut=is_cut)
        running.append(asyncio.create_task(_run(tools, call, refusal, said)))
        running[-1].add_done_callback(lambda _: said.put_nowait(None))
    try:
        waiting = len(running)
        while waiting:
            update = await said.get()
            if update is None:
                waiting -= 1
            else:
                yield update
        outcomes = [task.result() for task in running]
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    for call, outcome in zip(calls, outcomes, strict=True):
        if outcome.text != AGAIN:
            repeats.add(call, outcome.text)
        for text, citation in outcome.noted:
            yield Noted(text, citation)
        yield Stepped(
            ToolResult(call.id, call.name, outcome.text, outcome.is_error, outcome.is_foreign, outcome.awaits_owner)
        )


async def _run(
    tools: Mapping[str, Tool], call: ToolCall, refusal: Outcome | None, said: asyncio.Queue[ToolUpdated | None]
) -> Outcome:
    if refusal is not None:
        return refusal
    return await tools[call.name].call(call.arguments, lambda text: said.put_nowait(ToolUpdated(call, text)))


def _refusal(
    tools: Mapping[str, Tool], call: ToolCall, repeats: Repeats, before: int, *, is_cut: bool
) -> Outcome | None:
    """Why the call is not run; None where it is. ``before`` are the equal calls ahead of it in the same message."""
    if is_cut:
        return Outcome(CUT, is_error=True)
    if call.name not in tools:
        known = ", ".join(sorted(tools)) or "none"
        return Outcome(f"There is no tool {call.name!r}. There are: {known}.", is_error=True)
    if repeats.count(call) + before >= MOST_EQUAL:
        repeats.refused += 1
        return Outcome(AGAIN, is_error=True)
    return None


def _essence(call: ToolCall) -> tuple[str, str]:
    """What makes two calls the same, however their JSON is written."""
    try:
        return call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return call.name, call.arguments
