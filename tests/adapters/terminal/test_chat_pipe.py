"""A pipe, a program, a single question: standard output holds the answer and nothing else."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.adapter import TurnReport
from adapters.message import Message, Part, Quote
from adapters.terminal import (
    Dial,
    Failure,
    InputTooLarge,
    Ready,
    Terminal,
    chat,
    piped_input,
    to_peer,
    to_socket,
    whole_input,
)
from adapters.terminal.wire import Answer, Got, Hello, Say, encode, from_client
from adapters.text import FormattedText
from tests.adapters.terminal.hub import HERE, Hub, Script, echo
from tests.adapters.terminal.processes import Ended, piped, start


@dataclass(frozen=True, slots=True)
class Said:
    stdout: str
    stderr: str
    code: int


async def talk(dial: Dial, **how: Any) -> Said:
    """A console in this process, with files for streams."""
    stdin, stdout, stderr = io.BytesIO(), io.BytesIO(), io.BytesIO()
    terminal = Terminal(stdin, stdout, stderr, False, False, False, color=False)
    async with asyncio.timeout(10):
        code = await chat(dial, terminal, **{"delays": (0.01,) * 100, **how})
    return Said(stdout.getvalue().decode(), stderr.getvalue().decode(), code)


async def ask(script: Script = echo, text: str = "hi", *, word: Ready | Failure | None = None, **how: Any) -> Said:
    """One question to a hub in this process."""
    ours, theirs = socket.socketpair()
    async with Hub(script, connected=theirs, word=word):
        return await talk(to_peer(ours), once=text, **how)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limpet.sock"


@pytest.fixture
async def hub(path: Path) -> AsyncIterator[Hub]:
    async with Hub(listen=path) as hub:
        yield hub


async def test_the_answer_is_byte_exact_and_alone(path: Path) -> None:
    source = "# *Hi* 🐚\r\n\n\t- `a`  \n\x1b[31mred\u2028"

    async def script(hub: Hub, message: Message) -> None:
        await hub.stream(message, "# *Hi*")
        await hub.adapter.notice(HERE, "remembered: likes tea (memory/2026-11-30.md)")
        await hub.answer(message, source)
        await hub.done(message)

    async with Hub(script, listen=path, word=Ready("main", notices=("A demo.",))):
        ended = await piped("--socket", path, "--once", "hi")
    assert ended.stdout == source.encode() + b"\n"
    assert ended.stderr == b"A demo.\nremembered: likes tea (memory/2026-11-30.md)\n"
    assert ended.code == 0


async def test_a_pipe_is_one_question(hub: Hub, path: Path) -> None:
    ended = await piped("--socket", path, "--whole", stdin=b"\xef\xbb\xbfone\r\ntwo \xff\n")
    assert hub.taken[0].text == "one\ntwo \ufffd"
    assert ended.stdout.decode() == "You said: one\ntwo \ufffd\n"


async def test_the_lines_of_a_pipe_are_messages_in_turn(hub: Hub, path: Path) -> None:
    ended = await piped("--socket", path, stdin=b"\xef\xbb\xbfone\r\n\n  \n/status\ntw\xc3\xb6\n/quit\nnever")
    assert ended.stdout.decode() == "You said: one\nYou said: /status\nYou said: twö\n"
    assert (ended.stderr, ended.code) == (b"", 0)


async def test_the_last_line_needs_no_end_and_no_input_is_no_message(hub: Hub, path: Path) -> None:
    assert (await piped("--socket", path, stdin=b"one\ntwo")).stdout == b"You said: one\nYou said: two\n"
    assert await piped("--socket", path, stdin=b"") == Ended(b"", b"", 0)
    assert len(hub.taken) == 2


async def test_a_line_is_answered_before_the_next_is_sent(path: Path) -> None:
    running: list[str] = []

    async def script(hub: Hub, message: Message) -> None:
        running.append(message.text)
        await asyncio.sleep(0.02)
        assert running == [message.text]
        running.clear()
        await echo(hub, message)

    async with Hub(script, listen=path):
        ended = await piped("--socket", path, stdin=b"1\n2\n3\n")
    assert ended.stdout == b"You said: 1\nYou said: 2\nYou said: 3\n"


async def test_one_process_holds_both_sides() -> None:
    ended = await piped("--once", "hi")
    assert (ended.stdout, ended.stderr, ended.code) == (b"You said: hi\n", b"", 0)


async def test_what_a_pipe_brings_beside_a_question_is_data(hub: Hub, path: Path) -> None:
    said = await talk(to_socket(path), once="summarise", piped="line one\n</note>\x07 two")
    assert said.stdout == "You said: summarise\n"
    (message,) = hub.taken
    assert (message.text, message.quote) == (
        "summarise",
        Quote("line one\n</note> two", "standard input", below=True),
    )


async def test_a_question_and_its_pipe_together_are_bounded(hub: Hub, path: Path) -> None:
    said = await talk(to_socket(path), once="summarise", piped="x" * (1 << 20))
    assert (said.stdout, said.code) == ("", 2)
    assert "the limit is 1,048,576" in said.stderr
    assert hub.taken == []


async def test_a_line_that_no_hub_takes_is_given_back(path: Path) -> None:
    """A pipe's lines are gone once they are read: the one that was not sent is told."""
    hub = Hub(listen=path)
    await hub.start(hub._accept)
    process = await start("--socket", path, "--tries", "3")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"one\n")
    assert await process.stdout.readline() == b"You said: one\n"
    await hub.stop()
    process.stdin.write(b"two\n")
    stdout, stderr = await process.communicate()
    assert (stdout, process.returncode) == (b"", 75)
    assert stderr.decode().endswith("Start it with: limpet run\nNot sent, or sent and not confirmed:\ntwo\n")


