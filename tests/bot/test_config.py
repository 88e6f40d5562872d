"""Loading: file, environment and defaults become one value, and what is wrong is said all at once, with the mend."""

from __future__ import annotations

import random
import string
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from adapters.telegram import TelegramSettings
from agents.settings import ModelsSettings, NamedModel
from bot.access import Policy
from bot.agent_names import agent_tables, default_agent
from bot.config import build, change, load, secret_variable
from bot.config_file import ConfigFile, dotted, read, toml_value
from bot.config_keys import all_keys, example_of, field_at, is_secret
from bot.environment import Environment
from bot.errors import ConfigError, Problem
from bot.home import Home
from bot.settings import Settings, secrets_in
from bot.tables import AgentSettings, BindingSettings, ChannelSettings
from workspaces.memory.settings import MemorySettings

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def written(home: Home, text: str) -> Home:
    home.config.write_text(text, encoding="utf-8")
    return home


def problems(home: Home, text: str, environ: dict[str, str] | None = None) -> list[Problem]:
    """What is wrong with ``text``; the file must be untouched afterwards."""
    written(home, text)
    with pytest.raises(ConfigError) as caught:
        load(home, environ or {})
    assert home.config.read_text(encoding="utf-8") == text
    assert caught.value.exit_code == 2
    return list(caught.value.problems)


def test_no_file_is_one_agent_in_the_terminal(home: Home) -> None:
    settings = load(home, {})
    assert list(settings.agents) == ["main"]
    assert settings.default_agent == "main"
    assert settings.agents["main"].recall == "auto"
    assert settings.workspace("main", home) == home.root / "workspaces" / "main"
    assert (settings.channels, settings.bindings, settings.owners, settings.degraded) == ({}, (), (), {})
    assert settings.models.default is None
    assert not list(home.root.iterdir())


@pytest.mark.parametrize(
    ("text", "agents", "default"),
    [
        ("[agents.work]", ["main", "work"], "main"),
        ('[agents.work]\n[[bindings]]\nagent = "work"\nchannel = "terminal"', ["main", "work"], "main"),
        ('[agents.work]\n[[bindings]]\nagent = "work"', ["main", "work"], "work"),
        ('[agents.work]\n[agents.main]\n[[bindings]]\nagent = "work"', ["work", "main"], "work"),
        ('[agents.work]\n[agents.play]\n[[bindings]]\nagent = "play"', ["main", "work", "play"], "play"),
        ('[[bindings]]\nagent = "main"', ["main"], "main"),
        ("[agents]", ["main"], "main"),
    ],
)
def test_one_more_agent_takes_main_from_nobody(home: Home, text: str, agents: list[str], default: str) -> None:
    """A binding of everything to another agent puts that in its place. Tab and `where` know it as well."""
    settings = load(written(home, text), {})
    assert (list(settings.agents), settings.default_agent) == (agents, default)
    data = read(home.config).data
    assert (list(agent_tables(data)), default_agent(data)) == (agents, default)


def test_an_agent_from_the_environment_takes_main_from_nobody(home: Home) -> None:
    settings = load(home, {"LIMPET_AGENTS__WORK__RECALL": "off"})
    assert list(settings.agents) == ["main", "work"]


def test_a_binding_of_everything_to_nobody_leaves_main(home: Home) -> None:
    (problem,) = problems(home, '[agents.work]\n[[bindings]]\nagent = "wrok"\n')
    assert str(problem).endswith("no agent is called 'wrok' — did you mean 'work'?")


