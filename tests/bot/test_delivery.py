"""An answer as the parts that a channel takes: text, too much text, and files."""

from __future__ import annotations

from adapters.adapter import Capabilities
from adapters.message import Address, File
from bot.delivery import MOST_PARTS, Enclosure, bounded, enclosing, parts_of
from tests.fakes.adapter import FakeAdapter

HERE = Address("fake", "fake", "7", "direct")
DOOR = FakeAdapter(capabilities=Capabilities(text_limit=100, caption_limit=20, file_limit=1000, album=3))


def whole() -> File:
    return File("document", "/tmp/answer.md", "answer.md")


def enclosure(kind: str, name: str, caption: str = "") -> Enclosure:
    return Enclosure(File(kind, f"/tmp/{name}", name), caption)  # type: ignore[arg-type]


def test_an_answer_within_bounds_comes_whole() -> None:
    parts = parts_of("word " * 100, HERE, DOOR, "5")
    assert 1 < len(parts) <= MOST_PARTS
    assert bounded(parts, DOOR, whole) == parts
    assert [part.reply_to for part in parts] == ["5", *[None] * (len(parts) - 1)]


def test_an_endless_answer_ends_in_a_file() -> None:
    parts = parts_of("word " * 10_000, HERE, DOOR)
    shown = bounded(parts, DOOR, whole)
    assert len(shown) == MOST_PARTS
    assert shown[:-1] == parts[: MOST_PARTS - 1]
    assert shown[-1].files == (whole(),)
    assert shown[-1].text


def test_a_door_without_files_gets_every_part() -> None:
    door = FakeAdapter(capabilities=Capabilities(text_limit=100))
    parts = parts_of("word " * 10_000, HERE, door)
    assert bounded(parts, door, whole) == parts


def test_files_of_a_kind_come_together_up_to_the_size_of_an_album() -> None:
    pictures = [enclosure("image", f"{n}.png") for n in range(4)] + [enclosure("video", "v.mp4")]
    parts = enclosing([*pictures, enclosure("document", "a.pdf"), enclosure("document", "b.pdf")], HERE, DOOR)
    assert [[file.name for file in part.files] for part in parts] == [
        ["0.png", "1.png", "2.png"],
        ["3.png", "v.mp4"],
        ["a.pdf", "b.pdf"],
    ]


def test_a_caption_begins_an_album_of_its_own() -> None:
    came = [enclosure("image", "1.png"), enclosure("image", "2.png", "**this**"), enclosure("image", "3.png")]
    parts = enclosing(came, HERE, DOOR)
    assert [(part.text.plain, [file.name for file in part.files]) for part in parts] == [
        ("", ["1.png"]),
        ("this", ["2.png", "3.png"]),
    ]


def test_a_caption_that_is_too_long_goes_ahead_of_its_file() -> None:
    parts = enclosing([enclosure("document", "a.pdf", "a caption that is too long")], HERE, DOOR)
    assert [part.text.plain for part in parts] == ["a caption that is too long", ""]
    assert [len(part.files) for part in parts] == [0, 1]


def test_voice_notes_are_heard_one_by_one() -> None:
    parts = enclosing([enclosure("voice", "1.ogg"), enclosure("voice", "2.ogg")], HERE, DOOR)
    assert [len(part.files) for part in parts] == [1, 1]