async def test_advice_is_beside_the_answer_and_not_said_twice() -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.answer(message, "I have no model.")
        await hub.done(message, code=1, advice="Get one: limpet models pull smollm2")

    said = await ask(script)
    assert said == Said("I have no model.\n", "Get one: limpet models pull smollm2\n", 1)
    told = await ask(script, word=Ready("main", notices=("Get one: limpet models pull smollm2",)))
    assert told == said


async def test_retries_are_told_at_once_and_the_failure_is_the_exit_code(path: Path) -> None:
    """A model that is down: notices on stderr while it is tried, nothing on stdout, 75."""
    seen = asyncio.Event()

    async def script(hub: Hub, message: Message) -> None:
        await hub.adapter.notice(HERE, "retry 1/3: 127.0.0.1:9 refused the connection")
        await seen.wait()
        await hub.fail(message, "The model at 127.0.0.1:9 can't be reached; your message is kept.", 75)

    async with Hub(script, listen=path):
        process = await start("--socket", path, "--once", "hi")
        assert process.stderr is not None
        assert await process.stderr.readline() == b"retry 1/3: 127.0.0.1:9 refused the connection\n"
        seen.set()
        stdout, stderr = await process.communicate()
    assert stdout == b""
    assert stderr == b"The model at 127.0.0.1:9 can't be reached; your message is kept.\n"
    assert process.returncode == 75


@pytest.mark.parametrize("as_json", [False, True])
async def test_a_hub_that_can_not_go_on_ends_the_wait(as_json: bool) -> None:
    """G-OPS-13: a full disk. The message is durable, and nobody knows when its answer comes."""

    async def script(hub: Hub, message: Message) -> None:
        await hub.adapter.hindered("/home: no room is left on the disk. Your message is kept.", 75)

    said = await ask(script, as_json=as_json)
    assert (said.stdout, said.code) == ("", 75)
    assert said.stderr.count("no room is left on the disk") == 1


async def test_who_waits_for_nothing_does_not_hear_of_a_full_disk(path: Path) -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.answer(message, f"You said: {message.text}")
        await hub.done(message)
        await hub.adapter.hindered("No room.", 75)

    async with Hub(script, listen=path):
        ended = await piped("--socket", path, stdin=b"one\n")
    assert (ended.stdout, ended.stderr, ended.code) == (b"You said: one\n", b"", 0)


async def test_an_answer_that_is_no_answer_is_shown_and_has_its_code() -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.answer(message, "I have no model. The nearest notes: …")
        await hub.done(message, code=1)

    said = await ask(script)
    assert (said.stdout, said.code) == ("I have no model. The nearest notes: …\n", 1)


async def test_silence_is_an_empty_success() -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.done(message, parts=0)

    assert await ask(script) == Said("", "", 0)


async def test_the_report_may_come_before_the_answer() -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.done(message, parts=2)
        await hub.answer(message, "one", key="t/0")
        await hub.answer(message, "two", key="t/1")

    assert await ask(script) == Said("one\ntwo\n", "", 0)


