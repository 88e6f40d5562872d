"""The memory as tools: search, read on, write down. Each is bound to the scope of one turn.

What comes back is quoted as data with its source. Knows no model and no chat.
"""

from __future__ import annotations

from agents.quoting import quoted
from agents.tools.tool import Outcome, Tool, ToolError, tool
from workspaces.memory import Memory, OutOfReach, WriteRefused
from workspaces.scope import Scope

MOST_LINES = 120


def memory_tools(memory: Memory, scope: Scope) -> tuple[Tool, ...]:
    """The tools of one turn: nothing outside ``scope`` is read or written through them."""

    async def memory_search(query: str, limit: int = 6) -> Outcome:
        """Search everything you have noted. Use it before you answer about the past, people, plans or wishes.

        query: what to look for, in plain words
        limit: how many notes at most
        """
        result = await memory.search(query, scope=scope, limit=max(1, min(limit, 20)))
        if not result.hits:
            return Outcome("Nothing in the memory fits that.")
        return Outcome("\n\n".join(quoted(hit.text, hit.citation) for hit in result.hits))

    async def memory_get(path: str, start: int = 1, lines: int = MOST_LINES) -> Outcome:
        """Read a part of a memory file, as a search named it.

        path: the file, relative to the workspace, such as memory/2026-11-30.md
        start: the first line, counted from 1
        lines: how many lines
        """
        try:
            excerpt = await memory.get(path, scope=scope, start=max(1, start), lines=max(1, min(lines, MOST_LINES)))
        except OutOfReach as error:
            raise ToolError(str(error)) from error
        if not excerpt.text:
            return Outcome(excerpt.note or f"There is nothing at {path} from line {start}.")
        more = f"\n({excerpt.total - excerpt.end} more lines)" if excerpt.end < excerpt.total else ""
        return Outcome(quoted(excerpt.text, f"{path}#L{excerpt.start}-L{excerpt.end}") + more)

    async def memory_append(text: str) -> Outcome:
        """Keep something in today's note: what the person asks to remember, decisions, facts that will matter later.

        text: one or more full sentences that make sense on their own, with names instead of "he" or "it"
        """
        try:
            written = await memory.append(text, scope=scope)
        except WriteRefused as error:
            raise ToolError(f"Not written: {error}") from error
        return Outcome(f"Noted in {written.citation}.", noted=((written.text, written.citation),))

    return (tool(memory_search, read_only=True), tool(memory_get, read_only=True), tool(memory_append))
