"""Tab: the right words, from the table and from the person's own files, and never a message in their line."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.cli.help import COMMANDS
from bot.cli.words import complete
from bot.home import Home
from bot.pairing import Pairing
from bot.people import People
from bot.state import State
from tests.bot.cli.conftest import Limpet
from tests.fakes.adapter import FakeAdapter
from workspaces.scope import Level


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.config.write_text(
        '[agents.main]\nrecall = "off"\n[agents.work]\n[channels.telegram]\n[channels.second]\nkind = "telegram"\n'
    )
    notes = home.workspace("main") / "memory" / "people"
    notes.mkdir(parents=True)
    (notes / "ann.md").write_text("tea")
    home.models.mkdir()
    (home.models / "tiny.gguf").write_bytes(b"")
    return home


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        ([], [entry.name for entry in COMMANDS]),
        ([""], [entry.name for entry in COMMANDS]),
        (["m"], ["memory", "models"]),
        (["-"], ["--color", "--config", "--help", "--version"]),
        (["config", "s"], ["set"]),
        (["config", "get", ""], ["agents.main.recall", "channels.second.kind"]),
        (["channels", "remove", ""], ["second", "telegram"]),
        (["chat", "--agent", ""], ["main", "work"]),
        (["memory", "get", "mem"], ["memory/people/ann.md"]),
        (["models", "remove", ""], ["tiny"]),
        (["completion", "z"], ["zsh"]),
        (["config", "check", "--"], ["--json"]),
        (["where", "--a"], ["--agent"]),
        (["nonsense", ""], []),
    ],
)
def test_what_may_come_next(home: Home, words: list[str], candidates: list[str]) -> None:
    assert complete(words, home) == sorted(candidates)


@pytest.fixture
def acquainted(home: Home) -> Home:
    """Bob waits with the code CODECODE, an old code is void, and Ann is known."""

    async def prepare() -> None:
        async with State.open(home.database) as state:
            people = People(state, owners=(), identities={}, clock=lambda: datetime.now(UTC))
            await people.give("telegram", "7", Level.GUEST, "Ann")
            codes = iter(["OLDOLDOL", "CODECODE"])
            for age, sender in ((2, "9"), (0, "8")):
                now = datetime.now(UTC) - timedelta(hours=age)
                pairing = Pairing(state, people, clock=lambda now=now: now, code=lambda: next(codes))  # type: ignore[misc]
                await pairing.ask(FakeAdapter("telegram", "telegram").message("hi", sender=sender))

    asyncio.run(prepare())
    return home


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (["pairing", "approve", ""], ["CODECODE", "telegram:7"]),
        (["pairing", "approve", "--owner", "tele"], ["telegram:7"]),
        (["pairing", "deny", ""], ["CODECODE"]),
        (["pairing", "revoke", ""], ["telegram:7"]),
        (["pairing", "revoke", "telegram:"], ["telegram:7"]),
        (["pairing", "revoke", "CODE"], []),
    ],
)
def test_who_waits_and_who_is_known_is_offered(acquainted: Home, words: list[str], candidates: list[str]) -> None:
    assert complete(words, acquainted) == candidates


def test_nobody_is_offered_where_there_is_no_database(home: Home) -> None:
    assert complete(["pairing", "approve", ""], home) == []
    assert not home.state.exists()


def test_the_agent_that_no_table_names_is_offered(home: Home) -> None:
    home.config.write_text("[agents.work]\n")
    assert complete(["chat", "--agent", ""], home) == ["main", "work"]
    assert complete(["memory", "get", "mem"], home) == ["memory/people/ann.md"]


def test_a_broken_file_completes_nothing_and_says_nothing(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.config.write_text("[agents\n")
    assert complete(["chat", "--agent", ""], home) == []
    assert capsys.readouterr() == ("", "")


def test_a_tab_loads_no_machinery() -> None:
    code = (
        "import sys\nfrom bot.__main__ import run\nrun(['completion', '--words', 'config', ''])\n"
        "print(sorted({'typer', 'pydantic', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["check", "get", "path", "set", "unset", "[]"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_valid_in_its_shell(limpet: Limpet, shell: str) -> None:
    script = limpet("completion", shell)
    assert (script.code, script.err) == (0, "")
    assert "limpet completion --words" in script.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script.out, text=True, check=True)


def test_bash_completes(limpet: Limpet, acquainted: Home) -> None:
    """Also what holds a colon, at which bash cuts words."""
    home = acquainted
    folder = home.root / "bin"
    folder.mkdir()
    program = folder / "limpet"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m bot "$@"\n')
    program.chmod(0o755)
    lines = (
        'eval "$(limpet completion bash)"\n'
        'COMP_WORDS=(limpet channels remove ""); COMP_CWORD=3; _limpet; echo "${COMPREPLY[@]}"\n'
        'COMP_WORDS=(limpet pairing revoke tele); COMP_CWORD=3; _limpet; echo "${COMPREPLY[@]}"\n'
        'COMP_WORDS=(limpet pairing revoke telegram :); COMP_CWORD=4; _limpet; echo "${COMPREPLY[@]}"\n'
        'COMP_WORDS=(limpet pairing revoke telegram : 7); COMP_CWORD=5; _limpet; echo "${COMPREPLY[@]}"\n'
        'COMP_WORDS=(limpet pairing revoke nobody); COMP_CWORD=3; _limpet; echo "${#COMPREPLY[@]}"\n'
    )
    environ = limpet.environ(PATH=f"{folder}:/usr/bin:/bin")
    done = subprocess.run(["bash", "-c", lines], env=environ, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("second telegram\ntelegram:7\n7\n7\n0\n", "")


def test_an_unknown_shell_is_refused_with_those_that_are_known(limpet: Limpet) -> None:
    outcome = limpet("completion", "tcsh")
    assert (outcome.code, outcome.out) == (2, "")
    assert "bash" in outcome.err