def test_a_whole_file(home: Home) -> None:
    text = f"""
        owners = ["telegram:1"]
        identities.ann = ["telegram:1", "terminal:ann"]

        [agents.work]
        model = "fast"
        workspace = "~/notes"
        time_zone = "Europe/Berlin"
        [agents.main]

        [channels.telegram]
        token = "{TOKEN}"
        allow = [17, "18"]
        groups = [-100123]
        require_mention = false
        base_url = "http://127.0.0.1:8081"

        [[bindings]]
        agent = "work"
        channel = "telegram"
        chat = -100123

        [models]
        default = "ollama/qwen3:4b"
        [models.fast]
        model = "openai/gpt-6.1-terra"

        [memory]
        limit = 3
    """
    settings = load(written(home, text), {"HOME": "/nowhere"})
    assert settings.default_agent == "main"
    assert settings.workspace("work", home) == Path("~/notes").expanduser()
    channel = settings.channels["telegram"]
    assert channel.kind == "telegram"
    assert isinstance(channel.options, TelegramSettings)
    assert channel.options.token.get_secret_value() == TOKEN
    assert settings.policies() == {
        ("telegram", "telegram"): Policy("pairing", frozenset({"17", "18"}), frozenset({"-100123"}), mention=False)
    }
    route = settings.routes()[0]
    assert (route.agent, route.match.channel, route.match.chat) == ("work", "telegram", "-100123")
    assert route.origin == f"limpet.toml:{text[: text.index('[[bindings]]')].count(chr(10)) + 1}"
    assert settings.models.named()["fast"].model == "openai/gpt-6.1-terra"
    assert settings.memory.limit == 3
    assert secrets_in(settings) == {TOKEN}
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    "model", [AgentSettings, BindingSettings, ChannelSettings, NamedModel, MemorySettings, TelegramSettings]
)
def test_no_table_lets_an_unknown_key_pass(model: type[BaseModel]) -> None:
    assert model.model_config.get("extra") == "forbid"


