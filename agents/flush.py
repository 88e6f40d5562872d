"""The flush: what will matter later is written into today's note before the window loses it.

A silent turn on a detached copy: the model reads a record of what no flush has looked at, without foreign words, and
can do one thing, append to today's note of the session's scope. What it answers goes nowhere. Knows no transcript;
``agents.upkeep`` says when.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from importlib.resources import files
from typing import Literal, TypeAlias

import structlog

from agents.budget import tokens
from agents.completion import Completion, Sleep, Spent, complete
from agents.conversation import Line
from agents.model import AssistantMessage, ChatMessage, Failed, Model, Request, ToolCall, ToolResult, UserMessage
from agents.notes import compared, unlabelled, whole
from agents.provenance import TAINTED
from agents.quoting import quoted
from agents.record import batches, halves, record
from agents.silence import is_silent
from agents.tools.tool import Outcome, Tool, ToolError, tool
from agents.window import Window
from workspaces.memory import Memory, OutOfReach, WriteRefused
from workspaces.scope import Scope

log = structlog.get_logger(__name__)

BY = "flush"
"""Who wrote it, in ``memory changes``; what foreign text may be behind has its own name."""

SECONDS = 60.0
MOST_STEPS = 6
"""Model calls for one batch: a call each for what it wants to keep, in a model that makes one call at a time."""

MOST_REFUSED = 20
"""Batches that a model may refuse in one flush: halving so often finds one message in half a million."""

LEAST_CONTAINED = 20
"""Characters from which a text inside another line counts as said there."""

NOTHING_KEPT = (
    "Nothing of that is kept: only what you give to memory_append is. Call it now, once for each thing, or answer "
    "NO_REPLY."
)
FlushOutcome: TypeAlias = Literal["written", "nothing", "given up", "failed"]

_OF_THE_TEXT = ("overflow", "filtered", "refused")
"""Failures that may lie in what was sent, so that less of it may pass, and the same never will."""

_HEADING = re.compile(r"^\s*#{1,6}(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Flushed:
    """What became of one batch, ``first`` to ``last`` (ids of entries). ``noted`` are citations of what was written.

    ``why`` is one clause for an outcome "failed", which another try may mend, and for "given up", which none will; else
    "". What had been noted before the failure is still in the note.
    """

    first: str
    last: str
    outcome: FlushOutcome
    noted: tuple[str, ...] = ()
    spent: tuple[Spent, ...] = ()
    why: str = ""


async def flush(
    model: Model,
    lines: Sequence[Line],
    memory: Memory,
    scope: Scope,
    *,
    clock: Callable[[], datetime],
    zone: tzinfo | None,
    is_tainted: bool = False,
    seconds: float = SECONDS,
    sleep: Sleep = asyncio.sleep,
) -> AsyncGenerator[Flushed, None]:
    """Have the model note down what matters of ``lines``, in as many batches as its window needs, oldest first.

    ``clock`` gives aware times, ``zone`` is where the agent's days begin, None for the machine's. ``is_tainted``:
    foreign text may be behind what was said, and the notes are marked so. All of it takes at most ``seconds``. What a
    model refuses goes in halves; a message that is refused alone, by a model that otherwise works, is given up. After a
    batch that failed there is no further one. Never raises for what a model or a disk does.
    """
    end = asyncio.get_running_loop().time() + seconds
    by = TAINTED if is_tainted else BY
    desk = _Desk(model, memory, scope, clock, zone, by, f"it took longer than {seconds:g} seconds", end, sleep)
    waiting, refused, works, done = list(batches(lines, desk.room)), 0, False, _Try()
    while waiting:
        batch = waiting.pop(0)
        done = await desk.flushed(batch, done)
        outcome: FlushOutcome = "failed" if done.why else "written" if done.noted else "nothing"
        works = works or not done.why
        if done.is_refused and refused < MOST_REFUSED:
            refused += 1
            works = works or await desk.works(done)
            if works and len(parts := halves(batch)) > 1:
                waiting = [*parts, *waiting]
                continue
            outcome = "given up" if works else "failed"
        log.info("flush.ended", outcome=outcome, why=done.why, noted=len(done.noted), messages=len(batch))
        yield Flushed(batch[0].id, batch[-1].id, outcome, tuple(done.noted), tuple(done.spent), done.why)
        if outcome == "failed":
            return
        done = _Try()


@dataclass(slots=True)
class _Try:
    """What came of trying a batch, and a larger one that it is a part of. ``why`` it failed, "" when it didn't."""

    noted: list[str] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)
    why: str = ""
    is_refused: bool = False
    """The failure may lie in the text."""


