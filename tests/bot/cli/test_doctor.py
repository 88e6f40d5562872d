"""``limpet doctor``: what status finds, and what only a platform can tell."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.state import _STEPS, State
from bot.state import VERSION as SCHEMA
from bot.version import VERSION
from tests.bot.cli.conftest import Limpet
from tests.bot.cli.test_status import stored
from tests.fakes.telegram_api import TOKEN, Fault, TelegramApi


def telegram(limpet: Limpet, api: TelegramApi, more: str = "") -> None:
    limpet.settings(f'[channels.telegram]\ntoken = "{TOKEN}"\nbase_url = "{api.url}"\n{more}')
    limpet.home.config.chmod(0o600)


def test_an_empty_home_has_no_problem(limpet: Limpet) -> None:
    outcome = limpet("doctor")
    assert (outcome.code, outcome.err) == (0, "")
    verdict, runs = outcome.out.splitlines()
    assert verdict == "No problem was found."
    assert runs.startswith(f"limpet {VERSION} on Python {sys.version_info[0]}.{sys.version_info[1]}.")
    versions = limpet("doctor", "--json").data["versions"]
    assert versions.keys() == {"limpet", "python", "sqlite", "sqlite_vec", "system"}
    assert all(text in runs for text in versions.values())
    assert list(limpet.home.root.iterdir()) == []


async def test_what_only_the_platform_knows_is_worth_knowing(limpet: Limpet) -> None:
    """Privacy mode is what it may be meant to be: no problem, but told with the way out."""
    async with TelegramApi() as api:
        api.group(-1001)
        telegram(limpet, api, 'groups = ["-1001", "-1009"]\n')
        outcome = await asyncio.to_thread(limpet.process, "doctor", "--json")
        said = await asyncio.to_thread(limpet.process, "doctor")
    assert [problem["what"] for problem in outcome.data["problems"]] == ["no hub is running, so no channel is answered"]
    hints = {hint["what"]: hint["mend"] for hint in outcome.data["hints"]}
    (privacy,) = [what for what in hints if "privacy mode is on" in what]
    assert "/setprivacy" in hints[privacy]
    assert any("-1009" in what and "is not in the group" in what for what in hints)
    assert said.code == outcome.code == 1
    assert "Worth knowing, if it is not meant so:\n  · telegram: privacy mode is on" in said.out


@pytest.mark.parametrize(
    ("fault", "words"),
    [(Fault(401, "Unauthorized"), "is wrong or was revoked"), (Fault(502, body=b"<html>"), "Telegram says 502")],
)
async def test_what_the_platform_refuses_is_a_problem(limpet: Limpet, fault: Fault, words: str) -> None:
    async with TelegramApi() as api:
        api.fail("getMe", fault, times=5)
        telegram(limpet, api)
        outcome = await asyncio.to_thread(limpet.process, "doctor", "--json")
    assert outcome.code == 1
    assert any(words in problem["what"] for problem in outcome.data["problems"])
    assert TOKEN.partition(":")[2] not in str(outcome.data)


def problems(limpet: Limpet) -> dict[str, str]:
    """What it finds, each with its mend."""
    outcome = limpet("doctor", "--json")
    found = {problem["what"]: problem["mend"] for problem in outcome.data["problems"]}
    assert outcome.code == (1 if found else 0)
    assert outcome.data["ok"] is not bool(found)
    assert all(found.values()), "each has a mend"
    return found


def the_only(found: dict[str, str]) -> tuple[str, str]:
    (one,) = found.items()
    return one


INBOX = (
    "INSERT INTO inbox (turn, channel, account, chat, message, session, event, owner, tries, done, received_at)"
    " VALUES (?, 'telegram', 'telegram', '42', ?, 's', '', 'o', ?, ?, ?)"
)


def test_a_message_that_was_given_up_is_named_with_its_turn(limpet: Limpet) -> None:
    """Three turns failed, the fourth apologised: the log has why, under this very id. What is old is not told."""
    now = datetime.now(UTC)
    stored(
        limpet,
        (INBOX, ("turn-poison", "1", 4, 1, now.isoformat())),
        (INBOX, ("turn-slow", "2", 3, 1, now.isoformat())),
        (INBOX, ("turn-fine", "3", 1, 1, now.isoformat())),
        (INBOX, ("turn-old", "4", 4, 1, (now - timedelta(days=8)).isoformat())),
    )
    what, mend = the_only(problems(limpet))
    assert "chat 42" in what
    assert "set aside: three turns on it failed" in what
    assert "turn-poison" in mend


def test_a_clock_that_went_back_is_seen_by_what_was_stored(limpet: Limpet) -> None:
    now = datetime.now(UTC)
    stored(limpet, (INBOX, ("t1", "1", 1, 1, (now + timedelta(minutes=2)).isoformat())))
    assert problems(limpet) == {}
    stored(limpet, (INBOX, ("t2", "2", 1, 1, (now + timedelta(days=400)).isoformat())))
    what, mend = the_only(problems(limpet))
    assert "the clock of this machine says" in what
    assert "timedatectl" in mend


def test_damaged_databases_are_found_before_they_are_needed(limpet: Limpet) -> None:
    """G-OPS-14: 4 kB of noise in the middle of each."""
    limpet.settings("[agents.work]\n")
    limpet.home.config.chmod(0o600)
    limpet.home.index("work").parent.mkdir(parents=True)
    for path in (limpet.home.database, limpet.home.index("work")):
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE t (a)")
            database.executemany("INSERT INTO t VALUES (?)", (("x" * 1000,) for _ in range(100)))
            database.commit()
        data = path.read_bytes()
        path.write_bytes(data[:8192] + os.urandom(4096) + data[12288:])
    found = problems(limpet)
    (state,) = [mend for what, mend in found.items() if what.startswith(f"{limpet.home.database} is damaged")]
    assert state.startswith("the next start puts it aside")
    (index,) = [mend for what, mend in found.items() if what.startswith("the index of work is damaged")]
    assert index.startswith("limpet memory rebuild --agent work")


def test_what_others_can_read_is_found(limpet: Limpet) -> None:
    limpet.home.root.chmod(0o755)
    for folder in (limpet.home.state, limpet.home.workspaces, limpet.home.logs):
        folder.mkdir(mode=0o700)
    assert problems(limpet) == {}
    limpet.home.workspaces.chmod(0o750)
    what, mend = the_only(problems(limpet))
    assert what == f"{limpet.home.workspaces} can be read by other users of this machine"
    assert mend == f"chmod go= {limpet.home.workspaces}"
    limpet.home.root.chmod(0o700)
    assert problems(limpet) == {}, "nobody gets so far"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_somebody_else_is_found(limpet: Limpet) -> None:
    limpet.home.state.mkdir(mode=0o700)
    os.chown(limpet.home.state, 12345, -1)
    what, mend = the_only(problems(limpet))
    assert what.startswith(f"{limpet.home.state} belongs to user 12345")
    assert "chown -R 0" in mend


def test_a_machine_without_vectors_is_a_problem_with_its_mend(limpet: Limpet, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *m: None if name == "sqlite_vec" else find(name, *m))
    what, mend = the_only(problems(limpet))
    assert what == "search by meaning is off: sqlite-vec can't be loaded here"
    assert "sqlite-vec" in mend
    assert "no sqlite-vec" in limpet("doctor").out


async def test_the_copy_from_before_an_upgrade_is_worth_knowing(limpet: Limpet) -> None:
    path: Path = limpet.home.database
    path.parent.mkdir(mode=0o700)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(f"{_STEPS[0]}; PRAGMA user_version = 1")
    async with State.open(path) as state:
        assert await state.row("PRAGMA user_version") == (SCHEMA,)
    outcome = await asyncio.to_thread(limpet, "doctor", "--json")
    assert outcome.code == 0
    (hint,) = outcome.data["hints"]
    assert hint["what"] == f"{path}.schema-1 is the state from before an upgrade"
