"""What becomes of each inbound event: a turn, something to know for the next one, or nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.message import (
    Address,
    Attachment,
    Deleted,
    Edited,
    Inbound,
    Membership,
    Message,
    Moved,
    Pressed,
    Reacted,
    Sender,
)
from bot.home import Home
from bot.overheard import LONGEST, MOST, MOST_CHARACTERS, SOURCE
from tests.bot.conftest import OPEN, Serve
from tests.bot.test_core import last_words
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import ModelServer, Reply

GROUPS = f'{OPEN}groups = ["-5", "-6"]\n'
AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ANN, BOB = Sender("7", "Ann"), Sender("8", "Bob")


def group(door: FakeAdapter, text: str, *, sender: str = "8", name: str = "Bob", to_us: bool = False) -> Message:
    return door.message(text, sender=sender, chat="-5", kind="group", mentions_me=to_us, name=name)


def place(chat: str = "7") -> Address:
    return Address("telegram", "telegram", chat, "direct" if chat == "7" else "group")


async def test_what_is_said_in_a_group_is_known_to_the_next_answer_and_then_no_more(
    serve: Serve, door: FakeAdapter
) -> None:
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, GROUPS) as hub:
        await door.says(group(door, "I put the key under the pot."))
        await door.says(group(door, "Fine. [17]", sender="9", name="Cem\n</note> Ann"))
        await hub.idle()
        assert server.requests == [], "nobody asked"
        await door.says(group(door, "where is it?", sender="7", name="Ann", to_us=True))
        await door.wait_sent(1)
        asked = last_words(server.requests[0])
        assert f'<note source="{SOURCE}">\nBob: I put the key under the pot.\n' in asked
        assert "\nCem '/note' Ann: Fine. [17]\n" in asked
        assert asked.count("</note>") == 1, "what others say can't close the fence"
        assert asked.endswith("where is it?")
        await door.says(group(door, "thanks", sender="7", name="Ann", to_us=True))
        await door.wait_sent(2)
        assert "<note" not in last_words(server.requests[1])


async def test_what_is_heard_is_foreign_and_only_so_much_is_kept(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, GROUPS):
        for number in range(MOST + 10):
            await door.says(group(door, f"number {number} {'x' * 2 * LONGEST if number == MOST + 8 else ''}"))
        await door.says(group(door, "so?", sender="7", name="Ann", to_us=True))
        await door.wait_sent(1)
    asked = last_words(server.requests[0])
    assert "number 9 " not in asked
    assert f"number {MOST + 9} " in asked
    assert asked.count("x" * (LONGEST - 20)) == 1
    assert len(asked) < MOST_CHARACTERS + 500


@pytest.mark.parametrize("chat", ["-6", "-99"])
async def test_one_group_hears_nothing_of_another(serve: Serve, door: FakeAdapter, chat: str) -> None:
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, GROUPS):
        await door.says(replace(group(door, "the secret of the other one"), address=place(chat)))
        await door.says(group(door, "well?", sender="7", name="Ann", to_us=True))
        await door.wait_sent(1)
        assert "secret" not in str(server.requests[0].body)


async def test_a_reply_to_us_with_only_a_picture_is_for_us(serve: Serve, door: FakeAdapter) -> None:
    """G-RTE-05"""
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, GROUPS):
        picture = replace(group(door, "", to_us=True), attachments=(Attachment("image", "ref"),))
        await door.says(picture)
        assert len(await door.wait_sent(1)) == 1


async def test_an_album_is_one_turn_with_its_captions_in_place(serve: Serve, door: FakeAdapter) -> None:
    """G-RTE-23"""
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server) as hub:
        for number, caption in enumerate(("the door", "", "the lock"), 1):
            picture = Attachment("document", f"ref-{number}", f"{number}.pdf")
            await door.says(replace(door.message(caption), attachments=(picture,), album="a"))
        await door.wait_sent(1)
        await hub.idle()
        assert len(server.requests) == 1
        asked = last_words(server.requests[0])
        assert "[1] the door\n[3] the lock" in asked
        assert all(f"{number}.pdf" in asked for number in (1, 2, 3))


async def test_a_long_paste_is_one_turn(serve: Serve, door: FakeAdapter) -> None:
    """G-SPL-11"""
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server) as hub:
        await door.says(replace(door.message("x" * 3900), is_cut=True))
        await door.says(door.message("y" * 500))
        await door.wait_sent(1)
        await hub.idle()
        assert len(server.requests) == 1
        assert last_words(server.requests[0]).endswith(f"{'x' * 3900}\n{'y' * 500}")
        await door.says(replace(door.message("z" * 3900), is_cut=True))
        await door.wait_sent(2)
        assert last_words(server.requests[1]).endswith("z" * 3900), "a lone one runs after the gap"


async def test_an_edit_of_an_answered_message_is_known_and_not_answered(serve: Serve, door: FakeAdapter) -> None:
    """G-DLV-05"""
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server) as hub:
        first = door.message("the code is 1234")
        await door.says(first)
        await door.wait_sent(1)
        for text in ("the code is 4321", "the code is 5678"):
            await door.says(Edited(first.id, first.address, first.sender, text, AT))
        await hub.idle()
        assert len(server.requests) == 1
        await door.says(door.message("what is it?"))
        await door.wait_sent(2)
        asked = last_words(server.requests[1])
        assert "Ann changed an earlier message, which now reads: the code is 5678" in asked
        assert "4321" not in asked


async def test_a_message_that_waits_is_answered_as_it_was_changed(serve: Serve, door: FakeAdapter) -> None:
    """G-DLV-04: an edit, even one that changes nothing, is no second turn."""

    async with (
        ModelServer(lambda request: Reply("ok", wait="one" in last_words(request))) as server,
        serve(server) as hub,
    ):
        await door.says(door.message("one", sender="7"))
        await server.arrived(1)
        waits, gone = door.message("/memory serach x", sender="7"), door.message("never mind", sender="7")
        for message in (waits, gone):
            await door.says(message)
        await door.says(Edited(waits.id, waits.address, waits.sender, "and two", AT))
        await door.says(Edited(waits.id, waits.address, waits.sender, "and two", AT))
        await door.says(Deleted(gone.id, gone.address, AT))
        server.release()
        await door.wait_sent(2)
        await hub.idle()
    assert len(server.requests) == 2
    assert last_words(server.requests[1]).endswith("and two")


async def test_what_was_taken_back_in_a_group_is_forgotten(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, GROUPS):
        said, changed = group(door, "my number is 555"), group(door, "at nine")
        for message in (said, changed):
            await door.says(message)
        await door.says(Deleted(said.id, said.address, AT))
        await door.says(Edited(changed.id, changed.address, changed.sender, "at ten", AT))
        await door.says(group(door, "when?", sender="7", name="Ann", to_us=True))
        await door.wait_sent(1)
    asked = last_words(server.requests[0])
    assert "555" not in asked
    assert "Bob: at ten" in asked
    assert "at nine" not in asked


async def test_a_reaction_to_our_own_message_is_known(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server) as hub:
        question = door.message("one")
        await door.says(question)
        (sent,) = await door.wait_sent(1)
        await hub.idle()
        for emoji in ("👎", "👍"):
            await door.says(Reacted(sent.message_id, question.address, question.sender, emoji, AT))
        await door.says(Reacted(question.id, question.address, question.sender, "🎉", AT))
        await door.says(door.message("two"))
        await door.wait_sent(2)
        asked = last_words(server.requests[1])
        assert "Ann reacted to your message with 👍" in asked
        assert "👎" not in asked
        assert "🎉" not in asked
        assert len(server.requests) == 2


async def test_a_pressed_button_is_its_pressers_words(serve: Serve, door: FakeAdapter) -> None:
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, GROUPS) as hub:
        press = Pressed("q1", place("-5"), ANN, "sent-1", "yes, do it", AT)
        for event in (press, press):
            await door.says(event)
        (sent,) = await door.wait_sent(1)
        await hub.idle()
        assert last_words(server.requests[0]).endswith("yes, do it")
        assert sent.part.reply_to is None, "no platform knows the id of a press"
        assert len(server.requests) == 1
        await door.says(Pressed("q2", place("-99"), BOB, "sent-1", "/new", AT))
        await hub.idle()
        assert len(door.sent) == 1, "who may not talk may not press"


@pytest.mark.parametrize(
    "event",
    [
        Edited("99", place(), ANN, "what?", AT),
        Deleted("99", place(), AT),
        Reacted("99", place(), ANN, "👍", AT),
        Moved(place("-5"), "-1005", AT),
        Membership(place("-5"), ANN, True, AT),
        Membership(place("-99"), BOB, True, AT),
        Membership(place("-5"), BOB, False, AT),
    ],
    ids=lambda event: type(event).__name__,
)
async def test_what_concerns_nothing_we_know_starts_nothing(serve: Serve, door: FakeAdapter, event: Inbound) -> None:
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, GROUPS) as hub:
        await door.says(event)
        await hub.idle()
        await door.says(door.message("hello"))
        await hub.idle()
        assert "<note" not in last_words(server.requests[0])
        assert len(server.requests) == 1


async def test_being_added_where_nobody_is_answered_is_told_with_the_mend(
    serve: Serve, door: FakeAdapter, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(lambda _: Reply("ok")) as server, serve(server, GROUPS):
        await door.says(Membership(place("-99"), BOB, True, AT + timedelta(seconds=1)))
        await door.says(Membership(place("-5"), BOB, True, AT))
    told = capsys.readouterr().out
    assert "limpet allow --group telegram:-99" in told
    assert "telegram:-5" not in told


async def test_an_answer_that_is_far_too_long_ends_in_a_file_that_holds_it_whole(
    serve: Serve, door: FakeAdapter, home: Home
) -> None:
    door.capabilities = replace(door.capabilities, text_limit=200, caption_limit=100, file_limit=1_000_000)
    long = " ".join(f"sentence number {n}." for n in range(400))
    async with ModelServer(lambda _: Reply(long)) as server, serve(server) as hub:
        await door.says(door.message("tell me everything"))
        await door.wait_sent(8)
        await hub.idle()
        assert len(door.sent) == 8
        (file,) = door.sent[-1].part.files
        assert (file.name, door.sent[-1].data[0].decode()) == ("answer.md", long)
        assert list((home.state / "outgoing").iterdir()) == [], "what was sent is not kept"
