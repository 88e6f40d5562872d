"""What a call costs: cached and written tokens once each, long calls by their own price, unknown ones not at all."""

from __future__ import annotations

import importlib.util
import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from agents.catalog import PROVIDERS
from agents.model import Usage
from agents.prices import FREE, Prices, listed

SONNET = Prices(3, 15, 0.3, 3.75)
TIERED = Prices(1, 5, 0.1, 1.25, over=200_000, long=Prices(2, 7.5, 0.2, 2.5))


def test_tokens_of_the_cache_are_charged_once() -> None:
    """G-MOD-14: 3 plain, 12,304 written, 550 out at 3 / 3.75 / 15 a million are $0.054399, not $0.0913."""
    assert SONNET.cost(Usage(input=12_307, output=550, written=12_304)) == pytest.approx(0.054399, abs=1e-12)


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (Usage(), 0),
        (Usage(input=1_000_000), 3),
        (Usage(output=1_000_000), 15),
        (Usage(input=1_000_000, cached=1_000_000), 0.3),
        (Usage(input=1_000_000, cached=500_000, written=500_000), 0.15 + 1.875),
        (Usage(input=1_000_000, cached=400_000), 1.8 + 0.12),
    ],
)
def test_each_kind_of_token_has_its_price(usage: Usage, usd: float) -> None:
    assert SONNET.cost(usage) == pytest.approx(usd)


@pytest.mark.parametrize(("tokens", "usd"), [(200_000, 0.2), (200_001, 0.400002)])
def test_a_long_call_is_charged_as_a_whole_by_its_own_price(tokens: int, usd: float) -> None:
    assert TIERED.cost(Usage(input=tokens)) == pytest.approx(usd)


def test_a_model_that_is_not_in_the_table_has_no_price() -> None:
    """G-MOD-15: unknown is None, never 0."""
    assert listed("openai", "my-unknown") is None
    assert listed("nobody", "x") is None
    assert FREE.is_free
    assert not SONNET.is_free


def test_the_table_is_that_of_the_pinned_cost_map() -> None:
    """Every number of it; and every model that is taken by itself has a price."""
    spec = importlib.util.find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    known = json.loads((Path(spec.origin).parent / "model_prices_and_context_window_backup.json").read_text())
    table = tomllib.loads(files("agents").joinpath("prices.toml").read_text(encoding="utf-8"))
    for prefix, models in table.items():
        for name, row in models.items():
            there = known.get(f"{prefix}/{name}") or known[name]
            assert row == expected(there), f"{prefix}/{name}: prices.toml is out of date"
    for provider in PROVIDERS.values():
        if provider.model is not None and provider.name != "openrouter":  # the map has none of its models
            assert listed(provider.name, provider.model) is not None, provider.name


FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "written": "cache_creation_input_token_cost",
}


def expected(there: dict[str, Any]) -> dict[str, Any]:
    """The row that the cost map makes: USD per million, and the dearer price of a long call where there is one."""

    def prices(suffix: str = "") -> dict[str, Any]:
        found = {ours: there.get(theirs + suffix) for ours, theirs in FIELDS.items()}
        return {name: round(price * 1e6, 6) for name, price in found.items() if price}

    row = prices()
    if there.get("supports_vision"):
        row["images"] = True
    tiers = {key.split("_above_")[1] for key in there if key.startswith("input_cost_per_token_above_")}
    if sizes := [tier for tier in tiers if tier.endswith("k_tokens")]:
        (size,) = sizes
        row |= {"over": int(size.removesuffix("k_tokens")) * 1000, "long": prices(f"_above_{size}")}
    return row
