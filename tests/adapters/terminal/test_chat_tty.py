"""A person at a terminal: a prompt, a stream, Ctrl-C, Ctrl-D, and a hub that goes away."""

from __future__ import annotations

import asyncio
import re
import stat
from pathlib import Path

import pytest

from adapters.message import Message, Part
from adapters.terminal import Failure, Ready
from adapters.text import FormattedText
from tests.adapters.terminal.hub import HERE, Hub, Script
from tests.adapters.terminal.processes import on_tty

CTRL_C, CTRL_D, ALT_ENTER = "\x03", "\x04", "\x1b\r"
PROMPT = "\x1b[0m>"


def bare(text: str) -> str:
    """Without colours and cursor movements."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r\n", "\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limpet.sock"


async def fails_when_stopped(hub: Hub, message: Message) -> None:
    if message.text == "/stop":
        await hub.fail(hub.taken[0], "Stopped.", 130)
    else:
        await hub.stream(message, "Once upon ", "a time")


async def answers_when_stopped(hub: Hub, message: Message) -> None:
    if message.text == "/stop":
        await hub.answer(message, "Stopped.")
    else:
        await hub.stream(message, "Once upon ", "a time")


async def test_a_conversation_from_hello_to_the_last_line(path: Path, tmp_path: Path) -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.stream(message, "I'll keep ", "**that**")
        await hub.adapter.notice(HERE, "remembered: likes tea (memory/2026-11-30.md)")
        await hub.answer(message, "I'll keep **that**")
        await hub.done(message, remembered=1)

    history = tmp_path / "state" / "history"
    async with Hub(script, listen=path), on_tty("--socket", path, "--history", history) as tty:
        await tty.expect("main · fake-1 · Ctrl-D leaves, /help says more.")
        await tty.expect(PROMPT)
        tty.type("I like tea\r")
        await tty.expect("I'll keep **that**")
        await tty.expect("remembered: likes tea (memory/2026-11-30.md)")
        await tty.expect(PROMPT)
        tty.type("green" + ALT_ENTER + "tea\r")
        await tty.expect("I'll keep **that**")
        await tty.expect(PROMPT)
        tty.type(CTRL_D)
        await tty.expect("2 turns · 0 s · 2 things remembered · limpet chat goes on where you left")
        assert await tty.ended() == 0
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert [line for line in history.read_text().splitlines() if line.startswith("+")] == [
        "+I like tea",
        "+green",
        "+tea",
    ]


async def test_a_streamed_answer_is_shown_once(path: Path) -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.stream(message, "Let me look.\n\n", "It is ", "Biscuit")
        await hub.answer(message, "It is Biscuit.")
        await hub.done(message)

    async with Hub(script, listen=path), on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("my dog?\r")
        await tty.expect("Let me look.")
        shown = await tty.expect(PROMPT)
        assert bare(shown).count("It is Biscuit.") == 1, "the stream was cut: the whole answer follows it"
        tty.type("again?\r")
        await tty.expect("Let me look.")


async def test_the_dots_vanish_when_the_answer_begins(path: Path) -> None:
    async with Hub(listen=path), on_tty("--socket", path, environ={"NO_COLOR": "1"}) as tty:
        await tty.expect(PROMPT)
        tty.type("hi\r")
        await tty.expect("…\r \rYou said: hi\r\n")


async def test_nobody_can_send_control_characters_to_the_terminal(path: Path) -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.stream(message, "a\x1b]52;c;ZXZpbA==\x07")
        await hub.answer(message, "a\x1b]52;c;ZXZpbA==\x07b\x9bc")
        await hub.adapter.notice(HERE, "noted \x1b]0;title\x07")
        await hub.done(message)

    async with Hub(script, listen=path), on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("hi\r")
        await tty.expect("a]52;c;ZXZpbA==bc")
        await tty.expect("noted ]0;title")
        assert "\x1b]" not in tty.seen
        assert "\x07" not in tty.seen


@pytest.mark.parametrize("script", [fails_when_stopped, answers_when_stopped])
async def test_ctrl_c_stops_the_answer_and_the_talk_goes_on(script: Script, path: Path) -> None:
    async with Hub(script, listen=path) as hub, on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("tell me a story\r")
        await tty.expect("Once upon a time")
        tty.type(CTRL_C)
        await tty.expect("Stopped.")
        await tty.expect(PROMPT)
        assert [message.text for message in hub.taken] == ["tell me a story", "/stop"]
        tty.type(CTRL_D)
        await tty.expect("1 turn · ")
        assert await tty.ended() == 0


async def test_a_second_ctrl_c_does_not_wait_for_a_hub_that_does_not_listen(path: Path) -> None:
    heard = asyncio.Event()

    async def script(hub: Hub, message: Message) -> None:
        if message.text == "/stop":
            heard.set()
        else:
            await hub.stream(message, "hm")

    async with Hub(script, listen=path), on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("hi\r")
        await tty.expect("hm")
        tty.type(CTRL_C)
        await asyncio.wait_for(heard.wait(), 10)  # two signals at once would be one
        tty.type(CTRL_C)
        await tty.expect("Not waiting any more")
        await tty.expect(PROMPT)


async def test_ctrl_c_at_an_empty_prompt_says_how_to_leave(path: Path) -> None:
    async with Hub(listen=path), on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("never mind" + CTRL_C)
        await tty.expect(PROMPT)
        tty.type(CTRL_C)
        await tty.expect("Ctrl-D leaves")
        await tty.expect(PROMPT)
        tty.type("/quit\r")
        assert await tty.ended() == 0
        assert "turn" not in tty.seen, "nothing was said, so there is nothing to sum up"


async def test_local_commands_stay_here_and_others_are_sent_on(path: Path) -> None:
    word = Ready("main", None, ("This model is for a demo.",), ("/new  start afresh",))
    async with Hub(listen=path, word=word) as hub, on_tty("--socket", path, "--agent", "ops") as tty:
        await tty.expect("This model is for a demo.")
        tty.type("/help\r")
        await tty.expect("Alt-Enter starts a new line")
        await tty.expect("/new  start afresh")
        tty.type("  \r/status\r")
        await tty.expect("You said: /status")
        tty.type("bye\r")
        await tty.expect("You said: bye")
        tty.type("/exit\r")
        await tty.expect("1 turn · 0 s · limpet chat --agent ops goes on where you left")
        assert [message.text for message in hub.taken] == ["/status", "bye"]


async def test_what_came_while_nobody_was_here_is_shown_first(path: Path) -> None:
    async with Hub(listen=path) as hub:
        sending = asyncio.create_task(hub.answer(Message("00", HERE, hub.adapter._sender, "?", None), "42"))  # type: ignore[arg-type]  # the time plays no part
        await asyncio.sleep(0)
        async with on_tty("--socket", path) as tty:
            await tty.expect("while you were away:")
            await tty.expect("42")
            await sending
            await tty.expect(PROMPT)
            reminder = Part(HERE, FormattedText("Time for tea."))
            await hub.adapter.send(reminder, "reminder/0")
            await tty.expect("Time for tea.")
            assert "another terminal" not in tty.seen


async def test_a_hub_that_goes_away_in_mid_turn_is_found_again(path: Path) -> None:
    async def dies(hub: Hub, message: Message) -> None:
        await hub.stream(message, "You sa")

    first = Hub(dies, listen=path)
    await first.start(first._accept)
    async with on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("hi\r")
        await tty.expect("You sa")
        await first.stop()
        await tty.expect("The hub can't be reached (the hub has stopped); trying again …")
        async with Hub(listen=path) as second:
            await tty.expect("The hub is back.")
            await tty.expect("You said: hi")
            await tty.expect(PROMPT)
            assert [message.id for message in second.taken] == [message.id for message in first.taken]
            tty.type("more\r")
            await tty.expect("You said: more")
    assert tty.seen.count("trying again") == 1


async def test_a_hub_that_does_not_come_back_ends_the_talk(path: Path) -> None:
    hub = Hub(listen=path)
    await hub.start(hub._accept)
    async with on_tty("--socket", path, "--tries", "3") as tty:
        await tty.expect(PROMPT)
        await hub.stop()
        await tty.expect("The hub can't be reached: No such file or directory. Start it with: limpet run")
        assert await tty.ended() == 75


async def test_a_refused_hello_ends_with_the_hubs_word(path: Path) -> None:
    word = Failure("There is no agent 'opps': did you mean 'ops'?", 2)
    async with Hub(listen=path, word=word), on_tty("--socket", path, "--agent", "opps") as tty:
        await tty.expect("There is no agent 'opps': did you mean 'ops'?")
        assert await tty.ended() == 2


async def test_one_process_holds_both_sides() -> None:
    async with on_tty() as tty:
        await tty.expect(PROMPT)
        tty.type("hi\r")
        await tty.expect("You said: hi")
        await tty.expect(PROMPT)
        tty.type(CTRL_D)
        await tty.expect("1 turn · 0 s · limpet chat goes on where you left")
        assert await tty.ended() == 0


async def test_a_single_question_at_a_terminal_streams(path: Path) -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.stream(message, "It is ")
        await tty.expect("It is ")
        await hub.answer(message, "It is Biscuit")
        await hub.done(message)

    async with Hub(script, listen=path), on_tty("--socket", path, "--once", "my dog?") as tty:
        assert await tty.expect("Biscuit\r\n") == ""
        assert await tty.ended() == 0
    assert "main" not in tty.seen