class TestVariables:
    def test_references_are_resolved_everywhere_and_never_written_back(self, home: Home) -> None:
        """G-OPS-05: the template stays in the file through every load and change."""
        text = (
            'owners = ["telegram:${ME}"]\n[channels.telegram]\ntoken = "${TG_TOKEN}"\n'
            'base_url = "http://${HOST:-127.0.0.1}:8081"\n[memory]\nlimit = "${LIMIT}"\n'
        )
        environ = {"ME": "17", "TG_TOKEN": TOKEN, "LIMIT": "4"}
        settings = load(written(home, text), environ)
        options = settings.channels["telegram"].options
        assert settings.owners == ("telegram:17",)
        assert options.token.get_secret_value() == TOKEN
        assert options.base_url == "http://127.0.0.1:8081"
        assert settings.memory.limit == 4
        change(home, {("agents", "main", "recall"): "off"}, environ)
        assert home.config.read_text() == text + '\n[agents.main]\nrecall = "off"\n'

    def test_the_environment_wins_over_the_env_file(self, home: Home) -> None:
        home.env_file.write_text("A=stored\nB='stored # too'\nLIMPET_MODEL=ollama/x\n")
        written(home, '[agents.main]\nmodel = "${A}/${B}"\n')
        assert load(home, {"A": "mine"}).agents["main"].model == "mine/stored # too"
        assert load(home, {}).models.default == "ollama/x"

    def test_two_dollars_are_one_and_no_reference(self, home: Home) -> None:
        assert load(written(home, '[models]\ndefault = "a/$${B}"\n'), {}).models.default == "a/${B}"

    def test_a_missing_one_is_named_with_its_place_and_where_it_was_looked_for(self, home: Home) -> None:
        (problem,) = problems(home, '[models]\n# the key\napi_key = "${MY_KEY}"\n', {"MY_KEY": ""})
        assert (problem.key, problem.line, problem.column) == ("models.api_key", 3, 1)
        said = str(problem)
        assert "MY_KEY" in said
        assert "not in the environment" in said
        assert str(home.env_file) in said
        assert "no default" in said

    def test_one_without_an_end_is_refused(self, home: Home) -> None:
        (problem,) = problems(home, '[models]\ndefault = "${OPEN"\n')
        assert "without a name and '}'" in problem.message

    def test_limpet_model_wins_over_the_file(self, home: Home) -> None:
        written(home, '[models]\ndefault = "a/b"\n')
        assert load(home, {"LIMPET_MODEL": "c/d"}).models.default == "c/d"

    def test_the_environment_alone_suffices(self, home: Home) -> None:
        environ = {
            "LIMPET_MODELS__BASE_URL": "http://127.0.0.1:1/v1",
            "LIMPET_MODELS__DEFAULT": "a/b",
            "LIMPET_MEMORY__LIMIT": "2",
            "LIMPET_OWNERS": '["telegram:1"]',
            "LIMPET_CHANNELS__TELEGRAM__ALLOW": '["1"]',
            "LIMPET_CHANNELS__TELEGRAM__TOKEN": TOKEN,
            "LIMPET_HOME": "ignored here",
            "LIMPET_CONFIG": "ignored here",
            "LIMPET_DEBUG": "1",
        }
        settings = load(home, environ)
        assert settings.models.default == "a/b"
        assert settings.memory.limit == 2
        assert settings.owners == ("telegram:1",)
        assert settings.channels["telegram"].allow == ("1",)
        assert settings.channels["telegram"].options.token.get_secret_value() == TOKEN

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("LIMPET_MEMORY__LIMIT", "five", "LIMPET_MEMORY__LIMIT: limit must be a whole number"),
            ("LIMPET_OWNERS", "telegram:1", "LIMPET_OWNERS: owners must be a list"),
            ("LIMPET_MODELS__DEFALT", "a/b", "LIMPET_MODELS__DEFALT: unknown key 'defalt' — did you mean 'default'?"),
        ],
    )
    def test_a_wrong_variable_is_named_and_no_line_of_the_file(
        self, home: Home, name: str, value: str, said: str
    ) -> None:
        (problem,) = problems(home, "[memory]\nlimit = 3\n", {name: value})
        assert str(problem).startswith(said)
        assert problem.line is None

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("LIMPET_MODLE", "LIMPET_MODEL"),
            ("LIMPET_MODLES__DEFAULT", "LIMPET_MODELS__DEFAULT"),
            ("LIMPET_SERVICE_HOST", None),
            ("LIMPET_MODEL", None),
        ],
    )
    def test_a_misspelt_variable_is_warned_of(self, home: Home, name: str, meant: str | None) -> None:
        warnings = [str(warning) for warning in load(home, {name: "a/b"}).warnings]
        assert warnings == ([f"{name} means nothing — did you mean {meant}?"] if meant else [])

    def test_a_file_that_was_asked_for_has_to_be_there(self, home: Home) -> None:
        with pytest.raises(ConfigError, match=r"other\.toml is not there — mend --config or LIMPET_CONFIG"):
            load(Home(home.root, home.root / "other.toml"), {})


