"""``limpet doctor``: what ``status`` finds, what a look at the machine and the files shows, and what only the platforms
can tell, each with its mend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from bot.cli import output
from bot.cli.options import JsonOption
from bot.health import Finding

if TYPE_CHECKING:
    from bot.home import Home
    from bot.settings import Settings


def command(ctx: typer.Context, json: JsonOption = False) -> int:
    """Look for what is amiss: settings, machine, files and, by asking, each platform. Exit code 1 when something is."""
    from bot import checkup
    from bot.cli.status import gather
    from bot.config import load

    home: Home = ctx.obj
    settings = load(home)
    found = [*asyncio.run(gather(home)).findings, *asyncio.run(_looked(settings, home))]
    refused, hints = asyncio.run(_asked(settings, home))
    hints += checkup.kept(home)
    problems = list(dict.fromkeys([*found, *refused]))
    runs = checkup.versions()
    data = {
        "ok": not problems,
        "problems": [asdict(p) for p in problems],
        "hints": [asdict(h) for h in hints],
        "versions": runs,
    }
    output.result("\n".join(_lines(problems, hints, runs)), data, as_json=json)
    return 1 if problems else 0


async def _looked(settings: Settings, home: Home) -> list[Finding]:
    """What the machine and the files show."""
    from bot import checkup
    from bot.clock import now
    from bot.state import State

    found = [*checkup.features(), *checkup.rights(home)]
    damaged = await asyncio.to_thread(lambda: list(checkup.databases(settings, home)))
    found += damaged
    if home.database.exists() and not any(str(home.database) in each.what for each in found):
        async with State.open(home.database) as state:
            found += [*await checkup.clock(state, now()), *await checkup.given_up(state, now())]
    return found


def _lines(problems: Sequence[Finding], hints: Sequence[Finding], runs: Mapping[str, str]) -> Iterator[str]:
    found = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}." if problems else "No problem was found."
    yield output.bold(found)
    yield from (f"  ✗ {problem.what} — {problem.mend}" for problem in problems)
    if hints:
        yield "Worth knowing, if it is not meant so:"
        yield from (f"  · {hint.what} — {hint.mend}" for hint in hints)
    vectors = f"sqlite-vec {runs['sqlite_vec']}" if runs["sqlite_vec"] else "no sqlite-vec"
    yield f"limpet {runs['limpet']} on Python {runs['python']}, SQLite {runs['sqlite']}, {vectors}, {runs['system']}"


async def _asked(settings: Settings, home: Home) -> tuple[list[Finding], list[Finding]]:
    """What the platforms refuse, and what else they say of each account that is on."""
    refused: list[Finding] = []
    hints: list[Finding] = []
    async for is_refusal, finding in _told(settings, home):
        (refused if is_refusal else hints).append(finding)
    return refused, hints


async def _told(settings: Settings, home: Home) -> AsyncIterator[tuple[bool, Finding]]:
    from adapters import registry
    from adapters.errors import AdapterError

    for name, section in settings.channels.items():
        if not section.enabled:
            continue
        output.note(f"{name}: asking its platform …")
        groups = [group for group in section.groups if group != "*"]
        try:
            folder = home.channel(section.kind, name)
            found = await registry.inspect(section.kind, section.options, groups, folder)
        except AdapterError as error:
            yield True, Finding(f"{name}: {error}", "see: limpet channels list")
        else:
            for one in found:
                yield False, Finding(f"{name}: {one.what}", one.mend)
