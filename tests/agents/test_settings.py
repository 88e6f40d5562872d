"""The section ``[models]``, as a person writes it and as a person mistypes it."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from pydantic import ValidationError

from agents.settings import BudgetSettings, ModelsSettings, in_order


def parsed(toml: str) -> ModelsSettings:
    return ModelsSettings.model_validate(tomllib.loads(toml))


def test_nothing_at_all() -> None:
    settings = parsed("")
    assert (settings.default, settings.base_url, settings.timeout, settings.named()) == (None, None, 120, {})


def test_one_model_and_its_address() -> None:
    settings = parsed('default = "ollama/qwen3:4b"\nbase_url = "http://gpu:11434/v1/"')
    assert (settings.default, settings.base_url) == ("ollama/qwen3:4b", "http://gpu:11434/v1")


def test_named_models() -> None:
    settings = parsed(
        'default = "home"\n[home]\nmodel = "vllm/qwen3-32b"\nbase_url = "http://gpu:8000/v1"\ncontext = 32768\n'
        '[cheap]\nmodel = "openai/gpt-6-luna"\ntemperature = 0.2'
    )
    assert list(settings.named()) == ["home", "cheap"]
    assert settings.named()["home"].model == "vllm/qwen3-32b"
    assert settings.named()["home"].context == 32768


def test_several_models_in_order() -> None:
    settings = parsed('default = ["a/b", "home"]\nsmall = "a/s"\n[home]\nmodel = "c/d"')
    assert in_order(settings.default) == ("a/b", "home")
    assert in_order(settings.small) == ("a/s",)
    assert in_order(parsed("").default) == ()


@pytest.mark.parametrize(
    "given", ["price_input = 1\nprice_output = 5", "price_input = 0\nprice_output = 0\nprice_cached = 0"]
)
def test_prices(given: str) -> None:
    assert parsed(given).price_input in (0, 1)
    assert parsed(f"[home]\n{given}").named()["home"].price_output in (0, 5)


@pytest.mark.parametrize("given", ["price_input = 1", "price_output = 1", "price_cached = 1", "price_written = 1"])
@pytest.mark.parametrize("table", ["", "[home]\n"])
def test_a_price_alone_says_nothing(given: str, table: str) -> None:
    with pytest.raises(ValidationError, match="both price_input and price_output"):
        parsed(table + given)


def test_a_budget() -> None:
    assert BudgetSettings().daily_usd is None
    assert BudgetSettings(daily_usd=2.5).daily_usd == 2.5
    with pytest.raises(ValidationError):
        BudgetSettings(daily_usd=0)


def test_a_key_is_stripped_and_never_shown() -> None:
    settings = parsed('api_key = "  sk-geheim\\n"\n[home]\napi_key = "sk-auch-geheim"')
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "sk-geheim"
    assert "geheim" not in repr(settings) + str(settings) + settings.model_dump_json()


@pytest.mark.parametrize(
    ("toml", "place", "kind"),
    [
        ('defualt = "ollama/x"', ("defualt",), "extra_forbidden"),
        ("home = 3", ("home",), "extra_forbidden"),
        ('[home]\nmodle = "ollama/x"', ("home", "modle"), "extra_forbidden"),
        ("[home]\ncontext = 'big'", ("home", "context"), "int_parsing"),
        ("context = 0", ("context",), "greater_than_equal"),
        ("temperature = 3", ("temperature",), "less_than_equal"),
        ("timeout = 0", ("timeout",), "greater_than"),
        ('client = "openai"', ("client",), "literal_error"),
        ("default = 3", ("default", "one"), "string_type"),
        ('default = ["a/b", 3]', ("default", "several", 1), "string_type"),
        ("default = []", ("default", "several"), "value_error"),
        ('default = ["a/b", "a/b"]', ("default", "several"), "value_error"),
        ('small = ["provider/model"]', ("small", "several", 0), "value_error"),
        ("price_input = -1", ("price_input",), "greater_than_equal"),
        ('base_url = "gpu:8000"', ("base_url",), "value_error"),
        ('base_url = "http://"', ("base_url",), "value_error"),
        ('base_url = "http://gpu:x/v1"', ("base_url",), "value_error"),
        ('base_url = "http://ann:secret@gpu/v1"', ("base_url",), "value_error"),
    ],
)
def test_what_is_refused(toml: str, place: tuple[str, ...], kind: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parsed(toml)
    assert [(error["loc"], error["type"]) for error in caught.value.errors()] == [(place, kind)]


def test_every_setting_is_described() -> None:
    schema: dict[str, Any] = ModelsSettings.model_json_schema()
    fields = schema["properties"] | schema["$defs"]["NamedModel"]["properties"]
    assert [name for name, field in fields.items() if not field.get("description")] == []


@pytest.mark.parametrize("toml", ['default = "{}"', '[home]\nmodel = "{}"'])
@pytest.mark.parametrize("name", ["PROVIDER/MODEL", "provider/model", "openai/MODEL", "PROVIDER/gpt-6.1-terra"])
def test_a_form_that_was_pasted_is_no_model(toml: str, name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name} only shows the form: openai/.*, ollama/"):
        parsed(toml.format(name))
