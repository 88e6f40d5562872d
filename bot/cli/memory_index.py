"""The memory commands about the index: how it stands, bringing it up to date, making it anew, timing it."""

from __future__ import annotations

import asyncio
import signal
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import output
from bot.cli.memory_use import FolderOption, Which, count, sync
from bot.cli.options import AgentOption, JsonOption

if TYPE_CHECKING:
    from workspaces.memory import Memory, MemoryStatus, SyncReport

_PATIENCE_SECONDS = 2.0
"""That a status waits for the index to be brought up to date."""

_LOOK_SECONDS = 0.5
"""How often ``watch`` looks whether something was taken up."""

_QUESTION = 5
"""Words of a note that ``bench`` asks for."""


def status(ctx: typer.Context, agent: AgentOption = None, folder: FolderOption = None, json: JsonOption = False) -> int:
    """What is indexed and how it is searched, brought up to date first. Exit code 1 when something is amiss."""

    async def current(memory: Memory) -> MemoryStatus:
        with suppress(TimeoutError):  # it is no work for a status; what it says then is how far that is
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await sync(memory)
        return await memory.status()

    which = Which(ctx.obj, agent, folder)
    found = which.use(current)
    found = replace(found, warnings=which.warned(found.warnings))
    how = {
        "hybrid": f"by words and by meaning ({found.embedder})",
        "keyword": "by words only" + (', as memory.embedder = "none" asks for' if found.embedder == "none" else ""),
        "scan": "by reading every file, without an index",
    }[found.mode]
    rows = [
        ("search", how),
        ("indexed", _indexed(found)),
        ("index", f"{found.index_path} ({found.index_bytes / 1000:.0f} kB)"),
        *(("warning", warning) for warning in found.warnings),
    ]
    output.result(output.table(rows), asdict(found), as_json=json)
    return 1 if found.warnings else 0


def index(ctx: typer.Context, agent: AgentOption = None, folder: FolderOption = None, json: JsonOption = False) -> int:
    """Bring the index up to date now. Searching does it by itself; this shows how far it is."""
    return _brought(Which(ctx.obj, agent, folder), anew=False, as_json=json)


def rebuild(
    ctx: typer.Context, agent: AgentOption = None, folder: FolderOption = None, json: JsonOption = False
) -> int:
    """Make the index anew from the notes; the old one serves until the new one takes its place."""
    return _brought(Which(ctx.obj, agent, folder), anew=True, as_json=json)


def watch(ctx: typer.Context, agent: AgentOption = None, folder: FolderOption = None) -> None:
    """Keep the index up to date until Ctrl-C, and name each file that changed. A running hub does this by itself."""

    which = Which(ctx.obj, agent, folder)

    async def follow(memory: Memory) -> None:
        over = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, over.set)
        report = await sync(memory)
        status = await memory.status()
        for warning in which.warned(status.warnings):
            output.note(warning)
        async with memory.watch():
            last, before = status.last_sync, await _files(memory, which)
            output.note(f"{_report(report, status)}. Watching; Ctrl-C ends it.")
            while not over.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await over.wait()
                status = await memory.status()
                if status.last_sync != last:
                    last, now = status.last_sync, await _files(memory, which)
                    for line in _differences(before, now):
                        output.result(f"{_now()} {line}", {}, as_json=False)
                    before = now

    which.use(follow)


def bench(
    ctx: typer.Context,
    agent: AgentOption = None,
    folder: FolderOption = None,
    questions: Annotated[int, typer.Option(min=1, max=1000, help="How many searches are timed.")] = 50,
    json: JsonOption = False,
) -> int:
    """Time searches of these very notes, for words out of them. Exit code 1: there are no notes."""

    async def timed(memory: Memory) -> dict[str, Any] | None:
        await sync(memory)
        asked = await _questions(memory, questions)
        if not asked:
            return None
        status, found, times = await memory.status(), 0, []
        async with memory.watch():
            await memory.search(asked[0], scope=_home())  # what is loaded once
            for question in asked:
                started = time.perf_counter()
                found += bool((await memory.search(question, scope=_home())).hits)
                times.append(1000 * (time.perf_counter() - started))
        times.sort()
        return {
            "files": status.files,
            "notes": status.units,
            "index_bytes": status.index_bytes,
            "searches": len(asked),
            "found": found,
            "ms_median": statistics.median(times),
            "ms_slowest": times[-1],
        }

    result = Which(ctx.obj, agent, folder).use(timed)
    if result is None:
        output.fail("there are no notes to search", code=1)
    text = (
        f"{count(result['notes'], 'note')} in {count(result['files'], 'file')}: a search takes "
        f"{result['ms_median']:.0f} ms, the slowest of {result['searches']} took {result['ms_slowest']:.0f} ms"
    )
    output.result(text, result, as_json=json)
    return 0


def _brought(which: Which, *, anew: bool, as_json: bool) -> int:
    async def work(memory: Memory) -> tuple[SyncReport, MemoryStatus]:
        return await sync(memory, anew=anew), await memory.status()

    report, status = which.use(work)
    for warning in which.warned(status.warnings):
        output.note(warning)
    text = f"Made anew: {_indexed(status)}" if anew else _report(report, status)
    output.result(text, asdict(report), as_json=as_json)
    return 1 if status.mode == "scan" else 0


def _report(report: SyncReport, status: MemoryStatus) -> str:
    return (
        f"{count(report.added, 'file')} added, {report.changed} changed, {report.removed} removed, "
        f"{report.unchanged} unchanged: {_indexed(status)}"
    )


async def _files(memory: Memory, which: Which) -> dict[str, tuple[int, datetime]]:
    """The size of every file and when it was saved, those of the chats as well: it is the owner who looks."""
    return {file.path: (file.size, file.saved) for file in await memory.list(scope=which.everything())}


def _differences(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    for path in sorted({*before, *now}):
        if path not in before:
            yield f"added {path}"
        elif path not in now:
            yield f"removed {path}"
        elif before[path] != now[path]:
            yield f"changed {path}"


async def _questions(memory: Memory, most: int) -> list[str]:
    """Words out of notes from all over the memory."""
    every = await memory.latest(scope=_home(), limit=20 * most)
    step = max(1, len(every) // most)
    found = (" ".join([word for word in hit.text.split() if len(word) > 3][:_QUESTION]) for hit in every[::step])
    return [words for words in found if words][:most]


def _home() -> Any:
    from workspaces.scope import Scope

    return Scope.home()


def _now() -> str:
    return time.strftime("%H:%M:%S")


def _indexed(found: MemoryStatus) -> str:
    """What is in the index, in words."""
    what = f"{count(found.files, 'file')} with {count(found.units, 'note')}"
    if found.mode == "scan":
        return "nothing"
    if found.mode == "keyword" or not found.units:
        return what
    if found.vectors == found.units:
        return f"{what}, {'all ' if found.units > 1 else ''}found by meaning too"
    return f"{what}, {found.vectors} of them found by meaning too"
