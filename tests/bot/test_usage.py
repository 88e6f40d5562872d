"""What the models were used for and what it cost; and a budget that ends with clear words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agents.model import Usage
from agents.prices import FREE, Prices
from bot.state import State
from bot.usage import Ledger, Used, spent_on, used_since
from tests.bot.conftest import Clock

SONNET = Prices(3, 15, 0.3, 3.75)
PRICES = {"a/paid": SONNET, "local/x": FREE, "a/unknown": None}
CALL = Usage(input=12_307, output=550, written=12_304)
COST = 0.054399

Open = Callable[..., Ledger]


@pytest.fixture
def ledger(state: State, clock: Clock) -> Open:
    def opened(daily_usd: float | None = None) -> Ledger:
        return Ledger(state, prices=PRICES, daily_usd=daily_usd, clock=clock, zone=lambda: ZoneInfo("Europe/Berlin"))

    return opened


async def test_calls_add_up_by_day_agent_and_model(state: State, ledger: Open, clock: Clock) -> None:
    """G-MOD-14: the cost is that of the fixed prices."""
    book = ledger()
    assert book.cost("a/paid", CALL) == pytest.approx(COST)
    await book.add("main", "a/paid", CALL)
    await book.add("main", "a/paid", CALL)
    await book.add("other", "a/paid", Usage(1, 2, 0, 0))
    await book.add("main", "local/x", Usage(100, 10))
    clock.move(days=1)
    await book.add("main", "a/paid", CALL)
    rows = await used_since(state, date(2026, 11, 30))
    assert [(r.day, r.agent, r.model, r.calls) for r in rows] == [
        ("2026-12-01", "main", "a/paid", 1),
        ("2026-11-30", "main", "a/paid", 2),
        ("2026-11-30", "main", "local/x", 1),
        ("2026-11-30", "other", "a/paid", 1),
    ]
    assert rows[1].cost == pytest.approx(2 * COST)
    assert (rows[1].input, rows[1].output, rows[1].cached, rows[1].written) == (24_614, 1100, 0, 24_608)
    assert rows[2].cost == 0, "free is not unknown"
    assert await used_since(state, date(2026, 12, 2)) == []


@pytest.mark.parametrize("model", ["a/unknown", "never/heard-of"])
async def test_an_unknown_price_is_unknown(state: State, ledger: Open, model: str) -> None:
    """G-MOD-15: it is kept as unknown and not as 0, and the turn goes on."""
    book = ledger(0.01)
    assert book.cost(model, CALL) is None
    await book.add("main", model, CALL)
    assert await used_since(state, date(2026, 11, 30)) == [
        Used("2026-11-30", "main", model, 1, 12_307, 550, 0, 12_304, None, 1)
    ]
    assert await book.refusal(model) is None


async def test_what_nobody_counted_has_no_known_cost(ledger: Open) -> None:
    """A server that leaves out the usage: it is unknown and not 0, but of what is free."""
    assert ledger().cost("a/paid", Usage()) is None
    assert ledger().cost("local/x", Usage()) == 0


async def test_a_price_that_is_set_later_counts_from_then_on(state: State, ledger: Open, clock: Clock) -> None:
    await ledger().add("main", "a/unknown", CALL)
    priced = Ledger(state, prices={"a/unknown": SONNET}, daily_usd=None, clock=clock, zone=lambda: ZoneInfo("UTC"))
    await priced.add("main", "a/unknown", CALL)
    (row,) = await used_since(state, date(2026, 11, 30))
    assert (row.calls, row.unpriced) == (2, 1)
    assert row.cost == pytest.approx(COST)


async def test_a_budget_ends_at_its_sum_and_begins_anew_at_midnight(ledger: Open, clock: Clock) -> None:
    book = ledger(0.1)
    for _ in range(2):
        assert await book.refusal("a/paid") is None
        await book.add("main", "a/paid", CALL)
    said = await book.refusal("a/paid")
    assert said is not None
    assert "The budget of $0.1000 for today is used up ($0.1088 spent)" in said
    assert await book.refusal("local/x") is None, "what costs nothing goes on"
    assert await ledger(None).refusal("a/paid") is None
    clock.move(hours=10, minutes=59)  # 23:59 in Berlin
    assert await book.refusal("a/paid") is not None
    clock.move(minutes=1)
    assert await book.refusal("a/paid") is None


async def test_the_budget_is_the_homes_and_outlives_the_process(tmp_path: Path, clock: Clock) -> None:
    for _ in range(2):
        async with State.open(tmp_path / "s.sqlite") as state:
            book = Ledger(state, prices=PRICES, daily_usd=0.1, clock=clock, zone=lambda: ZoneInfo("UTC"))
            await book.add("main", "a/paid", CALL)
    async with State.open(tmp_path / "s.sqlite") as state:
        book = Ledger(state, prices=PRICES, daily_usd=0.1, clock=clock, zone=lambda: ZoneInfo("UTC"))
        assert await book.refusal("a/paid") is not None


async def test_two_processes_lose_no_call(tmp_path: Path, clock: Clock) -> None:
    async with State.open(tmp_path / "s.sqlite") as one, State.open(tmp_path / "s.sqlite") as two:
        books = [
            Ledger(s, prices=PRICES, daily_usd=None, clock=clock, zone=lambda: ZoneInfo("UTC")) for s in (one, two)
        ]
        await asyncio.gather(*(book.add("main", "a/paid", CALL) for book in books * 10))
        (row,) = await used_since(one, date(2026, 11, 30))
        assert row.calls == 20
        assert row.cost == pytest.approx(20 * COST)
        assert (await spent_on(two, date(2026, 11, 30))).usd == pytest.approx(20 * COST)
