"""What is said in a recording, as text: by an OpenAI-compatible server, ``POST /audio/transcriptions``.

A model is written and reached as one to talk with is: ``provider/model``, or the name of a ``[models.<name>]`` table
that gives it an address or a key of its own. The recording goes as it came: nothing is decoded or converted here. Knows
no chat platform and no file.
"""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agents import catalog, connection, failures
from agents.errors import ModelError, UnknownModel
from agents.failures import Endpoint
from agents.model import Failed, Usage
from agents.settings import ModelsSettings
from agents.surrogates import mended
from agents.weights import WeightsStore
from agents.wire import error_in

TRIES = 2
PAUSE = 1.0
"""Seconds before the second try where the server names none: a person waits."""

LONGEST_WAIT = 10.0
"""Seconds; a server that asks for more is not asked again."""

_WANTED = "transcript"

_LONGEST_ANSWER = 4 << 20
"""Bytes of an answer that are read."""

_FORMS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"OggS", "ogg"),
    (4, b"ftyp", "mp4"),
    (0, b"\x1aE\xdf\xa3", "webm"),
    (0, b"ID3", "mp3"),
    (0, b"\xff\xfb", "mp3"),
    (0, b"\xff\xf3", "mp3"),
    (0, b"\xff\xf2", "mp3"),
    (8, b"WAVE", "wav"),
    (0, b"fLaC", "flac"),
    (0, b"\xff\xf1", "aac"),
    (0, b"#!AMR", "amr"),
    (0, b"caff", "caf"),
)
"""What recordings begin with: where, what, and the ending that servers know them by. They go by the name of a file
alone, and some refuse "oga" and "opus" for what they take as "ogg"."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """``text`` "" means that no words were heard. ``usage`` has no tokens where the server counts none."""

    text: str
    usage: Usage = field(default_factory=Usage)


class TranscriptionFailed(Exception):
    """There is no transcript; the text is a sentence with the mend, for whoever can mend it."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed


class Transcriber(Protocol):
    name: str
    """The model, as people write it."""

    async def transcribe(self, recording: bytes) -> Transcript:
        """What is said in ``recording``. Raises TranscriptionFailed."""


def resolve(name: str, models: ModelsSettings, environ: Mapping[str, str], weights: WeightsStore) -> Transcriber:
    """The transcriber called ``name``. Raises UnknownModel, and MissingKey where its provider wants one. Asks no
    server."""
    choice = catalog.resolve(models, environ, weights, name)
    if choice is None or choice.client == "local":
        raise UnknownModel(f"{name} is a model to talk with, and can't listen", 'choose one such as "openai/whisper-1"')
    if choice.client == "litellm" or choice.base_url is None:
        what = f"the address of {name} is not known here"
        raise UnknownModel(what, "give it a table [models.NAME] with its model, base_url and api_key")
    catalog.check(choice, environ, weights)
    endpoint = Endpoint(choice.name, choice.base_url, choice.key_place, choice.api_key)
    return OpenAITranscriber(endpoint, choice.model, seconds=choice.settings.timeout)


class OpenAITranscriber:
    """``model`` is what the server calls it; a transcript takes at most ``seconds``, a second try included.

    ``clock`` counts seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = endpoint.model
        self._endpoint = endpoint
        self._model = model
        self._seconds = seconds
        self._clock = clock
        self._sleep = sleep

    async def transcribe(self, recording: bytes) -> Transcript:
        form = form_of(recording)
        if form is None:
            raise TranscriptionFailed(Failed("refused", "The recording is in no form that is known, or empty."))
        ends = self._clock() + self._seconds
        for left in reversed(range(TRIES)):
            try:
                return await self._asked(recording, form, max(0.001, ends - self._clock()))
            except TranscriptionFailed as error:
                failed = error.failed
                wait = PAUSE if failed.retry_after is None else failed.retry_after
                if not left or not failed.may_retry or wait > LONGEST_WAIT or self._clock() + wait >= ends:
                    raise
            await self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _asked(self, recording: bytes, form: str, seconds: float) -> Transcript:
        import aiohttp

        assert self._endpoint.url is not None, "made only where there is an address"
        fields = aiohttp.FormData({"model": self._model, "response_format": "json"})
        fields.add_field("file", io.BytesIO(recording), filename=f"recording.{form}", content_type=f"audio/{form}")
        url = self._endpoint.url.rstrip("/") + "/audio/transcriptions"
        try:
            async with (
                connection.session(self._endpoint, accept="application/json", total=seconds) as session,
                session.post(url, data=fields, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise _failed(await connection.refusal(self._endpoint, response, _WANTED))
                body = await connection.beginning(response, _LONGEST_ANSWER)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            too_slow = f"it took longer than {self._seconds:g} seconds (timeout of the model)"
            raise _failed(connection.failure(self._endpoint, error, too_slow=too_slow)) from error
        return self._read(body)

    def _read(self, body: bytes) -> Transcript:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and (error := error_in(answer)) is not None:
            raise _failed(failures.answered_with(self._endpoint, None, {"error": error}))
        if not isinstance(answer, dict) or not isinstance(answer.get("text"), str):
            raise _failed(failures.not_an_api(self._endpoint, 200, _WANTED))
        return Transcript(mended(answer["text"]).strip(), _usage(answer.get("usage")))


class Unavailable:
    """Stands for a transcriber that can't be had; ``error`` says why, and what mends it."""

    def __init__(self, name: str, error: ModelError) -> None:
        self.name = name
        self._failed = Failed("refused", str(error))

    async def transcribe(self, recording: bytes) -> Transcript:  # noqa: ARG002
        raise TranscriptionFailed(self._failed)


def form_of(recording: bytes) -> str | None:
    """The ending of a file that holds ``recording``, by its first bytes; None where they say nothing."""
    return next((ending for at, mark, ending in _FORMS if recording.startswith(mark, at)), None)


def _usage(counted: Any) -> Usage:
    """Tokens; a server that counts seconds counts none."""
    given, made = (counted.get(f"{kind}_tokens") if isinstance(counted, Mapping) else 0 for kind in ("input", "output"))
    return Usage(given if isinstance(given, int) else 0, made if isinstance(made, int) else 0)


def _failed(failed: Failed) -> TranscriptionFailed:
    """The error; what is said of a conversation that is too long is meant of the recording."""
    if failed.kind == "overflow":
        failed = replace(failed, message="The recording is larger or longer than the model takes.")
    return TranscriptionFailed(failed)
