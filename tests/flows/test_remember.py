"""Told in the terminal, remembered by the next process: with a hosted model, the embedded one, and none."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.fakes.model_server import Call, ModelServer, Recorded, Reply
from tests.flows.conftest import Limpet

FACT = "Remember that my dog is called Biscuit"
QUESTION = "What is my dog called?"


async def test_notes_mode_remembers_across_processes(limpet: Limpet) -> None:
    """No model at all: the fact is kept in the person's words and quoted from the file."""
    told = await limpet("chat", "--once", FACT)
    assert told.code == 0
    assert told.out.startswith("Noted: my dog is called Biscuit (memory/2")
    assert "my dog is called Biscuit" in limpet.notes()

    asked = await limpet("chat", "--once", QUESTION)
    assert asked.code == 0
    assert "Biscuit" in asked.out
    assert "limpet " not in asked.out, "the answer is the note; how to get a model is no part of it"


async def test_notes_mode_says_so_when_it_can_not_answer(limpet: Limpet) -> None:
    """`--once` exits non-zero when it could not answer."""
    asked = await limpet("chat", "--once", "What is my cat called?")
    assert asked.code == 1
    assert "isn't in my memory" in asked.out


async def test_the_note_is_found_first_by_search(limpet: Limpet) -> None:
    await limpet("chat", "--once", FACT)
    for distraction in ("the car needs new tyres", "my sister Ruth lives in Oslo", "I prefer tea to coffee"):
        await limpet("chat", "--once", f"remember that {distraction}")
    found = await limpet("memory", "search", "name of my dog", "--json")
    assert found.code == 0
    best = found.json["hits"][0]
    assert "Biscuit" in best["text"]
    assert best["citation"].startswith("memory/2")


async def test_a_note_saved_by_any_editor_is_found_by_the_next_command(limpet: Limpet) -> None:
    """Read your write: no index command in between."""
    await limpet("chat", "--once", FACT)
    topic = limpet.workspace / "memory" / "topics" / "garden.md"
    topic.parent.mkdir(parents=True)
    scratch = topic.with_suffix(".tmp")
    scratch.write_text("# Garden\n\n- The roses are watered on Fridays.\n", encoding="utf-8")
    scratch.replace(topic)
    found = await limpet("memory", "search", "when are the roses watered", "--json")
    assert found.json["hits"][0]["path"] == "memory/topics/garden.md"
    topic.unlink()
    assert (await limpet("memory", "search", "roses", "--json")).json["hits"] == []


async def test_a_hosted_model_notes_with_its_tool_and_is_given_the_note_later(limpet: Limpet) -> None:
    def script(request: Recorded) -> Reply:
        last = request.messages[-1]
        if last["role"] == "tool":
            return Reply("I'll remember Biscuit.")
        if "Remember that" in last["content"]:
            return Reply(calls=[Call("memory_append", json.dumps({"text": "Ann's dog is called Biscuit."}))])
        return Reply("Your dog is called Biscuit." if "called Biscuit" in last["content"] else "I don't know.")

    async with ModelServer(script) as server:
        limpet.configure(f'[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n')
        told = await limpet("chat", "--once", FACT)
        assert (told.code, told.out) == (0, "I'll remember Biscuit.\n")
        assert "remembered: Ann's dog is called Biscuit." in told.err
        assert "Ann's dog is called Biscuit." in limpet.notes()
        asked = await limpet("chat", "--once", QUESTION)
        assert (asked.code, asked.out) == (0, "Your dog is called Biscuit.\n")
    question = server.requests[-1]
    assert '<note source=\\"memory/' in question.text, "recall is offered without being asked for"
    offered = [tool["function"]["name"] for tool in question.body["tools"]]
    assert offered[:4] == ["memory_search", "memory_get", "memory_append", "memory_edit"]


