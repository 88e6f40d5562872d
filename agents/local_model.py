"""A model in this process: llama.cpp through xllamacpp, on a GGUF file.

The weights are loaded at the first call, in the one thread in which all calls run, one after the other. The engine
opens a loopback port that nobody asked for: it gets a random key that is thrown away, and all calls stay in process.
Its log is off. Knows no store of weights.
"""

from __future__ import annotations

import asyncio
import importlib
import secrets
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

from agents import failures
from agents.errors import MissingExtra, ModelError, WeightsError
from agents.failures import Endpoint
from agents.model import Failed, Limits, ModelEvent, Request
from agents.weight_sources import to_get, to_get_again
from agents.wire import AnswerReader, Json, body_of, error_in

TEMPERATURE = 0.2
"""Where nothing else is said: what the card of SmolLM2 advises. The engine's own 0.8 makes a small model ramble."""

_SILENT = -1
"""Below the engine's level for errors: what went wrong comes back as a value."""

_Chunk: TypeAlias = Json | ModelError | None


class LocalModel:
    """``path`` is the GGUF file, ``threads`` how many the engine computes with. ``limits.context`` is what is reserved.

    ``temperature`` holds where a request leaves it open, None for 0.2.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        *,
        limits: Limits,
        threads: int,
        uses_tools: bool = False,
        temperature: float | None = None,
    ) -> None:
        self.name, self.limits = name, limits
        self.uses_tools, self.sees_images = uses_tools, False
        self._path, self._threads = path, threads
        self._temperature = TEMPERATURE if temperature is None else temperature
        self._engine: Any = None
        self._thread: ThreadPoolExecutor | None = None

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        body = body_of(request, self.name, name=self.name, temperature=self._temperature, max_output=self.limits.output)
        reader, endpoint = AnswerReader(request), Endpoint(model=self.name, url=None)
        chunks: asyncio.Queue[_Chunk] = asyncio.Queue()
        loop, left = asyncio.get_running_loop(), Event()

        def hand_over(chunk: _Chunk) -> bool:
            """Give a chunk to the loop; true when nobody wants more, which ends the generation."""
            if not left.is_set():
                try:
                    loop.call_soon_threadsafe(chunks.put_nowait, chunk)
                except RuntimeError:  # the loop was closed under us
                    left.set()
            return left.is_set()

        self._worker().submit(self._run, body, hand_over, left)
        try:
            while (chunk := await chunks.get()) is not None:
                if isinstance(chunk, ModelError):
                    yield Failed("refused", str(chunk))
                    return
                if (error := error_in(chunk)) is not None:
                    yield failures.answered_with(endpoint, None, {"error": error})
                    return
                for delta in reader.feed(chunk):
                    yield delta
        finally:
            left.set()
        for event in reader.end():
            yield event

    async def close(self) -> None:
        """Let go of the weights; waits until a running call has noticed that it was left."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            await asyncio.get_running_loop().run_in_executor(thread, self._unload)
            thread.shutdown(wait=False)

    def _worker(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-model")
        return self._thread

    def _run(self, body: Json, hand_over: Callable[[_Chunk], bool], left: Event) -> None:
        """One call, in the worker's thread; ends with None or an error, whatever happens."""
        end: _Chunk = None
        try:
            if not left.is_set():
                self._loaded().handle_chat_completions(body, hand_over)
        except ModelError as error:
            end = error
        except Exception as error:  # the engine's bindings raise whatever C++ threw
            end = WeightsError(f"{self.name} could not answer: {error}")
        hand_over(end)

    def _loaded(self) -> Any:
        if self._engine is None:
            self._engine = _load(self._path, self.limits.context, self._threads)
        return self._engine

    def _unload(self) -> None:
        self._engine = None


def _load(path: Path, context: int, threads: int) -> Any:
    """The engine with the weights in memory. Raises MissingExtra or WeightsError."""
    try:
        xllamacpp = importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        raise MissingExtra(f"the embedded model {path.stem}", "local") from error
    if not path.is_file():
        raise WeightsError(f"{path} is gone", to_get(path.stem))
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = context, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [secrets.token_urlsafe(32)]
    params.ui = params.endpoint_slots = params.endpoint_props = False
    params.cache_ram_mib = 0  # else up to 8 GB of old prompts are kept
    params.fit_params = False  # else the window may come out smaller than it was declared
    params.warmup = False
    params.verbosity = _SILENT
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise WeightsError(
            f"{path} can't be loaded: it is damaged, of a kind that the engine doesn't know, or larger than the "
            "free memory",
            f"{to_get_again(path.stem)}, or choose another model",
        ) from error
