"""One call of the model as a step of a turn: passing failures are tried again, what was shown already is gone on from.

It keeps no clock and no state; it is given the model and how to wait. What a failure means for the turn is the loop's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from agents.events import Delta, MessageStarted, Notice, Used
from agents.model import (
    AssistantMessage,
    ChatMessage,
    Failed,
    FailureKind,
    Finished,
    Model,
    ReasoningDelta,
    Request,
    TextDelta,
    UserMessage,
)

TRIES = 3
"""Calls of the model before a passing failure is final."""

LONGEST_WAIT_SECONDS = 30.0

BY_A_PICTURE: tuple[FailureKind, ...] = ("refused", "filtered", "overload")
"""How a call fails for a picture that a provider doesn't take: some servers answer 500. The next calls would send it
again, so that such a failure would be the session's end."""

GO_ON = "The connection broke off there. Go on exactly where it ended, without repeating anything."
BROKEN_OFF = "\n\n(The connection broke off here.)"
CUT_OFF = "\n\n(Cut off here: it became longer than one answer can be.)"


@dataclass(frozen=True, slots=True)
class Step:
    """A finished call. ``is_cut``: it ran into its output limit, so its calls are not to be run; ``is_filtered``: the
    provider withheld it; ``is_whole`` is False for a text whose end was lost."""

    message: AssistantMessage
    is_cut: bool = False
    is_filtered: bool = False
    is_whole: bool = True


Shown: TypeAlias = MessageStarted | Delta | Notice | Used


async def called(
    model: Model, request: Request, sleep: Callable[[float], Awaitable[None]], *, marks_cut: bool
) -> AsyncGenerator[Shown | Step | Failed, None]:
    """Call the model; the last thing that comes is the ``Step`` or what ``Failed`` for good.

    ``marks_cut``: a text that ran into its limit says so. What may have failed for a picture is asked once more with
    the names of the pictures only.
    """
    yield MessageStarted()
    shown = ""
    for attempt in range(1, TRIES + 1):
        reasoning: list[str] = []
        failure = Failed("network", f"{model.name} ended without an answer.")
        async with aclosing(model.stream(_going_on(request, shown))) as events:
            async for event in events:
                match event:
                    case TextDelta(text=piece):
                        shown += piece
                        yield Delta(piece)
                    case ReasoningDelta(text=piece):
                        reasoning.append(piece)
                    case Finished():
                        yield Used(event.model or model.name, event.usage)
                        step = _step(event, shown, "".join(reasoning), event.model or model.name, marks_cut=marks_cut)
                        if step.message.text != shown:
                            yield Delta(step.message.text[len(shown) :])
                        yield step
                        return
                    case Failed():
                        failure = event
                    case _:
                        assert_never(event)
        if not failure.may_retry or attempt == TRIES:
            break
        yield Notice(f"retry {attempt}/{TRIES - 1}: {failure.message}")
        await sleep(min(failure.retry_after or 2.0 ** (attempt - 1), LONGEST_WAIT_SECONDS))
    if not shown.strip():
        named = _with_names_only(request)
        if failure.kind not in BY_A_PICTURE or named == request:
            yield failure
            return
        yield Notice(f"retry without the pictures: {failure.message}")
        async with aclosing(called(model, named, sleep, marks_cut=marks_cut)) as again:
            async for happened in again:
                yield happened
        return
    yield Notice(failure.message)
    yield Delta(BROKEN_OFF)
    yield Step(AssistantMessage(shown + BROKEN_OFF, model=model.name), is_whole=False)


def _with_names_only(request: Request) -> Request:
    """The request without the bytes of its pictures: the model is told where they lie."""

    def told(message: ChatMessage) -> ChatMessage:
        if not isinstance(message, UserMessage) or not message.images:
            return message
        return replace(message, images=tuple(replace(image, data=None) for image in message.images))

    return replace(request, messages=tuple(map(told, request.messages)))


def _going_on(request: Request, shown: str) -> Request:
    """The request that makes the model go on after ``shown``, which a person may have seen already."""
    if not shown.strip():
        return request
    return replace(request, messages=(*request.messages, AssistantMessage(shown), UserMessage(GO_ON)))


def _step(end: Finished, text: str, reasoning: str, model: str, *, marks_cut: bool) -> Step:
    is_cut = end.reason == "length"
    if is_cut and marks_cut and text.strip() and not end.calls:
        text += CUT_OFF
    message = AssistantMessage(text, end.calls, reasoning, model, end.state)
    return Step(message, is_cut, end.reason == "filtered", is_whole=not is_cut)
