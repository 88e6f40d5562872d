"""Which models an agent talks with, what stands in for them, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agents.chain import Chain
from agents.errors import UnknownModel, WeightsError
from agents.prices import FREE, Prices
from bot.config import load
from bot.health import speechless
from bot.home import Home
from bot.models import model_of, named_for, prices_of, small_model_of
from bot.settings import Settings
from tests.fakes.gguf import gguf

Written = Callable[[str], tuple[Settings, Home]]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """The settings of a home that has this file, with one key in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    home = Home(tmp_path)

    def write(text: str) -> tuple[Settings, Home]:
        home.config.write_text(text)
        return load(home, {}), home

    return write


def test_several_models_are_a_chain(written: Written) -> None:
    settings, home = written(
        '[models]\ndefault = ["openai/gpt-4o", "ollama/x"]\n[agents.one]\nmodel = "ollama/y"\n'
        '[agents.two]\nmodel = ["ollama/y", "openai/gpt-4o"]'
    )
    main, one, two = (model_of(agent, settings, home) for agent in ("main", "one", "two"))
    assert isinstance(main.model, Chain)
    assert (main.name, main.notice, main.model.name) == ("openai/gpt-4o", None, "openai/gpt-4o")
    assert not isinstance(one.model, Chain)
    assert isinstance(two.model, Chain)
    assert named_for("main", settings) == ("openai/gpt-4o", "ollama/x")
    assert named_for("two", settings) == ("ollama/y", "openai/gpt-4o")


@pytest.mark.parametrize("damaged", [b"GGUF", gguf(("llama.context_length", 8192))])
def test_one_with_damaged_weights_is_left_out(written: Written, damaged: bytes) -> None:
    settings, home = written('[models]\ndefault = ["local/smollm2", "openai/gpt-4o"]')
    with pytest.raises(UnknownModel, match="local/smollm2"):
        model_of("main", settings, home)
    home.models.mkdir()
    (home.models / "smollm2.gguf").write_bytes(damaged)
    chosen = model_of("main", settings, home)
    assert chosen.name == "openai/gpt-4o"
    assert not isinstance(chosen.model, Chain)
    assert [finding.what for finding in speechless(settings, home)] != []
    settings, home = written('[models]\ndefault = ["local/smollm2"]')
    with pytest.raises(WeightsError):
        model_of("main", settings, home)


def test_the_small_model(written: Written) -> None:
    settings, home = written('[models]\ndefault = "openai/gpt-4o"')
    assert small_model_of(settings, home) is None
    settings, home = written('[models]\ndefault = "openai/gpt-4o"\nsmall = "openai/gpt-6-luna"')
    small = small_model_of(settings, home)
    assert small is not None
    assert small.name == "openai/gpt-6-luna"
    settings, home = written('[models]\nsmall = ["openai/gpt-6-luna", "ollama/x"]')
    assert isinstance(small_model_of(settings, home), Chain)


def test_what_each_model_costs(written: Written) -> None:
    """G-MOD-15: every model that may answer has a price or None, and two of one name that differ have none."""
    settings, home = written(
        '[models]\ndefault = ["openai/gpt-4o", "mine"]\nsmall = "ollama/x"\n'
        '[models.mine]\nmodel = "vllm/q"\nbase_url = "http://gpu/v1"\n'
        '[models.here]\nmodel = "openai/o"\nbase_url = "http://127.0.0.1:1/v1"\n'
        '[models.there]\nmodel = "openai/o"\nbase_url = "http://gpu/v1"\nprice_input = 1\nprice_output = 2\n'
        '[agents.a]\nmodel = "anthropic/claude-haiku-4-5"'
    )
    assert prices_of(settings, home) == {
        "openai/gpt-4o": Prices(2.5, 10, 1.25, 2.5),
        "vllm/q": None,
        "ollama/x": FREE,
        "openai/o": None,
        "anthropic/claude-haiku-4-5": Prices(1, 5, 0.1, 1.25),
    }


def test_the_price_of_a_model_that_was_found(written: Written) -> None:
    settings, home = written("")
    assert list(prices_of(settings, home)) == ["openai/gpt-6.1-terra"]


def test_of_a_chain_each_one_that_can_not_answer_is_told(written: Written) -> None:
    settings, home = written('[models]\ndefault = ["openai/gpt-4o", "anthropic/claude-haiku-5-5"]')
    (finding,) = speechless(settings, home)
    assert finding.what.startswith("agent main can't ask one of its models: anthropic/claude-haiku-5-5 needs a key")
    settings, home = written('[models]\ndefault = "anthropic/claude-haiku-5-5"')
    (finding,) = speechless(settings, home)
    assert finding.what.startswith("agent main can't answer: anthropic/claude-haiku-5-5 needs a key")
