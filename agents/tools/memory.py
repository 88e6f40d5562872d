"""The memory as tools: search, read on, write down, put right. Each call is confined to the scope of its turn.

What comes back is quoted as data with its source. Knows no model and no chat.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agents.provenance import TAINTED, is_foreign_path
from agents.quoting import quoted
from agents.tools.pages import page
from agents.tools.permission import Need, Permission
from agents.tools.tool import Outcome, Tool, ToolError, tool
from workspaces.confined import Confined
from workspaces.memory import Memory, OutOfReach, SearchResult, WriteRefused
from workspaces.memory.documents import day_of
from workspaces.scope import CHATS, Level, Scope

MOST_LINES = 120
MOST_HITS = 20

_LONGEST_PAGE = 19_000
"""Characters: a little less than ``Memory.get`` gives, so that what ends a page is never its cut."""

_WITHHELD = " What looked like a secret was left out."


def tools(memory: Memory, root: Path) -> tuple[Tool, ...]:
    """The tools over ``memory``, which is that of the workspace in ``root``."""
    return (*_reading(memory, root), _searching_all(memory, root), _appending(memory), _editing(memory, root))


def everywhere(root: Path, scope: Scope) -> Scope:
    """``scope``, able to read every chat's notes besides: for one search that the owner asks for, never for a turn."""
    chats = root / CHATS
    names = [each.name for each in chats.iterdir() if each.is_dir()] if chats.is_dir() else []
    return replace(scope, read=scope.read | {f"chats/{name}" for name in names})


def _reading(memory: Memory, root: Path) -> tuple[Tool, Tool]:
    async def memory_search(query: str, limit: int = 6, *, room: int, permission: Permission) -> Outcome:
        """Search your notes. Do so before you answer about the past, people, plans or wishes.

        query: plain words
        """
        scope = permission.scope
        return _found(await memory.search(query, scope=scope, limit=_within(limit)), scope, room)

    async def memory_get(
        path: str, start: int = 1, lines: int = MOST_LINES, *, room: int, permission: Permission
    ) -> Outcome:
        """Read a note file, as a search named it.

        start: first line, from 1
        """
        scope = permission.scope
        with _refusing():
            most = max(1, min(lines, MOST_LINES))
            excerpt = await memory.get(path, scope=scope, start=max(1, start), lines=most)
            at = path if path.startswith("/") else Confined(root, scope).located(path)
        if not excerpt.text:
            return Outcome(
                excerpt.note or f"There is nothing at {path} from line {start}: it has {excerpt.total} lines."
            )
        shown = page(excerpt.text.split("\n"), min(room, _LONGEST_PAGE))
        first, last = excerpt.start, excerpt.start + shown.end - 1
        rest = replace(shown, start=first, end=last, total=excerpt.total).rest()
        if shown.skip:
            rest = f"(Line {last} goes on. Read on with the tool read, start={last}, skip={shown.skip}.)"
        said = quoted(shown.text, f"{path}#L{first}-L{last}") + (f"\n{rest}" if rest else "")
        return Outcome(said, is_foreign=is_foreign_path(at))

    return tool(memory_search, read_only=True), tool(memory_get, read_only=True)


def _searching_all(memory: Memory, root: Path) -> Tool:
    async def memory_search(
        query: str, limit: int = 6, scope: Literal["own", "all"] = "own", *, room: int, permission: Permission
    ) -> Outcome:
        """Search your notes. Do so before you answer about the past, people, plans or wishes.

        query: plain words
        scope: all: other chats' notes too, only if the person asks for them
        """
        own = permission.scope
        reach = everywhere(root, own) if scope == "all" else own
        return _found(await memory.search(query, scope=reach, limit=_within(limit)), own, room)

    return tool(memory_search, read_only=True, need=Need(at_home=True))


def _appending(memory: Memory) -> Tool:
    async def memory_append(text: str, *, permission: Permission) -> Outcome:
        """Keep something in today's note: what you are asked to remember, decisions, facts that will matter.

        text: full sentences that make sense alone, with names for "he" or "it"
        """
        by = TAINTED if permission.is_tainted() else None
        with _refusing():
            written = await memory.append(text, scope=permission.scope, by=by)
        said = f"Noted in {written.citation}." + (_WITHHELD if written.withheld else "")
        return Outcome(said, noted=((written.text, written.citation),))

    return tool(memory_append)


def _editing(memory: Memory, root: Path) -> Tool:
    async def memory_edit(path: str, old: str = "", new: str = "", *, permission: Permission) -> Outcome:
        """Put a note right, in MEMORY.md or a file such as memory/people/ada.md, or begin such a file.

        old: text to change, in one place of the file; leave out to add at the end
        new: leave out to delete
        """
        scope = permission.scope
        with _refusing():
            at = Confined(root, scope).located(path, write=True)
            if not permission.may_change(path, at):
                raise ToolError(f"Not written: {path} is not changed by guests or in groups.")
            if old and new:
                changed = await memory.update(path, old, new, scope=scope)
            elif old:
                gone = await memory.delete(path, old, scope=scope)
                return Outcome(f"Taken out of {gone.path}: {gone.removed.strip()}")
            elif day_of(at) is not None:
                raise ToolError(f"Not written: {path} is a day's note. To add to today's, use memory_append.")
            else:
                added = await memory.add(path, new, scope=scope)
                said = f"Added in {added.citation}." + (_WITHHELD if added.withheld else "")
                return Outcome(said, noted=((added.text, added.citation),))
        said = f"Changed {changed.citation}." + (_WITHHELD if changed.withheld else "")
        return Outcome(said, noted=((changed.added.strip(), changed.citation),))

    return tool(memory_edit, need=Need(Level.MEMBER))


def _within(limit: int) -> int:
    return max(1, min(limit, MOST_HITS))


def _found(result: SearchResult, own: Scope, room: int) -> Outcome:
    """The hits, as many as there is ``room`` for; those that ``own`` can't read are another chat's, and some are from
    files that are no notes."""
    shown: list[str] = []
    is_foreign = False
    for hit in result.hits:
        is_own = own.may_read(hit.path)
        each = quoted(hit.text, hit.citation if is_own else f"another chat's notes, {hit.citation}")
        if shown and len(each) > room:
            shown.append(f"({len(result.hits) - len(shown)} more fit. Search for less at once.)")
            break
        shown.append(each)
        room -= len(each) + 2
        is_foreign = is_foreign or not is_own or is_foreign_path(hit.path)
    if not shown:
        shown.append("Nothing in the memory fits that.")
    return Outcome("\n\n".join([*shown, *(f"({warning})" for warning in result.warnings)]), is_foreign=is_foreign)


@contextmanager
def _refusing() -> Iterator[None]:
    """What the memory refuses, as the model is told of it."""
    try:
        yield
    except OutOfReach as error:
        raise ToolError(str(error)) from error
    except WriteRefused as error:
        raise ToolError(f"Not written: {error}") from error
    except OSError as error:
        raise ToolError(f"Not done: {error.strerror or error}. Tell the person.") from error
