"""What a recording becomes: over real HTTP, with every way in which a server can fail to say it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents.errors import MissingKey, UnknownModel
from agents.failures import Endpoint
from agents.model import Usage
from agents.settings import ModelsSettings
from agents.transcription import (
    OpenAITranscriber,
    Transcriber,
    Transcript,
    TranscriptionFailed,
    Unavailable,
    form_of,
    resolve,
)
from agents.weights import WeightsStore
from tests.fakes.model_server import HEARD, ModelServer, Reply

KEY = "sk-very-secret-key-0123456789"
OGG = b"OggS\x00\x02" + bytes(40)


def resolved(folder: Path, name: str, environ: dict[str, str] | None = None, **models: Any) -> Transcriber:
    return resolve(name, ModelsSettings(**models), environ or {}, WeightsStore(folder))


def of(server: ModelServer, **how: Any) -> OpenAITranscriber:
    endpoint = Endpoint("openai/whisper-1", server.url, "OPENAI_API_KEY", KEY)
    return OpenAITranscriber(endpoint, "whisper-1", **{"seconds": 30.0} | how)


@dataclass
class Waits:
    """Time that passes only where somebody waits for it."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


async def test_the_recording_goes_as_it_came_and_its_words_come_back(tmp_path: Path) -> None:
    async with ModelServer([Reply(" buy milk\n", usage=(14, 3, 0))]) as server:
        transcriber = resolved(tmp_path, "openai/whisper-1", {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url})
        assert await transcriber.transcribe(OGG) == Transcript("buy milk", Usage(14, 3))
    (asked,) = server.requests
    assert asked.data == OGG
    assert asked.body == {
        "model": "whisper-1",
        "response_format": "json",
        "file": "recording.ogg",
        "type": "audio/ogg",
    }
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert transcriber.name == "openai/whisper-1"


async def test_a_server_of_ones_own_is_a_table_and_gets_no_key_of_a_provider(tmp_path: Path) -> None:
    async with ModelServer([Reply("hello", usage=None)]) as server:
        table = {"model": "groq/whisper-large-v3", "base_url": server.url}
        transcriber = resolved(tmp_path, "hear", {"GROQ_API_KEY": KEY}, hear=table)
        assert await transcriber.transcribe(OGG) == Transcript("hello", Usage())
    (asked,) = server.requests
    assert asked.body["model"] == "whisper-large-v3"
    assert "authorization" not in asked.headers


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("whisper", "Write it as"),
        ("local/smollm2", "limpet models"),
        ("groq/whisper-large-v3", r"table \[models.NAME\]"),
        ("elsewhere/x", r"table \[models.NAME\]"),
    ],
)
def test_a_name_that_can_not_listen_is_refused_with_the_mend(tmp_path: Path, name: str, mend: str) -> None:
    with pytest.raises(UnknownModel, match=mend):
        resolved(tmp_path, name)


async def test_without_a_key_it_says_so_each_time_and_asks_nobody(tmp_path: Path) -> None:
    with pytest.raises(MissingKey) as refused:
        resolved(tmp_path, "openai/whisper-1")
    with pytest.raises(TranscriptionFailed, match="OPENAI_API_KEY is not set"):
        await Unavailable("openai/whisper-1", refused.value).transcribe(OGG)


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (OGG, "ogg"),
        (b"\0\0\0\x20ftypM4A " + bytes(20), "mp4"),
        (b"\x1aE\xdf\xa3" + bytes(20), "webm"),
        (b"ID3\x04" + bytes(20), "mp3"),
        (b"\xff\xfb\x90\x64" + bytes(20), "mp3"),
        (b"RIFF\0\0\0\0WAVEfmt ", "wav"),
        (b"fLaC" + bytes(20), "flac"),
    ],
)
async def test_a_recording_has_the_name_that_servers_know_its_form_by(data: bytes, form: str) -> None:
    """Whatever the platform called it: servers refuse "oga" and "opus" by the name alone."""
    assert form in HEARD
    async with ModelServer([Reply("hello")]) as server:
        await of(server).transcribe(data)
    assert server.requests[0].body["file"] == f"recording.{form}"
    assert form_of(data) == form


@pytest.mark.parametrize("data", [b"", b"\x7fELF" + bytes(20), b"RIFF\0\0\0\0WEBPVP8 "])
async def test_what_is_no_recording_is_sent_nowhere(data: bytes) -> None:
    async with ModelServer([Reply("hello")]) as server:
        with pytest.raises(TranscriptionFailed, match="in no form that is known"):
            await of(server).transcribe(data)
    assert server.requests == []