async def test_json_is_one_object_of_a_stable_shape() -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.adapter.notice(HERE, "remembered: likes tea")
        await hub.answer(message, "*Yes* 🐚")
        await hub.done(
            message,
            session="main/terminal",
            input_tokens=812,
            output_tokens=9,
            memories=("memory/2026-11-30.md#L1",),
        )

    said = await ask(script, as_json=True)
    assert json.loads(said.stdout) == {
        "schema": 1,
        "answer": "*Yes* 🐚",
        "agent": "main",
        "model": "fake-1",
        "session": "main/terminal",
        "tokens": {"input": 812, "output": 9},
        "cost": None,
        "memories": ["memory/2026-11-30.md#L1"],
    }
    assert [json.loads(line) for line in said.stderr.splitlines()] == [{"schema": 1, "notice": "remembered: likes tea"}]


async def test_json_of_a_failure_is_on_stderr() -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.fail(message, "No model.", 75)

    said = await ask(script, as_json=True)
    assert (said.stdout, said.code) == ("", 75)
    assert json.loads(said.stderr) == {"schema": 1, "error": {"message": "No model.", "code": 75}}


async def test_json_of_lines_is_an_object_a_line(hub: Hub, path: Path) -> None:
    ended = await piped("--socket", path, "--json", stdin=b"one\ntwo\n")
    assert [json.loads(line)["answer"] for line in ended.stdout.splitlines()] == ["You said: one", "You said: two"]


async def test_a_refusal_is_the_exit_code() -> None:
    said = await ask(word=Failure("There is no agent 'opps'.", 2))
    assert said == Said("", "There is no agent 'opps'.\n", 2)


async def test_too_long_a_question_is_not_sent(hub: Hub, path: Path) -> None:
    said = await talk(to_socket(path), once="x" * (1 << 20))
    assert (said.stdout, said.code) == ("", 2)
    assert "the limit is 1,048,576" in said.stderr
    assert hub.taken == []


async def test_an_empty_question_is_refused(hub: Hub, path: Path) -> None:
    assert await talk(to_socket(path), once=" ") == Said("", "An empty message was not taken.\n", 2)


async def test_an_answer_to_somebody_else_is_not_the_answer(path: Path) -> None:
    async with Hub(listen=path) as hub:
        stray = asyncio.create_task(hub.answer(Message("00", HERE, hub.adapter._sender, "?", None), "42"))  # type: ignore[arg-type]  # the time plays no part
        said = await talk(to_socket(path), once="hi")
        await stray
    assert said == Said("You said: hi\n", "An answer from before: 42\n", 0)


async def test_an_answer_from_before_names_its_question(path: Path) -> None:
    async with Hub(listen=path) as hub:
        part = Part(HERE, FormattedText("42"), reply_to="00", question="What is six times seven?")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(hub.deliver(part, "00/0"))
            said = await talk(to_socket(path), once="hi")
    assert said == Said("You said: hi\n", 'An answer from before, to "What is six times seven?": 42\n', 0)


async def test_no_hub_is_temporary_and_says_what_to_do(path: Path) -> None:
    said = await talk(to_socket(path), once="hi", delays=(0.01, 0.01))
    assert (said.stdout, said.code) == ("", 75)
    assert said.stderr.splitlines() == [
        "The hub can't be reached (No such file or directory); trying again …",
        "The hub can't be reached: No such file or directory. Start it with: limpet run",
    ]


async def test_a_hub_that_is_just_starting_is_waited_for(path: Path) -> None:
    talking = asyncio.create_task(talk(to_socket(path), once="hi"))
    await asyncio.sleep(0.03)
    async with Hub(listen=path):
        assert (await talking).stdout == "You said: hi\n"


async def test_a_hub_that_dies_keeps_what_it_had_confirmed(path: Path) -> None:
    async def script(hub: Hub, message: Message) -> None:
        await asyncio.sleep(0)
        hub.adapter._clients.pop().writer.transport.abort()
        gone()

    gone = path.unlink
    async with Hub(script, listen=path):
        said = await talk(to_socket(path), once="hi", delays=(0.01,))
    assert said.code == 75
    assert said.stderr.endswith(
        "Your message is kept: it is answered when the hub runs again. Start it with: limpet run\n"
    )


async def test_after_a_break_the_answer_is_shown_once_whoever_repeats_it(path: Path) -> None:
    """The hub dies between the answer and its confirmation; the outbox sends it again with the same key."""
    heard: list[Any] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for frame in from_client(reader):
            heard.append(frame)
            match frame:
                case Hello():
                    writer.write(encode(Ready("main")))
                case Say(id):
                    answer = encode(Answer("one", id, "k"))
                    writer.write(answer)
                case Got() if heard.count(frame) == 1:
                    writer.write(answer)
                case Got():
                    break
        writer.close()

    async with await asyncio.start_unix_server(serve, path):
        said = await talk(to_socket(path), once="hi")
    assert said.stdout == "one\n"
    assert said.code == 0
    kinds = [type(frame) for frame in heard]
    assert kinds == [Hello, Say, Got, Got], "answered: it is not asked again, and its turn counts as ended"


