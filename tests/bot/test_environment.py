"""Variables, the home and small words: where they come from, and what was probably meant."""

from __future__ import annotations

from pathlib import Path

import dotenv
import pytest

from bot.environment import Environment, Unresolved, references, remove, resolve, store
from bot.errors import ConfigError
from bot.home import Home
from bot.spelling import closest, did_you_mean, distance
from bot.zone import machine_zone, suggested, zone


def test_a_home_is_where_the_environment_says() -> None:
    assert Home.locate({}).root == Path("~/.limpet").expanduser()
    assert Home.locate({"LIMPET_HOME": ""}).root == Path("~/.limpet").expanduser()
    home = Home.locate({"LIMPET_HOME": "/srv/limpet", "LIMPET_CONFIG": "/etc/limpet.toml"})
    assert home.config == Path("/etc/limpet.toml")
    assert home.database == Path("/srv/limpet/state/limpet.sqlite")
    assert home.socket == Path("/srv/limpet/state/limpet.sock")
    assert home.index("main") == Path("/srv/limpet/state/agents/main/index.sqlite")
    assert home.with_config("a.toml").config == Path.cwd() / "a.toml"


@pytest.mark.parametrize("name", ["../up", "a/b", "/etc", "..", "con", ""])
def test_no_name_of_an_agent_leads_out_of_the_home(name: str) -> None:
    home = Home(Path("/srv/limpet"))
    for path in (home.workspace(name), home.sessions(name), home.index(name), home.history(name)):
        assert path.is_relative_to(home.root)
        assert ".." not in path.parts
    assert home.workspace(name).parent == home.workspaces


@pytest.mark.parametrize("value", ["plain", "with space", "it's", 'say "hi"', "back\\slash", "a#b", "${NOT}", "ü", " "])
def test_a_stored_variable_is_read_back_as_it_was(tmp_path: Path, value: str) -> None:
    path = tmp_path / ".env"
    path.write_text("# mine\nexport A='1'\nB=2")
    path.chmod(0o644)
    store(path, "A", value)
    store(path, "C", value)
    assert dotenv.dotenv_values(path, interpolate=False) == {"A": value, "B": "2", "C": value}
    assert path.read_text().startswith("# mine\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert Environment.of(Home(tmp_path), {}).get("A") == value


def test_a_variable_is_taken_out_and_every_other_line_stays(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# mine\nA='1'\nbad line\nexport B=\"x\ny\"\n# of A\nA=2\nC=3")
    remove(path, "A")
    assert path.read_text() == '# mine\nbad line\nexport B="x\ny"\n# of A\nC=3'
    remove(path, "B")
    remove(path, "C")
    assert path.read_text() == "# mine\nbad line\n# of A\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_stored_variable_replaces_one_of_several_lines(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text('A="x\ny"\nB=2\n')
    store(path, "A", "1")
    assert path.read_text() == "A=1\nB=2\n"


def test_lines_that_set_nothing_are_counted(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("A=1\n\n\nnot one\nTOKEN\n=5\n# fine\n\n  # fine\nB='open\nC=\n")
    environment = Environment.of(Home(tmp_path), {})
    assert environment.bad_lines == (4, 5, 6, 10)
    assert environment.variables == {"A": "1", "C": ""}


def test_a_variable_has_a_place(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nB=2\nC=3\n")
    environment = Environment.of(Home(tmp_path), {"A": "9", "B": ""})
    assert [environment.get(name) for name in "ABCD"] == ["9", "2", "3", None]
    stored = str(tmp_path / ".env")
    assert [environment.place(name) for name in "ABC"] == ["the environment", stored, stored]


def test_variables_that_a_table_names() -> None:
    data = {"a": "${A}", "b": ["${B}-${C:-x}", {"d": "${D}"}], "n": 5, "e": "$${E}"}
    assert list(references(data)) == ["A", "B", "C", "D"]


def test_a_value_of_two_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="spans lines"):
        store(tmp_path / ".env", "A", "x\ny")
    assert not (tmp_path / ".env").exists()


def test_an_env_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(ConfigError, match=r"\.env can't be read"):
        Environment.of(Home(tmp_path), {})


def test_references() -> None:
    environment = Environment({"A": "1", "EMPTY": ""}, Path("/x/.env"))
    data = {
        "plain": "a",
        "one": "${A}",
        "two": ["${A}-${A}", {"deep": "${B:-}"}],
        "default": "${EMPTY:-d}",
        "literal": "$${A} $A ${A}",
        "number": 5,
    }
    resolved, missing = resolve(data, environment)
    assert resolved == {
        "plain": "a",
        "one": "1",
        "two": ["1-1", {"deep": ""}],
        "default": "d",
        "literal": "${A} $A 1",
        "number": 5,
    }
    assert missing == []
    assert resolve({"a": ["${B}"], "b": "${", "c": "${x y}"}, environment)[1] == [
        Unresolved(("a", 0), "B"),
        Unresolved(("b",), None),
        Unresolved(("c",), None),
    ]


@pytest.mark.parametrize(
    ("left", "right", "edits"), [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("status", "staus", 1), ("abc", "xyz", 3)]
)
def test_edits(left: str, right: str, edits: int) -> None:
    assert distance(left, right) == distance(right, left) == edits


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("staus", "status"),
        ("STATUS", "status"),
        ("stauts", "status"),
        ("statsu", "status"),
        ("hello", None),
        ("rn", "run"),
        ("hi", None),
        ("", None),
        ("base-url", "base_url"),
    ],
)
def test_the_word_that_was_meant(word: str, meant: str | None) -> None:
    assert closest(word, ["status", "run", "chat", "base_url"]) == meant


def test_the_mend_for_an_unknown_word() -> None:
    assert did_you_mean("chta", ["chat", "run"]) == "did you mean 'chat'?"
    assert did_you_mean("x", ["chat", "run"]) == "there are: chat, run"
    assert did_you_mean("x", []) == "there are: none"


def test_zones() -> None:
    assert machine_zone({"TZ": "Asia/Tokyo"}) == zone("Asia/Tokyo")
    assert machine_zone({"TZ": ":Asia/Tokyo"}) == zone("Asia/Tokyo")
    assert [zone(name) for name in ("", "Europe", "Mars/Base", "../../etc/passwd", "/etc/passwd")] == [None] * 5


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("Viena", "Europe/Vienna"),
        ("Europe/Berlln", "Europe/Berlin"),
        ("nowhere at all", None),
    ],
)
def test_the_zone_that_was_meant(name: str, meant: str | None) -> None:
    assert suggested(name) == meant
