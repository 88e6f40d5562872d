"""Every pair of what a platform reports or takes, and what we make of it. The package says how to record them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.golden import pairs
from tests.adapters.golden.__main__ import RECORDERS


@pytest.mark.parametrize("pair", pairs.pairs(), ids=lambda pair: pair.name)
async def test_a_pair_is_as_it_was(pair: pairs.Pair, tmp_path: Path) -> None:
    now = await pair.recorded(RECORDERS[pair.channel], tmp_path)
    assert not (difference := pairs.difference(pair.read(), now)), f"{pair.read()['about']}\n{difference}"