async def test_a_first_greeting_costs_little(limpet: Limpet) -> None:
    """A greeting in a default home costs at most 8 kB of request, tools included."""
    async with ModelServer([Reply("Hello!")]) as server:
        limpet.configure(f'[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n')
        assert (await limpet("chat", "--once", "good to see you")).out == "Hello!\n"
    assert len(server.requests[0].data) <= 8_000


async def test_a_model_that_is_down_is_said_at_once_and_nothing_is_lost(limpet: Limpet) -> None:
    limpet.configure('[models]\ndefault = "openai/fake"\nbase_url = "http://127.0.0.1:9/v1"\n')
    asked = await limpet("chat", "--once", "hello there")
    assert asked.code == 75
    assert asked.out == ""
    assert "retry 1/2" in asked.err
    assert "127.0.0.1:9" in asked.err
    (transcript,) = (limpet.home / "state" / "agents" / "main" / "sessions").glob("*.jsonl")
    assert "hello there" in transcript.read_text("utf-8")


async def test_the_json_answer_says_what_it_was_built_on(limpet: Limpet) -> None:
    await limpet("chat", "--once", FACT)
    asked = await limpet("chat", "--once", QUESTION, "--json")
    assert "Biscuit" in asked.json["answer"]
    assert asked.json["agent"] == "main"
    assert asked.json["memories"][0].startswith("memory/")


async def test_undo_takes_the_note_back(limpet: Limpet) -> None:
    await limpet("chat", "--once", FACT)
    undone = await limpet("memory", "undo")
    assert undone.code == 0
    assert "Biscuit" in undone.out
    assert "Biscuit" not in limpet.notes()
    assert (await limpet("chat", "--once", QUESTION)).code == 1
    assert (await limpet("memory", "undo")).code == 1


async def test_a_pipe_is_one_message(limpet: Limpet) -> None:
    told = await limpet(stdin="remember that\n- the gate code is 4411\n- the key is under the pot\n")
    assert told.code == 0, told.err
    assert "the gate code is 4411" in limpet.notes()
    assert "the key is under the pot" in limpet.notes()


async def test_the_demo_works_offline_and_leaves_nothing(limpet: Limpet, tmp_path: Path) -> None:
    limpet.env["TMPDIR"] = str(tmp_path)
    limpet.env["OPENAI_API_KEY"] = "sk-never-to-be-used"
    shown = await limpet("demo")
    assert shown.code == 0, shown.err
    assert "- " in shown.out
    assert shown.out.count("Biscuit") >= 4
    assert "isn't in my memory" in shown.out.rpartition("What is my dog called?")[2]
    assert not limpet.home.exists()
    assert list(tmp_path.iterdir()) == []


def weights() -> Path | None:
    """The embedded model's file, where the test run has it."""
    file = Path(os.environ.get("LIMPET_TEST_MODELS", "")) / "smollm2.gguf"
    return file if file.is_file() else None


@pytest.mark.weights
@pytest.mark.skipif(weights() is None, reason="no weights: make test fetches them into LIMPET_TEST_MODELS")
async def test_the_embedded_model_answers_and_without_its_weights_the_notes_do(limpet: Limpet) -> None:
    """The acceptance of the main job, by the model that everyone has."""
    file = weights()
    assert file is not None
    models = limpet.home / "models"
    models.mkdir(parents=True)
    shutil.copy(file, models / file.name)
    told = await limpet("chat", "--once", FACT)
    assert told.code == 0
    assert told.out.startswith("Noted: my dog is called Biscuit (memory/2")
    asked = await limpet("chat", "--once", QUESTION, "--json")
    assert asked.code == 0, asked.err
    assert asked.json["model"] == "local/smollm2"
    assert "Biscuit" in asked.json["answer"]
    unknown = await limpet("chat", "--once", "What is my sister's address?")
    assert "isn't in my memory" in unknown.out

    assert (await limpet("models", "remove", "smollm2")).code == 0
    again = await limpet("chat", "--once", QUESTION, "--json")
    assert again.json["model"] is None
    assert "Biscuit" in again.json["answer"]
