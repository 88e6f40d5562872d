"""Which model is taken, by which client, from where and with which key."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.catalog import PROVIDERS, ModelChoice, build, check, found_keys, resolve, resolve_all
from agents.errors import MissingExtra, MissingKey, UnknownModel, WeightsError
from agents.litellm_model import LiteLLMModel
from agents.local_model import LocalModel
from agents.model import Limits
from agents.openai_model import OpenAIModel
from agents.prices import FREE, Prices
from agents.settings import MODEL_FORMS, ModelsSettings
from agents.weights import WeightsStore
from tests.agents.model_cases import outcome_of
from tests.fakes.gguf import gguf
from tests.fakes.model_server import ModelServer, Reply
from workspaces.installation import install_extra

KEY = "sk-very-secret-key-0123456789"


@pytest.fixture
def store(tmp_path: Path) -> WeightsStore:
    return WeightsStore(tmp_path / "models")


@pytest.fixture
def choose(store: WeightsStore) -> Any:
    """``resolve`` with settings as a table, an environment and the model's name."""

    def choose(models: dict[str, Any], environ: dict[str, str] | None = None, name: str | None = None) -> Any:
        return resolve(ModelsSettings.model_validate(models), environ or {}, store, name)

    return choose


def embed(store: WeightsStore, tmp_path: Path, name: str = "smollm2", context: int = 8192) -> Path:
    path = tmp_path / "models" / f"{name}.gguf"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gguf(("llama.context_length", context)))
    return path


def test_nothing_is_notes_mode(choose: Any) -> None:
    assert choose({}) is None


def test_the_order(choose: Any, store: WeightsStore, tmp_path: Path) -> None:
    path = embed(store, tmp_path)
    embedded = choose({})
    assert (embedded.name, embedded.why, embedded.client, embedded.path) == ("local/smollm2", "embedded", "local", path)
    found = choose({}, {"ANTHROPIC_API_KEY": KEY})
    assert (found.why, found.key_place, found.api_key) == ("key found", "ANTHROPIC_API_KEY", KEY)
    configured = choose({"default": "ollama/qwen3:4b"}, {"ANTHROPIC_API_KEY": KEY})
    assert (configured.name, configured.why) == ("ollama/qwen3:4b", "configured")
    named = choose({"default": "ollama/qwen3:4b"}, {}, "local/smollm2")
    assert (named.name, named.why) == ("local/smollm2", "configured")


def test_found_keys() -> None:
    environ = {"GROQ_API_KEY": KEY, "OPENAI_API_KEY": KEY, "MISTRAL_API_KEY": "  ", "OTHER_KEY": KEY}
    assert found_keys(environ) == ("OPENAI_API_KEY", "GROQ_API_KEY")


@pytest.mark.parametrize(
    ("models", "client", "model", "base_url"),
    [
        ({"default": "openai/gpt-5"}, "lean", "gpt-5", "https://api.openai.com/v1"),
        ({"default": "openrouter/qwen/qwen3-32b"}, "lean", "qwen/qwen3-32b", "https://openrouter.ai/api/v1"),
        ({"default": "ollama/qwen3:4b"}, "lean", "qwen3:4b", "http://127.0.0.1:11434/v1"),
        ({"default": "vllm/Qwen/Qwen3-8B"}, "lean", "Qwen/Qwen3-8B", "http://127.0.0.1:8000/v1"),
        ({"default": "llamacpp/any"}, "lean", "any", "http://127.0.0.1:8080/v1"),
        ({"default": "lmstudio/gemma"}, "lean", "gemma", "http://127.0.0.1:1234/v1"),
        ({"default": "anthropic/claude-haiku-5-5"}, "litellm", "anthropic/claude-haiku-5-5", None),
        ({"default": "bedrock/some.model"}, "litellm", "bedrock/some.model", None),
        (
            {"default": "openai/gpt-x", "base_url": "http://127.0.0.1:8080/v1"},
            "lean",
            "gpt-x",
            "http://127.0.0.1:8080/v1",
        ),
        ({"default": "anthropic/x", "base_url": "http://gpu/v1"}, "lean", "x", "http://gpu/v1"),
        ({"default": "Qwen/Qwen3-8B", "base_url": "http://gpu/v1"}, "lean", "Qwen/Qwen3-8B", "http://gpu/v1"),
        ({"default": "qwen3", "base_url": "http://gpu/v1"}, "lean", "qwen3", "http://gpu/v1"),
        ({"default": "openai/gpt-5", "client": "litellm"}, "litellm", "openai/gpt-5", "https://api.openai.com/v1"),
        ({"default": "ollama/q:4b", "client": "litellm"}, "litellm", "openai/q:4b", "http://127.0.0.1:11434/v1"),
    ],
)
def test_clients_and_addresses(choose: Any, models: dict[str, Any], client: str, model: str, base_url: str) -> None:
    choice: ModelChoice = choose(models)
    assert (choice.client, choice.model, choice.base_url) == (client, model, base_url)
    assert choice.name == models["default"]


