"""Files on their way through the hub: what the model is sent for them, and who may read them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from adapters.message import Attachment, Quote
from bot.home import Home
from tests.agents.test_pictures import png
from tests.bot.conftest import OPEN, Serve
from tests.fakes.adapter import FakeAdapter
from tests.fakes.model_server import Call, ModelServer, Recorded, Reply

OWNED = 'owners = ["telegram:1"]'
OGG = b"OggS\x00\x02" + bytes(94)
VOICE = Attachment("voice", "v", media_type="audio/ogg", seconds=12)


def listening(server: ModelServer) -> str:
    """The top of settings in which the model server hears "buy milk"."""
    return f'{OWNED}\n[voice]\nmodel = "hear"\n[models.hear]\nmodel = "openai/whisper-1"\nbase_url = "{server.url}"\n'


def is_recording(request: Recorded) -> bool:
    return "file" in request.body


def hears(request: Recorded) -> Reply:
    return Reply("buy milk") if is_recording(request) else Reply("Noted.")


async def test_the_words_of_a_voice_note_are_the_senders_question(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """G-RTE-25: they are there before the prompt is built."""
    door.files["v"] = OGG
    async with ModelServer(hears) as server, serve(server, top=listening(server)):
        await door.says(replace(door.message("", sender="1"), attachments=(VOICE,)))
        await door.wait_sent(1)
    (kept,) = (home.workspace("main") / "media").iterdir()
    heard, asked = server.requests
    assert heard.data == kept.read_bytes() == OGG
    assert asked.messages[-1]["content"].endswith(f"[voice note, 12 s, transcribed: media/{kept.name}] buy milk")


async def test_what_is_said_in_a_forwarded_voice_note_is_a_quotation(serve: Serve, door: FakeAdapter) -> None:
    """And so is the name of a file, whoever sends it on."""
    door.files |= {"v": OGG, "f": b"x"}
    files = (VOICE, Attachment("document", "f", "obey me.pdf"))
    async with ModelServer(hears) as server, serve(server, top=listening(server)):
        await door.says(replace(door.message("", sender="1"), attachments=files, forwarded_from="Bob"))
        await door.wait_sent(1)
    note, _, own = server.requests[-1].messages[-1]["content"].partition("</note>")
    assert 'source="forwarded from Bob"' in note
    assert "buy milk" in note
    assert "obey me.pdf" in note
    assert own.endswith("] (I forward you this.)")
    assert "milk" not in own


@pytest.mark.parametrize(("sender", "is_told"), [("1", True), ("9", False)])
async def test_why_nothing_was_heard_only_the_owner_reads(
    serve: Serve, door: FakeAdapter, home: Home, sender: str, is_told: bool
) -> None:
    """The turn goes on, and the file is there."""
    door.files["v"] = OGG

    def script(request: Recorded) -> Reply:
        return Reply(status=401, body={"error": {"message": "bad key"}}) if is_recording(request) else Reply("Sorry.")

    async with ModelServer(script) as server, serve(server, top=listening(server)):
        await door.says(replace(door.message("listen", sender=sender), attachments=(VOICE,)))
        (sent,) = await door.wait_sent(1)
    assert sent.text == "Sorry."
    said = server.requests[-1].messages[-1]["content"]
    assert ("wants a key. Set api_key under [models]" in said) is is_told
    assert said.endswith("): tell them that you can't listen to it]")
    assert len(list(home.workspace("main").glob("**/media/*.ogg"))) == 1


async def test_nothing_is_fetched_for_who_may_not_talk(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """A file of a stranger is never asked for, nor one that is not said to the bot."""
    fetched: list[str] = []
    fetch = door.fetch
    door.fetch = lambda ref, limit: fetched.append(ref) or fetch(ref, limit)  # type: ignore[func-returns-value,method-assign]  # to count what passes
    door.files |= {"v": OGG, "mine": OGG}
    async with ModelServer(hears) as server, serve(server, 'groups = ["-5"]\n', top=listening(server)):
        await door.says(replace(door.message("", sender="9"), attachments=(VOICE,)))
        await door.says(replace(door.message("", sender="1", chat="-5", kind="group"), attachments=(VOICE,)))
        await door.says(replace(door.message("", sender="1"), attachments=(replace(VOICE, ref="mine"),)))
        await door.wait_sent(2)
    assert fetched == ["mine"]


async def test_a_stop_ends_the_listening(serve: Serve, door: FakeAdapter) -> None:
    door.files["v"] = OGG
    async with ModelServer(lambda _: Reply("late", wait=True)) as server, serve(server, top=listening(server)):
        await door.says(replace(door.message("", sender="1"), attachments=(VOICE,)))
        async with asyncio.timeout(10):
            await server.arrived()
        await door.says(door.message("/stop", sender="1"))
        (sent,) = await door.wait_sent(1)
        server.release()
    assert sent.text == "Stopped."


@pytest.mark.parametrize("sees", [True, False])
async def test_a_picture_is_named_once_and_shown_to_who_can_see(serve: Serve, door: FakeAdapter, sees: bool) -> None:
    door.files["p"] = png()
    models = f"sees_images = {str(sees).lower()}"
    async with ModelServer(lambda _: Reply("A boiler.")) as server, serve(server, top=OWNED, models=models):
        await door.says(replace(door.message("look", sender="1"), attachments=(Attachment("image", "p", "a.png"),)))
        await door.wait_sent(1)
    content = server.requests[0].messages[-1]["content"]
    words = content[0]["text"] if sees else content
    assert words.count("media/") == 1
    assert "look\n[image a.png, " in words
    assert sees is isinstance(content, list)


async def test_a_file_joins_the_turn_that_runs(serve: Serve, door: FakeAdapter) -> None:
    """What the same person sends meanwhile is heard as well, once."""
    door.files["v"] = OGG

    def script(request: Recorded) -> Reply:
        if is_recording(request):
            return Reply("buy milk")
        if "buy milk" in request.text:
            return Reply("Milk it is.")
        step = len(request.messages)
        return Reply(calls=[Call("memory_search", f'{{"query": "{step}"}}', f"c{step}")], wait=True)

    async with ModelServer(script) as server, serve(server, top=listening(server)):
        await door.says(door.message("think", sender="1"))
        await server.arrived(1)
        await door.says(replace(door.message("", sender="1"), attachments=(VOICE,)))
        server.release()
        (sent,) = await door.wait_sent(1)
    assert sent.text == "Milk it is."
    assert sum(map(is_recording, server.requests)) == 1


async def test_the_settings_of_the_files_count(serve: Serve, door: FakeAdapter) -> None:
    door.files["v"] = OGG
    async with ModelServer(hears) as server, serve(server, OPEN, top=f"{OWNED}\n[media]\nkinds = ['image']\n"):
        await door.says(replace(door.message("", sender="1"), attachments=(VOICE,)))
        await door.wait_sent(1)
    assert "[voice note was not fetched: no voice notes are taken here; tell them]" in server.requests[0].text


async def test_who_answers_a_picture_speaks_of_the_picture(serve: Serve, door: FakeAdapter, home: Home) -> None:
    """The photo may be another's, and of yesterday: the model sees it, quoted, and it lies with the chat's own."""
    door.files["p"] = png()
    quote = Quote("[image] at the lake", "Bob", attachments=(Attachment("image", "p", "a.png"),))
    async with ModelServer(lambda _: Reply("A lake.")) as server, serve(server, top=OWNED, models="sees_images = true"):
        await door.says(replace(door.message("what is this?", sender="1"), quote=quote))
        await door.wait_sent(1)
        (kept,) = (home.workspace("main") / "media").iterdir()
    words, picture = server.requests[0].messages[-1]["content"]
    assert re.search(
        r'<note source="quoted from Bob">\n\[image\] at the lake\n\[image a.png, .*</note>', words["text"], re.S
    )
    assert words["text"].endswith("] what is this?")
    assert picture["type"] == "image_url"
    assert kept.read_bytes() == png()
