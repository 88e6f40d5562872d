"""``limpet config``: one answer per question, secrets masked, and a file that only valid changes ever touch."""

from __future__ import annotations

import pytest

from tests.bot.cli.conftest import Limpet

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

COMMENTED = """\
# The settings of Ann
[models]  # where answers come from
default = "ollama/qwen3:4b"   # small

# mine alone
[agents.main]
recall = "tool"
"""


def test_check_has_a_code_for_each_outcome(limpet: Limpet) -> None:
    """0 fine, 1 usable but something needs a hand, 2 unusable; findings are the result, an error is on stderr."""
    absent = limpet("config", "check")
    assert (absent.code, absent.err) == (0, "")
    assert "defaults" in absent.out
    limpet.settings(COMMENTED)
    fine = limpet("config", "check", "--json")
    assert (fine.code, fine.err) == (0, "")
    assert fine.data == {"schema": 1, "ok": True, "file": str(limpet.home.config), "problems": []}
    limpet.settings(COMMENTED + '[channels.telegram]\ntoken = "${TG_TOKEN}"\n')
    degraded = limpet("config", "check")
    assert (degraded.code, degraded.err) == (1, "")
    assert f"{limpet.home.config}:9:1 channels.telegram.token needs the variable TG_TOKEN" in degraded.out
    limpet.settings(COMMENTED + "[channels.telegram]\nprot = 1\n")
    broken = limpet("config", "check")
    assert (broken.code, broken.out) == (2, "")
    assert f"{limpet.home.config}:9:1 unknown key 'prot'" in broken.err
    as_json = limpet("config", "check", "--json")
    assert (as_json.code, as_json.out) == (2, "")
    problem = as_json.error["problems"][0]
    assert (problem["key"], problem["line"], problem["column"]) == ("channels.telegram.prot", 9, 1)


def test_check_says_that_a_model_means_nothing(limpet: Limpet) -> None:
    limpet.settings('[models]\ndefault = "gpt"\n[agents.main]\nmodel = "local/none"\n')
    outcome = limpet("config", "check", "--json")
    assert outcome.code == 1
    assert [problem["key"] for problem in outcome.data["problems"]] == ["models.default", "agents.main.model"]


def test_every_entry_point_refuses_a_broken_file_and_leaves_it(limpet: Limpet) -> None:
    """G-OPS-01: whatever would read or save."""
    text = "[models]\ndefault = ollama/qwen3:4b\n"
    limpet.settings(text)
    for words in (["config", "set", "memory.limit", "3"], ["init", "--model", "a/b"], ["config", "get", "owners"]):
        outcome = limpet(*words)
        assert (outcome.code, outcome.out) == (2, ""), words
        assert f"{limpet.home.config}:2:11 invalid value — text needs quotes" in outcome.err
        assert outcome.err.splitlines()[1:] == ["    default = ollama/qwen3:4b", "              ^"]
    assert limpet.home.config.read_text() == text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("models.default", "ollama/qwen3:4b"),
        ("agents.main.recall", "tool"),
        ("memory.limit", "6"),
        ("owners", "[]"),
        ("agents.main", 'recall = "tool"'),
        ("agents.main.model", ""),
    ],
)
def test_get_prints_what_counts(limpet: Limpet, key: str, value: str) -> None:
    limpet.settings(COMMENTED)
    outcome = limpet("config", "get", key)
    assert outcome.code == 0
    assert outcome.out == (f"{value}\n" if value else "")
    assert outcome.err == ("" if value else f"{key} is not set\n")


def test_get_masks_secrets_also_those_of_the_environment(limpet: Limpet) -> None:
    limpet.settings("[channels.telegram]\n")
    outcome = limpet("config", "get", "channels.telegram.token", TELEGRAM_BOT_TOKEN=TOKEN)
    assert outcome.out == "…saw\n"
    outcome = limpet("config", "get", "channels", "--json", TELEGRAM_BOT_TOKEN=TOKEN)
    assert TOKEN not in outcome.out + outcome.err
    assert outcome.data["value"]["telegram"]["token"] == "…saw"


