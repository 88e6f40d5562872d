"""The agents of one process: each is opened once, and what can't be opened leaves nothing behind."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from agents.errors import ModelError
from bot.config import load
from bot.home import Home
from bot.models import model_of
from bot.roster import Roster


@pytest.mark.parametrize("model", ["nonsense", "local/nowhere"])
async def test_a_model_that_cant_be_built_leaves_no_thread_behind(home: Home, model: str) -> None:
    """However often it is tried: a message a second for a day would be as many threads."""
    home.root.mkdir()
    home.config.write_text(f'[agents.main]\n[agents.broken]\nmodel = "{model}"\n')
    settings = load(home, {})
    async with Roster.open(
        settings,
        home,
        model=lambda name: model_of(name, settings, home).model,
        clock=lambda: datetime.now(UTC),
        watch=True,
    ) as roster:
        before = threading.active_count()
        for _ in range(5):
            with pytest.raises(ModelError):
                await roster.get("broken")
        assert threading.active_count() == before
        assert await roster.get("main") is await roster.get("main")
    assert threading.active_count() <= before
