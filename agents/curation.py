"""Curation: once a day, what the daily notes say twice or were asked to keep becomes a line of MEMORY.md.

The model proposes; the program checks each line against the notes it names, and writes few of them, with their sources,
under the cap. What was noted while foreign text was in the conversation is neither shown to it nor a source: MEMORY.md
is written only with a yes then. It writes through the memory, so that ``memory changes`` shows it and ``memory undo``
takes it back. Knows no session.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from importlib.resources import files

import structlog

from agents.budget import tokens
from agents.completion import Sleep, complete
from agents.model import AssistantMessage, ChatMessage, Failed, Model, Request, ToolResult, UserMessage
from agents.notes import compared, whole
from agents.provenance import TAINTED
from agents.quoting import one_line, quoted
from agents.tools.tool import Outcome, Tool, ToolError, tool
from agents.window import Window
from workspaces.memory import Memory, OutOfReach, WriteRefused
from workspaces.scope import Scope

log = structlog.get_logger(__name__)

BY = "curation"
FILE = "MEMORY.md"

SECONDS = 60.0
MOST_STEPS = 6
MOST_LINES = 5
LONGEST_LINE = 300
"""New lines a day, and characters of each."""

DAYS = 14
"""How far back the notes are read: what comes up again within two weeks comes up often enough."""

MOST_CHANGES = 10_000
"""More than the history keeps: what it no longer knows counts for less."""

FILE_CAP = 20_000
"""Characters of MEMORY.md: of what is over, the prompt shows head and tail only."""

_SOURCE = re.compile(r"(?P<path>[^\s#]+\.md)#L(?P<line>\d+)(?:-L\d+)?")


@dataclass(frozen=True, slots=True)
class Curated:
    """``written`` are the lines that are new in MEMORY.md; ``why`` is one clause when it failed, "" otherwise."""

    written: tuple[str, ...] = ()
    why: str = ""


async def curate(
    model: Model,
    memory: Memory,
    now: datetime,
    *,
    zone: tzinfo | None,
    seconds: float = SECONDS,
    sleep: Sleep = asyncio.sleep,
) -> Curated:
    """Go through the daily notes of the home scope once. ``now`` is aware; ``zone`` is where days begin, None for the
    machine's. A model that can't be trusted with a tool does nothing. Never raises for what a model or a disk does."""
    if not model.uses_tools:
        return Curated()
    shelf = _Shelf(memory, Scope.home(), now.astimezone(zone))
    try:
        async with asyncio.timeout(seconds):
            why = await _talk(model, shelf, sleep)
        if not why:
            await shelf.write()
    except TimeoutError:
        why = f"it took longer than {seconds:g} seconds"
    except (OSError, WriteRefused, OutOfReach) as error:
        why = f"{FILE} can't be written: {getattr(error, 'strerror', None) or error}"
    log.info("curation.ended", written=len(shelf.written), why=why)
    return Curated(tuple(shelf.written), why)


async def _talk(model: Model, shelf: _Shelf, sleep: Sleep) -> str:
    """Let the model propose. Why that failed, "" when it didn't."""
    prompt = files("agents").joinpath("prompts/curation.md").read_text(encoding="utf-8").strip()
    system = prompt.format(longest=LONGEST_LINE)
    window = Window(model.limits.context)
    said = await shelf.read(max(window.message, window.flush_at - tokens(system)))
    if not said:
        return ""
    tools = {each.spec.name: each for each in shelf.tools()}
    messages: list[ChatMessage] = [UserMessage(said)]
    for _ in range(MOST_STEPS):
        request = Request(system, tuple(messages), tuple(each.spec for each in tools.values()))
        answer = await complete(model, request, sleep=sleep)
        if isinstance(answer, Failed):
            return answer.message
        if not answer.calls or answer.is_cut:
            break
        messages.append(AssistantMessage(answer.text, answer.calls, model=answer.spent.model))
        for call in answer.calls:
            used = tools.get(call.name)
            outcome = await used.call(call.arguments) if used else Outcome(f"There is no tool {call.name}.", True)
            messages.append(ToolResult(call.id, call.name, outcome.text, outcome.is_error))
    return ""