def test_set_changes_one_value_and_keeps_every_comment(limpet: Limpet) -> None:
    limpet.settings(COMMENTED)
    limpet.home.config.chmod(0o600)
    outcome = limpet("config", "set", "models.default", "openai/gpt-6.1-terra")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == 'models.default: "ollama/qwen3:4b" → "openai/gpt-6.1-terra"\n'
    assert limpet.home.config.read_text() == COMMENTED.replace("ollama/qwen3:4b", "openai/gpt-6.1-terra")
    assert limpet.home.config.stat().st_mode & 0o777 == 0o600
    back = limpet("config", "set", "models.default", '"ollama/qwen3:4b"', "--json")
    assert back.data == {
        "schema": 1,
        "key": "models.default",
        "old": "openai/gpt-6.1-terra",
        "new": "ollama/qwen3:4b",
    }
    assert limpet.home.config.read_text() == COMMENTED


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("agents.main.recal", "auto", "unknown key 'recal' — did you mean 'recall'?"),
        ("agents.main.recall", "on", "must be 'auto', 'tool' or 'off', not \"on\""),
        ("memory.limit", "many", 'limit must be a whole number, not "many"'),
        ("owners", "telegram:1", 'owners must be a list, not "telegram:1"'),
        ("memory", "5", "memory must be a table"),
        ("no key!", "5", "is no key"),
        ("bindings[3].agent", "main", "can't be changed in place"),
    ],
)
def test_set_refuses_what_would_not_be_valid(limpet: Limpet, key: str, value: str, said: str) -> None:
    limpet.settings(COMMENTED)
    outcome = limpet("config", "set", key, value)
    assert outcome.code in (1, 2)
    assert outcome.out == ""
    assert said in outcome.err
    assert limpet.home.config.read_text() == COMMENTED


def test_set_takes_a_number_for_a_text_where_only_a_text_fits(limpet: Limpet) -> None:
    limpet.settings('[channels.telegram]\n[[bindings]]\nagent = "main"\nchannel = "telegram"\n')
    assert limpet("config", "set", "bindings[0].chat", "-100123").code == 0
    assert limpet("config", "set", "agents.main.model", "5").code == 0
    assert 'model = "5"' in limpet.home.config.read_text()


def test_a_secret_goes_to_the_env_file_and_is_never_shown(limpet: Limpet) -> None:
    limpet.home.env_file.write_text("# kept\nOTHER=1\n")
    outcome = limpet("config", "set", "channels.telegram.token", TOKEN)
    assert outcome.code == 0
    assert TOKEN not in outcome.out + outcome.err
    assert limpet.home.config.read_text() == '[channels.telegram]\ntoken = "${TELEGRAM_BOT_TOKEN}"\n'
    assert limpet.home.env_file.read_text() == f"# kept\nOTHER=1\nTELEGRAM_BOT_TOKEN={TOKEN}\n"
    assert limpet.home.env_file.stat().st_mode & 0o777 == 0o600
    assert limpet("config", "check").code == 0
    again = limpet("config", "set", "channels.telegram.token", "99:new")
    assert again.code == 0
    assert limpet.home.env_file.read_text() == "# kept\nOTHER=1\nTELEGRAM_BOT_TOKEN=99:new\n"


def test_unset_gives_the_default_back(limpet: Limpet) -> None:
    limpet.settings(COMMENTED)
    outcome = limpet("config", "unset", "agents.main.recall")
    assert outcome.out == 'agents.main.recall: "tool" → not set\n'
    assert limpet.home.config.read_text() == COMMENTED.replace('recall = "tool"\n', "")
    assert limpet("config", "unset", "agents.main.recall").code == 2


def test_another_file_is_used_on_request(limpet: Limpet) -> None:
    other = limpet.home.root / "other.toml"
    other.write_text(COMMENTED)
    for words, environ in ((["--config", str(other)], {}), ([], {"LIMPET_CONFIG": str(other)})):
        assert limpet(*words, "config", "path", **environ).out == f"{other}\n"
        assert limpet(*words, "config", "get", "agents.main.recall", **environ).out == "tool\n"
