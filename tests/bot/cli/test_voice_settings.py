"""The settings of files and voice notes: refused by their keys, and what can't work is said with the mend."""

from __future__ import annotations

import json

import pytest

from tests.bot.cli.conftest import Limpet

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("media.max_mb", "0"),
        ("media.max_mb", "1e9"),
        ("media.max_files", "0"),
        ("media.timeout", "0"),
        ("media.kinds", '["pictures"]'),
        ("media.max_size", "3"),
        ("voice.model", "PROVIDER/MODEL"),
        ("voice.model", "whisper"),
    ],
)
def test_what_can_not_be_meant_is_refused(limpet: Limpet, key: str, value: str) -> None:
    outcome = limpet("config", "set", key, value)
    assert (outcome.code, outcome.out) == (2, "")
    assert (key.rpartition(".")[2] if value[0] != "[" else "[0] must be 'image'") in outcome.err
    assert not limpet.home.config.exists()


@pytest.mark.parametrize(
    ("key", "value"), [("media.max_mb", "0.5"), ("media.max_files", "3"), ("media.kinds", '["voice", "image"]')]
)
def test_a_setting_of_the_files_is_set_and_read(limpet: Limpet, key: str, value: str) -> None:
    assert limpet("config", "set", key, value).code == 0
    assert json.loads(limpet("config", "get", key, "--json").out)["value"] == json.loads(value)


@pytest.mark.parametrize(
    ("model", "what", "mend"),
    [
        ("openai/whisper-1", "openai/whisper-1 needs a key, and OPENAI_API_KEY is not set", "add OPENAI_API_KEY=… to "),
        ("groq/whisper-large-v3", "the address of groq/whisper-large-v3 is not known here", "give it a table "),
        ("local/smollm2", "local/smollm2: there are no weights of that name (here: none)", "limpet models pull"),
    ],
)
def test_a_model_that_can_not_listen_is_told_when_it_is_set_and_checked(
    limpet: Limpet, model: str, what: str, mend: str
) -> None:
    outcome = limpet("config", "set", "voice.model", model)
    assert outcome.code == 0
    assert f"Note: voice notes can't be understood: {what} — " in outcome.err
    assert mend in outcome.err
    (problem,) = limpet("config", "check", "--json").data["problems"]
    assert (problem["key"], problem["line"], problem["message"]) == ("voice.model", 2, f"voice.model: {what}")
    found = [finding["what"] for finding in limpet("status", "--json").data["findings"]]
    assert f"voice notes can't be understood: {what}" in found


def test_a_model_that_can_listen_is_no_finding(limpet: Limpet) -> None:
    assert limpet("config", "set", "voice.model", "openai/whisper-1", OPENAI_API_KEY=KEY).err == ""
    assert limpet("config", "check", OPENAI_API_KEY=KEY).code == 0
    limpet("config", "set", "models.hear", '{model = "groq/whisper-large-v3", base_url = "http://127.0.0.1:1/v1"}')
    assert limpet("config", "set", "voice.model", "hear").err == ""
    assert limpet("config", "check").code == 0
