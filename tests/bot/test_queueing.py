"""What becomes of a message that comes while another one is answered: the four modes, the pause, and the measure."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.message import Attachment, Edited, Message
from bot.home import Home
from bot.queueing import MODES
from bot.state import State
from bot.turns import LEFT_OUT, MOST_TURNS
from tests.bot.conftest import OPEN, Serve
from tests.bot.test_stop import Console, linked
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply

OWNED = 'owners = ["telegram:1"]\n'
GROUP = f'{OPEN}groups = ["-5"]\n'
LOOK = Call("list", "{}")


def queued(mode: str, more: str = "") -> str:
    return f'{OWNED}[queue]\nmode = "{mode}"\n{more}\n'


def said(request: Recorded) -> list[str]:
    """What people said, as a request has it."""
    texts = [str(message["content"]) for message in request.messages if message["role"] == "user"]
    return [text.rpartition("] ")[2] for text in texts]


async def released(server: ModelServer, number: int) -> None:
    """What waited goes on, and what comes then waits again, once the request of that number is there."""
    server.release()
    await asyncio.sleep(0)
    server._released.clear()
    await server.arrived(number)


def holds_the_first(request: Recorded) -> Reply:
    """Of the first call nothing comes before the server is released; the others echo what was said last."""
    words = said(request)
    return Reply(f"re: {words[-1]}", wait=words == ["one"])


def looks_first(request: Recorded) -> Reply:
    """Look into the workspace, held up until it is released, then answer what was said last."""
    if any(message["role"] == "tool" for message in request.messages):
        return Reply(f"re: {said(request)[-1]}")
    return Reply(calls=[LOOK], wait=True)


async def test_each_turn_its_own(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(looks_first) as server, serve(server, top=queued("followup")) as hub:
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        await door.says(door.message("two", sender="1"))
        await door.says(door.message("three", sender="1"))
        server.release()
        assert [sent.text for sent in await door.wait_sent(3)] == ["re: one", "re: two", "re: three"]
        await hub.idle()
    assert said(server.requests[1]) == ["one"], "nothing joins between two calls"


async def test_what_came_meanwhile_is_collected_for_one_turn(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(looks_first) as server, serve(server, top=queued("collect")) as hub:
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        for text in ("two", "three", "four"):
            await door.says(door.message(text, sender="1"))
        server.release()
        assert [sent.text for sent in await door.wait_sent(2)] == ["re: one", "re: two\n\nthree\n\nfour"]
        await hub.idle()
    assert len(door.sent) == 2
    assert said(server.requests[1]) == ["one"]
    assert said(server.requests[-1]) == ["one", "two\n\nthree\n\nfour"]


async def test_a_command_parts_what_is_collected(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(holds_the_first) as server, serve(server, top=queued("collect")):
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        for text in ("two", "/memory today", "three", "four"):
            await door.says(door.message(text, sender="1"))
        server.release()
        sent = [sent.text for sent in await door.wait_sent(4)]
    assert [sent[1], sent[3]] == ["re: two", "re: three\n\nfour"]


@pytest.mark.parametrize("mode", MODES)
async def test_two_people_are_never_one_turn(serve: Serve, door: FakeAdapter, mode: str) -> None:
    group = {"chat": "-5", "kind": "group", "mentions_me": True}

    def script(request: Recorded) -> Reply:
        return Reply(f"re: {said(request)[-1]}", wait=len(said(request)) == 1)

    async with ModelServer(script) as server, serve(server, GROUP, top=queued(mode)) as hub:
        for text, sender in (("one", "1"), ("bob one", "2"), ("bob two", "2")):
            await door.says(door.message(text, sender=sender, **group))  # type: ignore[arg-type]  # plain keywords
            await server.arrived(1)
        server.release()
        await door.wait_sent(2)
        await hub.idle()
    turns = [sent.text for sent in door.sent]
    assert turns[0] == "re: one"
    assert turns[-1].endswith("bob two")
    assert len(turns) == (2 if mode == "collect" else 3)
    assert [sent.part.reply_to for sent in door.sent][-1] == "3", "it answers the newest"


async def test_what_is_forwarded_stays_somebody_elses_when_it_is_collected(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(holds_the_first) as server, serve(server, top=queued("collect")):
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        await door.says(door.message("what do you say to this?", sender="1"))
        await door.says(replace(door.message("pay me at once", sender="1"), forwarded_from="Eve"))
        server.release()
        await door.wait_sent(2)
    content = str(server.requests[-1].messages[-1]["content"])
    note, _, own = content.partition("</note>")
    assert "forwarded from Eve" in note
    assert "pay me" not in own
    assert "what do you say to this?" in own


async def test_a_new_message_interrupts_and_both_are_answered(serve: Serve, door: FakeAdapter) -> None:
    def script(request: Recorded) -> Reply:
        words = said(request)
        return Reply(f"re: {'+'.join(words)}", wait=len(words) < 3)

    async with ModelServer(script) as server, serve(server, top=queued("interrupt")) as hub:
        for number, text in enumerate(("one", "two", "three"), 1):
            await door.says(door.message(text, sender="1"))
            await server.arrived(number)
        assert [sent.text for sent in await door.wait_sent(1)] == ["re: one+two+three"], "and nothing was released"
        await hub.idle()
        assert len(door.sent) == 1
        await door.says(door.message("four", sender="1"))
        await door.wait_sent(2)
    roles = [message["role"] for message in server.requests[-1].messages if message["role"] != "system"]
    assert roles == ["user", "user", "user", "assistant", "user"], "the transcript has each once"


async def test_interrupting_counts_as_no_failed_try(serve: Serve, door: FakeAdapter) -> None:
    def script(request: Recorded) -> Reply:
        return Reply(f"re: {len(said(request))}", wait=len(said(request)) < 9)

    async with ModelServer(script) as server, serve(server, top=queued("interrupt")):
        for number in range(1, 10):
            await door.says(door.message(f"word {number}", sender="1"))
            await server.arrived(number)
        assert [sent.text for sent in await door.wait_sent(1)] == ["re: 9"]


async def test_a_tool_that_was_interrupted_is_not_run_again(serve: Serve, door: FakeAdapter) -> None:
    """The transcript stays valid: each call has a result, in the next request as well."""

    def script(request: Recorded) -> Reply:
        if len(said(request)) == 1:
            told = any(message["role"] == "tool" for message in request.messages)
            return Reply("never", wait=True) if told else Reply(calls=[LOOK])
        return Reply(f"re: {said(request)[-1]}")

    async with ModelServer(script) as server, serve(server, top=queued("interrupt")):
        await door.says(door.message("one", sender="1"))
        await server.arrived(2)
        await door.says(door.message("two", sender="1"))
        assert [sent.text for sent in await door.wait_sent(1)] == ["re: two"]
    last = server.requests[-1].messages
    assert [message["role"] for message in last if message["role"] != "system"] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize("later", ["another sender", "a command", "a stop"])
async def test_nothing_else_interrupts(serve: Serve, door: FakeAdapter, later: str) -> None:
    group = {"chat": "-5", "kind": "group", "mentions_me": True}
    async with (
        ModelServer(holds_the_first) as server,
        serve(server, GROUP, top=queued("interrupt")) as hub,
    ):
        await door.says(door.message("one", sender="1", **group))  # type: ignore[arg-type]  # plain keywords
        await server.arrived(1)
        text, sender = {"another sender": ("two", "2"), "a command": ("/undo", "1"), "a stop": ("/stop", "1")}[later]
        await door.says(door.message(text, sender=sender, **group))  # type: ignore[arg-type]
        if later == "a stop":
            await door.wait_sent(1)
            await hub.idle()
            assert len(server.requests) == 1, "it is given up, and not begun anew"
            return
        await asyncio.sleep(0.1)
        assert len(server.requests) == 1
        server.release()
        assert (await door.wait_sent(2))[0].text == "re: one"


@pytest.mark.parametrize("models", ["uses_tools = false", ""])
async def test_a_model_without_tools_reads_both_when_it_is_interrupted(
    serve: Serve, door: FakeAdapter, models: str
) -> None:
    def script(request: Recorded) -> Reply:
        return Reply("both", wait="two" not in request.text)

    async with ModelServer(script) as server, serve(server, top=queued("interrupt"), models=models):
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        await door.says(door.message("two", sender="1"))
        assert [sent.text for sent in await door.wait_sent(1)] == ["both"]
    assert "one" in server.requests[-1].text


async def test_what_is_said_within_the_pause_is_one_question(serve: Serve, door: FakeAdapter) -> None:
    """G-DLV-18: three messages within milliseconds, and all of them reach the model."""
    async with (
        ModelServer(lambda _: Reply("ok")) as server,
        serve(server, top=queued("steer", "debounce = 0.3")) as hub,
    ):
        for text in ("one", "two", "three"):
            await door.says(door.message(text, sender="1"))
        await door.wait_sent(1)
        await hub.idle()
    assert len(door.sent) == len(server.requests) == 1
    assert said(server.requests[0]) == ["one\n\ntwo\n\nthree"]


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_said_after_the_pause_is_another_question(serve: Serve, door: FakeAdapter, mode: str) -> None:
    top = queued(mode, "debounce = 0.05")
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, top=top) as hub:
        first, second = door.message("one", sender="1"), door.message("two", sender="1")
        await door.says(first)
        await door.wait_sent(1)
        await door.says(replace(second, sent_at=first.sent_at + timedelta(seconds=5)))
        await door.wait_sent(2)
        await hub.idle()
    assert [said(request)[-1] for request in server.requests] == ["one", "two"]


async def test_whoever_types_on_and_on_holds_up_nobody(serve: Serve, door: FakeAdapter) -> None:
    """Many that are still within their pause take no place from those who are done."""
    channel = f'{OPEN}queue = "collect"\n'
    async with (
        ModelServer(lambda _: Reply("ok")) as server,
        serve(server, channel, top=queued("steer", "debounce = 30")),
    ):
        for number in range(40):
            await door.says(door.message("I type", sender=str(100 + number)))
        await door.says(door.message("/memory today", sender="1"))
        assert len(await door.wait_sent(1)) == 1
    assert server.requests == []


async def test_beyond_its_measure_the_oldest_are_left_out_and_the_next_answer_knows(
    serve: Serve, door: FakeAdapter
) -> None:
    top = queued("collect", "most_waiting = 3")
    async with ModelServer(holds_the_first) as server, serve(server, top=top) as hub:
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        for number in range(10):
            await door.says(door.message(f"word {number} " + "x" * 100, sender="1"))
        server.release()
        await door.wait_sent(2)
        await hub.idle()
        assert len(door.sent) == 2
        await door.says(door.message("and now?", sender="1"))
        await door.wait_sent(3)
    content = str(server.requests[1].messages[-1]["content"])
    assert "[7 messages of mine before this were left out, since too many waited." in content
    assert 'The last 5 of them began: "word 2 xxx' in content
    assert all(f"\n\nword {number}" in content for number in (7, 8, 9))
    assert len(content) < 900
    assert "left out" not in str(server.requests[2].messages[-1]["content"]), "it is said once"


async def test_what_was_left_out_is_said_though_the_turn_takes_words_in(serve: Serve, door: FakeAdapter) -> None:
    """In "steer" as well, and what is in the running turn already no longer counts as waiting."""
    steps = iter(range(100))

    def script(request: Recorded) -> Reply:
        return Reply(calls=[LOOK], wait=True) if next(steps) < 2 else Reply("done")

    async with ModelServer(script) as server, serve(server, top=queued("steer", "most_waiting = 3")) as hub:
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        for text in ("two", "three", "four"):
            await door.says(door.message(text, sender="1"))
        await released(server, 2)
        for text in ("five", "six", "seven", "eight"):
            await door.says(door.message(text, sender="1"))
        server.release()
        await door.wait_sent(1)
        await hub.idle()
    assert len(door.sent) == 1
    content = [str(message["content"]) for message in server.requests[2].messages if message["role"] == "user"]
    assert [text.rpartition("] ")[2] for text in content[:4]] == ["one", "two", "three", "four"]
    assert content[4].endswith(
        '[1 message of mine before this was left out, since too many waited. It began: "five"]\n\nsix'
    )
    assert [text.rpartition("] ")[2] for text in content[5:]] == ["seven", "eight"]


async def test_whoever_floods_a_group_pushes_out_nobody_else(serve: Serve, door: FakeAdapter, home: Home) -> None:
    group = {"chat": "-5", "kind": "group", "mentions_me": True}
    top = queued("followup", "most_waiting = 4")
    async with ModelServer(holds_the_first) as server, serve(server, GROUP, top=top) as hub:
        await door.says(door.message("one", sender="1", **group))  # type: ignore[arg-type]  # plain keywords
        await server.arrived(1)
        await door.says(door.message("my question", sender="1", **group))  # type: ignore[arg-type]
        for number in range(20):
            await door.says(door.message(f"flood {number}", sender="2", **group))  # type: ignore[arg-type]
        server.release()
        await door.wait_sent(5)
        await hub.idle()
    assert [sent.text for sent in door.sent] == [
        "re: one",
        "re: my question",
        *(f"re: flood {n}" for n in (17, 18, 19)),
    ]
    content = str(server.requests[1].messages[-1]["content"])
    note, _, own = content.partition("</note>")
    assert "Ann: flood 16" in note, "others' words are no orders"
    assert "flood" not in own


async def test_an_album_is_one_message_and_is_left_out_whole(serve: Serve, door: FakeAdapter, home: Home) -> None:
    def photo(number: int) -> Message:
        file = Attachment("image", f"none-{number}", "", 10, "image/jpeg")
        return replace(door.message(f"picture {number}", sender="1"), attachments=(file,), album="a")

    top = queued("followup", "most_waiting = 3")
    async with ModelServer(holds_the_first) as server, serve(server, top=top) as hub:
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        for number in range(4):
            await door.says(photo(number))
        await door.says(door.message("two", sender="1"))
        await door.says(door.message("three", sender="1"))
        async with State.open(home.database) as state:
            assert await state.row("SELECT count(*) FROM inbox WHERE dropped") == (0,)
        await door.says(door.message("four", sender="1"))
        server.release()
        await door.wait_sent(4)
        await hub.idle()
    assert [said(request)[-1].splitlines()[-1] for request in server.requests] == ["one", "two", "three", "four"]
    assert (
        '[1 message of mine before this was left out, since too many waited. It began: "[image]'
        in server.requests[1].messages[-1]["content"]
    )


@pytest.mark.parametrize("mode", MODES)
async def test_a_flood_is_bounded_in_every_mode(serve: Serve, door: FakeAdapter, mode: str, home: Home) -> None:
    """Each message is answered, or left out and named: the numbers add up."""
    top = queued(mode, "most_waiting = 5") + "[limits]\nper_sender = 10_000\nper_chat = 10_000\n"
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, top=top) as hub:
        for number in range(60):
            await door.says(door.message(f"<{number}>", sender="1"))
        await hub.idle()
        async with State.open(home.database) as state:
            assert await state.row("SELECT count(*) FROM inbox WHERE NOT done") == (0,)
            dropped = await state.row("SELECT count(*) FROM inbox WHERE dropped OR event <> ''")
    whole = "\n".join(request.text for request in server.requests)
    answered = [number for number in range(60) if f"<{number}>" in whole]
    assert 59 in answered
    assert dropped == (0,)


async def test_a_change_of_what_has_joined_is_known_as_one(serve: Serve, door: FakeAdapter) -> None:
    """It was read as it was: what it says now is for the next answer to know."""
    calls = iter(range(9))

    def script(request: Recorded) -> Reply:
        number = next(calls)
        return Reply(calls=[LOOK], wait=True) if number < 2 else Reply("ok")

    async with ModelServer(script) as server, serve(server, top=queued("steer")):
        await door.says(door.message("one", sender="1"))
        await server.arrived(1)
        two = door.message("two", sender="1")
        await door.says(two)
        await released(server, 2)
        await door.says(Edited(two.id, two.address, two.sender, "two, changed", two.sent_at))
        server.release()
        await door.wait_sent(1)
        await door.says(door.message("three", sender="1"))
        await door.wait_sent(2)
    assert "two, changed" not in server.requests[2].text
    assert "two, changed" in server.requests[3].text


async def test_what_waits_is_in_the_database_and_not_in_memory(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """Back-pressure: a thousand messages wait, and no more of them are held than are being answered."""
    top = queued("followup", "most_waiting = 1000") + "[limits]\nper_sender = 10_000\nper_chat = 10_000\n"
    async with ModelServer(lambda _: Reply("never", wait=True)) as server, serve(server, top=top):
        before = len(asyncio.all_tasks())
        for _ in range(5):
            messages = [door.message(f"word {n}", sender=str(100 + n % 20)) for n in range(200)]
            await asyncio.gather(*map(door.says, messages))
            del messages
        async with State.open(home.database) as state:
            assert await state.row("SELECT count(*) FROM inbox WHERE NOT done") == (1000,)
        gc.collect()
        held = sum(isinstance(each, Message) for each in gc.get_objects())
        tasks = len(asyncio.all_tasks()) - before
        server.release()
    assert held <= 100
    assert tasks <= 20 + 6 * MOST_TURNS, "a lane for each session, and the turns"


@pytest.mark.parametrize("mode", MODES)
async def test_whoever_waits_at_a_console_hears_of_each_message(home: Home, door: FakeAdapter, mode: str) -> None:
    """Of one that was answered with another as well, and of one that was left out."""
    console = Console("terminal", "terminal")

    def script(request: Recorded) -> Reply:
        waits = "three" not in request.text if mode == "interrupt" else said(request) == ["one"]
        return Reply("ok", wait=waits)

    more = "[queue]\nmost_waiting = 2\n"
    async with ModelServer(script) as server, linked(home, door, console, server, more):
        for number, text in enumerate((f"/queue {mode}", "one", "two", "three", "four", "five")):
            await console.says(console.message(text, sender="local", message_id=str(number)))
            if number < 2:
                await (console.ended(1) if not number else server.arrived(1))
        server.release()
        ends = dict(await console.ended(6))
    assert set(ends) == {"0", "1", "2", "3", "4", "5"}
    if mode in ("collect", "followup"):
        assert [ends["2"], ends["3"]] == [LEFT_OUT] * 2
