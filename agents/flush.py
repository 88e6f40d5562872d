"""The flush: what will matter later is written into today's note before the window loses it.

A silent turn on a detached copy: the model reads a record of what no flush has looked at, without foreign words, and
can do one thing, append to today's note of the session's scope. What it answers goes nowhere. Knows no transcript;
``agents.upkeep`` says when.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from importlib.resources import files
from typing import Literal, TypeAlias

import structlog

from agents.budget import tokens
from agents.completion import Completion, Sleep, Spent, complete
from agents.conversation import Line
from agents.model import AssistantMessage, ChatMessage, Failed, Model, Request, ToolCall, ToolResult, UserMessage
from agents.notes import compared, unlabelled, whole
from agents.quoting import quoted
from agents.record import batches, halves, record
from agents.silence import is_silent
from agents.tools.tool import Outcome, Tool, ToolError, tool
from agents.window import Window
from workspaces.memory import Memory, OutOfReach, WriteRefused
from workspaces.scope import Scope

log = structlog.get_logger(__name__)

BY = "flush"
"""Who wrote it, in ``memory changes``."""

SECONDS = 60.0
MOST_STEPS = 6
"""Model calls for one batch: a call each for what it wants to keep, in a model that makes one call at a time."""

LEAST_CONTAINED = 20
"""Characters from which a text inside another line counts as said there."""

NOTHING_KEPT = (
    "Nothing of that is kept: only what you give to memory_append is. Call it now, once for each thing, or answer "
    "NO_REPLY."
)
TOO_SLOW = "it took longer than {seconds:g} seconds"

FlushOutcome: TypeAlias = Literal["written", "nothing", "failed"]

_HEADING = re.compile(r"^\s*#{1,6}(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Flushed:
    """What became of one batch, ``first`` to ``last`` (ids of entries). ``noted`` are citations of what was written.

    ``why`` is one clause for an outcome "failed", else ""; what had been noted before the failure is still in the note.
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
    seconds: float = SECONDS,
    sleep: Sleep = asyncio.sleep,
) -> AsyncIterator[Flushed]:
    """Have the model note down what matters of ``lines``, in as many batches as its window needs, oldest first.

    ``clock`` gives aware times, ``zone`` is where the agent's days begin, None for the machine's. All of it takes at
    most ``seconds``. After a batch that failed there is no further one. Never raises for what a model or a disk does.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    system = files("agents").joinpath("prompts/flush.md").read_text(encoding="utf-8").strip()
    window = Window(model.limits.context)
    room = max(window.message, window.flush_at - tokens(system) - window.message)
    waiting = list(batches(lines, room))
    while waiting:
        batch, why = waiting.pop(0), ""
        note = _Note(memory, scope, clock().astimezone(zone), window.message)
        talk = _Talk(model, system, note, sleep)
        try:
            async with asyncio.timeout_at(end):
                failure = await talk.run(record(batch, zone, room // 2))
        except TimeoutError:
            why = TOO_SLOW.format(seconds=seconds)
        except (OSError, WriteRefused, OutOfReach) as error:
            why = f"the note can't be read: {getattr(error, 'strerror', None) or error}"
        else:
            if failure is not None and failure.kind == "overflow" and len(parts := halves(batch)) > 1:
                waiting = [*parts, *waiting]  # its tokenizer counts more than the estimate
                continue
            why = failure.message if failure else note.trouble
        outcome: FlushOutcome = "failed" if why else "written" if note.written else "nothing"
        log.info("flush.ended", outcome=outcome, why=why, noted=len(note.written), messages=len(batch))
        yield Flushed(batch[0].id, batch[-1].id, outcome, tuple(note.written), tuple(talk.spent), why)
        if why:
            return


class _Talk:
    """The calls of one batch."""

    def __init__(self, model: Model, system: str, note: _Note, sleep: Sleep) -> None:
        self._model, self._system, self._note, self._sleep = model, system, note, sleep
        self.spent: list[Spent] = []

    async def run(self, said: str) -> Failed | None:
        """Let the model note down what it wants of ``said``; how that failed, None when it didn't."""
        append = self._note.tool()
        already = await self._note.read()
        now = f"It is {self._note.now:%A, %Y-%m-%d %H:%M}. Keep what matters."
        asked = "\n\n".join(filter(None, (already, said, now)))
        messages: list[ChatMessage] = [UserMessage(asked)]
        for _ in range(MOST_STEPS):
            request = Request(self._system, tuple(messages), (append.spec,))
            answer = await complete(self._model, request, sleep=self._sleep)
            if isinstance(answer, Failed):
                return answer
            self.spent.append(answer.spent)
            messages.append(AssistantMessage(answer.text, answer.calls, model=answer.spent.model))
            if answer.calls:
                messages += [await _used(append, call, answer) for call in answer.calls]
            elif self._note.called or is_silent(answer.text):
                return None
            elif len(messages) > 2:
                log.warning("flush.nothing_kept", answer=answer.text[:200])
                return None
            else:
                messages.append(UserMessage(NOTHING_KEPT))
        return None


async def _used(append: Tool, call: ToolCall, answer: Completion) -> ToolResult:
    if answer.is_cut:
        outcome = Outcome("Not run: your output was cut off at its limit. Keep it shorter.", is_error=True)
    elif call.name != append.spec.name:
        outcome = Outcome(f"Not run: the only tool is {append.spec.name}, and it writes today's note.", is_error=True)
    else:
        outcome = await append.call(call.arguments)
    return ToolResult(call.id, call.name, outcome.text, outcome.is_error)


class _Note:
    """Today's note of a scope, of which ``shown`` tokens are laid before the model, and the tool that adds to it."""

    def __init__(self, memory: Memory, scope: Scope, now: datetime, shown: int) -> None:
        self._memory, self._scope, self._shown = memory, scope, shown
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
        written = await self._memory.append(line, scope=self._scope, by=BY)
        self._known.add(words)
        self.written.append(written.citation)
        return True


def _pieces(text: str) -> list[str]:
    """The lines of a text, each a note: a model may send the whole note again, with its heading and its bullets."""
    lines = [line for line in text.splitlines() if line.strip() and not _HEADING.match(line)]
    if any(line.lstrip().startswith("```") for line in lines):
        return [text]
    return [unlabelled(line) for line in lines]
