"""What a call costs: the prices of common models, and the arithmetic of cached, written and plain tokens.

The table is a file of our own: the cost map of the general library takes seconds to load. A price that is not known is
None and never 0. Knows no settings and no account; what was spent is kept elsewhere.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agents.model import Usage

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens: of plain input, of output, of input read from the cache and of input written into it.

    A call whose input is longer than ``over`` tokens is charged by ``long`` as a whole; None where there is one price.
    """

    input: float
    output: float
    cached: float
    written: float
    over: int | None = None
    long: Prices | None = None

    def cost(self, usage: Usage) -> float:
        """USD for one call. ``cached`` and ``written`` are parts of the input, each charged once, at its own price."""
        if self.long is not None and self.over is not None and usage.input > self.over:
            return self.long.cost(usage)
        plain = max(0, usage.input - usage.cached - usage.written)
        charged = (
            plain * self.input + usage.cached * self.cached + usage.written * self.written + usage.output * self.output
        )
        return charged / _MILLION

    @property
    def is_free(self) -> bool:
        return not (self.input or self.output or self.cached or self.written)


FREE = Prices(0, 0, 0, 0)
"""A model that runs on one's own machine."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What the table says of a model."""

    prices: Prices
    sees_images: bool


def listed(provider: str, model: str) -> Listed | None:
    """The row of ``model`` as its provider calls it; None for one that is not in the table."""
    row = _table().get(provider, {}).get(model)
    return Listed(_prices(row), bool(row.get("images"))) if row is not None else None


@functools.cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return tomllib.loads(files("agents").joinpath("prices.toml").read_text(encoding="utf-8"))


def _prices(row: Mapping[str, Any]) -> Prices:
    plain = row["input"]
    long = _prices(row["long"]) if "long" in row else None
    return Prices(plain, row["output"], row.get("cached", plain), row.get("written", plain), row.get("over"), long)
