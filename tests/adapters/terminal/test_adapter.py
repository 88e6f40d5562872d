"""The adapter's contract, with raw clients on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.adapter import Adapter, Narrator, TurnReport
from adapters.errors import Absent, AuthFailed, Rejected, Unreachable
from adapters.message import Address, Message, Part, Receipt, Sender
from adapters.terminal.endpoint import to_peer, to_socket
from adapters.terminal.wire import (
    Accepted,
    Answer,
    Delta,
    Done,
    Failure,
    FromClient,
    Goodbye,
    Got,
    Hello,
    Notice,
    Ready,
    Say,
    Stop,
    encode,
    from_hub,
)
from adapters.text import FormattedText
from tests.adapters.terminal.hub import HERE, NOON, Hub


class Client:
    """Speaks the protocol by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self._frames = from_hub(reader)

    async def say(self, *frames: FromClient) -> None:
        self.writer.write(b"".join(map(encode, frames)))
        await self.writer.drain()

    async def hear(self) -> Any:
        return await asyncio.wait_for(anext(self._frames, None), 5)

    async def leave(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def connected(path: Path, hello: Hello | None = None) -> AsyncIterator[Client]:
    client = Client(*await to_socket(path)())
    try:
        if hello is not None:
            await client.say(hello)
            assert isinstance(await client.hear(), Ready)
        yield client
    finally:
        await client.leave()


async def silent(hub: Hub, message: Message) -> None:
    """A script that says nothing."""


def part(text: str, reply_to: str | None = "01", address: Address = HERE) -> Part:
    return Part(address, FormattedText(text), reply_to)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limpet.sock"


async def test_it_is_an_adapter_and_a_narrator() -> None:
    hub = Hub()
    adapter: Adapter = hub.adapter
    assert isinstance(adapter, Narrator)
    capabilities = adapter.capabilities
    assert (capabilities.text_limit, capabilities.markup) == (0, False)
    assert adapter.measure(FormattedText("🐚🐚")) == 2


@pytest.mark.parametrize(("hello", "attended"), [(Hello(1, interactive=True), True), (Hello(1, once=True), False)])
async def test_only_a_person_at_a_prompt_can_be_asked_in_turn(path: Path, hello: Hello, attended: bool) -> None:
    async with Hub(silent, listen=path) as hub, connected(path, hello) as client:
        await client.say(Say("01", "hi"))
        assert await client.hear() == Accepted("01")
        assert hub.adapter.is_attended(HERE, "01") is attended
        assert not hub.adapter.is_attended(HERE, "02")


async def test_two_consoles_are_two_screens(path: Path) -> None:
    hello = Hello(1, interactive=True)
    async with Hub(silent, listen=path) as hub, connected(path, hello) as one, connected(path, hello) as other:
        for client, message in ((one, "01"), (one, "02"), (other, "03")):
            await client.say(Say(message, "hi"))
            assert await client.hear() == Accepted(message)
        assert hub.adapter.is_one_screen(HERE, "01", "02")
        assert not hub.adapter.is_one_screen(HERE, "01", "03")
        assert not hub.adapter.is_one_screen(HERE, "04", "04")


async def test_a_message_is_handed_on_before_it_is_confirmed(path: Path) -> None:
    stored = asyncio.Event()
    hub = Hub(listen=path)

    async def accept(message: object) -> None:
        hub.taken.append(message)  # type: ignore[arg-type]  # compared whole below
        await stored.wait()

    await hub.start(accept)
    async with connected(path, Hello(1)) as client:
        await client.say(Say("01", "hi\r\nthere \x1b[2J"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(client._frames), 0.05)
    expected = Message("01", HERE, Sender("local", "Ann"), "hi\nthere [2J", NOON)
    assert hub.taken == [expected]
    stored.set()
    await hub.stop()


async def test_what_can_not_be_stored_is_not_confirmed(path: Path) -> None:
    async with Hub(silent, listen=path) as hub, connected(path, Hello(1)) as client:
        hub.accept_error = OSError(28, "No space left on device")
        await client.say(Say("01", "hi"))
        failure = await client.hear()
        assert (failure.in_reply_to, failure.code) == ("01", 75)
        assert "No space left on device" in failure.text
        hub.accept_error = None
        await client.say(Say("01", "hi"))
        assert await client.hear() == Accepted("01")


async def test_a_message_said_again_is_confirmed_again(path: Path) -> None:
    async with Hub(silent, listen=path) as hub:
        for _ in range(2):
            async with connected(path, Hello(1)) as client:
                await client.say(Say("01", "hi"))
                assert await client.hear() == Accepted("01")
        assert [message.id for message in hub.taken] == ["01"]


async def test_the_agent_that_answers_is_the_space(path: Path) -> None:
    async with Hub(silent, listen=path) as hub, connected(path, Hello(1, "ops", True)) as client:
        await client.say(Say("01", "hi"))
        assert await client.hear() == Accepted("01")
        assert hub.taken[0].address == replace(HERE, space="ops")
        assert hub.hellos == [Hello(1, "ops", True)]


async def test_a_stop_is_the_command(path: Path) -> None:
    async with Hub(silent, listen=path) as hub, connected(path, Hello(1)) as client:
        await client.say(Stop("stop-1"))
        assert await client.hear() == Accepted("stop-1")
        assert (hub.taken[0].id, hub.taken[0].text) == ("stop-1", "/stop")


async def test_a_part_is_sent_when_it_was_shown_byte_for_byte(path: Path) -> None:
    source = "# *Hi*\r\n\tthere\u2028\n\n"
    async with Hub(silent, listen=path) as hub, connected(path, Hello(1)) as client:
        await client.say(Say("01", "hi"))
        await client.hear()
        sending = asyncio.create_task(hub.adapter.send(part(source), "turn-1/0"))
        assert await client.hear() == Answer(source, "01", "turn-1/0")
        assert not sending.done()
        await client.say(Got("turn-1/0"))
        assert await asyncio.wait_for(sending, 5) == Receipt(None)


async def test_without_a_console_it_is_absent_and_each_arrival_is_told(path: Path) -> None:
    async with Hub(silent, listen=path) as hub:
        with pytest.raises(Absent, match="no terminal is connected") as caught:
            await hub.adapter.send(part("hi"), "k")
        assert caught.value.may_retry
        async with connected(path, Hello(1)) as client:
            assert await hub.arrivals.get() == HERE
            sending = asyncio.create_task(hub.adapter.send(part("hi"), "k"))
            assert await client.hear() == Answer("hi", "01", "k", late=True)
            await client.say(Got("k"))
            await sending


async def test_a_console_that_leaves_without_showing_it_leaves_it_unsent(path: Path) -> None:
    async with Hub(silent, listen=path) as hub:
        async with connected(path, Hello(1)) as client:
            sending = asyncio.create_task(hub.adapter.send(part("hi"), "k"))
            await client.hear()
        with pytest.raises(Absent, match="left before"):
            await asyncio.wait_for(sending, 5)


async def test_a_console_that_is_stuck_leaves_it_unsent(path: Path) -> None:
    async with Hub(silent, listen=path, patience=0.05) as hub, connected(path, Hello(1)):
        with pytest.raises(Unreachable, match="suspended") as caught:
            await hub.adapter.send(part("hi"), "k")
        assert not isinstance(caught.value, Absent)


async def test_a_console_that_does_not_read_is_cut_off_and_harms_no_other(path: Path) -> None:
    async with (
        Hub(silent, listen=path, patience=0.2) as hub,
        connected(path, Hello(1)) as good,
        connected(path, Hello(1)) as stuck,
    ):
        stuck.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads, too
        await good.say(Say("01", "hi"))
        assert await good.hear() == Accepted("01")
        sending = asyncio.create_task(hub.adapter.send(part("x" * 900_000), "k"))
        assert (await good.hear()).key == "k"
        await good.say(Got("k"))
        await asyncio.wait_for(sending, 5)
        stuck.writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
        with contextlib.suppress(ConnectionError):
            while await stuck.hear() is not None:
                pass


async def test_an_answer_goes_to_all_but_the_single_questions_of_others(path: Path) -> None:
    async with (
        Hub(silent, listen=path) as hub,
        connected(path, Hello(1)) as asker,
        connected(path, Hello(1)) as other,
        connected(path, Hello(1, once=True)) as question,
    ):
        await asker.say(Say("01", "hi"))
        await asker.hear()
        sending = asyncio.create_task(hub.adapter.send(part("hello"), "k"))
        assert await asker.hear() == await other.hear() == Answer("hello", "01", "k")
        await other.say(Got("k"))
        await sending
        await question.say(Say("02", "me?"))
        assert await question.hear() == Accepted("02")


async def test_an_answer_nobody_waits_for_does_not_hold_up_a_single_question(path: Path) -> None:
    async with Hub(silent, listen=path) as hub, connected(path, Hello(1, once=True)) as question:
        sending = asyncio.create_task(hub.adapter.send(part("old", "00"), "k"))
        assert await question.hear() == Answer("old", "00", "k", late=True)
        await question.say(Got("k"))
        assert await sending == Receipt(None)


async def test_agents_do_not_hear_each_other(path: Path) -> None:
    async with Hub(silent, listen=path) as hub, connected(path, Hello(1, "ops")):
        with pytest.raises(Absent):
            await hub.adapter.send(part("hi"), "k")


async def test_that_a_turn_was_stopped_waits_for_nobody(path: Path) -> None:
    async with Hub(silent, listen=path) as hub:
        assert await hub.adapter.send(part("Stopped.", "stop-1"), "k") == Receipt(None)


async def test_an_answer_over_the_limit_is_refused_and_the_asker_told(path: Path) -> None:
    async with Hub(silent, listen=path) as hub, connected(path, Hello(1)) as client:
        await client.say(Say("01", "hi"))
        await client.hear()
        with pytest.raises(Rejected, match="too many"):
            await hub.adapter.send(part("x" * (1 << 20)), "k")
        failure = await client.hear()
        assert (failure.in_reply_to, failure.code) == ("01", 1)


async def test_only_the_asker_hears_how_its_turn_goes(path: Path) -> None:
    async with Hub(silent, listen=path) as hub, connected(path, Hello(1)) as asker, connected(path, Hello(1)) as other:
        await asker.say(Say("01", "hi"))
        await asker.hear()
        await hub.adapter.preview(HERE, "01", "hel")
        await hub.adapter.notice(HERE, "retry 1/3")
        await hub.adapter.fail(HERE, "01", "no model", 75)
        await hub.adapter.done(HERE, "01", TurnReport(parts=0))
        heard = [await asker.hear() for _ in range(4)]
        assert heard == [Delta("hel"), Notice("retry 1/3"), Failure("no model", 75, "01"), Done("01", TurnReport(0))]
        assert await other.hear() == Notice("retry 1/3")
        await other.say(Say("02", "and me?"))
        assert await other.hear() == Accepted("02")


async def test_a_preview_under_a_turns_own_name_reaches_who_waits(path: Path) -> None:
    async with Hub(silent, listen=path) as hub, connected(path, Hello(1)) as asker, connected(path, Hello(1)) as other:
        await asker.say(Say("01", "hi"))
        await asker.hear()
        await hub.adapter.preview(HERE, "turn-7", "hel")
        assert await asker.hear() == Delta("hel")
        await hub.adapter.notice(HERE, "the next")
        assert await other.hear() == Notice("the next")


async def test_what_is_narrated_to_nobody_is_told_to_nobody_later(path: Path) -> None:
    async with Hub(silent, listen=path) as hub:
        await hub.adapter.preview(HERE, "01", "hel")
        await hub.adapter.notice(HERE, "retry 1/3")
        await hub.adapter.done(HERE, "01", TurnReport(parts=1))
        await hub.adapter.fail(HERE, "01", "no", 1)
        await hub.adapter.typing(HERE)
        async with connected(path, Hello(1)) as late:
            await late.say(Say("02", "hi"))
            assert await late.hear() == Accepted("02")


async def test_another_version_is_told_what_to_do(path: Path) -> None:
    async with Hub(listen=path), connected(path) as client:
        await client.say(Hello(99))
        failure = await client.hear()
        assert failure.code == 2
        assert "version 99" in failure.text
        assert "restart the hub" in failure.text
        assert isinstance(await client.hear(), Goodbye)
        assert await client.hear() is None


async def test_a_refusal_of_the_hub_ends_the_connection(path: Path) -> None:
    no_agent = Failure("There is no agent 'opps': did you mean 'ops'?", 2)
    async with Hub(listen=path, word=no_agent) as hub, connected(path) as client:
        await client.say(Hello(1, "opps"), Say("01", "hi"))
        assert await client.hear() == no_agent
        assert isinstance(await client.hear(), Goodbye)
        assert await client.hear() is None
        assert hub.taken == []


async def test_nonsense_is_answered_and_the_connection_goes_on(path: Path) -> None:
    async with Hub(silent, listen=path) as hub, connected(path) as client:
        await client.say(Say("01", "too early"))
        assert "Hello comes first" in (await client.hear()).text
        client.writer.write(b"\x00\xff\n" + b"x" * (2 << 20) + b"\n")
        assert (await client.hear()).text == "Not understood: a line is not JSON."
        assert "longer than 1,048,576" in (await client.hear()).text
        await client.say(Hello(1), Say("", "no id"), Say("02", " \x07\n"), Say("03", "at last"))
        assert isinstance(await client.hear(), Ready)
        assert [(await client.hear()).in_reply_to for _ in range(2)] == [None, "02"]
        assert await client.hear() == Accepted("03")
        assert [message.id for message in hub.taken] == ["03"]


async def test_a_hub_that_stops_answers_what_runs_and_takes_nothing_new(path: Path) -> None:
    hub = Hub(silent, listen=path)
    await hub.start(hub._accept)
    async with connected(path, Hello(1)) as client:
        await client.say(Say("01", "hi"))
        await client.hear()
        hub._running.cancel()
        await asyncio.wait([hub._running])
        with pytest.raises(FileNotFoundError):
            await to_socket(path)()
        assert hub.adapter.health.state == "stopped"
        await client.say(Say("02", "too late"))
        sending = asyncio.create_task(hub.adapter.send(part("hello"), "k"))
        assert await client.hear() == Answer("hello", "01", "k")
        await client.say(Got("k"))
        await sending
        await hub.adapter.close()
        assert isinstance(await client.hear(), Goodbye)
        assert await client.hear() is None
    assert [message.id for message in hub.taken] == ["01"]


async def test_a_pair_and_a_socket_are_served_at_once(path: Path) -> None:
    ours, theirs = socket.socketpair()
    async with Hub(silent, listen=path, connected=theirs) as hub, connected(path, Hello(1)):
        client = Client(*await to_peer(ours)())
        await client.say(Hello(1))
        assert isinstance(await client.hear(), Ready)
        await client.leave()
        assert hub.adapter.health.state == "connected"


async def test_a_socket_that_can_not_be_made_is_for_a_person_to_mend(tmp_path: Path) -> None:
    hub = Hub(listen=tmp_path)
    with pytest.raises(AuthFailed, match="can't be made"):
        await hub.adapter.run(hub._accept)
    assert hub.adapter.health.state == "failed"
    assert str(tmp_path) in hub.adapter.health.detail


async def test_what_a_terminal_can_not_do_is_rejected() -> None:
    adapter = Hub().adapter
    with pytest.raises(Rejected):
        await adapter.edit(part("hi"), "1")
    with pytest.raises(Rejected):
        [chunk async for chunk in adapter.fetch("ref", 1)]
