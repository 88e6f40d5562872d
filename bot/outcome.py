"""What a turn came to, gathered from its events; what is for the person meanwhile is shown as it happens.

Knows the adapter that shows it, and no inbox and no agent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from adapters.adapter import Adapter, Narrator
from adapters.message import Address, Message
from agents.agent import Agent, Thread
from agents.enclosing import Enclosed
from agents.events import (
    Answered,
    Broken,
    Delta,
    Event,
    MessageStarted,
    Noted,
    Notice,
    Recalled,
    Steered,
    Stepped,
    TakenBack,
    ToolStarted,
    ToolUpdated,
    Used,
)
from agents.model import Failed, Usage
from bot import commands
from bot.delivery import Enclosure
from bot.streaming import Display
from workspaces.scope import Level

NOT_NOW = "I can't answer right now. Your message is kept: please try again later."

EXIT_FAILURE = 1

Cost: TypeAlias = Callable[[str, Usage], float | None]
"""What one call of a model, by its name, costs in USD; None when that is not known."""


@dataclass(slots=True)
class Outcome:
    """``code`` is the exit code of a single question. ``level`` is that of the turn; ``is_kept``: the transcript has
    the message. ``joined`` are the turns of messages that this one answers too, and ``heard`` and ``left_out`` how far
    it knows what was overheard and what was dropped. ``enclosed`` are the files of the workspace that go with the
    answer, and ``enclosures`` their copies.

    ``cost`` is in USD, of ``calls`` of a model that came to their end; None once it is not known of one. ``agent`` and
    ``thread`` are those whose session it was, None where no agent was asked.
    """

    answer: str = ""
    level: Level = Level.GUEST
    failure: Failed | None = None
    is_kept: bool = True
    code: int = 0
    session: str | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    calls: int = 0
    recalled: tuple[str, ...] = ()
    advice: str = ""
    noted: int = 0
    joined: list[str] = field(default_factory=list)
    agent: Agent | None = None
    thread: Thread | None = None
    heard: int = 0
    left_out: int = 0
    enclosed: tuple[Enclosed, ...] = ()
    enclosures: list[Enclosure] = field(default_factory=list)

    def add(self, cost: float | None) -> None:
        """One more call of a model."""
        self.calls += 1
        self.cost = None if self.cost is None or cost is None else self.cost + cost


async def followed(
    events: AsyncIterator[Event], message: Message, adapter: Adapter, display: Display, cost: Cost
) -> Outcome:
    """Run a turn to its end; what it says meanwhile goes to ``display``."""
    outcome = Outcome()
    async for event in events:
        match event:
            case Delta(text=text):
                await display.feed(text)
            case MessageStarted():
                display.begin()
            case Notice(text=text) | ToolUpdated(text=text):
                await _notice(adapter, message.address, text)
            case Noted(text=text, citation=citation, is_told=is_told):
                outcome.noted += 1
                if not is_told:
                    await _notice(adapter, message.address, f"remembered: {text} ({citation})")
            case TakenBack():
                outcome.noted -= 1
            case Recalled(citations=citations):
                outcome.recalled = citations
            case Used(model=model, usage=usage):
                outcome.add(cost(model, usage))
            case Steered(source=source):
                outcome.joined.append(source)
            case Answered(text=text, model=model, usage=usage, complete=complete, enclosed=enclosed):
                outcome.enclosed = enclosed
                outcome.answer, outcome.model, outcome.usage = text, model, usage
                outcome.code = 0 if complete else EXIT_FAILURE
            case Broken(failure=failure):
                outcome.failure = failure
            case Stepped() | ToolStarted():
                pass
            case _:
                assert_never(event)
    return outcome


def is_among_owners(outcome: Outcome, address: Address) -> bool:
    """Whether nobody else reads what is amiss and how it is mended."""
    return outcome.level is Level.OWNER and address.kind == "direct"


def apology(failure: Failed, outcome: Outcome, address: Address) -> str:
    """What a person reads when the model failed: cause and mend for the owner among themselves, not for others."""
    if not is_among_owners(outcome, address):
        return NOT_NOW if outcome.is_kept else commands.NO_AGENT
    return f"{failure.message} Your message is kept." if outcome.is_kept else failure.message


async def _notice(adapter: Adapter, address: Address, text: str) -> None:
    if isinstance(adapter, Narrator):
        await adapter.notice(address, text)
