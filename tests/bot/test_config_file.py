"""The settings file as text: lines and columns, edits that leave the rest alone, refusals that touch nothing."""

from __future__ import annotations

import difflib
import random
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pytest

from bot.config_file import ConfigFile, dotted, key_of, read, toml_value
from bot.errors import BotError, ConfigError
from bot.toml_positions import Key, positions

SAMPLE = '''\
# Limpet of the Miller family

# who may do everything
owners = ["telegram:1",  # Ann
          'telegram:2']
odd.'a b'."c.d" = {x = 1, y.z = [1, {q = "}"}]}

[agents.main]  # the first
recall = "auto"     # keep this comment
note = """
[not.a.table]
key = "in a text"
"""

# the door
  [channels.telegram]
  token = "${TG_TOKEN}"
  allow = [
    "1",  # Ann
    "2",
  ]

[[bindings]]
agent = "main"
channel = "telegram"

# the second
[[bindings]]
agent = "main"
space = "T1"
'''


@pytest.fixture
def sample(tmp_path: Path) -> ConfigFile:
    path = tmp_path / "limpet.toml"
    path.write_bytes(SAMPLE.encode())
    return read(path)


def paths_of(node: Any, path: Key = ()) -> Iterator[Key]:
    for name, value in node.items() if isinstance(node, dict) else enumerate(node):
        yield (*path, name)
        if isinstance(value, dict | list):
            yield from paths_of(value, (*path, name))


def comments_of(text: str) -> list[str]:
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


def test_every_key_of_a_document_has_its_place() -> None:
    found = positions(SAMPLE)
    assert set(found) == set(paths_of(tomllib.loads(SAMPLE)))
    lines = SAMPLE.split("\n")
    for key, place in found.items():
        rest = lines[place.line - 1][place.column - 1 :]
        if isinstance(key[-1], str):
            assert rest.lstrip("\"'").startswith(key[-1]), (key, rest)


@pytest.mark.parametrize(
    ("key", "line", "column"),
    [
        (("owners", 1), 5, 11),
        (("channels", "telegram"), 16, 13),
        (("channels", "telegram", "allow", 1), 20, 5),
        (("bindings", 1, "space"), 30, 1),
        (("channels", "telegram", "absent"), 16, 13),
    ],
)
def test_a_key_is_found_by_line_and_column(sample: ConfigFile, key: Key, line: int, column: int) -> None:
    place = sample.position(key)
    assert place is not None
    assert (place.line, place.column) == (line, column)


@pytest.mark.parametrize(
    ("key", "value", "gone"),
    [
        ("agents.main.recall", "off", 1),
        ("agents.main.model", "ollama/qwen3:4b", 0),
        ("agents.main.note", "short", 4),
        ("channels.telegram.direct", "open", 0),
        ("channels.telegram.allow", ["3"], 4),
        ("bindings[0].chat", "-100", 0),
        ("bindings[1].space", "T2", 1),
        ("models.default", "a/b", 0),
        ("channels.slack", {}, 0),
        ("channels.slack", {"kind": "slack", "allow": ["1"]}, 0),
        ('agents."odd name".model', "a", 0),
        ("odd.'a b'.\"c.d\".x", 2, 1),
        ("odd.more", 2, 0),
        ("identities", {"ann": ["telegram:1"]}, 0),
        ("top", 1, 0),
    ],
)
def test_an_edit_changes_its_key_and_no_other_line(sample: ConfigFile, key: str, value: Any, gone: int) -> None:
    """``gone`` is how many lines of the old text are not in the new one; for a new key there are none."""
    path = key_of(key)
    edited = sample.with_value(path, value)
    assert edited.get(path) == value
    changes = list(difflib.ndiff(SAMPLE.splitlines(keepends=True), edited.text.splitlines(keepends=True)))
    assert len([line for line in changes if line.startswith("- ")]) == gone, "".join(changes)


def test_comments_survive_a_hundred_random_edits(sample: ConfigFile) -> None:
    """G-OPS-05, and the round trip of every comment: byte for byte, in their order, each above its own table."""
    dice = random.Random(20261130)
    keys = ["agents.main.recall", "agents.main.model", "memory.limit", "models.default", "channels.telegram.direct"]
    edited = sample
    for _ in range(100):
        path = key_of(dice.choice(keys))
        if edited.has(path) and dice.random() < 0.5:
            edited = edited.without(path)
        else:
            edited = edited.with_value(path, dice.choice(["x", "y # no comment", 'with "quotes"', 5, True]))
    kept = comments_of(edited.text.replace("# no comment", ""))
    wanted = comments_of(SAMPLE)
    lost = [comment for comment in wanted if comment not in kept]
    assert lost in ([], [" keep this comment"]), "only the comment of a line that was taken out may be gone"
    assert "# the door\n  [channels.telegram]" in edited.text
    assert 'token = "${TG_TOKEN}"' in edited.text


def test_a_table_that_is_set_keeps_its_header_and_its_comments(sample: ConfigFile) -> None:
    text = sample.with_value(("agents", "main"), {"recall": "off", "model": "a/b"}).text
    assert '[agents.main]  # the first\nrecall = "off"     # keep this comment\nmodel = "a/b"\n' in text
    assert sample.with_value(("channels",), {}).data["channels"] == {}