@dataclass(frozen=True, slots=True)
class _Desk:
    """What the batches of a flush have in common; ``end`` is on the loop's clock."""

    model: Model
    memory: Memory
    scope: Scope
    clock: Callable[[], datetime]
    zone: tzinfo | None
    by: str
    too_slow: str
    end: float
    sleep: Sleep

    @property
    def room(self) -> int:
        """Tokens of a batch."""
        return max(self._window.message, self._window.flush_at - tokens(_system()) - self._window.message)

    async def flushed(self, batch: Sequence[Line], before: _Try) -> _Try:
        """Try a batch. ``before`` is what was noted and spent on it already."""
        talk, done = self._talk(), _Try(before.noted, before.spent)
        try:
            async with asyncio.timeout_at(self.end):
                failure = await talk.run(record(batch, self.zone, self.room // 2))
        except TimeoutError:
            done.why = self.too_slow
        except (OSError, WriteRefused, OutOfReach) as error:
            done.why = f"the note can't be read: {getattr(error, 'strerror', None) or error}"
        else:
            done.why = failure.message if failure else talk.note.trouble
            done.is_refused = failure is not None and failure.kind in _OF_THE_TEXT
        done.noted += talk.note.written
        done.spent += talk.spent
        return done

    async def works(self, done: _Try) -> bool:
        """Whether the model answers at all, asked with nothing to note; else the fault is not with the text."""
        talk = self._talk()
        with suppress(TimeoutError, OSError, WriteRefused, OutOfReach):
            async with asyncio.timeout_at(self.end):
                does = await talk.works()
            done.spent += talk.spent
            return does
        return False

    def _talk(self) -> _Talk:
        note = _Note(self.memory, self.scope, self.clock().astimezone(self.zone), self._window.message, self.by)
        return _Talk(self.model, note, self.sleep)

    @property
    def _window(self) -> Window:
        return Window(self.model.limits.context)


def _system() -> str:
    return files("agents").joinpath("prompts/flush.md").read_text(encoding="utf-8").strip()


class _Talk:
    """The calls of one batch."""

    def __init__(self, model: Model, note: _Note, sleep: Sleep) -> None:
        self._model, self.note, self._sleep = model, note, sleep
        self._append, self._system = note.tool(), _system()
        self.spent: list[Spent] = []

    async def run(self, said: str) -> Failed | None:
        """Let the model note down what it wants of ``said``; how that failed, None when it didn't."""
        messages = [await self._asked(said)]
        for _ in range(MOST_STEPS):
            answer = await self._answer(messages)
            if isinstance(answer, Failed):
                return answer
            messages.append(AssistantMessage(answer.text, answer.calls, model=answer.spent.model))
            if answer.calls:
                messages += [await _used(self._append, call, answer) for call in answer.calls]
            elif self.note.called or is_silent(answer.text):
                return None
            elif len(messages) > 2:
                log.warning("flush.nothing_kept", answer=answer.text[:200])
                return None
            else:
                messages.append(UserMessage(NOTHING_KEPT))
        return None

    async def works(self) -> bool:
        """Whether the model answers when there is nothing to note; what it answers goes nowhere."""
        return not isinstance(await self._answer([await self._asked("")]), Failed)

    async def _asked(self, said: str) -> ChatMessage:
        already = await self.note.read()
        now = f"It is {self.note.now:%A, %Y-%m-%d %H:%M}. Keep what matters."
        return UserMessage("\n\n".join(filter(None, (already, said, now))))

    async def _answer(self, messages: Sequence[ChatMessage]) -> Completion | Failed:
        """The next answer; one without a call that the provider withheld is a failure."""
        request = Request(self._system, tuple(messages), (self._append.spec,))
        answer = await complete(self._model, request, sleep=self._sleep)
        if isinstance(answer, Failed):
            return answer
        self.spent.append(answer.spent)
        if answer.is_filtered and not answer.calls:
            return Failed("filtered", f"{self._model.name} withheld its answer.")
        return answer


async def _used(append: Tool, call: ToolCall, answer: Completion) -> ToolResult:
    if answer.is_cut:
        outcome = Outcome("Not run: your output was cut off at its limit. Keep it shorter.", is_error=True)
    elif call.name != append.spec.name:
        outcome = Outcome(f"Not run: the only tool is {append.spec.name}, and it writes today's note.", is_error=True)
    else:
        outcome = await append.call(call.arguments)
    return ToolResult(call.id, call.name, outcome.text, outcome.is_error)


class _Note:
    """Today's note of a scope, of which ``shown`` tokens are laid before the model, and the tool that adds to it.

    ``by`` is who is said to have written it.
    """

    def __init__(self, memory: Memory, scope: Scope, now: datetime, shown: int, by: str) -> None:
        self._memory, self._scope, self._shown, self._by = memory, scope, shown, by
        self._path = f"{scope.notes}{now:%Y-%m-%d}.md"
        self._known: set[str] = set()
        self.now = now
        self.written: list[str] = []
        self.called = False
        self.trouble = ""
        """Why a write failed, "" while none did."""

    async def read(self) -> str:
        """The end of the note as a quotation, "" for none. From here on it is known what it says, or once said: what a
        person took out isn't written again."""
        text = await whole(self._memory, self._path, self._scope)
        changes = await self._memory.changes(scope=self._scope, limit=200)
        past = "\n".join(change.added for change in changes if change.path == self._path)
        self._known = {words for line in f"{text}\n{past}".splitlines() if (words := compared(line))}
        if not text.strip():
            return ""
        newest = text[-max(1, len(text) * self._shown // max(self._shown, tokens(text))) :]
        return f"Today's note so far:\n{quoted(newest, self._path)}"

    def tool(self) -> Tool:
        async def memory_append(text: str) -> Outcome:
            """Add to today's note.

            text: one or two full sentences that make sense on their own
            """
            self.called = True
            try:
                added = [await self._add(line) for line in _pieces(text)]
            except WriteRefused as error:
                raise ToolError(f"Not written: {error}") from error
            except (OSError, OutOfReach) as error:
                self.trouble = f"today's note can't be written: {getattr(error, 'strerror', None) or error}"
                raise ToolError(f"Not written: {self.trouble}.") from error
            return Outcome("Noted." if any(added) else "Today's note says that already.")

        return tool(memory_append)

    async def _add(self, line: str) -> bool:
        """Write one line unless it is known; whether it was written."""
        words = compared(line)
        if not words or words in self._known or any(len(words) >= LEAST_CONTAINED and words in k for k in self._known):
            return False
        written = await self._memory.append(line, scope=self._scope, by=self._by)
        self._known.add(words)
        self.written.append(written.citation)
        return True


def _pieces(text: str) -> list[str]:
    """The lines of a text, each a note: a model may send the whole note again, with its heading and its bullets."""
    lines = [line for line in text.splitlines() if line.strip() and not _HEADING.match(line)]
    if any(line.lstrip().startswith("```") for line in lines):
        return [text]
    return [unlabelled(line) for line in lines]
