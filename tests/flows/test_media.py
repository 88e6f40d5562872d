"""Voice and files from Telegram's real protocol to the model's, and through a crash in the middle."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.agents.test_pictures import jpeg
from tests.fakes.model_server import ModelServer, Recorded, Reply
from tests.fakes.telegram_api import ANN, TelegramApi
from tests.flows.conftest import SECONDS, Limpet, connect

OGG = b"OggS\x00\x02" + bytes(94)


def voice(file_id: str) -> dict[str, Any]:
    return {"file_id": file_id, "file_unique_id": "u", "duration": 12, "mime_type": "audio/ogg", "file_size": len(OGG)}


def listen(limpet: Limpet, telegram: TelegramApi, server: ModelServer) -> None:
    hear = f'[voice]\nmodel = "hear"\n[models.hear]\nmodel = "openai/whisper-1"\nbase_url = "{server.url}"\n'
    connect(limpet, telegram, server, top=f'owners = ["telegram:{ANN.id}"]\n{hear}')


def echo(request: Recorded) -> Reply:
    """What was heard, or the last words that the model was sent."""
    if "file" in request.body:
        return Reply("buy milk")
    content = request.messages[-1]["content"]
    return Reply(content if isinstance(content, str) else content[0]["text"])


async def test_voice_pictures_and_documents_reach_the_model(limpet: Limpet, telegram: TelegramApi) -> None:
    """G-RTE-25, G-RTE-05: heard; a picture without a word; and a file that Telegram no longer has is told."""
    telegram.add_file("v", OGG)
    telegram.add_file("p", jpeg())
    async with ModelServer(echo) as server:
        listen(limpet, telegram, server)
        async with limpet.hub():
            photo = {"file_id": "p", "file_unique_id": "u", "width": 3, "height": 2}
            document = {"file_id": "gone", "file_unique_id": "u", "file_name": "report.pdf", "file_size": 240_000}
            said: list[dict[str, Any]] = [{"voice": voice("v")}, {"photo": [photo]}, {"document": document}]
            for number, fields in enumerate(said, 1):
                telegram.push(message=telegram.message(ANN, **fields))
                await telegram.wait_sent(number, SECONDS)
        used = await limpet("usage")
    heard, seen, missed = (sent.text for sent in telegram.sent)
    assert heard.endswith(".ogg] buy milk")
    assert "[voice note, 12 s, transcribed: media/turn-" in heard
    assert "[image, " in seen
    assert "[document report.pdf was not fetched: " in missed
    kept = sorted(path.suffix for path in (limpet.workspace / "media").iterdir())
    assert kept == [".jpg", ".ogg"]
    assert "openai/whisper-1" in used.out


async def test_kill_9_while_it_listens_gives_one_answer_with_the_words(limpet: Limpet, telegram: TelegramApi) -> None:
    """Nothing of the note was kept yet, so it is fetched and heard again, and takes the same place."""
    telegram.add_file("v", OGG)
    listened = 0

    def script(request: Recorded) -> Reply:
        nonlocal listened
        if "file" in request.body:
            listened += 1
            return Reply("buy milk", wait=listened == 1)
        return echo(request)

    async with ModelServer(script) as server:
        listen(limpet, telegram, server)
        async with limpet.hub() as hub:
            telegram.push(message=telegram.message(ANN, voice=voice("v")))
            async with asyncio.timeout(SECONDS):
                await server.arrived(1)
            await hub.kill()
        async with limpet.hub():
            (sent,) = await telegram.wait_sent(1, SECONDS)
            assert await hub_is_quiet(limpet)
        server.release()
    assert sent.text.endswith(".ogg] buy milk")
    assert len(telegram.sent) == 1
    assert len(list((limpet.workspace / "media").iterdir())) == 1
    assert listened == 2


async def hub_is_quiet(limpet: Limpet) -> bool:
    """A turn in another door goes through behind it: nothing more of the note is on its way."""
    return (await limpet("chat", "--once", "hello")).code == 0
