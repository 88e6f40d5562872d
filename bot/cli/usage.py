"""``limpet usage``: how much the models were used and what that cost, by day, agent and model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import output
from bot.cli.options import JsonOption

if TYPE_CHECKING:
    from bot.home import Home
    from bot.settings import Settings
    from bot.usage import Used


def command(
    ctx: typer.Context,
    days: Annotated[int, typer.Option(min=1, max=3660, help="How many days, today being the last.")] = 7,
    json: JsonOption = False,
) -> None:
    """Show the calls of the models, their tokens and their cost in USD. A price that is not known counts as unknown."""
    from agents.spending import dollars
    from bot.config import load

    home: Home = ctx.obj
    settings = load(home)
    today = _today(settings, home)
    rows = asyncio.run(_used(home, today - timedelta(days=days - 1)))
    spent = sum(row.cost or 0.0 for row in rows if row.day == today.isoformat())
    budget = settings.budget.daily_usd
    if not rows:
        output.note(f"No model was asked in the last {days} days." if days > 1 else "No model was asked today.")
    for model in sorted({row.model for row in rows if row.unpriced}):
        output.note(f"What {model} costs is not known: set price_input and price_output under [models].")
    lines = [output.table(list(_table(rows)))] if rows else []
    if budget is not None:
        lines.append(f"Today {dollars(spent)} of {dollars(budget)} are spent.")
    data = {
        "days": days,
        "usage": [asdict(row) for row in rows],
        "cost": sum(row.cost or 0.0 for row in rows),
        "unpriced": sum(row.unpriced for row in rows),
        "budget": {"daily_usd": budget, "spent_today": spent},
    }
    output.result("\n".join(lines), data, as_json=json)


def _today(settings: Settings, home: Home) -> date:
    from bot.clock import now
    from bot.roster import zone_of

    return now().astimezone(zone_of(settings.default_agent, settings, home)()).date()


async def _used(home: Home, first: date) -> list[Used]:
    from bot.state import State
    from bot.usage import used_since

    if not home.database.exists():
        return []
    async with State.open(home.database) as state:
        return await used_since(state, first)


def _table(rows: Sequence[Used]) -> Iterator[tuple[str, ...]]:
    from agents.spending import told

    yield ("day", "agent", "model", "calls", "input", "cached", "output", "cost")
    for row in rows:
        counts = (row.calls, row.input, row.cached, row.output)
        yield (row.day, row.agent, row.model, *(f"{count:,}" for count in counts), told(row.cost, row.unpriced))
    if len(rows) > 1:
        sums = [sum(column) for column in zip(*((r.calls, r.input, r.cached, r.output) for r in rows), strict=True)]
        known = [row.cost for row in rows if row.cost is not None]
        cost = told(sum(known) if known else None, sum(row.unpriced for row in rows))
        yield ("all", "", "", *(f"{total:,}" for total in sums), cost)
