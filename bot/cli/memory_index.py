"""The memory commands about the index: how it stands, bringing it up to date, making it anew, timing it."""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import output
from bot.cli.memory_use import FolderOption, Which, count, sync
from bot.cli.options import AgentOption, JsonOption

if TYPE_CHECKING:
    from workspaces.memory import Memory, MemoryStatus, SyncReport

_PATIENCE_SECONDS = 2.0
"""That a status waits for the index to be brought up to date."""

_QUESTION = 5
"""Words of a note that ``bench`` asks for."""


def status(ctx: typer.Context, agent: AgentOption = None, folder: FolderOption = None, json: JsonOption = False) -> int:
    """What is indexed and how it is searched, brought up to date first. Exit code 1 when something is amiss."""

    async def current(memory: Memory) -> MemoryStatus:
        with suppress(TimeoutError):  # it is no work for a status; what it says then is how far that is
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await sync(memory)
        return await memory.status()

    found = Which(ctx.obj, agent, folder).use(current)
    how = {
        "hybrid": f"by words and by meaning ({found.embedder})",
        "keyword": "by words only; by meaning as well: limpet config set memory.embedder static",
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
    """Keep the index up to date until Ctrl-C, and say what changed. A running hub does this by itself."""

    async def follow(memory: Memory) -> None:
        report = await sync(memory)
        last = (await memory.status()).last_sync
        async with memory.watch():
            output.note(f"{_report(report)}. Watching; Ctrl-C ends it.")
            while True:
                await asyncio.sleep(0.5)
                status = await memory.status()
                if status.last_sync != last:
                    last = status.last_sync
                    output.note(f"{_now()} {_indexed(status)}")

    Which(ctx.obj, agent, folder).use(follow)


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
    for warning in status.warnings:
        output.note(warning)
    output.result(_report(report), asdict(report), as_json=as_json)
    return 1 if status.mode == "scan" else 0


def _report(report: SyncReport) -> str:
    return (
        f"{count(report.added, 'file')} added, {report.changed} changed, {report.removed} removed, "
        f"{report.unchanged} unchanged; {count(report.embedded, 'note')} made findable by meaning"
    )


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