def error(status: int, words: str, **headers: str) -> Reply:
    return Reply(status=status, body={"error": {"message": words}}, headers=headers)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), "refused the key from OPENAI_API_KEY (HTTP 401"),
        (error(402, "no credit"), "has no credit left"),
        (error(404, "no such model"), "Check the model's name, and base_url under [models] if you set it"),
        (error(400, "Unrecognized file format"), "HTTP 400: Unrecognized file format"),
        (error(413, "Maximum content size limit (26214400) exceeded"), "larger or longer than the model takes"),
        (Reply(status=302, body="", headers={"Location": "https://elsewhere/"}), "that is no transcript"),
        (Reply(body="<html>"), "that is no transcript. Check base_url under [models]"),
        (Reply(body={"text": None}), "that is no transcript"),
        (Reply(body=["text"]), "that is no transcript"),
        (Reply(body={"error": {"message": "the audio is broken"}}), "the audio is broken"),
    ],
)
async def test_each_failure_says_what_mends_it_and_no_key(reply: Reply, told: str) -> None:
    waits = Waits()
    async with ModelServer(lambda _: reply) as server:
        with pytest.raises(TranscriptionFailed) as failed:
            await of(server, clock=waits.clock, sleep=waits.sleep).transcribe(OGG)
        assert told in str(failed.value)
        assert KEY not in f"{failed.value!r} {failed.value.failed!r}"
        assert str(failed.value).endswith(".")


async def test_a_redirect_is_not_followed() -> None:
    """It could carry the key to another host."""
    async with ModelServer([Reply("heard")]) as other:
        location = f"{other.url}/audio/transcriptions"
        async with ModelServer([Reply(status=307, body="", headers={"Location": location})]) as server:
            with pytest.raises(TranscriptionFailed, match="HTTP 307"):
                await of(server).transcribe(OGG)
    assert other.requests == []


@pytest.mark.parametrize(
    ("first", "wait"),
    [(error(503, "later"), 1.0), (error(429, "slow down", **{"Retry-After": "7"}), 7.0), (Reply(drop=True), 1.0)],
)
async def test_what_passes_is_tried_once_more(first: Reply, wait: float) -> None:
    waits = Waits()
    async with ModelServer([first, Reply("buy milk")]) as server:
        said = await of(server, clock=waits.clock, sleep=waits.sleep).transcribe(OGG)
    assert said.text == "buy milk"
    assert waits.slept == [wait]
    assert [request.data for request in server.requests] == [OGG, OGG]


@pytest.mark.parametrize(("seconds", "retry_after", "tries"), [(30.0, "1", 2), (30.0, "11", 1), (5.0, "6", 1)])
async def test_nobody_waits_longer_than_helps(seconds: float, retry_after: str, tries: int) -> None:
    """Twice at most, not where the server wants a long rest, and never past the time of the call."""
    waits = Waits()
    busy = error(429, "slow down", **{"Retry-After": retry_after})
    async with ModelServer(lambda _: busy) as server:
        with pytest.raises(TranscriptionFailed, match="asks to slow down"):
            await of(server, seconds=seconds, clock=waits.clock, sleep=waits.sleep).transcribe(OGG)
    assert len(server.requests) == tries


async def test_a_server_that_never_answers_is_given_up() -> None:
    """G-RTE-25: slow. Not tried again: the time is used up."""
    async with ModelServer([Reply("late", wait=True)]) as server:
        with pytest.raises(TranscriptionFailed, match=r"it took longer than 0\.3 seconds"):
            await of(server, seconds=0.3).transcribe(OGG)
        assert len(server.requests) == 1
        server.release()


async def test_no_server_is_said_with_its_address() -> None:
    async with ModelServer() as server:
        pass
    waits = Waits()
    with pytest.raises(TranscriptionFailed, match=r"127\.0\.0\.1:\d+ can't be reached: connection refused"):
        await of(server, clock=waits.clock, sleep=waits.sleep).transcribe(OGG)


async def test_half_a_character_does_no_harm() -> None:
    async with ModelServer([Reply(body='{"text": "milk \\ud83e"}')]) as server:
        assert (await of(server).transcribe(OGG)).text == "milk \ufffd"


async def test_it_can_be_stopped() -> None:
    async with ModelServer([Reply("late", wait=True)]) as server:
        task = asyncio.create_task(of(server).transcribe(OGG))
        await server.arrived()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        server.release()