@dataclass(slots=True)
class _Shelf:
    """MEMORY.md, the notes beside it, and what is proposed for it."""

    memory: Memory
    scope: Scope
    now: datetime
    written: list[str] = field(default_factory=list)
    _file: str = ""
    _notes: dict[str, list[str]] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    """Lines of the notes that somebody asked to be kept; what a flush or an unknown hand wrote has to come up twice."""
    _known: set[str] = field(default_factory=set)
    """Lines that MEMORY.md has, or had until a person took them out."""
    _new: list[str] = field(default_factory=list)
    _changed: list[tuple[str, str]] = field(default_factory=list)

    async def read(self, room: int) -> str:
        """The file and as many of the newest notes as fit into ``room`` tokens; "" where there are no notes."""
        self._file = await whole(self.memory, FILE, self.scope)
        self._known = {compared(line) for line in self._file.splitlines()}
        tainted = await self._origins()
        shown = [quoted(self._file or "(empty)", FILE)]
        room -= tokens(shown[0])
        days = (self.now.date() - timedelta(days=back) for back in range(DAYS))
        for path in (f"{self.scope.notes}{day.isoformat()}.md" for day in days):
            text = await whole(self.memory, path, self.scope)
            lines = ["" if compared(line) in tainted else line for line in text.splitlines()]
            note = quoted("\n".join(f"L{at} {line}" for at, line in enumerate(lines, 1) if line), path)
            room -= tokens(note)
            if room < 0:
                break
            if any(line.strip() and not line.startswith("#") for line in lines):
                self._notes[path] = lines
                shown.append(note)
        return "\n\n".join(shown) if self._notes else ""

    async def _origins(self) -> set[str]:
        """Learn from the history where lines came from; gives those that are not to be shown."""
        tainted, clean = set[str](), set[str]()
        for change in await self.memory.changes(scope=self.scope, limit=MOST_CHANGES):
            lines = {words for line in change.added.splitlines() if (words := compared(line))}
            self._known |= lines if change.path == FILE else set()
            self._asked |= lines if change.by is None else set()
            (tainted if change.by == TAINTED else clean).update(lines)
        return tainted - clean

    def tools(self) -> Sequence[Tool]:
        async def memory_keep(text: str, sources: str) -> Outcome:
            """Propose a new line for MEMORY.md.

            text: one short sentence that makes sense on its own
            sources: the lines it comes from, such as memory/2026-11-30.md#L4 memory/2026-12-02.md#L7
            """
            self._new.append(self._checked(text, sources))
            return Outcome("Taken.")

        async def memory_correct(old: str, new: str, sources: str) -> Outcome:
            """Propose a new text for a line of MEMORY.md that is out of date.

            old: a part of the line that occurs once in the file
            new: the whole new line
            sources: the lines it comes from, such as memory/2026-12-02.md#L7
            """
            found = [line for line in self._file.splitlines() if old.strip() and old.strip() in line]
            if len(found) != 1:
                raise ToolError(f"{old!r} is in {len(found)} lines of MEMORY.md. Name a part that occurs once.")
            self._changed.append((found[0], self._checked(new, sources)))
            return Outcome("Taken.")

        return (tool(memory_keep), tool(memory_correct))

    async def write(self) -> None:
        """Write what was proposed: corrections one by one, the new lines as one write."""
        for old, new in self._changed:
            marker = old[: len(old) - len(old.lstrip(" \t-*+"))]
            await self.memory.update(FILE, old, f"{marker}{new}", scope=self.scope, by=BY)
            self.written.append(new)
        if self._new:
            await self.memory.add(FILE, "\n".join(f"- {line}" for line in self._new), scope=self.scope, by=BY)
            self.written += self._new

    def _checked(self, text: str, sources: str) -> str:
        """The line with its sources, if the notes bear it out and there is room for it."""
        line = " ".join(text.split()).lstrip("-*+ ")
        if not 0 < len(line) <= LONGEST_LINE:
            raise ToolError(f"Not taken: a line has 1 to {LONGEST_LINE} characters, and this has {len(line)}.")
        if len(self._new) + len(self._changed) >= MOST_LINES:
            raise ToolError(f"Not taken: {MOST_LINES} lines a day are the most.")
        if compared(line) in self._known:
            raise ToolError("Not taken: MEMORY.md says that already, or did until a person took it out.")
        named = [(match["path"], int(match["line"])) for match in _SOURCE.finditer(sources)]
        unknown = [f"{path}#L{at}" for path, at in named if not self._line(path, at)]
        if not named or unknown:
            raise ToolError(f"Not taken: there is no note at {', '.join(unknown) or repr(one_line(sources, 80))}.")
        if len({path for path, _ in named}) < 2 and not any(compared(self._line(*at)) in self._asked for at in named):
            raise ToolError("Not taken: it was noted on one day only, and nobody asked to keep it.")
        self._known.add(compared(line))
        cited = f"{line} ({', '.join(f'{path}#L{at}' for path, at in dict.fromkeys(named))})"
        grown = sum(len(other) + 3 for other in (*self._new, *(new for _, new in self._changed), cited))
        if len(self._file) + grown > FILE_CAP:
            raise ToolError(f"Not taken: MEMORY.md is full ({FILE_CAP:,} characters). Correct a line instead.")
        return cited

    def _line(self, path: str, at: int) -> str:
        lines = self._notes.get(path, [])
        return lines[at - 1].strip() if 0 < at <= len(lines) and not lines[at - 1].startswith("#") else ""
