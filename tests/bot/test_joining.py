"""Messages that were sent as one, and those that were not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.message import Address, Attachment, Message, Quote, Sender
from bot.joining import ALBUM_SECONDS, PASTE_SECONDS, belonging, gap, merged, wholes
from bot.queueing import PRESS, Queue

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
GROUP = Address("telegram", "main", "-100", "group")
ANN, BOB = Sender("7", "Ann"), Sender("8", "Bob")
LONG = "x" * 3900


def said(number: int, text: str = "", *, sender: Sender = ANN, after: float = 0.0, **fields: object) -> Message:
    message = Message(str(number), GROUP, sender, text, AT + timedelta(seconds=after))
    return replace(message, **fields)  # type: ignore[arg-type]  # fields of a message


def photo(number: int, text: str = "", *, album: str | None = "a", sender: Sender = ANN) -> Message:
    file = Attachment("image", f"ref-{number}", "", 10, "image/jpeg")
    return said(number, text, sender=sender, attachments=(file,), album=album)


def test_a_long_paste_and_its_rest_are_one() -> None:
    """G-SPL-11"""
    first, rest = said(1, LONG, is_cut=True), said(2, "y" * 500, after=0.4)
    assert belonging(first, [rest]) == [0]
    whole = merged([first, rest])
    assert whole.text == f"{LONG}\n{'y' * 500}"
    assert (whole.id, whole.is_cut, gap(whole)) == ("1", False, 0.0)


def test_a_paste_in_many_pieces_is_followed_to_its_end_and_no_further() -> None:
    pieces = [said(n, LONG, is_cut=True, after=n) for n in (2, 3)]
    end, other = said(4, "the end", after=4), said(5, "Something else", after=5)
    assert belonging(said(1, LONG, is_cut=True, after=1), [*pieces, end, other]) == [0, 1, 2]


@pytest.mark.parametrize(
    "later",
    [
        said(2, "mine", sender=BOB),
        said(2, "later", after=60),
        said(2, "/stop"),
        said(2, "", attachments=(Attachment("image", "ref"),)),
        said(2, "from elsewhere", forwarded_from="Cem"),
        replace(said(2, "another topic"), address=replace(GROUP, thread="5")),
        photo(2, "a picture"),
    ],
    ids=lambda message: message.text or "a picture alone",
)
def test_what_only_comes_next_is_another_message(later: Message) -> None:
    """G-SPL-11: two senders are two, and so is what was said later, elsewhere or as a command."""
    assert belonging(said(1, LONG, is_cut=True), [later]) == []


def test_a_short_message_waits_for_nothing() -> None:
    assert gap(said(1, "hello")) == 0.0
    assert belonging(said(1, "hello"), [said(2, "world", after=0.1)]) == []
    assert gap(said(1, LONG, is_cut=True)) == PASTE_SECONDS
    assert gap(photo(1)) == ALBUM_SECONDS
    assert gap(said(1, f"/compact {LONG}", is_cut=True)) == 0.0, "a command is obeyed at once"


def test_what_others_say_between_is_passed_over() -> None:
    between = said(2, "hm", sender=BOB)
    assert belonging(photo(1), [between, photo(3), said(4, "so?", sender=BOB), photo(5)]) == [1, 3]


def test_captions_stay_with_their_pictures() -> None:
    """G-RTE-23"""
    whole = merged([photo(1, "the door"), photo(2), photo(3, "the lock")])
    assert whole.text == "[1] the door\n[3] the lock"
    assert [file.ref for file in whole.attachments] == ["ref-1", "ref-2", "ref-3"]
    assert whole.album is None


def test_the_only_caption_of_an_album_speaks_of_all_of_it() -> None:
    assert merged([photo(1, "my garden"), photo(2)]).text == "my garden"
    assert merged([photo(1), photo(2, "this one")]).text == "[2] this one"


def test_two_albums_are_two() -> None:
    assert belonging(photo(1), [photo(2), photo(3, album="b"), photo(4, album="b")]) == [0]
    assert belonging(photo(1, album=None), [photo(2, album=None)]) == []


def test_whoever_is_addressed_by_one_piece_is_addressed_by_all() -> None:
    quote = Quote("the old one", "Bob")
    whole = merged([photo(1), replace(photo(2, "look"), mentions_me=True, quote=quote, reply_to="9")])
    assert (whole.mentions_me, whole.quote, whole.reply_to) == (True, quote, "9")


def test_one_message_is_itself() -> None:
    alone = photo(1, "only one of it came")
    assert merged([alone]) is alone


PAUSE = Queue("followup", debounce=2.0)
COLLECTS = Queue("collect")
APART = [
    said(2, "mine", sender=BOB),
    said(2, "/stop"),
    said(2, "/stpo"),
    replace(said(2, "yes"), id=f"{PRESS}2"),
    replace(said(2, "another topic"), address=replace(GROUP, thread="5")),
]


@pytest.mark.parametrize("queue", [PAUSE, COLLECTS, Queue("collect", debounce=2.0)], ids=str)
@pytest.mark.parametrize("other", APART, ids=lambda message: message.text)
def test_others_commands_and_buttons_stand_alone_in_every_mode(other: Message, queue: Queue) -> None:
    assert belonging(said(1, "hello"), [other], queue) == []
    if other.sender == ANN and other.address == GROUP:
        assert belonging(other, [said(3, "hello")], queue) == []
        assert gap(other, queue) == 0.0


def test_the_pause_counts_from_the_message_before() -> None:
    near = [said(number, "and", after=1.5 * number) for number in range(2, 6)]
    assert belonging(said(1, "hello", after=1.5), [*near, said(9, "later", after=20)], PAUSE) == [0, 1, 2, 3]
    assert gap(said(1, "hello"), PAUSE) == 2.0
    assert gap(photo(1), PAUSE) == 2.0
    assert gap(photo(1), Queue("steer", debounce=0.1)) == ALBUM_SECONDS


def test_what_is_collected_may_lie_hours_apart_and_between_others() -> None:
    later = [said(2, "b", after=9000), said(3, "hm", sender=BOB), photo(4), photo(5), said(6, "/new"), said(7, "c")]
    assert belonging(said(1, "a"), later, COLLECTS) == [0, 2, 3]


def test_wholes_are_in_the_order_of_their_beginnings() -> None:
    messages = [
        photo(1),
        said(2, "hm", sender=BOB),
        photo(3),
        said(4, LONG, is_cut=True),
        said(5, "rest"),
        said(6, "x"),
    ]
    assert wholes(messages) == [[0, 2], [1], [3, 4], [5]]
    assert wholes([]) == []