@pytest.mark.parametrize(
    "value",
    [
        'a "text"\n',
        5,
        -0.5,
        True,
        date(2026, 11, 30),
        time(12, 30),
        datetime(2026, 11, 30, 12, tzinfo=UTC),
        [],
        [1, "b", [True]],
        {},
        {"a": 1, "b": {"c": [1]}},
        [{"a": 1}, {"b": {"c": "d"}}],
        [{}],
    ],
)
def test_a_value_is_written_as_it_is_read(sample: ConfigFile, value: Any) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value
    assert sample.with_value(("top",), value).get(("top",)) == value


def test_what_is_none_in_a_table_is_not_written() -> None:
    assert toml_value([{"a": None, "b": 1}]) == "[{b = 1}]"


def test_a_new_key_stays_out_of_the_comment_of_the_next_table(sample: ConfigFile) -> None:
    text = sample.with_value(("bindings", 0, "chat"), "1").text
    assert 'channel = "telegram"\nchat = "1"\n\n# the second\n' in text


def test_windows_line_ends_and_a_byte_order_mark_stay(tmp_path: Path) -> None:
    path = tmp_path / "limpet.toml"
    path.write_bytes("\ufeff[models]\r\ndefault = 'a/b' # mine\r\n".encode())
    original = read(path)
    edited = original.with_value(("models", "default"), "c/d").with_value(("memory", "limit"), 3)
    edited.write(original)
    assert path.read_bytes() == '\ufeff[models]\r\ndefault = "c/d" # mine\r\n\r\n[memory]\r\nlimit = 3\r\n'.encode()


def test_a_top_level_key_comes_before_the_first_table_and_its_comment(tmp_path: Path) -> None:
    file = ConfigFile(tmp_path / "x.toml", "# the file\n\n# the models\n[models]\na = 1\n")
    assert file.with_value(("owners",), ["telegram:1"]).text == (
        '# the file\n\nowners = ["telegram:1"]\n\n# the models\n[models]\na = 1\n'
    )


def test_an_item_that_is_not_there_is_not_made_up(sample: ConfigFile) -> None:
    with pytest.raises(BotError, match=r"bindings\[7\]\.agent can't be changed in place"):
        sample.with_value(("bindings", 7, "agent"), "x")


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("[agents.main]\nrecall = auto\n", 2, 10, "text needs quotes"),
        ('a = 1\nb = "open\n', 2, 10, "close its quotes"),
        ("a = [1,\n", 1, 8, ""),
        ("a = 1\na = 2\n", 2, 6, ""),
        ('owners = ["telegram:1",,]\n', 1, 24, ""),
    ],
)
def test_broken_syntax_is_shown_with_a_caret(tmp_path: Path, text: str, line: int, column: int, said: str) -> None:
    path = tmp_path / "limpet.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(path)
    problem = caught.value.problems[0]
    assert (problem.line, problem.column) == (line, column)
    assert str(problem).startswith(f"{path}:{line}:{column} ")
    assert said in str(problem)
    shown, caret = str(problem).splitlines()[1:]
    assert shown == "    " + text.splitlines()[line - 1]
    assert caret.index("^") == column + 3


def test_the_line_of_broken_syntax_hides_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "limpet.toml"
    path.write_text('[channels.telegram]\ntoken = "123456789:AAHsecret\n')
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert "AAH" not in str(caught.value)


def test_bytes_that_are_no_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "limpet.toml"
    path.write_bytes(b'a = 1\nb = "caf\xe9"\n')
    with pytest.raises(ConfigError, match=r"limpet\.toml:2:9 byte 0xe9 is not UTF-8"):
        read(path)


def test_a_folder_in_place_of_the_file_is_an_error_not_a_default(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        read(tmp_path)


def test_writing_is_private_and_follows_a_link(tmp_path: Path) -> None:
    new = read(tmp_path / "home" / "limpet.toml")
    new.with_value(("models", "default"), "a/b").write(new)
    assert new.path.stat().st_mode & 0o777 == 0o600
    real = tmp_path / "dotfiles.toml"
    real.write_text("[models]\n")
    real.chmod(0o640)
    link = tmp_path / "limpet.toml"
    link.symlink_to(real)
    file = read(link)
    file.with_value(("models", "default"), "c/d").write(file)
    assert link.is_symlink()
    assert real.read_text() == '[models]\ndefault = "c/d"\n'
    assert real.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_edit_of_someone_else_is_never_overwritten(sample: ConfigFile) -> None:
    """G-OPS-03: a file that changed since it was read stays as the person left it."""
    edited = sample.with_value(("models", "default"), "a/b")
    sample.path.write_text("# mine now\n")
    with pytest.raises(BotError, match="changed by someone else"):
        edited.write(sample)
    assert sample.path.read_text() == "# mine now\n"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a.b", ("a", "b")),
        ("bindings[0].agent", ("bindings", 0, "agent")),
        ('agents."x.y".model', ("agents", "x.y", "model")),
        ("a.'b c'", ("a", "b c")),
    ],
)
def test_a_key_is_read_and_written_alike(text: str, key: Key) -> None:
    assert key_of(text) == key
    assert key_of(dotted(key)) == key


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a b", "[0]", "a[x]", 'a."b'])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no key"):
        key_of(text)


def test_the_last_table_of_its_kind_can_be_taken_out(tmp_path: Path) -> None:
    """A header such as [channels.telegram] is all there is of [channels]."""
    path = tmp_path / "limpet.toml"
    path.write_text('# mine\nowners = []\n\n[channels.telegram]\nkind = "telegram"\n\n[models]\n# kept\n', "utf-8")
    text = read(path).without(("channels", "telegram")).text
    assert "telegram" not in text
    assert "# mine" in text
    assert "# kept" in text