@pytest.mark.parametrize(
    ("name", "variable", "value", "base_url"),
    [
        ("ollama/x", "OLLAMA_HOST", "0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("ollama/x", "OLLAMA_HOST", "gpu:9999", "http://gpu:9999/v1"),
        ("ollama/x", "OLLAMA_HOST", "https://ollama.example.com/", "https://ollama.example.com/v1"),
        ("ollama/x", "OLLAMA_HOST", "[::1]:1234", "http://[::1]:1234/v1"),
        ("openai/x", "OPENAI_BASE_URL", "https://proxy.example.com/openai/v1", "https://proxy.example.com/openai/v1"),
        ("openai/x", "OPENAI_BASE_URL", " ", "https://api.openai.com/v1"),
    ],
)
def test_addresses_from_the_environment(choose: Any, name: str, variable: str, value: str, base_url: str) -> None:
    assert choose({"default": name}, {variable: value}).base_url == base_url


@pytest.mark.parametrize("value", ["http://gpu:x", "ftp://gpu", "http://"])
def test_an_address_from_the_environment_that_is_none(choose: Any, value: str) -> None:
    with pytest.raises(UnknownModel, match="OLLAMA_HOST is no address"):
        choose({"default": "ollama/x"}, {"OLLAMA_HOST": value})


def test_a_key_goes_only_where_it_belongs(choose: Any) -> None:
    """A provider's key from the environment is not sent to an address that the settings name."""
    environ = {"OPENAI_API_KEY": f"{KEY}\n"}
    own = choose({"default": "openai/x"}, environ)
    assert (own.api_key, own.key_place) == (KEY, "OPENAI_API_KEY")
    elsewhere = choose({"default": "openai/x", "base_url": "http://gpu/v1"}, environ)
    assert (elsewhere.api_key, elsewhere.key_place) == (None, "api_key under [models]")
    written = choose({"default": "openai/x", "base_url": "http://gpu/v1", "api_key": KEY}, environ)
    assert (written.api_key, written.key_place) == (KEY, "api_key under [models]")
    assert choose({"default": "ollama/x"}, environ).api_key is None
    assert KEY not in repr(own) + repr(written)


def test_named_tables(choose: Any) -> None:
    models = {
        "default": "home",
        "temperature": 0.9,
        "home": {"model": "vllm/qwen3-32b", "base_url": "http://gpu:8000/v1", "context": 32768, "max_output": 500},
        "openai/gpt-5": {"temperature": 0.2, "uses_tools": False},
    }
    home = choose(models)
    assert (home.name, home.model, home.limits) == ("vllm/qwen3-32b", "qwen3-32b", Limits(32768, 500))
    assert (home.settings.temperature, home.uses_tools) == (None, True), "what is beside default is not home's"
    other = choose(models, {}, "openai/gpt-5")
    assert (other.settings.temperature, other.uses_tools) == (0.2, False)
    third = choose(models, {}, "ollama/x")
    assert third.settings.temperature is None


@pytest.mark.parametrize("name", ["gpt-5", "openai/", "/x", ""])
def test_names_that_mean_nothing(choose: Any, name: str) -> None:
    with pytest.raises(UnknownModel, match="provider/model"):
        choose({"default": name} if name else {"default": " "})


@pytest.mark.parametrize("key", ["base_url", "api_key"])
def test_an_address_or_a_key_of_no_model(choose: Any, key: str) -> None:
    with pytest.raises(UnknownModel, match=f"{key} under .* Set default"):
        choose({key: "http://gpu/v1"}, {"OPENAI_API_KEY": KEY})
    assert choose({key: "http://gpu/v1"}, {}, "ollama/x").name == "ollama/x"


def test_weights_that_are_not_here(choose: Any, store: WeightsStore, tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match=r"here: none.*`limpet models pull smollm2`\.$"):
        choose({"default": "local/smollm2"})
    embed(store, tmp_path, "qwen")
    with pytest.raises(UnknownModel, match=r"here: qwen.*`limpet models pull PATH`\.$"):
        choose({"default": "local/other"})


def test_the_embedded_models_limits(choose: Any, store: WeightsStore, tmp_path: Path) -> None:
    embed(store, tmp_path, "small", 2048)
    embed(store, tmp_path, "large", 131072)
    assert choose({"default": "local/small"}).limits == Limits(2048, 512)
    assert choose({"default": "local/large"}).limits == Limits(8192, 1024)
    large = choose({"default": "local/large", "context": 32768, "uses_tools": True})
    assert (large.limits.context, large.uses_tools) == (32768, True)
    assert choose({"default": "local/large"}).uses_tools is False


def test_what_is_built(choose: Any, store: WeightsStore, tmp_path: Path) -> None:
    embed(store, tmp_path)
    for name, kind in (("openai/x", OpenAIModel), ("anthropic/x", LiteLLMModel), ("local/smollm2", LocalModel)):
        model = build(choose({"default": name}))
        assert isinstance(model, kind)
        assert model.name == name


async def test_a_built_model_answers(choose: Any) -> None:
    async with ModelServer([Reply("Hi")]) as server:
        settings = {"default": "openai/x", "base_url": server.url, "api_key": KEY, "max_output": 77, "temperature": 0.1}
        model = build(choose(settings))
        assert (await outcome_of(model)).text == "Hi"
        await model.close()
    (sent,) = server.requests
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body | {"max_tokens": 77, "temperature": 0.1, "model": "x"} == sent.body


async def test_fields_that_a_provider_calls_otherwise(choose: Any) -> None:
    async with ModelServer([Reply("Hi")]) as server:
        environ = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        model = build(choose({"default": "openai/x", "max_output": 77}, environ))
        assert (await outcome_of(model)).text == "Hi"
        await model.close()
    assert server.requests[0].body["max_completion_tokens"] == 77


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the optional packages."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n in ("litellm", "xllamacpp") else find(n))


@pytest.mark.usefixtures("without")
def test_a_missing_extra_names_its_command(choose: Any, store: WeightsStore, tmp_path: Path) -> None:
    embed(store, tmp_path)
    for models, extra in (({"default": "anthropic/x"}, "litellm"), ({}, "local")):
        with pytest.raises(MissingExtra) as caught:
            build(choose(models))
        assert caught.value.mend == f"install it: `{install_extra(extra)}`"
        with pytest.raises(MissingExtra):
            check(choose(models), {}, store)


@pytest.mark.parametrize(
    ("models", "environ", "variable"),
    [
        ({"default": "openai/x"}, {}, "OPENAI_API_KEY"),
        ({"default": "openai/x"}, {"OPENAI_API_KEY": " "}, "OPENAI_API_KEY"),
        ({"default": "openai/x"}, {"OPENAI_API_KEY": KEY}, None),
        ({"default": "openai/x", "api_key": KEY}, {}, None),
        ({"default": "openai/x", "base_url": "http://gpu/v1"}, {}, None),
        ({"default": "openai/x"}, {"OPENAI_BASE_URL": "http://gpu/v1"}, None),
        ({"default": "home", "home": {"model": "openai/x"}}, {}, "OPENAI_API_KEY"),
        ({"default": "home", "home": {"model": "openai/x", "api_key": KEY}}, {}, None),
        ({"default": "openai/x", "client": "litellm"}, {}, "OPENAI_API_KEY"),
        ({"default": "anthropic/x"}, {"OPENAI_API_KEY": KEY}, "ANTHROPIC_API_KEY"),
        ({"default": "anthropic/x"}, {"ANTHROPIC_AUTH_TOKEN": KEY}, None),
        ({"default": "gemini/x"}, {"GOOGLE_API_KEY": KEY}, None),
        ({"default": "ollama/x"}, {}, None),
        ({"default": "vllm/x"}, {}, None),
        ({"default": "bedrock/x"}, {}, None),  # what only litellm knows may need a key, a role or nothing
    ],
)
def test_a_model_that_can_not_answer_for_want_of_a_key(
    choose: Any, store: WeightsStore, models: dict[str, Any], environ: dict[str, str], variable: str | None
) -> None:
    choice = choose(models, environ)
    if variable is None:
        check(choice, environ, store)
        return
    with pytest.raises(MissingKey) as caught:
        check(choice, environ, store)
    assert caught.value.variable == variable
    assert str(caught.value) == (
        f"{choice.name} needs a key, and {variable} is not set. Set {variable}, or choose another model."
    )


def test_weights_of_the_wrong_size_can_not_answer(choose: Any, store: WeightsStore, tmp_path: Path) -> None:
    embed(store, tmp_path)
    with pytest.raises(WeightsError, match=r"damaged \(\d+ of 98,362,432 bytes\).*`limpet models pull smollm2`"):
        check(choose({}), {}, store)
    embed(store, tmp_path, "other")
    check(choose({"default": "local/other"}), {}, store)


@pytest.mark.parametrize("name", MODEL_FORMS)
def test_the_forms_that_are_advised_mean_something(choose: Any, store: WeightsStore, tmp_path: Path, name: str) -> None:
    embed(store, tmp_path)
    choice = choose({"default": name})
    assert choice.name == name
    assert choice.provider.model in (None, name.partition("/")[2]), "a hosted one is the one of the table"


def test_choosing_and_building_imports_no_client(choose: Any) -> None:
    before = set(sys.modules)
    build(choose({"default": "openai/x"}))
    assert not {"litellm", "xllamacpp"} & (set(sys.modules) - before)


def test_the_table_agrees_with_the_cost_map() -> None:
    """Every default model exists, can call tools, isn't about to go, and has at least the window of its row."""
    spec = importlib.util.find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    known = json.loads((Path(spec.origin).parent / "model_prices_and_context_window_backup.json").read_text())
    for provider in PROVIDERS.values():
        if provider.model is None or provider.name == "openrouter":  # the map has few of its models
            continue
        model = known.get(f"{provider.name}/{provider.model}") or known[provider.model]
        assert model["supports_function_calling"], provider.name
        assert model.get("deprecation_date") is None, provider.name
        assert model["max_input_tokens"] >= provider.context, provider.name
        assert model["max_output_tokens"] >= provider.output, provider.name
        assert model["output_cost_per_token"] <= 10e-6, f"{provider.name}: nobody asked for an expensive model"


def test_a_chain_in_its_order(store: WeightsStore, tmp_path: Path) -> None:
    embed(store, tmp_path)
    models = ModelsSettings.model_validate(
        {
            "default": ["anthropic/claude-haiku-5-5", "home", "local/smollm2"],
            "temperature": 0.2,
            "home": {"model": "vllm/qwen3-32b"},
        }
    )
    choices = resolve_all(models, {"ANTHROPIC_API_KEY": KEY}, store)
    assert [c.name for c in choices] == ["anthropic/claude-haiku-5-5", "vllm/qwen3-32b", "local/smollm2"]
    assert [c.settings.temperature for c in choices] == [0.2, None, None], "what is beside default is the first one's"
    assert resolve(models, {}, store) == resolve_all(models, {}, store)[0]
    assert [c.name for c in resolve_all(models, {}, store, ("openai/x",))] == ["openai/x"]
    with pytest.raises(UnknownModel, match="'nonsense'"):
        resolve_all(models, {}, store, ("openai/x", "nonsense"))


def test_a_chain_of_what_is_found(store: WeightsStore) -> None:
    assert resolve_all(ModelsSettings(), {}, store) == ()
    (found,) = resolve_all(ModelsSettings(), {"OPENAI_API_KEY": KEY}, store)
    assert found.why == "key found"


OWN = {"price_input": 3.0, "price_output": 15.0}


@pytest.mark.parametrize(
    ("models", "environ", "prices"),
    [
        ({"default": "openai/gpt-4o"}, {}, Prices(2.5, 10, 1.25, 2.5)),
        ({"default": "openai/gpt-4o", **OWN}, {}, Prices(3, 15, 3, 3)),
        ({"default": "openai/gpt-4o", **OWN, "price_cached": 0.0}, {}, Prices(3, 15, 0, 3)),
        ({"default": "openai/gpt-4o", "client": "litellm"}, {}, Prices(2.5, 10, 1.25, 2.5)),
        ({"default": "anthropic/claude-haiku-4-5"}, {}, Prices(1, 5, 0.1, 1.25)),
        ({"default": "openai/my-unknown"}, {}, None),
        ({"default": "bedrock/some.model"}, {}, None),
        ({"default": "ollama/qwen3:4b"}, {}, FREE),
        ({"default": "ollama/qwen3:4b", **OWN}, {}, Prices(3, 15, 3, 3)),
        ({"default": "ollama/qwen3:4b"}, {"OLLAMA_HOST": "http://gpu:11434"}, None),
        ({"default": "ollama/qwen3:4b", "base_url": "http://gpu:11434/v1"}, {}, None),
        ({"default": "openai/gpt-4o", "base_url": "http://gpu/v1"}, {}, None),
        ({"default": "openai/gpt-4o", "base_url": "http://127.0.0.1:1/v1"}, {}, FREE),
        ({"default": "openai/gpt-4o"}, {"OPENAI_BASE_URL": "https://proxy.example.com/v1"}, None),
    ],
)
def test_what_a_model_costs(
    choose: Any, models: dict[str, Any], environ: dict[str, str], prices: Prices | None
) -> None:
    """G-MOD-15: an unknown price is unknown; only what runs in this process or on this machine is free."""
    assert choose(models, environ).prices == prices


def test_the_embedded_one_is_free(choose: Any, store: WeightsStore, tmp_path: Path) -> None:
    embed(store, tmp_path)
    assert choose({}).prices == FREE


@pytest.mark.parametrize(
    ("models", "sees"),
    [
        ({"default": "openai/gpt-4o"}, True),
        ({"default": "openai/my-unknown"}, False),
        ({"default": "deepseek/deepseek-v4-pro"}, False),
        ({"default": "openai/gpt-4o", "base_url": "http://gpu/v1"}, False),
        ({"default": "ollama/llava", "sees_images": True}, True),
        ({"default": "openai/gpt-4o", "sees_images": False}, False),
        ({"default": "anthropic/claude-haiku-5-5"}, True),
    ],
)
def test_what_sees_images(choose: Any, models: dict[str, Any], sees: bool) -> None:
    choice = choose(models)
    assert choice.sees_images is sees
    assert build(choice).sees_images is sees


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("anthropic/claude-haiku-5-5", True),
        ("openrouter/anthropic/claude-haiku-5.5", True),
        ("bedrock/eu.anthropic.claude-haiku-5-5", True),
        ("openrouter/openai/gpt-oss-120b", False),
        ("openai/gpt-4o", False),
        ("ollama/claude-like", False),
    ],
)
def test_where_a_cache_is_marked(choose: Any, name: str, marks: bool) -> None:
    assert choose({"default": name}).marks_cache is marks
