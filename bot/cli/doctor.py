"""``limpet doctor``: what ``status`` finds, and what only the platforms can tell, each with its mend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
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
    """Look for what is amiss, and ask each channel's platform too. Exit code 1 when something is."""
    from bot.cli.status import gather
    from bot.config import load

    home: Home = ctx.obj
    status = asyncio.run(gather(home))
    refused, hints = asyncio.run(_asked(load(home)))
    problems = [*status.findings, *(one for one in refused if one not in status.findings)]
    data = {"ok": not problems, "problems": [asdict(p) for p in problems], "hints": [asdict(h) for h in hints]}
    output.result("\n".join(_lines(problems, hints)), data, as_json=json)
    return 1 if problems else 0


def _lines(problems: Sequence[Finding], hints: Sequence[Finding]) -> Iterator[str]:
    found = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}." if problems else "No problem was found."
    yield output.bold(found)
    yield from (f"  ✗ {problem.what} — {problem.mend}" for problem in problems)
    if hints:
        yield "Worth knowing, if it is not meant so:"
        yield from (f"  · {hint.what} — {hint.mend}" for hint in hints)


async def _asked(settings: Settings) -> tuple[list[Finding], list[Finding]]:
    """What the platforms refuse, and what else they say of each account that is on."""
    refused: list[Finding] = []
    hints: list[Finding] = []
    async for is_refusal, finding in _told(settings):
        (refused if is_refusal else hints).append(finding)
    return refused, hints


async def _told(settings: Settings) -> AsyncIterator[tuple[bool, Finding]]:
    from adapters import registry
    from adapters.errors import AdapterError

    for name, section in settings.channels.items():
        if not section.enabled:
            continue
        output.note(f"{name}: asking its platform …")
        groups = [group for group in section.groups if group != "*"]
        try:
            found = await registry.inspect(section.kind, section.options, groups)
        except AdapterError as error:
            yield True, Finding(f"{name}: {error}", "see: limpet channels list")
        else:
            for one in found:
                yield False, Finding(f"{name}: {one.what}", one.mend)
