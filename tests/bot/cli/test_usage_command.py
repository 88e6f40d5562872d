"""``limpet usage``: what was spent, what is not known of it, and what is left of the day's budget."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agents.model import Usage
from agents.prices import Prices
from bot.state import State
from bot.usage import Ledger
from tests.bot.cli.conftest import Limpet

BERLIN = ZoneInfo("Europe/Berlin")


def spend(limpet: Limpet, model: str, *, days_ago: int = 0, usage: Usage | None = None) -> None:
    """One call, at 3 and 15 dollars a million for the model "a/paid"."""

    async def add() -> None:
        async with State.open(limpet.home.database) as state:
            ledger = Ledger(
                state,
                prices={"a/paid": Prices(3, 15, 0.3, 3.75)},
                daily_usd=None,
                clock=lambda: datetime.now(UTC) - timedelta(days=days_ago),
                zone=lambda: BERLIN,
            )
            await ledger.add("main", model, usage or Usage(100_000, 2_000, 50_000))

    asyncio.run(add())


def test_nothing_yet(limpet: Limpet) -> None:
    said = limpet("usage")
    assert (said.code, said.out, said.err) == (0, "", "No model was asked in the last 7 days.\n")
    assert limpet("usage", "--days", "1").err == "No model was asked today.\n"
    assert not limpet.home.database.exists(), "to look makes nothing"
    assert limpet("usage", "--json").data == {
        "schema": 1,
        "days": 7,
        "usage": [],
        "cost": 0,
        "unpriced": 0,
        "budget": {"daily_usd": None, "spent_today": 0},
    }


def test_a_table_with_its_sum(limpet: Limpet) -> None:
    for days_ago in (0, 0, 1, 9):
        spend(limpet, "a/paid", days_ago=days_ago)
    said = limpet("usage")
    today = datetime.now(BERLIN).date()
    rows = [line.split() for line in said.out.splitlines()]
    assert rows == [
        ["day", "agent", "model", "calls", "input", "cached", "output", "cost"],
        [str(today), "main", "a/paid", "2", "200,000", "100,000", "4,000", "$0.3900"],
        [str(today - timedelta(days=1)), "main", "a/paid", "1", "100,000", "50,000", "2,000", "$0.1950"],
        ["all", "3", "300,000", "150,000", "6,000", "$0.5850"],
    ]
    assert said.err == ""
    assert len(limpet("usage", "--days", "10", "--json").data["usage"]) == 3


def test_what_is_not_known_is_said(limpet: Limpet) -> None:
    """G-MOD-15."""
    spend(limpet, "openai/my-unknown")
    said = limpet("usage")
    assert said.out.splitlines()[1].endswith("unknown")
    assert said.err == ("What openai/my-unknown costs is not known: set price_input and price_output under [models].\n")
    data = limpet("usage", "--json").data
    assert (data["unpriced"], data["usage"][0]["cost"]) == (1, None)
    spend(limpet, "a/paid")
    assert "$0.1950 and 1 call of unknown price" in limpet("usage").out.splitlines()[-1]


def test_what_is_left_of_the_budget(limpet: Limpet) -> None:
    limpet.settings("[budget]\ndaily_usd = 2.5\n")
    assert limpet("usage").out == "Today $0 of $2.50 are spent.\n"
    spend(limpet, "a/paid")
    spend(limpet, "a/paid", days_ago=1)
    assert limpet("usage").out.splitlines()[-1] == "Today $0.1950 of $2.50 are spent."
    assert limpet("usage", "--json").data["budget"] == {"daily_usd": 2.5, "spent_today": 0.195}


def test_a_budget_of_nothing_is_refused(limpet: Limpet) -> None:
    refused = limpet("config", "set", "budget.daily_usd", "0")
    assert refused.code == 2
    assert "daily_usd" in refused.err


def test_a_list_of_models_is_set_listed_and_checked(limpet: Limpet) -> None:
    assert limpet("config", "set", "models.default", '["ollama/a", "openai/gpt-4o"]').code == 0
    listed = limpet("models", "list")
    assert "ollama/a, then openai/gpt-4o  one of them can't answer: openai/gpt-4o needs a key" in listed.out
    main = limpet("models", "list", "--json").data["agents"]["main"]
    assert (main["model"], main["fallbacks"]) == ("ollama/a", ["openai/gpt-4o"])
    checked = limpet("config", "check")
    assert checked.code != 0
    assert "models.default[1]: openai/gpt-4o needs a key" in checked.out + checked.err
    refused = limpet("config", "set", "models.default", '["ollama/a", "gpt"]')
    assert refused.code == 2
    assert "models.default[1]: model 'gpt' is not written as provider/model" in refused.err
    assert limpet("config", "set", "models.default", "[]").code == 2
