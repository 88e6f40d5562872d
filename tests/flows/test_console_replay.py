"""A console whose connection broke says again what it has no answer to: nothing is lost, and nothing runs twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from adapters.terminal import to_socket
from adapters.terminal.wire import VERSION, Answer, Done, Failure, Got, Hello, Ready, Say, encode
from adapters.terminal.wire import from_hub as frames
from bot.reception import OVER
from tests.fakes.model_server import ModelServer, Reply
from tests.flows.conftest import SECONDS, Limpet

Frame = TypeVar("Frame")


@dataclass
class Console:
    """The bare protocol: says what it is told to, and keeps every frame that came."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def say(self, frame: Hello | Say | Got) -> None:
        self.writer.write(encode(frame))

    async def until(self, kind: type[Frame]) -> tuple[Frame, list[object]]:
        """The next frame of that kind, and those that came before it."""
        before: list[object] = []
        async with asyncio.timeout(SECONDS):
            async for frame in frames(self.reader):
                if isinstance(frame, kind):
                    return frame, before
                before.append(frame)
        raise AssertionError(f"the hub hung up after {before}")


@asynccontextmanager
async def attached(limpet: Limpet) -> AsyncIterator[Console]:
    async with asyncio.timeout(SECONDS):
        while True:  # the hub says that it started before it listens
            try:
                reader, writer = await to_socket(limpet.home / "state" / "limpet.sock")()
                break
            except OSError:
                await asyncio.sleep(0.05)
    console = Console(reader, writer)
    console.say(Hello(VERSION))
    await console.until(Ready)
    try:
        yield console
    finally:
        writer.close()
        await writer.wait_closed()


def configure(limpet: Limpet, server: ModelServer) -> None:
    limpet.configure(f'[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n')


async def test_a_question_outlives_the_hub_it_was_asked(limpet: Limpet) -> None:
    """G-DLV-07: the hub was killed in the middle of the turn; the console that waits is answered by the next one."""
    answers = iter([Reply("never shown", wait=True), Reply("Here.")])
    async with ModelServer(lambda _: next(answers)) as server:
        configure(limpet, server)
        async with limpet.hub() as hub:
            asking = asyncio.create_task(limpet("chat", "--once", "are you there?"))
            await server.arrived(1)
            await hub.kill()
        async with limpet.hub():
            asked = await asking
    assert (asked.code, asked.out) == (0, "Here.\n")
    (transcript,) = (limpet.home / "state" / "agents" / "main" / "sessions").glob("*.jsonl")
    assert transcript.read_text("utf-8").count("are you there?") == 1


async def test_what_is_said_again_after_a_break_runs_once_and_has_its_end(limpet: Limpet) -> None:
    """Also in the next hub: while the answer is not shown it comes again, and then that the turn is over."""
    async with ModelServer([Reply("Here.")]) as server:
        configure(limpet, server)
        question = Say("question-1", "are you there?")
        async with limpet.hub() as hub:
            async with attached(limpet) as console:
                console.say(question)
                answer, _ = await console.until(Answer)
                assert answer.text == "Here."  # and the connection breaks before it is shown
            await hub.kill()
        async with limpet.hub(), attached(limpet) as console:
            console.say(question)
            done, before = await console.until(Done)
            assert (done.in_reply_to, done.meta.parts) == ("question-1", 1)
            again = next((f for f in before if isinstance(f, Answer)), None) or (await console.until(Answer))[0]
            assert again.key == answer.key
            assert again.text == "Here.", "a console tells a repetition by its key: nothing is said of it"
            console.say(Got(again.key))
            await asyncio.sleep(0.5)  # until it is noted; nothing tells of that
            console.say(question)  # the end of the turn may have got lost as well
            over, before = await console.until(Failure)
            assert (over.in_reply_to, over.text, over.code) == ("question-1", OVER, 75)
            assert not any(isinstance(frame, Answer) for frame in before)
    assert len(server.requests) == 1


async def test_a_stop_that_is_said_again_stops_nothing(limpet: Limpet) -> None:
    async with ModelServer([Reply("never shown", wait=True), Reply("Here.", wait=True)]) as server:
        configure(limpet, server)
        async with limpet.hub(), attached(limpet) as console:
            console.say(Say("1", "first"))
            await server.arrived(1)
            console.say(Say("2", "/stop"))
            stopped, before = await console.until(Failure)
            assert (stopped.in_reply_to, stopped.code) == ("1", 130)
            if not any(isinstance(frame, Done) for frame in before):  # the ends of two turns, in either order
                await console.until(Done)
            console.say(Say("3", "second"))
            await server.arrived(2)
            console.say(Say("2", "/stop"))
            done, _ = await console.until(Done)
            assert (done.in_reply_to, done.meta.parts) == ("2", 0)
            server.release()
            answer, _ = await console.until(Answer)
            assert (answer.text, answer.in_reply_to) == ("Here.", "3")
