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
        await tty.expect("2 turns · 0 s · 2 things remembered · to go on where you left: limpet chat")
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


async def test_ctrl_d_during_an_answer_leaves_after_it(path: Path) -> None:
    leaving = asyncio.Event()

    async def script(hub: Hub, message: Message) -> None:
        await hub.stream(message, "Once upon ")
        await leaving.wait()
        await hub.answer(message, "Once upon a time")
        await hub.done(message)

    async with Hub(script, listen=path), on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("a story\r")
        await tty.expect("Once upon ")
        tty.type(CTRL_D)
        await tty.expect("Leaving after this answer; Ctrl-C stops it.")
        leaving.set()
        await tty.expect("a time")
        await tty.expect("1 turn · ")
        assert await tty.ended() == 0


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
async def test_whoever_does_not_want_to_wait_after_ctrl_d_stops_the_answer(key: str, path: Path) -> None:
    async with Hub(fails_when_stopped, listen=path) as hub, on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("a story\r")
        await tty.expect("Once upon a time")
        tty.type(CTRL_D)
        await tty.expect("Leaving after this answer")
        tty.type(key)
        await tty.expect("Stopped.")
        assert await tty.ended() == 0
        assert [message.text for message in hub.taken] == ["a story", "/stop"]


async def test_what_is_typed_during_an_answer_is_said_after_it(path: Path) -> None:
    """Keys and pastes are kept, in order, and nothing of them is drawn into the answer."""
    typed = asyncio.Event()

    async def script(hub: Hub, message: Message) -> None:
        if message.text == "one":
            await hub.stream(message, "You ")
            await typed.wait()
        await hub.answer(message, f"You said: {message.text}")
        await hub.done(message)

    async with Hub(script, listen=path) as hub, on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("one\r")
        await tty.expect("You ")
        tty.type("two\r\x1b[200~three\nfour\x1b[201~")
        typed.set()
        assert bare(await tty.expect("said: one")) == ""
        await tty.expect("You said: two")
        await tty.expect("four")
        tty.type("\r" + CTRL_D)
        await tty.expect("You said: three")
        await tty.expect("3 turns · ")
        assert await tty.ended() == 0
        assert [message.text for message in hub.taken] == ["one", "two", "three\nfour"]


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_long_answer_breaks_between_words(path: Path, streamed: bool) -> None:
    answer = "The quick brown fox jumps over the extraordinarily lazy dog beside the old mill, and then it sleeps."

    async def script(hub: Hub, message: Message) -> None:
        if streamed:
            await hub.stream(message, *(answer[at : at + 7] for at in range(0, len(answer), 7)))
        await hub.answer(message, answer)
        await hub.done(message)

    async with Hub(script, listen=path), on_tty("--socket", path, columns=40) as tty:
        await tty.expect(PROMPT)
        tty.type("hi\r")
        await tty.expect("The quick")
        lines = ("The quick" + bare(await tty.expect("sleeps."))).splitlines()
        assert max(map(len, lines)) <= 40
        assert " ".join(lines) + "sleeps." == answer


@pytest.mark.parametrize("columns", [80, 40])
async def test_notices_and_failures_break_between_words(path: Path, columns: int) -> None:
    notice = (
        "smollm2 is a demo-sized model: it words answers from your notes and invents all the rest of it. "
        "For a real one: limpet models pull smollm2"
    )
    failure = "The model at 127.0.0.1:9 refused the connection three times in a row, and so there is no answer now."

    async def script(hub: Hub, message: Message) -> None:
        await hub.fail(message, failure, 75)

    word = Ready("main", None, (notice,))
    async with Hub(script, listen=path, word=word), on_tty("--socket", path, columns=columns) as tty:
        shown = bare(await tty.expect("pull smollm2") + "pull smollm2")
        lines = shown.splitlines()
        assert max(map(len, lines)) <= columns
        assert " ".join(lines).endswith(notice)
        assert lines[-1].endswith("limpet models pull smollm2"), "what is to be copied is on one line"
        await tty.expect(PROMPT)
        tty.type("hi\r")
        await tty.expect("The model")
        lines = ("The model" + bare(await tty.expect("answer now."))).splitlines()
        assert max(map(len, lines)) <= columns
        assert " ".join(lines) + "answer now." == failure


async def test_the_width_is_that_of_the_moment(path: Path) -> None:
    text = "word " * 30 + "end"
    async with Hub(listen=path) as hub, on_tty("--socket", path, columns=80) as tty:
        await tty.expect(PROMPT)
        tty.resize(30)
        await hub.adapter.notice(HERE, text)
        lines = bare(await tty.expect("end")).splitlines()
        assert max(len(line) for line in lines if line.startswith("word")) <= 30


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


