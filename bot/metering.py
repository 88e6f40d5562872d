"""Each call of a model is asked for and booked here, whoever makes it: a turn, a flush, a summary, the curation, or
who listens to a voice note.

The budget holds for the model that is really asked, so that of several the one that costs nothing goes on, and a turn
of many steps ends in the middle. A call that never came to its count, since it was stopped or broke off, is booked by
an estimate: the provider charges for it all the same.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from agents.budget import request_estimate, tokens
from agents.chain import Chain, backed
from agents.errors import ModelError
from agents.model import Failed, Finished, Model, ModelEvent, Request, Usage
from agents.transcription import TranscriptionFailed

if TYPE_CHECKING:
    from agents.agent import Agent
    from agents.transcription import Transcriber
    from bot.health import ModelHealth
    from bot.usage import Ledger

NOT_TODAY = "I can't answer any more today. Please try again tomorrow."
"""To whom the budget is no business of."""


class Metered:
    """``model``, one and no chain, as ``agent`` has it. When the budget is spent a call fails as "billing", unmade."""

    def __init__(self, model: Model, ledger: Ledger, agent: str, health: ModelHealth | None = None) -> None:
        self.name, self.limits = model.name, model.limits
        self.uses_tools, self.sees_images = model.uses_tools, model.sees_images
        self._model = model
        self._ledger = ledger
        self._agent = agent
        self._health = health

    async def refusal(self) -> str | None:
        """Why it may not be asked any more today, as a sentence for the owner; None when it may."""
        return await self._ledger.refusal(self.name)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        if reason := await self.refusal():
            yield Failed("billing", reason)
            return
        said: list[str] = []
        is_settled = False
        try:
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Finished | Failed):
                        self._tell(event)
                    if isinstance(event, Finished):
                        is_settled = True
                        await self._book(request, said, event.usage)
                    elif isinstance(event, Failed):
                        is_settled = not said  # a call that was refused costs nothing
                    else:
                        said.append(event.text)
                    yield event
        finally:
            if not is_settled:
                await self._book(request, said, Usage())

    async def close(self) -> None:
        await self._model.close()

    def _tell(self, event: Finished | Failed) -> None:
        """What the operator is to know of; a request that is too long, or refused for what it says, is none of that."""
        if self._health is None:
            return
        if isinstance(event, Finished) or event.kind in ("overflow", "filtered"):
            self._health.answered(self.name)
        else:
            self._health.failed(self.name, event.message)

    async def _book(self, request: Request, said: Sequence[str], counted: Usage) -> None:
        is_counted = counted.input or counted.output
        usage = counted if is_counted else Usage(request_estimate(request), tokens("".join(said)))
        await self._ledger.add(self._agent, self.name, usage)


async def refusal(model: Model) -> str | None:
    """Why none of the models behind ``model`` may be asked any more today, for the owner; None when one may."""
    each = model.models if isinstance(model, Chain) else (model,)
    reasons = [await one.refusal() if isinstance(one, Metered) else None for one in each]
    return None if None in reasons else reasons[0]


def keeper(agent: Agent) -> Model | None:
    """The model that notes and sums up for ``agent``; None where none can be had."""
    small, model = None, None
    with suppress(ModelError):
        small = agent.small()
    with suppress(ModelError):
        model = agent.model()
    return backed(small, model)


async def transcribed(transcriber: Transcriber, ledger: Ledger, agent: str, recording: bytes) -> str:
    """What is said in ``recording``, asked and booked for ``agent``. Raises TranscriptionFailed, as "billing" when the
    budget is spent."""
    if reason := await ledger.refusal(transcriber.name):
        raise TranscriptionFailed(Failed("billing", reason))
    transcript = await transcriber.transcribe(recording)
    await ledger.add(agent, transcriber.name, transcript.usage)
    return transcript.text