class TestSecretsOfChannels:
    def test_a_token_is_found_under_its_usual_name(self, home: Home) -> None:
        written(home, "[channels.telegram]\n")
        assert load(home, {"TELEGRAM_BOT_TOKEN": TOKEN}).channels["telegram"].options.token.get_secret_value() == TOKEN
        home.env_file.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
        home.env_file.chmod(0o600)
        settings = load(home, {})
        assert settings.channels["telegram"].options.token.get_secret_value() == TOKEN
        assert settings.warnings == ()

    def test_a_second_bot_has_a_name_of_its_own(self, home: Home) -> None:
        text = '[channels.telegram]\n[channels.work]\nkind = "telegram"\n'
        settings = load(written(home, text), {"TELEGRAM_BOT_TOKEN": TOKEN, "WORK_BOT_TOKEN": "99:x"})
        assert settings.channels["work"].options.token.get_secret_value() == "99:x"
        assert list(settings.policies()) == [("telegram", "telegram"), ("telegram", "work")]
        alone = load(written(home, '[channels.work]\nkind = "telegram"\n'), {"TELEGRAM_BOT_TOKEN": TOKEN})
        assert alone.channels["work"].options.token.get_secret_value() == TOKEN

    @pytest.mark.parametrize(
        "line", ["", 'token = ""', 'token = "${TG_TOKEN}"', 'token = "${TG_TOKEN}"\nbase_url = "${TG_URL}"']
    )
    def test_a_missing_one_takes_only_its_channel_away(self, home: Home, line: str) -> None:
        """G-OPS-05: the variable is named; the other channel is there."""
        text = f'[channels.telegram]\n{line}\n[channels.work]\nkind = "telegram"\ntoken = "{TOKEN}"\n'
        settings = load(written(home, text), {})
        assert list(settings.channels) == ["work"]
        problem = settings.degraded["telegram"]
        assert ("TG_TOKEN" if "TG" in line else "TELEGRAM_BOT_TOKEN") in problem.message
        assert str(home.env_file) in f"{problem.message} {problem.mend}"
        assert problem.file == home.config

    def test_one_that_is_switched_off_is_not_missed(self, home: Home) -> None:
        settings = load(written(home, "[channels.telegram]\nenabled = false\n"), {})
        assert settings.degraded == {}

    def test_a_typo_in_its_section_is_still_an_error(self, home: Home) -> None:
        (problem,) = problems(home, "[channels.telegram]\ndirekt = 1\n")
        assert problem.mend == "did you mean 'direct'?"

    def test_files_that_others_can_read_are_warned_of(self, home: Home) -> None:
        written(home, f'[channels.telegram]\ntoken = "{TOKEN}"\n').config.chmod(0o644)
        (warning,) = load(home, {}).warnings
        assert warning.mend == f"chmod 600 {home.config}"
        home.config.chmod(0o600)
        assert load(home, {}).warnings == ()


