"""Several models behind the one interface: when the first can't answer, the next is asked within the same call.

A turn never sees the change: what it has done so far stays done, and ``Finished.model`` says who answered. A model that
failed rests for a while: the others are asked before it. Knows no provider and no settings.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from agents.model import Failed, FailureKind, Finished, Limits, Model, ModelEvent, ReasoningDelta, Request

REST_SECONDS: Mapping[FailureKind, float] = {
    "network": 60,
    "overload": 30,
    "rate_limit": 60,
    "refused": 60,  # the model may be unknown there, but it may as well have been this one request
    "auth": 600,
    "billing": 600,
}
"""How long a model rests after a failure of each kind, which is then the next one's to answer. Of a kind that is not
here (overflow, a content filter) the cause is the request: another model would be asked in vain, or around a refusal.
"""

LONGEST_REST_SECONDS = 3600.0
"""However long a provider asks to be left alone."""


class Chain:
    """``models`` in the order in which they are asked, at least one; ``clock`` gives seconds that never go back.

    What the chain can do is what its first model can. One that can't call tools is passed over where there are some.
    """

    def __init__(self, models: Sequence[Model], *, clock: Callable[[], float]) -> None:
        first = models[0]
        self.name, self.limits = first.name, first.limits
        self.uses_tools, self.sees_images = first.uses_tools, first.sees_images
        self.models = tuple(models)
        self._clock = clock
        self._rests_until: dict[int, float] = {}

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        failures: list[Failed] = []
        for index in self._order():
            model = self.models[index]
            if request.tools and not model.uses_tools:
                failures.append(Failed("refused", f"{model.name} can't call tools."))
                continue
            failed: Failed | None = None
            # Held back until the answer begins, then None: the thoughts of a model that failed are no part of it.
            thoughts: list[ReasoningDelta] | None = []
            async with aclosing(model.stream(_within(request, model.limits))) as events:
                async for event in events:
                    if isinstance(event, ReasoningDelta) and thoughts is not None:
                        thoughts.append(event)
                        continue
                    if isinstance(event, Failed):
                        self._rest(index, event)
                        if thoughts is not None and self._passes_on(event, model):
                            failed = event
                            break
                    for thought in thoughts or ():
                        yield thought
                    thoughts = None
                    if isinstance(event, Finished):
                        self._rests_until.pop(index, None)
                        event = replace(event, model=event.model or model.name)
                    yield event
            if failed is None:
                return
            failures.append(failed)
        yield _all_failed(failures)

    async def close(self) -> None:
        for model in self.models:
            await model.close()

    def _order(self) -> list[int]:
        """Who is asked, in order; those that rest come last, since a person would rather wait than hear nothing."""
        now = self._clock()
        return sorted(range(len(self.models)), key=lambda index: self._rests_until.get(index, now) > now)

    def _passes_on(self, failed: Failed, model: Model) -> bool:
        """Whether the next model is to be asked.

        What is too long for a model with a smaller window is not too long for the chain: to compact the conversation
        for the first would not help this one.
        """
        if failed.kind == "overflow":
            return model.limits.context < self.limits.context
        return failed.kind in REST_SECONDS

    def _rest(self, index: int, failed: Failed) -> None:
        if failed.kind in REST_SECONDS:
            seconds = max(REST_SECONDS[failed.kind], min(failed.retry_after or 0, LONGEST_REST_SECONDS))
            self._rests_until[index] = self._clock() + seconds


def backed(first: Model | None, second: Model | None, clock: Callable[[], float] = time.monotonic) -> Model | None:
    """``first``, and where it can't answer ``second``, as far as it can be trusted with what ``first`` does; None where
    neither is there."""
    if first is None or second is None or first is second:
        return first or second
    others = [model for model in _models(second) if model.uses_tools >= first.uses_tools]
    return Chain([*_models(first), *others], clock=clock) if others else first


def _models(model: Model) -> tuple[Model, ...]:
    return model.models if isinstance(model, Chain) else (model,)


def _within(request: Request, limits: Limits) -> Request:
    """``request`` with an output that this model can give."""
    if request.max_output is None or request.max_output <= limits.output:
        return request
    return replace(request, max_output=limits.output)


def _all_failed(failures: Sequence[Failed]) -> Failed:
    """One failure for all: it may be tried again if one of them may, after the shortest wait. A reason is said once."""
    if len(set(failures)) == 1:
        return failures[0]
    passing = [failed for failed in failures if failed.may_retry]
    waits = [failed.retry_after for failed in passing]
    reasons = " ".join(dict.fromkeys(failed.message for failed in failures))
    return Failed(
        (passing or failures)[0].kind,
        f"None of {len(failures)} models could answer. {reasons}",
        min((wait for wait in waits if wait is not None), default=None) if all(waits) else None,
    )