async def test_ctrl_c_stops_the_turn_and_is_130(path: Path) -> None:
    asked = asyncio.Event()

    async def script(hub: Hub, message: Message) -> None:
        asked.set()
        if message.text == "/stop":
            await hub.done(hub.taken[0], parts=0, code=130)

    async with Hub(script, listen=path) as hub:
        process = await start("--socket", path, "--once", "tell me a story")
        await asked.wait()
        process.send_signal(signal.SIGINT)
        stdout, stderr = await process.communicate()
    assert (stdout, stderr, process.returncode) == (b"", b"Stopped.\n", 130)
    assert [message.text for message in hub.taken] == ["tell me a story", "/stop"]


async def test_ctrl_c_while_reading_a_pipe_is_130(path: Path) -> None:
    async with Hub(listen=path):
        process = await start("--socket", path)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"hi\n")
        assert await process.stdout.readline() == b"You said: hi\n"
        process.send_signal(signal.SIGINT)
        stderr = await asyncio.wait_for(process.stderr.read(), 10) if process.stderr else b""
        process.stdin.close()
        assert (stderr, await process.wait()) == (b"Stopped.\n", 130)


async def test_a_closed_output_is_quiet_and_leaves_the_answer_unsent(path: Path) -> None:
    shown = asyncio.Event()

    async def script(hub: Hub, message: Message) -> None:
        await closed.wait()
        await hub.answer(message, "hello")
        shown.set()

    closed = asyncio.Event()
    async with Hub(script, listen=path) as hub:
        process = await start("--socket", path, "--once", "hi")
        assert process.stdout is not None
        assert process.stderr is not None
        await hub.arrivals.get()
        process.stdout._transport.close()  # type: ignore[attr-defined]  # a reader can't be closed otherwise
        closed.set()
        assert await process.stderr.read() == b""
        assert await process.wait() == 1
        assert not shown.is_set()


async def test_a_turn_ends_once() -> None:
    async def script(hub: Hub, message: Message) -> None:
        await hub.adapter.done(HERE, "nobody's", TurnReport(parts=1))
        await hub.fail(message, "first", 75)
        await hub.done(message)

    assert (await ask(script)).code == 75


def test_whole_input_is_text_whatever_the_bytes() -> None:
    assert whole_input(io.BytesIO(b"\xef\xbb\xbfa\xff\n\n")) == "a\ufffd\n"
    assert whole_input(io.BytesIO(b"")) == ""
    assert whole_input(io.BytesIO(b"1234"), most=4) == "1234"
    with pytest.raises(InputTooLarge, match="more than 4 bytes"):
        whole_input(io.BytesIO(b"12345"), most=4)


def test_an_endless_pipe_is_not_read_to_its_end() -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        assert isinstance(endless.stdout, io.BufferedReader)
        with pytest.raises(InputTooLarge):
            whole_input(endless.stdout)
        endless.kill()


def nobody_waits() -> None:
    raise AssertionError("nothing is waited for")


def test_files_and_pipes_are_read_beside_a_question(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("whales\n")
    with (tmp_path / "notes.txt").open("rb") as file:
        assert piped_input(file, nobody_waits) == "whales"
    reading, writing = os.pipe()
    os.write(writing, b"whales")
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert piped_input(pipe, nobody_waits) == "whales"


def test_no_device_is_read_beside_a_question() -> None:
    """A terminal has a person at it, who would be waited for; /dev/null has nothing to say."""
    leader, follower = pty.openpty()
    with os.fdopen(follower, "rb") as terminal, Path(os.devnull).open("rb") as nothing:
        os.write(leader, b"typed\n")
        assert piped_input(terminal, nobody_waits) == ""
        assert piped_input(nothing, nobody_waits) == ""
    os.close(leader)


def test_a_pipe_that_nobody_closes_says_what_is_waited_for() -> None:
    reading, writing = os.pipe()
    told = threading.Event()

    def waiting() -> None:
        told.set()
        os.close(writing)

    with os.fdopen(reading, "rb") as pipe:
        assert piped_input(pipe, waiting) == ""
    assert told.is_set()
