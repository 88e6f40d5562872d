"""Files that the assistant sends with its answer: which ones, as what, and from where."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.home import Home
from tests.bot.conftest import OPEN, Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply
from workspaces.names import portable_name

OWNED = 'owners = ["telegram:1"]\n'


def sends(*files: tuple[str, str]) -> Callable[[Recorded], Reply]:
    """Send these files, each with its caption, then say so."""

    def script(request: Recorded) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply("There you are.")
        return Reply(calls=[Call("send_file", json.dumps({"path": path, "caption": text})) for path, text in files])

    return script


@pytest.fixture
def door() -> FakeAdapter:
    door = FakeAdapter("telegram", "telegram")
    door.capabilities = replace(door.capabilities, caption_limit=100, file_limit=1_000, album=10)
    return door


def put(home: Home, path: str, data: bytes) -> None:
    file = home.workspace("main") / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


async def test_files_go_with_the_answer_after_its_words(serve: Serve, door: FakeAdapter, home: Home) -> None:
    for name in ("a.png", "b.jpg", "report.pdf", "note.ogg"):
        put(home, f"out/{name}", name.encode())
    files = [("out/a.png", "**Two** pictures"), ("out/b.jpg", ""), ("out/report.pdf", ""), ("out/note.ogg", "")]
    async with ModelServer(sends(*files)) as server, serve(server, top=OWNED) as hub:
        await door.says(door.message("send me all of it", sender="1"))
        await door.wait_sent(4)
        await hub.idle()
    words, album, report, voice = door.sent
    assert words.text == "There you are."
    assert [(file.kind, file.name) for file in album.part.files] == [("image", "a.png"), ("image", "b.jpg")]
    assert (album.text, album.data) == ("Two pictures", (b"a.png", b"b.jpg"))
    assert [file.kind for file in (*report.part.files, *voice.part.files)] == ["document", "voice"]
    assert list((home.state / "outgoing").iterdir()) == [], "what was sent is not kept"


async def test_what_can_not_be_sent_is_said(serve: Serve, door: FakeAdapter, home: Home) -> None:
    put(home, "large.bin", bytes(1_001))
    async with ModelServer(sends(("large.bin", ""))) as server, serve(server, top=OWNED):
        await door.says(door.message("send it", sender="1"))
        (sent,) = await door.wait_sent(1)
    assert sent.text.startswith("There you are.\n\n(large.bin could not be sent: ")


async def test_where_no_files_can_be_sent_it_is_said_where_they_are(
    serve: Serve, door: FakeAdapter, home: Home
) -> None:
    door.capabilities = replace(door.capabilities, file_limit=0)
    put(home, "out/a.pdf", b"x")
    async with ModelServer(sends(("out/a.pdf", ""))) as server, serve(server, top=OWNED):
        await door.says(door.message("send it", sender="1"))
        (sent,) = await door.wait_sent(1)
    assert sent.text == "There you are.\n\n(Files can't be sent here. It is in the workspace: out/a.pdf)"


@pytest.mark.parametrize("path", ["../limpet.toml", "/etc/passwd", "missing.pdf", "out", "link.txt"])
async def test_nothing_else_leaves_the_workspace(serve: Serve, door: FakeAdapter, home: Home, path: str) -> None:
    put(home, "out/a.pdf", b"x")
    (home.workspace("main") / "link.txt").symlink_to(home.root / "limpet.toml")
    async with ModelServer(sends((path, ""))) as server, serve(server, top=OWNED) as hub:
        await door.says(door.message("send it", sender="1"))
        (sent,) = await door.wait_sent(1)
        await hub.idle()
        assert sent.text == "There you are."
        assert len(door.sent) == 1
        assert "goes with your answer" not in str(server.requests[-1].messages[-1])


async def test_a_guest_gets_what_is_in_their_chat_and_nothing_else(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """Foreign text in the conversation holds it up no more than reading: the file goes to the same people."""
    folder = f"memory/chats/{portable_name('telegram/direct/9')}"
    other = f"memory/chats/{portable_name('telegram/direct/8')}"
    for path in ("MEMORY.md", "secret.txt", f"{other}/theirs.txt", f"{folder}/own.txt"):
        put(home, path, path.encode())
    paths = [("MEMORY.md", ""), ("secret.txt", ""), (f"{other}/theirs.txt", ""), (f"{folder}/own.txt", "")]
    async with ModelServer(sends(*paths)) as server, serve(server, OPEN) as hub:
        await door.says(replace(door.message("send it", sender="9"), forwarded_from="somebody"))
        await door.wait_sent(2)
        await hub.idle()
    assert [sent.data for sent in door.sent if sent.data] == [(f"{folder}/own.txt".encode(),)]


async def test_a_file_that_changes_later_is_sent_as_it_was(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """What is sent is a copy, made when the answer was given: it may have to be sent again after a crash."""
    put(home, "a.txt", b"as it was")
    door.delays = [0.3, 0.3]
    async with ModelServer(sends(("a.txt", ""))) as server, serve(server, top=OWNED):
        await door.says(door.message("send it", sender="1"))
        await door.wait_sent(1)
        put(home, "a.txt", b"as it became")
        await door.wait_sent(2)
    assert door.sent[1].data == (b"as it was",)


async def test_the_same_file_twice_is_one(serve: Serve, door: FakeAdapter, home: Home) -> None:
    put(home, "a.txt", b"x")
    async with ModelServer(sends(("a.txt", "first"), ("a.txt", "second"))) as server, serve(server, top=OWNED) as hub:
        await door.says(door.message("send it", sender="1"))
        await door.wait_sent(2)
        await hub.idle()
    assert [sent.text for sent in door.sent] == ["There you are.", "second"]
