"""``limpet models``: it always lists, says what keeps a model from answering, and mends damaged weights."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.weight_sources import SMOLLM2
from tests.bot.cli.conftest import Limpet
from tests.fakes.gguf import gguf

FILE = gguf(("llama.context_length", 4096)) + os.urandom(3_000_000)
ROOM = 1_000_000


def damage(limpet: Limpet, size: int = 1000) -> Path:
    limpet.home.models.mkdir()
    path = limpet.home.models / "smollm2.gguf"
    path.write_bytes(gguf(("llama.context_length", 4096)).ljust(size, b"\0"))
    return path


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("openai/gpt-x", "openai/gpt-x needs a key, and OPENAI_API_KEY is not set — add OPENAI_API_KEY=… to {env},"),
        ("gpt", "model 'gpt' is not written as provider/model, and no [models] table has that name — write it as"),
        ("local/smollm2", "there are no weights of that name (here: none) — get them: `limpet models pull smollm2`"),
    ],
)
@pytest.mark.parametrize("whose", ["models.default", "agents.main.model"])
def test_a_model_that_can_not_answer_is_listed_with_the_reason(
    limpet: Limpet, model: str, problem: str, whose: str
) -> None:
    *tables, key = whose.split(".")
    limpet.settings(f'[{".".join(tables)}]\n{key} = "{model}"\n')
    listed = limpet("models", "list")
    assert listed.code == 0
    assert "can't answer: " in listed.out
    assert problem.format(env=limpet.home.env_file) in listed.out
    main = limpet("models", "list", "--json").data["agents"]["main"]
    assert (main["model"], main["why"]) == (model, "configured")
    assert main["problem"]


def test_a_model_that_can_answer_has_no_problem(limpet: Limpet) -> None:
    for words in (["openai/gpt-x", "models.api_key", "sk-1234567890"], ["ollama/qwen3:4b"]):
        limpet("config", "set", "models.default", words[0])
        if words[1:]:
            limpet("config", "set", *words[1:])
        main = limpet("models", "list", "--json").data["agents"]["main"]
        assert main == {"model": words[0], "fallbacks": [], "why": "configured", "problem": None, "mend": None}
    assert "ollama/qwen3:4b  configured\n" in limpet("models", "list").out


@pytest.mark.parametrize("key", ["models.default", "agents.main.model", "models.home.model"])
def test_the_form_that_is_advised_is_no_model(limpet: Limpet, key: str) -> None:
    """Pasted as it is, it would be kept, and fail only when somebody asks something."""
    refused = limpet("config", "set", key, "PROVIDER/MODEL")
    assert (refused.code, refused.out) == (2, "")
    assert "PROVIDER/MODEL only shows the form: openai/" in refused.err
    assert not limpet.home.config.exists()


def test_damaged_weights_are_seen_in_the_list_and_leave_the_notes(limpet: Limpet) -> None:
    path = damage(limpet)
    listed = limpet("models", "list")
    assert (listed.code, listed.err) == (0, "")
    assert f"damaged: {path}" in listed.out
    assert f"(1,000 of {SMOLLM2.size:,} bytes) — get them again: `limpet models pull smollm2`" in listed.out
    assert limpet("models", "list", "--json").data["weights"][0]["whole"] is False
    told = limpet.process("chat", "--once", "Remember that my dog is called Biscuit")
    assert told.code == 0
    assert "Notes only: the weights of smollm2 are damaged" in told.err
    chosen = limpet.process("chat", "--once", "hello there", LIMPET_MODEL="local/smollm2")
    assert (chosen.code, chosen.out) == (1, "")
    assert "Get them again: `limpet models pull smollm2`." in chosen.err


@pytest.mark.parametrize("size", [0, 3, 4, 20])
def test_weights_without_even_a_head_leave_the_notes(limpet: Limpet, size: int) -> None:
    path = damage(limpet)
    path.write_bytes(path.read_bytes()[:size])
    assert limpet("models", "list").code == 0
    told = limpet.process("chat", "--once", "Remember that my dog is called Biscuit")
    assert (told.code, told.out[:6]) == (0, "Noted:")
    assert "`limpet models pull smollm2`" in told.err


def test_a_file_is_pulled_once_and_can_be_removed(limpet: Limpet, tmp_path: Path) -> None:
    source = tmp_path / "Tiny.gguf"
    source.write_bytes(FILE)
    first = limpet("models", "pull", str(source))
    assert (first.code, first.err) == (0, "")
    assert first.out == f"local/tiny is here (3 MB): {limpet.home.models / 'tiny.gguf'}\n"
    again = limpet("models", "pull", str(source))
    assert again.out.startswith("local/tiny was here already, and is whole (3 MB)")
    assert limpet("models", "pull", str(source), "--json").data["how"] == "kept"
    assert limpet("models", "remove", "local/tiny").out == "local/tiny is removed.\n"
    assert limpet("models", "list", "--json").data["weights"] == []


@pytest.mark.parametrize("words", [["pull", "smollm2"], ["remove", "smollm2"]], ids=" ".join)
def test_a_store_that_may_not_be_written_is_told_with_its_mend(limpet: Limpet, words: list[str]) -> None:
    damage(limpet)
    (limpet.home.models / ".lock").mkdir()
    outcome = limpet("models", *words)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(
        f"limpet: {limpet.home.models / '.lock'}: Is a directory — move away what stands there"
    )


def small_disk() -> None:
    """For a process: it may write files of ROOM bytes only, and what is more is refused as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))


@pytest.mark.parametrize("fitting", [True, False])
def test_a_pull_that_finds_no_room_says_so_and_leaves_no_broken_file(
    limpet: Limpet, tmp_path: Path, fitting: bool
) -> None:
    source = tmp_path / "Tiny.gguf"
    source.write_bytes(FILE[: ROOM - 1] if fitting else FILE)

    def pull(limit: Callable[[], None] | None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bot", "models", "pull", str(source)]
        return subprocess.run(
            command, env=limpet.environ(), preexec_fn=limit, capture_output=True, text=True, check=False
        )

    done = pull(small_disk)
    if fitting:
        assert (done.returncode, done.stderr) == (0, "")
        return
    assert (done.returncode, done.stdout) == (75, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"limpet: the weights don't fit into {limpet.home.models}, where they need 4 MB: ")
    assert line.endswith(" MB free) — make room, then pull again")
    assert [path for path in limpet.home.models.rglob("*") if path.is_file() and path.name != ".lock"] == []
    assert pull(None).returncode == 0