class TestProblems:
    def test_all_are_told_at_once_in_the_order_of_the_file(self, home: Home) -> None:
        text = (
            "[agents.main]\nrecal = 'auto'\n[channels.telegram]\nprot = 1\nenabled = 'perhaps'\n"
            "[models]\nbasurl = 'x'\nbase_url = 'ftp://x'\n[models.fast]\napi_kye = 'x'\n[memory]\nlimit = 'five'\n"
        )
        found = problems(home, text)
        assert [problem.line for problem in found] == [2, 4, 5, 7, 8, 10, 12]
        assert str(found[0]) == f"{home.config}:2:1 unknown key 'recal' — did you mean 'recall'?"
        assert str(found[6]).endswith('limit must be a whole number, not "five" — for example: limit = 6')

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                '[agents.main]\nrecall = "atuo"',
                "recall must be 'auto', 'tool' or 'off', not \"atuo\" — did you mean 'auto'?",
            ),
            ('[agents.main]\ntime_zone = "Berlin"', "'Berlin' is no time zone — did you mean 'Europe/Berlin'?"),
            ('[agents.main]\ntime_zone = "../../etc/passwd"', "is no time zone"),
            ('[agents.main]\nworkspace = "notes"', 'write it out: "~/notes"'),
            ('[agents."../up"]', "can't be the name of an agent"),
            ("agents = 5", "agents must be a table, not 5"),
            ("[agents]\nmain = 5", "main must be a table, not 5"),
            ("[chanels.telegram]", "unknown key 'chanels' — did you mean 'channels'?"),
            ("[channels.telegrm]", "no channel is called 'telegrm' — did you mean 'telegram'?"),
            ("[channels.x]\nkind = 5", "no channel is called 5"),
            ('[channels.telegram]\ndirect = "everyone"', "direct must be 'pairing', 'allowlist', 'open' or 'disabled'"),
            ('[channels.telegram]\ndirect = "open"', 'if it is meant: allow = ["*"]'),
            ('[channels.telegram]\nallow = ["*"]', 'if everyone is meant: direct = "open"'),
            (
                '[channels.telegram]\nallow = "17"',
                'allow must be a list, not "17" — for example: allow = ["123456789"]',
            ),
            ('[channels.telegram]\nallow = [""]', "an empty id allows nobody"),
            ("[channels.telegram]\noptions = 1", "unknown key 'options'"),
            ('owners = ["@ann"]', "'@ann' is a name, and names change hands"),
            ('owners = ["telegram:@ann"]', "is a name, and names change hands"),
            ('owners = ["17"]', 'lacks the channel — write channel and id: "telegram:123456789"'),
            ('owners = ["telegrm:17"]', "names no channel — did you mean 'telegram'?"),
            ('[[bindings]]\nchannel = "terminal"', 'says nobody who answers — add agent = "main"'),
            ('[[bindings]]\nagent = "mian"', "no agent is called 'mian' — did you mean 'main'?"),
            ('[[bindings]]\nagent = "main"\nchat = 5', "chat = '5' says nothing without channel"),
            ('[[bindings]]\nagent = "main"\naccount = "telegram"\nrole = 5', "says nothing without space — add space"),
            ('[[bindings]]\nagent = "main"\nchannel = "telegram"\nthread = 5', "says nothing without chat"),
            ('[[bindings]]\nagent = "main"\nchannel = "telgram"', "no channel is called 'telgram'"),
            ('[[bindings]]\nagent = "main"\naccount = "work"', "no section of [channels] is called 'work'"),
            ('[identities]\nann = ["telegram:1"]\nbob = ["telegram:1"]', "'telegram:1' is also in identities.ann"),
        ],
    )
    def test_each_names_key_value_and_mend(self, home: Home, text: str, said: str) -> None:
        """G-RTE-18 and G-RTE-19 among them: ids decide, an empty id is nobody's, "*" has to be said twice."""
        (problem,) = problems(home, text, {"TELEGRAM_BOT_TOKEN": TOKEN})
        assert said in str(problem)
        assert problem.line is not None

    def test_two_bindings_that_ask_the_same_are_refused_with_both_lines(self, home: Home) -> None:
        text = (
            '[agents.main]\n[agents.work]\n[[bindings]]\nagent = "main"\nchannel = "telegram"\n'
            '[[bindings]]\nagent = "work"\nchannel = "telegram"\n'
        )
        (problem,) = problems(home, text)
        assert problem.line == 6
        assert "limpet.toml:3" in problem.message

    def test_a_secret_is_masked(self, home: Home) -> None:
        (problem,) = problems(home, f'[channels.telegram]\ntoken = ["{TOKEN}"]\n')
        assert TOKEN not in str(problem.as_dict())
        (problem,) = problems(home, f'[memory]\npreset = "{TOKEN}"\n')
        assert TOKEN not in str(problem.as_dict())

    def test_an_empty_allowlist_is_nobody_and_is_warned_of(self, home: Home) -> None:
        """G-RTE-18: denied, with a warning at the start."""
        settings = load(written(home, f'[channels.telegram]\ntoken = "{TOKEN}"\ndirect = "allowlist"\n'), {})
        assert settings.policies()["telegram", "telegram"].allow == frozenset()
        assert any("nobody may write" in warning.message for warning in settings.warnings)

    @pytest.mark.parametrize("text", ['a = 1\nb = "', "[models]\ndefault = a/b\n", '{"models": {},}', "\x00"])
    def test_a_broken_file_is_refused_by_whatever_would_save(self, home: Home, text: str) -> None:
        """G-OPS-01: untouched, the place named, never run on defaults, never replaced by them."""
        written(home, text)
        with pytest.raises(ConfigError) as caught:
            load(home, {})
        assert caught.value.problems[0].line is not None
        with pytest.raises(ConfigError):
            change(home, {("models", "default"): "a/b"}, {})
        assert home.config.read_text() == text


def test_a_change_is_validated_before_it_is_written(home: Home) -> None:
    written(home, "# mine\n[memory]\nlimit = 3\n")
    with pytest.raises(ConfigError) as caught:
        change(home, {("memory", "limit"): 5000}, {})
    (problem,) = caught.value.problems
    assert problem.line is None, "the line would be one of a file that was never written"
    assert "less than or equal to 50" in problem.message
    assert home.config.read_text() == "# mine\n[memory]\nlimit = 3\n"


