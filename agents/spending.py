"""The daily budget: what was spent, what may still be spent, and the words when it is used up.

Pure arithmetic in USD. A call whose price is not known counts as unknown, is said so, and is allowed: a budget that
stopped for it would stop at the first message. Knows no database and no clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.prices import Prices


@dataclass(frozen=True, slots=True)
class Spent:
    """``usd`` is what the calls cost whose price is known; ``unpriced`` is the number of the other calls."""

    usd: float = 0.0
    unpriced: int = 0


def refusal(spent: Spent, daily_usd: float | None, prices: Prices | None) -> str | None:
    """Why a model with these ``prices`` (None: not known) may not be asked again today; None when it may.

    ``daily_usd`` None means no budget. What costs nothing is always allowed. The call that goes over the budget is
    the last one: what it costs is known only afterwards.
    """
    if daily_usd is None or spent.usd < daily_usd or (prices is not None and prices.is_free):
        return None
    unknown = f", and {calls(spent.unpriced)} of unknown price" if spent.unpriced else ""
    return (
        f"The budget of {dollars(daily_usd)} for today is used up ({dollars(spent.usd)} spent{unknown}), so I ask no "
        "model that costs money until midnight. To go on now, raise daily_usd under [budget]."
    )


def told(usd: float | None, unpriced: int) -> str:
    """A cost for a person: "$0.0312", "unknown", or "$0.0312 and 2 calls of unknown price"."""
    if not unpriced:
        return dollars(usd or 0.0)
    return f"{dollars(usd)} and {calls(unpriced)} of unknown price" if usd else "unknown"


def dollars(usd: float) -> str:
    """An amount with as many decimals as it takes to see it: "$12.50", "$0.0312", "$0"."""
    if not usd:
        return "$0"
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}" if usd >= 0.0001 else "under $0.0001"


def calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"
