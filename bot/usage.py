"""What the models were used for and what that cost, by day, agent and model; and whether today's budget allows more.

A row is a sum: the calls of one day, one agent and one model. What a call cost is settled when it is added, by the
price of that moment. Days are those of one time zone, so that the budget of the home has one midnight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING

import structlog

from agents.model import Usage
from agents.spending import Spent, refusal

if TYPE_CHECKING:
    from agents.prices import Prices
    from bot.state import State

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Used:
    """One row. Tokens are as in ``agents.model.Usage``; ``cost`` is in USD, None where no call had a known price.

    ``unpriced`` is the number of calls that ``cost`` leaves out.
    """

    day: str
    agent: str
    model: str
    calls: int
    input: int
    output: int
    cached: int
    written: int
    cost: float | None
    unpriced: int


class Ledger:
    """``prices`` by the model's name, None for an unknown one; ``daily_usd`` is the budget, None for none.

    ``zone`` says where a day begins and ends.
    """

    def __init__(
        self,
        state: State,
        *,
        prices: Mapping[str, Prices | None],
        daily_usd: float | None,
        clock: Callable[[], datetime],
        zone: Callable[[], tzinfo],
    ) -> None:
        self._state = state
        self._prices = prices
        self._daily_usd = daily_usd
        self._clock = clock
        self._zone = zone
        self._said: set[str] = set()

    @property
    def today(self) -> date:
        return self._clock().astimezone(self._zone()).date()

    def cost(self, model: str, usage: Usage) -> float | None:
        """What one call of ``model`` costs in USD, None when its price is not known, or nobody counted what it took.

        One call, since a long one may be charged otherwise than two short ones.
        """
        prices = self._prices.get(model)
        if prices is None or (usage == Usage() and not prices.is_free):
            return None
        return prices.cost(usage)

    async def add(self, agent: str, model: str, usage: Usage) -> None:
        """Keep one call of ``model``."""
        cost = self.cost(model, usage)
        if cost is None and self._daily_usd is not None and model not in self._said:
            self._said.add(model)
            log.warning("budget.blind", model=model, reason="its price is not known: set price_input and price_output")
        counts = (usage.input, usage.output, usage.cached, usage.written)
        async with self._state.transaction() as db:
            await db.execute(
                "INSERT INTO usage (day, agent, model, calls, input, output, cached, written, cost, unpriced)"
                " VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET calls = calls + 1, input = input + excluded.input,"
                " output = output + excluded.output, cached = cached + excluded.cached,"
                " written = written + excluded.written, cost = coalesce(cost + excluded.cost, cost, excluded.cost),"
                " unpriced = unpriced + excluded.unpriced",
                (self.today.isoformat(), agent, model, *counts, cost, int(cost is None)),
            )

    async def refusal(self, model: str) -> str | None:
        """Why ``model`` is not to be asked any more today, as a sentence for the person; None when it may be."""
        if self._daily_usd is None:
            return None
        return refusal(await spent_on(self._state, self.today), self._daily_usd, self._prices.get(model))

    @property
    def daily_usd(self) -> float | None:
        return self._daily_usd

    async def used_today(self) -> list[Used]:
        """Today's rows, by agent and model."""
        return await used_since(self._state, self.today)

    async def was_said(self, session: str, turn: str) -> bool:
        """Whether another turn said today in ``session`` that the budget is spent. If not, ``turn`` is to say it."""
        day = self.today.isoformat()
        async with self._state.transaction() as db:
            said = await db.execute_fetchall(
                "SELECT 1 FROM refused WHERE session = ? AND day = ? AND turn <> ?", (session, day, turn)
            )
            if not said:
                await db.execute("INSERT OR REPLACE INTO refused VALUES (?, ?, ?)", (session, day, turn))
        return bool(said)


async def spent_on(state: State, day: date) -> Spent:
    """What all agents together spent on one day."""
    row = await state.row(
        "SELECT coalesce(sum(cost), 0), coalesce(sum(unpriced), 0) FROM usage WHERE day = ?", day.isoformat()
    )
    return Spent(*row) if row is not None else Spent()


async def used_since(state: State, first: date) -> list[Used]:
    """The rows of ``first`` and later, newest day first, then by agent and model."""
    rows = await state.rows(
        "SELECT day, agent, model, calls, input, output, cached, written, cost, unpriced FROM usage"
        " WHERE day >= ? ORDER BY day DESC, agent, model",
        first.isoformat(),
    )
    return [Used(*row) for row in rows]