def test_a_change_can_mend_what_is_wrong(home: Home) -> None:
    written(home, "[memory]\nlimit = 'x'\n")
    change(home, {("memory", "limit"): 4}, {})
    assert load(home, {}).memory.limit == 4


def test_a_section_alone_is_a_change(home: Home) -> None:
    settings = change(home, {("channels", "telegram"): {}}, {"TELEGRAM_BOT_TOKEN": TOKEN})
    assert home.config.read_text() == "[channels.telegram]\n"
    assert list(settings.channels) == ["telegram"]


@pytest.mark.parametrize(
    ("key", "variable"),
    [
        (("channels", "telegram", "token"), "TELEGRAM_BOT_TOKEN"),
        (("channels", "my-bot", "token"), "MY_BOT_BOT_TOKEN"),
        (("models", "api_key"), "LIMPET_MODELS__API_KEY"),
        (("models", "default"), None),
        (("channels", "telegram", "direct"), None),
    ],
)
def test_where_a_secret_belongs(key: tuple[str, ...], variable: str | None) -> None:
    assert secret_variable(key, {"channels": {"my-bot": {"kind": "telegram"}}}) == variable


EVERYTHING: dict[str, Any] = {
    "agents": {"main": {}},
    "channels": {"telegram": {"token": TOKEN}},
    "bindings": [{"agent": "main"}],
    "models": {"fast": {}},
}


def misspelt(word: str, dice: random.Random) -> str:
    """One edit away: a letter swapped, dropped, doubled, replaced or put in."""
    at = dice.randrange(len(word))
    letter = dice.choice(string.ascii_lowercase)
    match dice.randrange(5):
        case 0 if len(word) > 1:
            at = min(at, len(word) - 2)
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        case 1 if len(word) > 2:
            return word[:at] + word[at + 1 :]
        case 2:
            return word[:at] + word[at] + word[at:]
        case 3:
            return word[:at] + letter + word[at + 1 :]
        case _:
            return word[:at] + letter + word[at:]


def document(key: tuple[str | int, ...], misspelling: str) -> str:
    """A file whose only fault is that the last part of ``key`` is misspelt."""
    field = field_at(key, EVERYTHING)
    example = example_of(field) if field else {}
    value = toml_value("text" if example is None else example)
    *table, _ = key
    line = f"{misspelling} = {value}"
    if not table:
        return line
    if "bindings" in table:
        return f'[[bindings]]\nagent = "main"\n{line}'
    return f"[{dotted(tuple(table))}]\n{line}"


def test_one_edit_typos_get_the_right_suggestion(tmp_path: Path) -> None:
    """Over all keys, 50 typos and then 500: of the suggestions at least 95 in 100 are the key that was meant."""
    keys = sorted({*all_keys(EVERYTHING), *((name,) for name in Settings.model_fields)}, key=str)
    assert len(keys) > 40
    for count, seed in ((50, 1), (500, 2)):
        dice = random.Random(seed)
        right = total = 0
        while total < count:
            key = dice.choice(keys)
            word = str(key[-1])
            wrong = misspelt(word, dice)
            if field_at((*key[:-1], wrong), EVERYTHING) is not None or wrong == word:
                continue
            total += 1
            with pytest.raises(ConfigError) as caught:
                build(ConfigFile(tmp_path / "limpet.toml", document(key, wrong)), Environment({}, tmp_path / ".env"))
            said = [problem for problem in caught.value.problems if problem.key == dotted((*key[:-1], wrong))]
            assert len(said) == 1, (key, wrong)
            assert said[0].message == f"unknown key {wrong!r}"
            right += said[0].mend == f"did you mean {word!r}?"
        assert right / total >= 0.95, f"{right} of {total}"


