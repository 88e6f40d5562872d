"""The embedded model: real weights in the real engine, where they are here."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import pytest

from agents.errors import MissingExtra
from agents.local_model import LocalModel
from agents.model import AssistantMessage, Failed, Finished, Limits, Request, TextDelta, UserMessage
from tests.agents.model_cases import outcome_of
from workspaces.installation import install_extra

FOLDERS = [Path(folder) for folder in (os.environ.get("LIMPET_TEST_MODELS"), "~/.limpet/models") if folder]
WEIGHTS = next((f for folder in FOLDERS if (f := folder.expanduser() / "smollm2.gguf").is_file()), None)
SMALL = Limits(context=1024, output=64)

needs_weights = [
    pytest.mark.weights,
    pytest.mark.skipif(WEIGHTS is None, reason="smollm2.gguf is in neither $LIMPET_TEST_MODELS nor ~/.limpet/models"),
]
weights = pytest.mark.parametrize("path", [pytest.param(WEIGHTS, marks=needs_weights, id="smollm2")])


def asked(note: str, question: str) -> Request:
    return Request(
        "Answer the question from the notes in one short sentence.",
        (
            UserMessage("Notes:\n- Your sister Ruth lives in Oslo.\n\nQuestion: Where does my sister live?"),
            AssistantMessage("Your sister Ruth lives in Oslo."),
            UserMessage(f"Notes:\n- {note}\n\nQuestion: {question}"),
        ),
        temperature=0.0,
    )


BISCUIT = asked("Your dog is called Biscuit.", "What is my dog called?")


@pytest.fixture
async def model(path: Path) -> AsyncIterator[LocalModel]:
    model = LocalModel("local/smollm2", path, limits=SMALL, threads=2)
    yield model
    await model.close()


@weights
async def test_it_answers_from_a_note(model: LocalModel) -> None:
    events = [event async for event in model.stream(BISCUIT)]
    assert "Biscuit" in "".join(e.text for e in events if isinstance(e, TextDelta))
    assert len(events) > 3, "it came in pieces"
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.reason == "stop"
    assert finished.usage.input > 40
    assert finished.usage.output > 4
    assert not model.uses_tools


@weights
async def test_the_longest_answer_is_the_declared_one(path: Path) -> None:
    model = LocalModel("local/smollm2", path, limits=Limits(1024, 5), threads=2)
    events = [event async for event in model.stream(Request("", (UserMessage("Tell a long story."),)))]
    assert isinstance(events[-1], Finished)
    assert (events[-1].reason, events[-1].usage.output) == ("length", 5)
    await model.close()


@weights
async def test_calls_wait_for_each_other(model: LocalModel) -> None:
    other = asked("Your rabbit is called Momo.", "What is my rabbit called?")
    outcomes = await asyncio.gather(outcome_of(model, BISCUIT), outcome_of(model, other))
    assert ["Biscuit" in outcomes[0].text, "Momo" in outcomes[1].text] == [True, True]


@weights
async def test_a_stream_that_is_left_ends(model: LocalModel) -> None:
    stream = model.stream(Request("", (UserMessage("Tell a very long story."),)))
    await anext(stream)
    assert isinstance(stream, AsyncGenerator)
    await stream.aclose()
    async with asyncio.timeout(60):
        assert "Biscuit" in (await outcome_of(model, BISCUIT)).text, "the engine is free again"


@weights
async def test_the_loop_runs_on_while_it_thinks(model: LocalModel) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await outcome_of(model, BISCUIT)
    ticking.cancel()
    assert ticks > 20


@weights
async def test_more_than_the_window_holds(model: LocalModel) -> None:
    (failed,) = [event async for event in model.stream(Request("", (UserMessage("word " * 2000),)))]
    assert isinstance(failed, Failed)
    assert failed.kind == "overflow"


@weights
async def test_its_port_is_closed_to_others(model: LocalModel) -> None:
    """The engine opens a loopback port by itself: without the random key nothing can be asked there."""
    await outcome_of(model, BISCUIT)
    address = model._engine.listening_address
    assert address.startswith("http://127.0.0.1:")

    def status(path: str, data: bytes | None) -> int:
        try:
            with urllib.request.urlopen(address + path, data=data, timeout=5) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    for path, data in (("/v1/chat/completions", b"{}"), ("/slots", None), ("/props", None), ("/tokenize", b"{}")):
        assert await asyncio.to_thread(status, path, data) == 401, path


@weights
async def test_it_can_be_used_again_after_it_was_closed(model: LocalModel) -> None:
    await outcome_of(model, BISCUIT)
    await model.close()
    assert "Biscuit" in (await outcome_of(model, BISCUIT)).text


@weights
@pytest.mark.parametrize("way", ["closed", "left open", "in the middle of an answer"])
def test_nothing_but_the_answer_is_said(path: Path, way: str) -> None:
    """At load, at work and at exit: stdout and stderr are clean, whichever way the process ends."""
    program = """
        import asyncio, sys
        from pathlib import Path
        from agents.local_model import LocalModel
        from agents.model import Limits, Request, UserMessage

        async def main(path, way):
            model = LocalModel("local/smollm2", Path(path), limits=Limits(1024, 64), threads=2)
            async for _ in model.stream(Request("", (UserMessage("Tell a long story."),))):
                if way == "in the middle of an answer":
                    return
            if way == "closed":
                await model.close()

        asyncio.run(main(*sys.argv[1:]))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("name", "what"), [("smollm2", "smollm2"), ("x", "PATH")])
async def test_weights_that_are_gone(tmp_path: Path, name: str, what: str) -> None:
    model = LocalModel(f"local/{name}", tmp_path / f"{name}.gguf", limits=SMALL, threads=1)
    (failed,) = [event async for event in model.stream(BISCUIT)]
    assert isinstance(failed, Failed)
    assert failed.kind == "refused"
    assert failed.message.endswith(f"is gone. Get them: `limpet models pull {what}`.")
    await model.close()


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("smollm2", "Get them again: `limpet models pull smollm2`, or"),
        ("x", "Get them again: `limpet models remove x`, then `limpet models pull PATH`, or"),
    ],
)
async def test_weights_that_are_damaged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, mend: str
) -> None:
    (tmp_path / f"{name}.gguf").write_bytes(b"GGUF" + bytes(100))
    model = LocalModel(f"local/{name}", tmp_path / f"{name}.gguf", limits=SMALL, threads=1)
    (failed,) = [event async for event in model.stream(BISCUIT)]
    assert isinstance(failed, Failed)
    assert "can't be loaded" in failed.message
    assert mend in failed.message
    await model.close()
    assert capfd.readouterr() == ("", "")


async def test_the_extra_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    model = LocalModel("local/x", tmp_path / "x.gguf", limits=SMALL, threads=1)
    assert (await outcome_of(model)).kind == "refused"
    (failed,) = [event async for event in model.stream(BISCUIT)]
    assert failed == Failed("refused", str(MissingExtra("the embedded model x", "local")))
    assert f"`{install_extra('local')}`" in failed.message
    await model.close()


async def test_closing_what_was_never_used_starts_nothing(tmp_path: Path) -> None:
    before = threading.active_count()
    model = LocalModel("local/x", tmp_path / "x.gguf", limits=SMALL, threads=1)
    await model.close()
    await model.close()
    assert threading.active_count() == before
