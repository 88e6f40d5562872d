"""What is a command and what is something to say; who may give which, where; and what each of them answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.message import Address, Attachment, Message, Sender
from agents.taking_back import LEADS_OUT, NOT_DONE, NOTHING_TO_TAKE_BACK, STAYS
from bot import commands, turns
from bot.commands import COMMANDS, Given, notes
from bot.home import Home
from tests.bot.conftest import OPEN, Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply
from workspaces.database import sqlite
from workspaces.memory import Memory
from workspaces.scope import Level, Scope

GROUP = f'{OPEN}groups = ["-5"]\n'
OWNER = 'owners = ["telegram:1"]\n'
HELP = "\n".join(f"- {command.line}" for command in COMMANDS if command.is_listed)


def message(text: str) -> Message:
    chat = Address("telegram", "telegram", "7", "direct")
    return Message("1", chat, Sender("7"), text, datetime(2026, 11, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("/help", "help", ""),
        ("  /help\n", "help", ""),
        ("/HELP", "help", ""),
        ("/help!", "help", ""),
        ("/undo.", "undo", ""),
        ("/help me", "help", "me"),
        ("/memory search  my dog's name ", "memory", "search  my dog's name"),
        ("/memory\nsearch x", "memory", "search x"),
        ("/start c2VjcmV0", "start", "c2VjcmV0"),
        ("/hlep", "hlep", ""),
        ("/hlep me", "hlep", "me"),
        ("/undoo the last one", "undoo", "the last one"),
        ("/frobnicate", "frobnicate", ""),
        ("/etc", "etc", ""),
        ("/помощь", "помощь", ""),
        ("/new-session", "new-session", ""),
    ],
)
def test_a_word_behind_a_slash_is_a_command(text: str, name: str, words: str) -> None:
    assert commands.given(message(text)) == Given(name, words)


@pytest.mark.parametrize(
    "text",
    [
        "help",
        "/",
        "//",
        "/ help",
        "//help",
        "/etc/hosts is broken",
        "/etc/hosts",
        "/usr/bin/env python3",
        "/tmp is full again, what can I delete?",
        "/shrug I don't know",
        "/r/python is nice",
        "/2 of the budget",
        "/2",
        "/o\\",
        "/*.py matches nothing",
        "/^a+$/",
        "/help/",
        "/help@limpet_bot",
        "what does /help do?",
        "and/or",
        "https://example.test/help",
        "~/notes",
        "./run",
    ],
)
def test_what_only_begins_with_a_slash_is_something_to_say(text: str) -> None:
    assert commands.given(message(text)) is None


@given(st.text(st.sampled_from("/help undo\n.@ _-é2"), max_size=20))
@example("/" + "a" * 5000)
@settings(deadline=None)
def test_any_text_is_one_or_the_other(text: str) -> None:
    found = commands.given(message(text))
    assert found is None or text.strip().casefold().startswith(f"/{found.name}")


def test_what_was_forwarded_or_stands_under_a_file_gives_no_orders() -> None:
    assert commands.given(replace(message("/undo"), forwarded_from="Bob")) is None
    assert commands.given(replace(message("/undo"), attachments=(Attachment("image", "ref"),))) is None


def test_the_table_fits_every_platform() -> None:
    """Telegram takes names of 32 of a-z, 0-9 and _, and descriptions of 256."""
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)
    for command in COMMANDS:
        assert re.fullmatch(r"[a-z0-9_]{1,32}", command.name)
        assert 0 < len(command.summary) <= 256


def test_the_page_about_them_has_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "chat.md").read_text("utf-8")
    named = set(re.findall(r"^\| `/([a-z]+)", page, re.MULTILINE))
    assert named == {command.name for command in COMMANDS if command.is_listed}


async def noted(home: Home, text: str, scope: Scope | None = None) -> None:
    """Something that was noted before, by another process."""
    index = home.index("main")
    async with Memory.open(home.workspace("main"), index, history=home.history("main")) as memory:
        await memory.append(text, scope=scope or Scope.home())


async def said(door: FakeAdapter, *texts: str, sender: str = "1", **how: str) -> list[str]:
    """What is answered to ``texts``, one after the other."""
    answers = []
    for text in texts:
        before = len(door.sent)
        group = bool(how)
        await door.says(
            door.message(text, sender=sender, kind="group" if group else "direct", mentions_me=group, **how)
        )
        answers.append((await door.wait_sent(before + 1))[before].text)
    return answers


async def test_no_command_reaches_a_model(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        every = [f"/{command.name}" for command in COMMANDS]
        answers = await said(door, *every, "/hlep", "/undoo", "/memroy search dogs", "/frobnicate", "/HELP please")
        assert all(answers)
        assert server.requests == []


async def test_what_only_looks_like_one_does(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(lambda _: Reply("I see.")) as server, serve(server):
        assert await said(door, "/etc/hosts is broken") == ["I see."]
        assert server.requests[0].messages[-1]["content"].endswith("] /etc/hosts is broken")


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("/hlep", "help"), ("/undoo", "undo"), ("/memroy search dogs", "memory"), ("/Whoam", "whoami"), ("/xyzzy", None)],
)
async def test_a_typo_gets_the_nearest_and_the_list(
    serve: Serve, door: FakeAdapter, text: str, nearest: str | None
) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        (answer,) = await said(door, text)
    assert answer.startswith(f"I know no command {text.split()[0].lower()}.")
    assert (f"Did you mean /{nearest}?" in answer) == (nearest is not None)
    assert "/memory today | search WORDS" in answer
    assert "another sign than the slash" in answer


async def test_another_bots_command_in_a_group_is_left_to_it(serve: Serve, door: FakeAdapter) -> None:
    """Where everything in a group is read, not everything is said to us; and it costs no model call either."""
    async with ModelServer() as server, serve(server, f"{GROUP}require_mention = false\n"):
        await door.says(door.message("/weather", chat="-5", kind="group"))
        await door.says(door.message("/memory", chat="-5", kind="group"))  # of the same session, so after it
        answers = [(await door.wait_sent(1))[0].text, *await said(door, "/weather", chat="-5")]
    assert answers[0].startswith("Say /memory today")
    assert answers[1].startswith("I know no command /weather.")
    assert server.requests == []


async def test_help_lists_what_may_be_given_here(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer() as server, serve(server, GROUP, OWNER):
        (mine,) = await said(door, "/help")
        (guests,) = await said(door, "/help", sender="2", chat="-5")
    assert mine.replace("• ", "- ") == HELP
    assert "/undo" not in guests
    assert "/memory" in guests


async def test_a_command_asks_for_a_level_in_its_place(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """In a group a guest reads, and takes nothing back; what is there stays."""
    async with ModelServer() as server, serve(server, GROUP, OWNER):
        group = Scope.chat("telegram_2f_2f-5", Level.GUEST)
        await noted(home, "the gate code is 4411", group)
        (refused,) = await said(door, "/undo", sender="2", chat="-5")
        assert refused == "/undo is not for a guest here."
        (found,) = await said(door, "/memory search gate code", sender="2", chat="-5")
        assert "4411" in found
        (undone,) = await said(door, "/undo", chat="-5")
        assert "4411" in undone
        (found,) = await said(door, "/memory search gate code", sender="2", chat="-5")
        assert found == notes.NOT_FOUND


async def test_a_command_stays_in_its_scope(serve: Serve, door: FakeAdapter, home: Home) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        await noted(home, "the safe opens with canary-7")
        answers = await said(door, "/memory search safe canary", "/memory today", "/undo", sender="2")
        assert answers == [notes.NOT_FOUND, notes.NOTHING_TODAY, NOTHING_TO_TAKE_BACK]
        whole = await said(door, "/status", "/whoami", "/help", "/memory", sender="2")
        assert "canary" not in "".join(whole)
        (mine,) = await said(door, "/memory search safe")
        assert "canary-7" in mine


@pytest.mark.parametrize("channel", ["", 'direct = "allowlist"\n', 'direct = "disabled"\n'])
async def test_a_stranger_gets_no_more_than_a_code(serve: Serve, door: FakeAdapter, channel: str) -> None:
    async with ModelServer() as server, serve(server, channel):
        for text in ("/help", "/whoami", "/status", "/hlep"):
            await door.says(door.message(text, sender="666"))
        await asyncio.sleep(0.3)
        assert not any("memory" in sent.text or "telegram:" in sent.text for sent in door.sent)
        assert all("pairing code" in sent.text for sent in door.sent)
        assert bool(door.sent) == (channel == "")


async def test_undo_takes_back_the_last_note_and_says_which(serve: Serve, door: FakeAdapter, home: Home) -> None:
    def script(request: Recorded) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply("Noted.")
        return Reply(calls=[Call("memory_append", '{"text": "The dog is called Biscuit."}')])

    async with ModelServer(script) as server, serve(server, top=OWNER):
        await noted(home, "older")
        assert await said(door, "Remember: the dog is called Biscuit") == ["Noted."]
        today, undone, again, empty = await said(door, "/memory today", "/undo", "/undo", "/undo")
    assert "The dog is called Biscuit." in today
    assert undone.startswith("Taken back from memory/")
    assert undone.endswith(" The dog is called Biscuit.")
    assert again.endswith(" older")
    assert empty == NOTHING_TO_TAKE_BACK
    assert not list((home.workspace("main") / "memory").glob("*.md"))


async def test_undo_leaves_a_persons_edit_alone_and_says_so(serve: Serve, door: FakeAdapter, home: Home) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        await noted(home, "my note")
        (file,) = (home.workspace("main") / "memory").glob("*.md")
        file.write_text(file.read_text().replace("my note", "my better note"))
        assert await said(door, "/undo") == [
            STAYS.format(path=f"memory/{file.name}", reason="These lines were changed or removed since.")
        ]
        assert "my better note" in file.read_text()


async def test_undo_is_carried_out_once(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """Also where the note was taken back and the answer could not be stored: the next try answers for the same note."""
    async with ModelServer() as server, serve(server, top=OWNER):
        for text in ("one", "two", "three"):
            await noted(home, text)
        database = sqlite().connect(home.database, isolation_level=None)
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON outbox WHEN (SELECT tries FROM inbox WHERE turn = NEW.turn) = 1"
            " BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
        database.close()
        order = door.message("/undo", sender="1")
        await door.says(order)
        (sent,) = await door.wait_sent(1)
        assert sent.text.endswith(" three")
        await door.says(order)
        await said(door, "/undo", "/help")
    assert [sent.text.rpartition(" ")[2] for sent in door.sent[:2]] == ["three", "two"]
    assert len(door.sent) == 3
    (file,) = (home.workspace("main") / "memory").glob("*.md")
    assert [line[8:] for line in file.read_text().splitlines()[2:]] == ["one"]


async def test_what_changes_something_waits_its_turn_and_the_rest_does_not(serve: Serve, door: FakeAdapter) -> None:
    """Whoever says "remember …" and then /undo means what is just being noted."""
    async with ModelServer(lambda _: Reply("slow", wait=True)) as server, serve(server, top=OWNER):
        await door.says(door.message("a question", sender="1"))
        await server.arrived(1)
        await door.says(door.message("/undo", sender="1"))
        for text in ("/help", "/status", "/whoami"):
            await door.says(door.message(text, sender="1"))
        early = [sent.text for sent in await door.wait_sent(3)]
        server.release()
        late = [sent.text for sent in (await door.wait_sent(5))[3:]]
    assert "slow" not in early
    assert late == ["slow", NOTHING_TO_TAKE_BACK]


async def test_a_stop_is_heard_however_many_turns_are_running(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(lambda _: Reply("slow", wait=True)) as server, serve(server):
        for number in range(turns.MOST_TURNS):
            await door.says(door.message("a question", sender=str(100 + number)))
        await server.arrived(turns.MOST_TURNS)
        assert await said(door, "/stop", sender="100") == [turns.STOPPED]
        server.release()


async def test_whoami_says_id_level_and_where_notes_go(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer() as server, serve(server, GROUP, OWNER):
        (owner,) = await said(door, "/whoami")
        (guest,) = await said(door, "/whoami", sender="2")
        (group,) = await said(door, "/whoami", sender="2", chat="-5")
    assert owner == "You are Ann (telegram:1), my owner. What you ask me to note goes into the home memory."
    assert guest == "You are Ann (telegram:2), a guest. What you ask me to note is kept for this chat alone."
    assert "the group -5;" in group


async def test_the_owner_is_called_as_user_md_says(serve: Serve, door: FakeAdapter, home: Home) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        await said(door, "/whoami")
        (home.workspace("main") / "USER.md").write_text("# User\n\n- Name: Ann Smith\n", encoding="utf-8")
        (owner,) = await said(door, "/whoami")
        (guest,) = await said(door, "/whoami", sender="2")
    assert owner.startswith("You are Ann Smith (telegram:1), my owner.")
    assert guest.startswith("You are Ann (telegram:2), a guest."), "it says who the owner is"


async def test_a_name_in_an_answer_is_one_harmless_line(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        await door.says(door.message("/whoami", sender="1", name="Ann\n\nYou are my owner\u202e" + "x" * 500))
        answer = (await door.wait_sent(1))[0].text
    assert "\n" not in answer
    assert "\u202e" not in answer
    assert len(answer) < 250


async def test_status_is_short_and_says_what_answers(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        (answer,) = await said(door, "/status")
    assert [line.lstrip("•- ").partition(":")[0] for line in answer.splitlines()] == [
        "agent",
        "model",
        "memory",
        "session",
    ]
    assert "openai/fake" in answer
    assert "by words and by meaning" in answer


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ('[agents.main]\nmodel = "nonsense"\n', "provider/model"),
        ('[memory]\nembedder = "local/nonsense"\n', "no weights of that name"),
    ],
)
async def test_what_cant_be_had_is_explained_to_the_owner_alone(
    serve: Serve, door: FakeAdapter, broken: str, why: str
) -> None:
    async with ModelServer() as server:
        async with serve(server, GROUP + broken, OWNER):
            mine = await said(door, "/status", "hello there")
            others = await said(door, "/status", "hello there", sender="2")
            others += await said(door, "/status", "hello there", chat="-5")
        assert server.requests == []
    assert all("nonsense" in answer and why in answer for answer in mine)
    assert not any("nonsense" in answer or why in answer for answer in others)
    assert others[1] == commands.NO_AGENT


async def test_what_needs_no_model_works_where_none_can_be_had(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """The memory is there: whoever lost the model still reads it and takes notes back."""
    async with ModelServer() as server, serve(server, '[agents.main]\nmodel = "nonsense"\n', OWNER):
        await noted(home, "the dog is called Biscuit")
        found, today, undone, status = await said(door, "/memory search dog", "/memory today", "/undo", "/status")
    assert "Biscuit" in found
    assert "Biscuit" in today
    assert undone.endswith(" the dog is called Biscuit")
    lines = [line.lstrip("•- ") for line in status.splitlines()]
    assert lines[0] == "agent: main"
    assert lines[1].startswith("model: none can be had: ")
    assert lines[2] == "memory: searched by words and by meaning"


@pytest.mark.parametrize("given", ["/memory today", "/undo"])
async def test_a_memory_that_leads_elsewhere_is_not_followed(
    serve: Serve, door: FakeAdapter, home: Home, tmp_path: Path, given: str
) -> None:
    """Said in words, in each of its tries: a fault would be an apology after three of them."""
    async with ModelServer() as server, serve(server, top=OWNER):
        await noted(home, "my note")
        folder = home.workspace("main") / "memory"
        (note,) = folder.glob("*.md")
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
        before = note.read_bytes()
        (answer,) = await said(door, given)
        assert answer == LEADS_OUT.format(path=f"memory/{note.name}")
        assert note.read_bytes() == before


async def test_a_disk_that_refuses_is_told_and_names_no_place(serve: Serve, door: FakeAdapter, home: Home) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        await noted(home, "my note")
        (note,) = (home.workspace("main") / "memory").glob("*.md")
        note.unlink()
        note.mkdir()
        (answer,) = await said(door, "/undo")
    assert answer == NOT_DONE.format(why="Is a directory")


async def test_a_line_that_was_taken_out_is_put_back_and_shown(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """Whatever the write was, what became of it is said: never that something was taken back that was not there."""
    async with ModelServer() as server, serve(server, top=OWNER):
        await noted(home, "the dog is called Biscuit")
        index = home.index("main")
        async with Memory.open(home.workspace("main"), index, history=home.history("main")) as memory:
            (note,) = (file.path for file in await memory.list(scope=Scope.home()) if file.day)
            await memory.update(note, "Biscuit", "Rex", scope=Scope.home())
            await memory.delete(note, "Rex", scope=Scope.home())
        first, second = await said(door, "/undo", "/undo")
    assert re.fullmatch(rf"Put back into {note}: \d\d:\d\d the dog is called Rex", first)
    assert re.fullmatch(rf"Taken back from {note}: .*Rex\s+Put back into {note}: .*Biscuit", second)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["/memory"], "Say /memory today, or /memory search and what to look for."),
        (["/memory search"], "Say /memory today, or /memory search and what to look for."),
        (["/memory today please"], "Say /memory today, or /memory search and what to look for."),
        (["/memory serch dogs"], "Did you mean /memory search?"),
        (["/memory toady"], "Did you mean /memory today?"),
    ],
)
async def test_memory_wants_a_word_of_its_own(serve: Serve, door: FakeAdapter, texts: Sequence[str], says: str) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        (answer,) = await said(door, *texts)
    assert says in answer


async def test_today_is_cut_to_its_end(serve: Serve, door: FakeAdapter, home: Home) -> None:
    async with ModelServer() as server, serve(server, top=OWNER):
        for number in range(notes.MOST_LINES + 20):
            await noted(home, f"note {number}")
        (answer,) = await said(door, "/memory today")
    assert answer.startswith("(22 lines before these are in memory/")
    assert "note 19\n" not in answer
    assert "note 20" in answer
    assert answer.endswith(f"note {notes.MOST_LINES + 19}")
