"""A command on its way: as it was typed, what it needs to be carried out, its answer, and its entry in the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from adapters.message import Kind, Message
from agents.agent import Agent, Thread
from bot.router import Route
from workspaces.scope import Level, Scope

if TYPE_CHECKING:
    from bot.admission import Admission
    from bot.choices import Choices
    from bot.queueing import Queues
    from bot.switching import Switch
    from bot.usage import Ledger

NO_AGENT = "I can't do that now: please try again later."

LEVELS = {Level.GUEST: "a guest", Level.MEMBER: "a member", Level.OWNER: "my owner"}


@dataclass(frozen=True, slots=True)
class Given:
    """A command as it was typed: its ``name`` without the slash, in lower case, and the ``words`` behind it."""

    name: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """A command on its way to its answer.

    ``turn`` is the same on every try of the same message. ``agent`` opens the agent it was said to, without building
    its model; it raises ModelError for an embedder that means nothing. ``stop`` ends what the sender may end in the
    session and returns what to say of it.
    """

    given: Given
    message: Message
    route: Route
    turn: str
    agent: Callable[[], Awaitable[Agent]]
    admission: Admission
    choices: Choices
    queues: Queues
    models: Switch
    ledger: Ledger
    stop: Callable[[], Awaitable[str]]

    @property
    def thread(self) -> Thread:
        return Thread(self.route.session, self.scope, self.message.address.kind)

    @property
    def scope(self) -> Scope:
        return self.route.scope

    @property
    def is_private(self) -> bool:
        """Whether only the owner reads the answer: what went wrong, and where, is for nobody else."""
        return self.scope.level is Level.OWNER and self.message.address.kind == "direct"


@dataclass(frozen=True, slots=True)
class Answer:
    """``text`` is Markdown, "" for silence; ``code`` is the exit code of a single question in the terminal.

    ``noted`` is how many notes were written for it, below zero where one was taken back.
    """

    text: str
    code: int = 0
    noted: int = 0


Function: TypeAlias = Callable[[Order], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Command:
    """``usage`` is what may stand behind the name. ``direct`` and ``group`` are the least level there, None for nobody.

    ``at_once``: it doesn't wait behind the turns of its session; only for what changes nothing, or stops them.
    ``is_listed`` False leaves it out of every list.
    """

    name: str
    summary: str
    function: Function
    usage: str = ""
    direct: Level | None = Level.GUEST
    group: Level | None = Level.GUEST
    at_once: bool = False
    is_listed: bool = True

    @property
    def line(self) -> str:
        """How it is shown in a list."""
        return f"/{self.name}{f' {self.usage}' if self.usage else ''} — {self.summary}"

    def is_open(self, level: Level, kind: Kind) -> bool:
        least = self.direct if kind == "direct" else self.group
        return least is not None and level >= least


def bullets(lines: Sequence[str]) -> str:
    """``lines`` as a list in Markdown."""
    return "\n".join(f"- {line}" for line in lines)
