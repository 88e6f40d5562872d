"""The daily budget: who is refused, and in which words."""

from __future__ import annotations

import pytest

from agents.prices import FREE, Prices
from agents.spending import Spent, dollars, refusal, told

PAID = Prices(1, 5, 0.1, 1)


@pytest.mark.parametrize(
    ("spent", "budget", "prices", "is_refused"),
    [
        (Spent(99), None, PAID, False),
        (Spent(0.99), 1, PAID, False),
        (Spent(1), 1, PAID, True),
        (Spent(1.5), 1, PAID, True),
        (Spent(1.5), 1, None, True),  # it may cost anything
        (Spent(1.5), 1, FREE, False),
        (Spent(0, unpriced=99), 1, PAID, False),  # G-MOD-15: an unknown price stops nobody
        (Spent(0, unpriced=99), 1, None, False),
    ],
)
def test_who_is_refused(spent: Spent, budget: float | None, prices: Prices | None, is_refused: bool) -> None:
    assert (refusal(spent, budget, prices) is not None) == is_refused


def test_the_words_say_what_was_spent_what_is_not_known_and_how_to_go_on() -> None:
    said = refusal(Spent(2.514, unpriced=2), 2.5, PAID)
    assert said is not None
    assert "$2.50 for today is used up ($2.51 spent, and 2 calls of unknown price)" in said
    assert "until midnight" in said
    assert "daily_usd under [budget]" in said
    assert "unknown" not in str(refusal(Spent(3), 2.5, PAID))


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (0, "$0"),
        (0.00001, "under $0.0001"),
        (0.03125, "$0.0312"),
        (0.5, "$0.5000"),
        (12, "$12.00"),
        (1234.5, "$1,234.50"),
    ],
)
def test_amounts(usd: float, shown: str) -> None:
    assert dollars(usd) == shown


@pytest.mark.parametrize(
    ("usd", "unpriced", "shown"),
    [(0, 0, "$0"), (None, 3, "unknown"), (0.5, 1, "$0.5000 and 1 call of unknown price"), (2, 0, "$2.00")],
)
def test_a_cost_that_is_partly_unknown(usd: float | None, unpriced: int, shown: str) -> None:
    """G-MOD-15: it is never shown as 0."""
    assert told(usd, unpriced) == shown
