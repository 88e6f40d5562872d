"""What every command has in common: exit codes, what goes to stdout, what to stderr, and that a typo costs nothing."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import bot.cli
from bot.cli.app import load
from bot.cli.dispatch import parse
from bot.cli.help import COMMANDS, Entry, text
from bot.errors import UsageError
from tests.bot.cli.conftest import Limpet

ROOT = Path(__file__).parents[3]

FRAME = {
    "admitting",
    "app",
    "dispatch",
    "help",
    "memory_index",
    "memory_use",
    "linking",
    "options",
    "output",
    "proving",
    "spared",
    "words",
    "__init__",
}


def test_version_and_help_are_on_stdout_and_nothing_else(limpet: Limpet) -> None:
    for words in (["--version"], ["-V"], ["--no-color", "--version"]):
        outcome = limpet.process(*words)
        assert (outcome.code, outcome.out, outcome.err) == (0, f"limpet {version('limpet')}\n", "")
    for words in (["--help"], ["-h"], ["help"], ["--config", "x", "--help"]):
        outcome = limpet.process(*words)
        assert (outcome.code, outcome.out, outcome.err) == (0, text() + "\n", "")


def test_the_quick_answers_import_no_machinery() -> None:
    """Start-up time is counted in imports: the answers that need nothing must load nothing."""
    code = (
        "import sys\nfrom bot.__main__ import run\nrun([sys.argv[1]])\n"
        "heavy = {'typer', 'pydantic', 'rich', 'structlog', 'asyncio', 'tomlkit'}\n"
        "if sys.argv[1].startswith('-'):\n"
        "    heavy |= {'importlib.metadata', 'dataclasses', 'inspect', 'typing', 'pathlib', 're'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    for word in ("--version", "-V", "--help", "-h", "staus", "plugins"):
        command = [sys.executable, "-S", "-c", code, word]  # without what a site-packages folder starts by itself
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stderr.splitlines()[-1] == "[]", word


def test_a_hub_starts_without_rich_and_has_it_when_it_is_wanted() -> None:
    code = (
        "import sys\nfrom bot.cli.spared import without_rich\nwithout_rich()\n"
        "import structlog\nprint('rich' in sys.modules, structlog.get_logger() is not None)\n"
        "import rich.console\nwithout_rich()\nprint('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


def test_the_help_fits_a_small_terminal() -> None:
    lines = text().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert len(COMMANDS) <= 20
    assert len({entry.group for entry in COMMANDS}) == 4


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_table_is_the_command_tree(entry: Entry) -> None:
    command = load(entry.name)
    assert tuple(sorted(getattr(command, "commands", {}))) == tuple(sorted(entry.verbs))
    assert command.help, "each command says what it does"


def test_every_module_of_commands_is_in_the_table() -> None:
    modules = {path.stem for path in Path(bot.cli.__file__).parent.glob("*.py")} - FRAME
    assert modules == {entry.name for entry in COMMANDS}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["staus"], "unknown command 'staus' — did you mean 'status'?"),
        (["Memroy", "search", "tea"], "did you mean 'memory'?"),
        (["chta", "--once", "hi"], "did you mean 'chat'?"),
        (["memory", "serach", "tea"], "unknown command 'memory serach' — did you mean 'search'?"),
        (["memory"], "what should `limpet memory` do? — say one of: search,"),
        (["plugins"], "to send one word say: limpet chat --once plugins"),
        (["--", "chta"], "did you mean 'chat'?"),
        (["hello", "there"], 'put a text in quotes: limpet "a question"'),
        (["keys", "list"], "unknown command 'keys'"),
        ([""], "there is no text to answer"),
        (["  "], "there is no text to answer"),
        (["--verison"], "did you mean '--version'?"),
        (["--config"], "--config needs a value"),
        (["--color", "red", "where"], "--color is 'red' — say auto, always or never"),
    ],
)
def test_a_slip_is_refused_and_never_sent_to_a_model(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ([], ["chat"]),
        (["hi"], ["chat", "--once", "hi"]),
        (["/status"], ["chat", "--once", "/status"]),
        (["今日は"], ["chat", "--once", "今日は"]),
        (["what is my dog called?"], ["chat", "--once", "what is my dog called?"]),
        (["two words", "--agent", "work"], ["chat", "--once", "two words", "--agent", "work"]),
        (["-"], ["chat", "--once", "-"]),
        (["- buy milk"], ["chat", "--once", "- buy milk"]),
        (["--", "--odd text"], ["chat", "--once", "--odd text"]),
        (["こんにちは\u3000世界"], ["chat", "--once", "こんにちは\u3000世界"]),
        (["status", "--json"], ["status", "--json"]),
        (["status", "--no-color"], ["status"]),
        (["chat", "--once", "--", "--config"], ["chat", "--once", "--", "--config"]),
        (["help", "memory"], ["memory", "--help"]),
        (["help", "memory", "search"], ["memory", "search", "--help"]),
    ],
)
def test_what_the_first_word_means(words: list[str], meaning: list[str]) -> None:
    assert parse(words).words == meaning


def test_global_options_may_stand_anywhere() -> None:
    for words in (["--config", "a.toml", "where"], ["where", "--config=a.toml", "--no-color"]):
        assert parse(words).config == "a.toml"
    assert parse(["--color=always", "where"]).colour == "always"


def test_errors_are_lines_on_stderr_or_json_there(limpet: Limpet) -> None:
    plain = limpet.process("config", "get", "agents.main.recal")
    assert (plain.code, plain.out) == (2, "")
    assert plain.err == "limpet: unknown key 'recal' — did you mean 'recall'?\n"
    as_json = limpet.process("config", "get", "agents.main.recal", "--json")
    assert (as_json.code, as_json.out) == (2, "")
    assert as_json.error == {
        "kind": "usage",
        "message": "unknown key 'recal'",
        "mend": "did you mean 'recall'?",
        "exit_code": 2,
    }
    slip = limpet.process("staus", "--json")
    assert (slip.code, slip.out, slip.error["mend"]) == (2, "", "did you mean 'status'?")


def test_an_unknown_option_is_one_line_with_the_way_to_help(limpet: Limpet) -> None:
    outcome = limpet("where", "--jsn")
    assert (outcome.code, outcome.out) == (2, "")
    assert len(outcome.err.splitlines()) == 1
    assert "--json" in outcome.err
    assert outcome.err.endswith("see: limpet where --help\n")


def test_help_of_a_command_is_plain_text(limpet: Limpet) -> None:
    outcome = limpet("where", "-h", FORCE_COLOR="1", TERM="xterm-256color")
    assert outcome.code == 0
    assert outcome.out.startswith("Usage: limpet where [OPTIONS]\n")
    assert not any(char in outcome.out for char in "\033│╭─")


def test_an_unforeseen_failure_is_one_line_and_leaves_its_traceback(limpet: Limpet) -> None:
    """G-OPS-06: and no secret in it."""
    secret = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
    (limpet.home.root / "sitecustomize.py").write_text(
        f"import bot.cli.output\ndef broken(*_, **__):\n    raise ZeroDivisionError('with {secret}')\n"
        "bot.cli.output.table = broken\n"
    )
    outcome = limpet.process("where", PYTHONPATH=str(limpet.home.root))
    assert (outcome.code, outcome.out) == (1, "")
    (line,) = outcome.err.splitlines()
    assert line.startswith("limpet: unexpected ZeroDivisionError")
    assert line.endswith(f"the traceback is in {limpet.home.log_file}")
    assert secret not in outcome.err
    record = json.loads(limpet.home.log_file.read_text())
    assert record["level"] == "critical"
    assert "Traceback (most recent call last)" in record["exception"]
    assert secret not in limpet.home.log_file.read_text()
    shown = limpet.process("where", PYTHONPATH=str(limpet.home.root), LIMPET_DEBUG="1")
    assert "Traceback (most recent call last)" in shown.err
    assert secret not in shown.err


def _hears_interrupts() -> None:
    """Whoever runs the tests in the background of a shell has them ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interrupting_is_130_and_one_line(limpet: Limpet) -> None:
    """Ctrl-C at a question, as a terminal sends it."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "bot", "init"],
        stdin=follower,
        stdout=subprocess.PIPE,
        stderr=follower,
        env=limpet.environ(),
        start_new_session=True,
        preexec_fn=_hears_interrupts,
    )
    os.close(follower)
    seen = b""
    while b"What shall I call you?" not in seen:
        seen += os.read(leader, 1024)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    seen += os.read(leader, 4096)
    os.close(leader)
    assert process.returncode == 130
    assert out == b""
    assert seen.count(b"Interrupted.") == 1
    assert b"Traceback" not in seen
    assert list(limpet.home.root.iterdir()) == []


def test_a_reader_that_leaves_is_no_error(limpet: Limpet) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m bot where | true; exit ${{PIPESTATUS[0]}}"],
        env=limpet.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1)
    assert done.stderr == ""


def test_where_names_six_places_also_with_a_broken_file(limpet: Limpet) -> None:
    limpet.settings("[agents.main]\nworkspace = '/srv/notes'\n")
    outcome = limpet("where", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.data["schema"] == 1
    assert outcome.data["memory"] == "/srv/notes"
    limpet.settings("[agents.work]\n")
    assert limpet("where", "--json").data["agent"] == "main"
    limpet.settings('[agents.work]\n[[bindings]]\nagent = "work"\n')
    assert limpet("where", "--json").data["agent"] == "work"
    limpet.settings("[agents.main\n")
    outcome = limpet("where")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split()[0] for line in outcome.out.splitlines()] == [
        "config",
        "memory",
        "database",
        "sessions",
        "logs",
        "models",
    ]
    assert str(limpet.home.root / "workspaces" / "main") in outcome.out
    unknown = limpet("where", "--agent", "mian")
    assert (unknown.code, unknown.err) == (2, "limpet: no agent is called 'mian' — did you mean 'main'?\n")