async def test_local_words_are_shown_once_and_completed_with_the_hubs(path: Path) -> None:
    """A hub has a /help as well: here it is the window's, and a list holds each word once."""
    word = Ready("main", commands=("/help — what I answer to", "/undo — take back the last note"))
    async with Hub(listen=path, word=word) as hub, on_tty("--socket", path, columns=80) as tty:
        await tty.expect(PROMPT)
        tty.type("/help\r")
        await tty.expect("Alt-Enter starts a new line")
        shown = await tty.expect(PROMPT)
        assert "/undo — take back the last note" in shown
        assert "/help" not in shown
        tty.type("/un\t")
        await tty.expect("do")  # by itself: the screen may be drawn after each letter
        tty.type("\r")
        await tty.expect("You said: /undo")
        assert [message.text for message in hub.taken] == ["/undo"]


@pytest.mark.parametrize("word", ["/quit", "/exit", "quit", " exit "])
async def test_the_words_that_leave(path: Path, word: str) -> None:
    async with Hub(listen=path) as hub, on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type(f"{word}\r")
        assert await tty.ended() == 0
        assert hub.taken == []


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
        await tty.expect("1 turn · 0 s · to go on where you left: limpet chat --agent ops")
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


async def test_what_is_said_while_the_hub_is_away_is_held_and_told(path: Path) -> None:
    first = Hub(listen=path)
    await first.start(first._accept)
    async with on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        await first.stop()
        await tty.expect("trying again …")
        await tty.expect(PROMPT)
        tty.type("hello?\r")
        await tty.expect("Held here until the hub is back; Ctrl-C takes it back.")
        async with Hub(listen=path) as second:
            await tty.expect("You said: hello?")
            assert [message.text for message in second.taken] == ["hello?"]


async def test_what_is_held_can_be_taken_back_and_is_not_said_later(path: Path) -> None:
    first = Hub(listen=path)
    await first.start(first._accept)
    async with on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        await first.stop()
        await tty.expect("trying again …")
        tty.type("never mind\r")
        await tty.expect("Held here")
        tty.type(CTRL_C)
        await tty.expect("Taken back: the hub did not confirm it. The up key shows it again.")
        await tty.expect(PROMPT)
        async with Hub(listen=path) as second:
            await tty.expect("The hub is back.")
            tty.type("hello\r")
            await tty.expect("You said: hello")
            assert [message.text for message in second.taken] == ["hello"]


@pytest.mark.parametrize(("typed", "why"), [("\r", "said"), ("", "a draft")])
async def test_giving_up_gives_the_words_back(path: Path, typed: str, why: str) -> None:
    """What is in no hub is not lost without a word: it is printed as it was, over all its lines."""
    hub = Hub(listen=path)
    await hub.start(hub._accept)
    async with on_tty("--socket", path, "--tries", "60") as tty:
        await tty.expect(PROMPT)
        await hub.stop()
        await tty.expect("trying again …")
        await tty.expect(PROMPT)
        tty.type("the first line" + ALT_ENTER + "and the second" + typed)
        await tty.expect("Start it with: limpet run")
        back = bare(await tty.expect("and the second\r\n"))
        assert back.endswith("Not sent, or sent and not confirmed:\nthe first line\n"), why
        assert await tty.ended() == 75


async def test_leaving_while_the_hub_is_away_gives_the_words_back(path: Path) -> None:
    hub = Hub(listen=path)
    await hub.start(hub._accept)
    async with on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        await hub.stop()
        await tty.expect("trying again …")
        tty.type("remember the milk\r")
        await tty.expect("Held here")
        tty.type(CTRL_D)
        await tty.expect("Not sent, or sent and not confirmed:")
        await tty.expect("remember the milk")
        assert await tty.ended() == 0


async def test_a_message_that_the_hub_has_is_not_given_back(path: Path) -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.stream(message, "hm")

    hub = Hub(script, listen=path)
    await hub.start(hub._accept)
    async with on_tty("--socket", path) as tty:
        await tty.expect(PROMPT)
        tty.type("hi\r")
        await tty.expect("hm")
        await hub.stop()
        await tty.expect("trying again …")
        tty.type(CTRL_D)
        await tty.expect("Your message is kept: it is answered when the hub runs again.")
        assert await tty.ended() == 0
        assert "Not sent" not in tty.seen


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
        await tty.expect("1 turn · 0 s · to go on where you left: limpet chat")
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
