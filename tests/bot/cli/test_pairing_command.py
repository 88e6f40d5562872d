"""``limpet pairing``: who waits, who may talk, at which level, and how that is changed; ids decide, never names."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from datetime import UTC, datetime

import pexpect
import pytest

from bot.pairing import ALPHABET, Pairing
from bot.people import People
from bot.state import State
from tests.bot.cli.conftest import Limpet
from tests.fakes.adapter import FakeAdapter

SETTINGS = """\
owners = ["telegram:1"]
[channels.telegram]
token = "123:x"
allow = ["5"]
"""


def write_to(limpet: Limpet, sender: str, name: str, channel: str = "telegram") -> str:
    """A stranger writes to the bot; the code they get."""

    async def ask() -> str | None:
        async with State.open(limpet.home.database) as state:
            people = People(state, owners=(), identities={}, clock=lambda: datetime.now(UTC))
            pairing = Pairing(state, people, clock=lambda: datetime.now(UTC))
            return await pairing.ask(FakeAdapter(channel, channel).message("hi", sender=sender, name=name))

    words = asyncio.run(ask())
    code = re.search(rf"[{ALPHABET}]{{8}}$", words or "")
    assert code is not None
    return code[0]


def let_in(limpet: Limpet, *how: str, sender: str = "7", name: str = "Ann") -> None:
    assert limpet("pairing", "approve", write_to(limpet, sender, name), *how).code == 0


def levels(limpet: Limpet) -> dict[str, str]:
    people = limpet("pairing", "list", "--json").data["people"]
    return {f"{p['channel']}:{p['sender']}": p["level"] for p in people}


def test_an_empty_list_says_how_it_fills(limpet: Limpet) -> None:
    outcome = limpet("pairing", "list")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("Nobody waits and nobody is known.")
    assert limpet("pairing", "list", "--json").data == {"schema": 1, "waiting": [], "people": [], "groups": []}


def test_the_list_has_who_waits_and_who_may_talk(limpet: Limpet) -> None:
    limpet.settings(SETTINGS)
    let_in(limpet, "--guest")
    let_in(limpet, "--member", sender="8", name="Bob\x1b[31m\nowner")
    code = write_to(limpet, "9", "Eve")
    rows = [re.split(r"  +", line) for line in limpet("pairing", "list").out.splitlines()]
    today = f"since {datetime.now(UTC):%Y-%m-%d}"
    assert rows == [
        ["waiting", code, "Eve (telegram:9)", rows[0][-1]],
        ["owner", "telegram:1", f"{limpet.home.config}:1"],
        ["guest", "telegram:5", f"{limpet.home.config}:4"],
        ["guest", "telegram:7", "Ann", today],
        ["member", "telegram:8", rows[4][2], today],
    ]
    assert re.fullmatch(r"(59|60) min left", rows[0][-1])
    assert rows[4][2].isprintable(), "a name is chosen by whoever asks"
    data = limpet("pairing", "list", "--json").data
    assert data["waiting"][0]["code"] == code
    assert data["people"][0] == {
        "channel": "telegram",
        "sender": "1",
        "name": "",
        "level": "owner",
        "since": None,
        "place": f"{limpet.home.config}:1",
    }
    ann = data["people"][2]
    assert (ann["name"], ann["level"], ann["place"]) == ("Ann", "guest", None)
    assert datetime.fromisoformat(ann["since"]).tzinfo is not None


def test_owners_of_the_environment_name_their_variable(limpet: Limpet) -> None:
    listed = limpet("pairing", "list", "--json", LIMPET_OWNERS='["telegram:1"]')
    assert listed.data["people"][0]["place"] == "LIMPET_OWNERS of the environment"


@pytest.mark.parametrize("who", ["telegram:7", "7", " 7 "])
@pytest.mark.parametrize("level", ["owner", "member"])
def test_somebody_known_gets_another_level(limpet: Limpet, who: str, level: str) -> None:
    let_in(limpet, "--guest")
    outcome = limpet("pairing", "approve", who, f"--{level}", "--json")
    assert outcome.code == 0, outcome.err
    assert (outcome.data["was"], outcome.data["level"], outcome.data["name"]) == ("guest", level, "Ann")
    assert levels(limpet) == {"telegram:7": level}
    back = limpet("pairing", "approve", who, "--guest")
    assert back.out == "Ann (telegram:7) is a guest now.\n"
    assert levels(limpet) == {"telegram:7": "guest"}


def test_a_guest_who_is_you_is_told_the_next_command(limpet: Limpet) -> None:
    """Approving without --owner is the first thing that goes wrong; what is advised mends it."""
    code = write_to(limpet, "7", "Ann")
    outcome = limpet("pairing", "approve", code)
    advised = outcome.err.strip().removeprefix("If it is you: limpet ")
    assert limpet(*advised.split()).out == "Ann (telegram:7) is you: the owner now.\n"
    again = limpet("pairing", "approve", code, "--owner")
    assert (again.code, again.out) == (1, "")
    assert (
        again.err == f"limpet: nobody is known as '{code}', and no such code waits — see who is: limpet pairing list\n"
    )


def test_who_waits_is_approved_by_account_too(limpet: Limpet) -> None:
    write_to(limpet, "7", "Ann")
    assert limpet("pairing", "approve", "telegram:7", "--guest").code == 0
    assert limpet("pairing", "list", "--json").data["waiting"] == []


def test_a_known_person_without_a_level_changes_nothing(limpet: Limpet) -> None:
    let_in(limpet, "--member")
    outcome = limpet("pairing", "approve", "telegram:7")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "limpet: telegram:7 is a member already — say --owner, --member or --guest\n"
    both = limpet("pairing", "approve", "telegram:7", "--owner", "--guest")
    assert (both.code, both.err) == (2, "limpet: --owner and --guest exclude each other — say one of them\n")
    assert levels(limpet) == {"telegram:7": "member"}


def test_a_person_is_sent_away(limpet: Limpet) -> None:
    let_in(limpet, "--guest")
    outcome = limpet("pairing", "revoke", "telegram:7")
    assert (outcome.code, outcome.out, outcome.err) == (0, "Ann (telegram:7) is a stranger again.\n", "")
    assert levels(limpet) == {}
    again = limpet("pairing", "revoke", "telegram:7", "--json")
    assert (again.code, again.error["exit_code"]) == (1, 1)
    assert write_to(limpet, "7", "Ann"), "they get a code like any stranger"
    waits = limpet("pairing", "revoke", "7")
    assert waits.code == 2
    assert "limpet pairing deny" in waits.err


def test_whom_the_settings_name_is_sent_away_there(limpet: Limpet) -> None:
    limpet.settings(SETTINGS)
    for who, said in (("telegram:1", "you: the owner by {}:1"), ("5", "a guest by {}:4")):
        outcome = limpet("pairing", "revoke", who)
        assert (outcome.code, outcome.out) == (1, "")
        assert said.format(limpet.home.config) in outcome.err
        assert "take it out there" in outcome.err
    lowered = limpet("pairing", "approve", "telegram:1", "--guest")
    assert lowered.code == 1
    assert f"an owner by {limpet.home.config}:1 — change it there" in lowered.err


def test_who_is_paired_and_listed_is_told_of_both(limpet: Limpet) -> None:
    let_in(limpet, "--owner", sender="5")
    limpet.settings(SETTINGS)
    outcome = limpet("pairing", "revoke", "telegram:5", "--json")
    assert (outcome.data["was"], outcome.data["level"]) == ("owner", None)
    assert outcome.err == f"By {limpet.home.config}:4 it may still talk, as a guest: take it out there too.\n"
    raised = limpet("pairing", "approve", "telegram:5", "--owner")
    assert raised.code == 0
    assert levels(limpet)["telegram:5"] == "owner"


def test_names_and_ambiguous_ids_decide_nothing(limpet: Limpet) -> None:
    """G-RTE-19."""
    let_in(limpet, "--guest")
    named = limpet("pairing", "approve", "ann", "--owner")
    assert (named.code, named.out) == (1, "")
    assert "'ann' is a name, and names change hands — say the account: telegram:7" in named.err
    code = write_to(limpet, "7", "Ann", channel="slack")
    limpet("pairing", "approve", code, "--guest")
    outcome = limpet("pairing", "revoke", "7")
    assert outcome.code == 2
    assert "say which: slack:7 or telegram:7" in outcome.err
    assert levels(limpet) == {"slack:7": "guest", "telegram:7": "guest"}


@pytest.mark.parametrize("verb", [["approve", "--owner"], ["approve", "--guest"], ["revoke"]])
@pytest.mark.parametrize("is_known", [True, False])
def test_an_id_that_waits_twice_or_waits_and_is_known_decides_nothing(
    limpet: Limpet, verb: list[str], is_known: bool
) -> None:
    """Who comes first in a table must not become the owner."""
    code = write_to(limpet, "7", "Ann")
    if is_known:
        limpet("pairing", "approve", code, "--guest")
    before = levels(limpet)
    write_to(limpet, "7", "Mallory", channel="slack")
    outcome = limpet("pairing", verb[0], "7", *verb[1:])
    assert (outcome.code, outcome.out) == (2, "")
    assert "say which: slack:7 or telegram:7" in outcome.err
    assert levels(limpet) == before
    assert limpet("pairing", "approve", "telegram:7", "--owner").code == 0
    assert levels(limpet) == {"telegram:7": "owner"}


def test_an_id_that_is_anothers_code_decides_nothing(limpet: Limpet) -> None:
    code = write_to(limpet, "7", "Ann")
    write_to(limpet, code, "Mallory", channel="slack")
    outcome = limpet("pairing", "approve", code, "--owner")
    assert outcome.code == 2
    assert f"say which: slack:{code} or telegram:7" in outcome.err
    assert levels(limpet) == {}


def test_a_denied_code_is_void(limpet: Limpet) -> None:
    code = write_to(limpet, "7", "Ann")
    assert limpet("pairing", "deny", code.lower()).out == "The code of Ann (telegram:7) is void.\n"
    assert limpet("pairing", "deny", code).code == 1
    assert limpet("pairing", "list", "--json").data["waiting"] == []


def test_a_code_that_is_void_by_the_time_of_the_answer_lets_nobody_in(limpet: Limpet) -> None:
    """An hour is over, or somebody denied it at another terminal, while the question waits."""
    code = write_to(limpet, "7", "Ann")
    child = pexpect.spawn(
        sys.executable,
        ["-m", "bot", "pairing", "approve", code],
        env=os.environ | limpet.environ(TERM="dumb"),
        timeout=30,
        encoding="utf-8",
    )
    child.expect_exact("you, the owner?")
    assert limpet("pairing", "deny", code).code == 0
    child.sendline("y")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 1
    shown = child.before or ""
    assert f"the code {code} waits no longer" in shown
    assert "the owner now" not in shown
    assert levels(limpet) == {}


def test_looking_who_waits_loads_no_agent(limpet: Limpet) -> None:
    """Nor does the state of things: a second of a small machine's time, each time."""
    write_to(limpet, "7", "Ann")
    code = (
        "import sys\nfrom bot.__main__ import run\nrun(sys.argv[1:])\n"
        "print(sorted({'bot.app', 'agents.agent', 'workspaces.memory.engine'} & set(sys.modules)), file=sys.stderr)"
    )
    for words in (["pairing", "list"], ["pairing", "approve", "telegram:7", "--guest"], ["status"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], env=limpet.environ(), capture_output=True, text=True, check=True
        )
        assert done.stderr.splitlines()[-1] == "[]", words


@pytest.mark.parametrize(("answer", "level"), [("y", "owner"), ("", "guest")])
def test_a_person_at_the_terminal_is_asked(limpet: Limpet, answer: str, level: str) -> None:
    code = write_to(limpet, "7", "Ann")
    child = pexpect.spawn(
        sys.executable,
        ["-m", "bot", "pairing", "approve", code],
        env=os.environ | limpet.environ(TERM="dumb"),
        timeout=30,
        encoding="utf-8",
    )
    child.expect_exact("Is Ann (telegram:7) you, the owner?")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert levels(limpet) == {"telegram:7": level}