def test_every_key_has_an_example_that_is_accepted(tmp_path: Path) -> None:
    """What a message offers as "for example" must itself pass."""
    for key in all_keys(EVERYTHING):
        field = field_at(key, EVERYTHING)
        assert field is not None, key
        if example_of(field) is None:
            continue
        text = document(key, str(key[-1]))
        if key[0] == "bindings":  # most of its keys say something only beside others
            text = '[channels.telegram]\n[[bindings]]\nagent = "main"\nchannel = "telegram"\nspace = "1"\nchat = "2"'
            text += f"\n{key[-1]} = {toml_value(example_of(field))}" if f"\n{key[-1]} =" not in text else ""
            if key[-1] in ("template", "per"):  # in the place of the agent
                text = "[templates.support]\n" + text.replace('agent = "main"', 'template = "support"', 1)
                text = text.replace('\ntemplate = "support"', "", text.count('\ntemplate = "support"') - 1)
        if str(key[-1]).startswith("price_"):  # one price says nothing without the other
            text += "".join(f"\n{name} = 1" for name in ("price_input", "price_output") if name != key[-1])
        environment = Environment({"TELEGRAM_BOT_TOKEN": TOKEN, "OPENAI_API_KEY": "k"}, tmp_path / ".env")
        build(ConfigFile(tmp_path / "limpet.toml", text), environment)


def test_the_models_table_is_open_to_names_only() -> None:
    assert ModelsSettings.model_validate({"fast": {"model": "a/b"}}).named()["fast"].model == "a/b"
    assert is_secret(("models", "fast", "api_key"), EVERYTHING)
    assert not is_secret(("models", "fast", "model"), EVERYTHING)


@pytest.mark.parametrize("key", ['account = ["telegram"]', "account = {}", 'channel = ["telegram"]'])
def test_a_binding_that_makes_no_sense_is_refused_in_words(tmp_path: Path, key: str) -> None:
    home = Home(tmp_path)
    home.config.write_text(f'[[bindings]]\nagent = "main"\nsender = "1"\n{key}\n', encoding="utf-8")
    with pytest.raises(ConfigError):
        load(home, {})


def test_ids_that_have_several_writings_are_read_in_all_of_them(tmp_path: Path) -> None:
    """A phone number, wherever a sender is named."""
    home = Home(tmp_path)
    home.config.write_text(
        'owners = ["whatsapp:+1 (555) 000-1234"]\n\n'
        '[identities]\nann = ["whatsapp:001 555 0001235", "telegram:7"]\n\n'
        '[channels.whatsapp]\ndirect = "allowlist"\nallow = ["+1-555-0001236", "100000000000002@lid", 15550001240]\n'
        'blocked = ["1555 0001237"]\n\n'
        '[channels.whatsapp.chats."120363000000000001@g.us"]\nallow = ["+1 555 0001238"]\n\n'
        '[[bindings]]\nagent = "main"\nchannel = "whatsapp"\nsender = "+1 555 0001239"\n\n'
        '[[bindings]]\nagent = "main"\naccount = "whatsapp"\nsender = 15550001241\n',
        encoding="utf-8",
    )
    settings = load(home, {})
    assert settings.owners == ("whatsapp:+15550001234",)
    assert settings.identities["ann"] == ("whatsapp:+15550001235", "telegram:7")
    section = settings.channels["whatsapp"]
    assert (section.allow, section.blocked) == (
        ("+15550001236", "100000000000002@lid", "+15550001240"),
        ("+15550001237",),
    )
    assert section.chats["120363000000000001@g.us"].allow == ("+15550001238",)
    assert [binding.sender for binding in settings.bindings] == ["+15550001239", "+15550001241"]


@pytest.mark.parametrize(
    "line", ['owners = ["whatsapp:ann"]', '[channels.whatsapp]\ndirect = "allowlist"\nallow = ["0151 12"]']
)
def test_what_is_no_phone_number_is_refused_with_the_mend(tmp_path: Path, line: str) -> None:
    home = Home(tmp_path)
    home.config.write_text(line, encoding="utf-8")
    with pytest.raises(ConfigError, match="no phone number — write it with its country code, such as"):
        load(home, {})
