"""The turn: call the model, run the tools it asks for, repeat until it answers.

Pure but for the model and the tools it is given: it reads no file, holds no state and keeps no clock. It emits events
and goes on when it is resumed, so that each step can be made durable first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import assert_never

from agents.events import Answered, Broken, Delta, Event, Noted, Notice, Stepped, ToolStarted
from agents.model import (
    AssistantMessage,
    Failed,
    Finished,
    Model,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
)
from agents.tools.tool import Outcome, Tool

MOST_STEPS = 20
"""Model calls in one turn. A person's question takes one to five; more is a model that goes in circles."""

TRIES = 3
"""Calls of the model before a passing failure is final."""

LONGEST_WAIT_SECONDS = 30.0

EMPTY = "I have nothing to say to that. Could you put it another way?"
TOO_MANY_STEPS = "I stopped after too many steps without an answer. Could you ask for less at once?"


@dataclass(frozen=True, slots=True)
class Turn:
    """What the loop works on. ``request`` holds the whole conversation up to and with the question."""

    model: Model
    request: Request
    tools: Sequence[Tool] = ()
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)


async def run(turn: Turn) -> AsyncIterator[Event]:
    """Run a turn to its end: the last event is ``Answered`` or ``Broken``."""
    request = replace(turn.request, tools=tuple(tool.spec for tool in turn.tools))
    tools = {tool.spec.name: tool for tool in turn.tools}
    usage = Usage()
    for _ in range(MOST_STEPS):
        step: _Step | None = None
        async for event in _call(turn, request):
            if isinstance(event, _Step):
                step = event
            else:
                yield event
        if step is None:
            return
        usage = _sum(usage, step.usage)
        if not step.message.tool_calls:
            yield Stepped(step.message)
            yield Answered(step.message.text.strip() or EMPTY, turn.model.name, usage)
            return
        yield Stepped(step.message)
        results: list[ToolResult] = []
        for call in step.message.tool_calls:
            yield ToolStarted(call)
            outcome = await _use(tools, call, cut=step.cut)
            for note in outcome.noted:
                yield Noted(*note)
            result = ToolResult(call.id, call.name, outcome.text, outcome.is_error)
            yield Stepped(result)
            results.append(result)
        request = replace(request, messages=(*request.messages, step.message, *results))
    yield Answered(TOO_MANY_STEPS, turn.model.name, usage, complete=False)


@dataclass(frozen=True, slots=True)
class _Step:
    """One finished call of the model. ``cut``: it ran into its output limit, so its calls are not to be run."""

    message: AssistantMessage
    usage: Usage
    cut: bool


async def _call(turn: Turn, request: Request) -> AsyncIterator[Event | _Step]:
    """One step, tried again after passing failures as long as nothing of it was shown."""
    for attempt in range(1, TRIES + 1):
        text: list[str] = []
        reasoning: list[str] = []
        failure: Failed | None = None
        async with aclosing(turn.model.stream(request)) as events:
            async for event in events:
                match event:
                    case TextDelta(text=piece):
                        text.append(piece)
                        yield Delta(piece)
                    case ReasoningDelta(text=piece):
                        reasoning.append(piece)
                    case Finished(reason=reason, calls=calls, usage=usage):
                        yield _Step(
                            AssistantMessage("".join(text), calls, "".join(reasoning)), usage, reason == "length"
                        )
                        return
                    case Failed():
                        failure = event
                    case _:
                        assert_never(event)
        failure = failure or Failed("network", f"{turn.model.name} ended without an answer.")
        if not failure.may_retry or text or attempt == TRIES:
            yield Broken(failure)
            return
        wait = min(failure.retry_after or 2.0 ** (attempt - 1), LONGEST_WAIT_SECONDS)
        yield Notice(f"retry {attempt}/{TRIES - 1}: {failure.message}")
        await turn.sleep(wait)


async def _use(tools: dict[str, Tool], call: ToolCall, *, cut: bool) -> Outcome:
    tool = tools.get(call.name)
    if cut:
        return Outcome("Not run: your output was cut off at its limit, so the arguments may be incomplete.", True)
    if tool is None:
        return Outcome(f"There is no tool {call.name!r}. There are: {', '.join(sorted(tools)) or 'none'}.", True)
    return await tool.call(call.arguments)


def _sum(left: Usage, right: Usage) -> Usage:
    return Usage(left.input + right.input, left.output + right.output, left.cached + right.cached)
