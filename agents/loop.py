"""The turn: call the model, run the tools it asks for, repeat until it answers.

Pure but for the model and the tools it is given: it reads no file, holds no state and keeps no clock. It emits events
and goes on when it is resumed, so that each step can be made durable first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agents.calling import Step, called
from agents.events import Answered, Broken, Event, Steered, Stepped, Used
from agents.model import ChatMessage, Failed, Model, Request, Usage, UserMessage
from agents.tool_use import Repeats, used
from agents.tools.tool import Tool

MOST_STEPS = 20
"""Model calls in one turn. A person's question takes one to five; more is a model that goes in circles."""

MOST_CUT = 3
"""Steps in a row whose tool calls were cut off before the turn ends."""

NUDGE = "Your answer was empty. Answer the person now, in words."
CONCLUDE = "No more tools can be used in this turn. Answer the person now with what you know."

EMPTY = "I have nothing to say to that. Could you put it another way?"
TOO_MANY_STEPS = "I stopped after too many steps without an answer. Could you ask for less at once?"
TOO_LONG = "What I wanted to write is longer than I can write at once. Could you ask for less at once?"
NO_END = Failed("network", "The call of the model had no end.")
WITHHELD = Failed("filtered", "The model's provider withheld the answer by its content filter. Say it in another way.")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message that came during the turn, of the same person at the same place. ``source`` is its own turn's id."""

    message: UserMessage
    source: str


@dataclass(frozen=True, slots=True)
class Fitted:
    """What the next call is sent, within the window, and what happened to make it so."""

    messages: tuple[ChatMessage, ...]
    events: tuple[Event, ...] = ()


async def _nothing() -> Sequence[Arrival]:
    return ()


async def _as_it_is(messages: tuple[ChatMessage, ...], *, overflowed: bool) -> Fitted | None:
    return None if overflowed else Fitted(messages)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the loop works on. ``request`` holds the whole conversation up to and with the question.

    ``arrivals`` gives what came since it was last asked: that enters between two calls. ``fit`` is asked before each
    call for the messages as they fit the window, and once more after the provider found them too long (``overflowed``);
    None: there is nothing to cut. ``marks_cut``: an answer that ran into its limit says so.
    """

    model: Model
    request: Request
    tools: Sequence[Tool] = ()
    arrivals: Callable[[], Awaitable[Sequence[Arrival]]] = _nothing
    fit: Callable[..., Awaitable[Fitted | None]] = _as_it_is
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)
    marks_cut: bool = True


async def run(turn: Turn) -> AsyncGenerator[Event, None]:
    """Run a turn to its end: the last event is ``Answered`` or ``Broken``."""
    tools = {tool.spec.name: tool for tool in turn.tools}
    specs = tuple(tool.spec for tool in turn.tools)
    messages, usage, repeats, cut, nudge = turn.request.messages, Usage(), Repeats(), 0, ""
    for number in range(1, MOST_STEPS + 1):
        for arrival in await turn.arrivals() if number > 1 else ():
            yield Steered(arrival.message, arrival.source)
            messages += (arrival.message,)
        concludes = number == MOST_STEPS or repeats.refused > 1 or cut == MOST_CUT
        step: Step | Failed = NO_END
        for overflowed in (False, True):  # when the provider finds it too long all the same, once more with less
            if (fitted := await turn.fit(messages, overflowed=overflowed)) is None:
                break
            messages = fitted.messages
            for happened in fitted.events:
                usage += happened.usage if isinstance(happened, Used) else Usage()
                yield happened
            said = (*messages, UserMessage(CONCLUDE if concludes else nudge)) if concludes or nudge else messages
            request = replace(turn.request, messages=said, tools=() if concludes else specs)
            async with aclosing(called(turn.model, request, turn.sleep, marks_cut=turn.marks_cut)) as events:
                async for event in events:
                    match event:
                        case Step() | Failed():
                            step = event
                        case _:
                            usage += event.usage if isinstance(event, Used) else Usage()
                            yield event
            if not isinstance(step, Failed) or step.kind != "overflow":
                break
        if isinstance(step, Failed) or concludes or not step.message.tool_calls:
            end = _end(step, usage, is_last=concludes or bool(nudge))
            if end is None:
                nudge = NUDGE
                continue
            if isinstance(step, Step) and step.message.text.strip():
                yield Stepped(replace(step.message, tool_calls=()))
            yield end
            return
        yield Stepped(step.message)
        messages += (step.message,)
        async with aclosing(used(tools, step.message.tool_calls, repeats, is_cut=step.is_cut)) as ran:
            async for done in ran:
                if isinstance(done, Stepped):
                    messages += (done.message,)
                yield done
        cut, nudge = cut + 1 if step.is_cut else 0, ""


def _end(step: Step | Failed, usage: Usage, *, is_last: bool) -> Answered | Broken | None:
    """How a turn ends with a step that asks for no tools; None where it is worth to ask once more."""
    if isinstance(step, Failed):
        return Broken(step)
    text, model = step.message.text.strip(), step.message.model
    if text:
        return Answered(text, model, usage, complete=step.is_whole and not step.is_filtered)
    if step.is_filtered:
        return Broken(WITHHELD)
    if not is_last:
        return None
    if step.is_cut:
        return Answered(TOO_LONG, model, usage, complete=False)
    return Answered(TOO_MANY_STEPS if step.message.tool_calls else EMPTY, model, usage, complete=False)
