"""``limpet init``: a script sets all up in one line, a person is asked, and nobody's words are ever overwritten."""

from __future__ import annotations

import io
import os
import sys
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pexpect
import pytest

from tests.bot.cli.conftest import Limpet

SCRIPTED = ["init", "--model", "ollama/qwen3:4b", "--base-url", "http://127.0.0.1:9/v1", "--name", "Ann"]


def test_one_line_sets_all_up(limpet: Limpet) -> None:
    outcome = limpet.process(*SCRIPTED, "--language", "German", "--time-zone", "Europe/Vienna")
    assert (outcome.code, outcome.err) == (0, "")
    text = limpet.home.config.read_text()
    assert len(text.splitlines()) <= 40
    assert tomllib.loads(text) == {"models": {"default": "ollama/qwen3:4b", "base_url": "http://127.0.0.1:9/v1"}}
    assert text.count("#") >= 3
    assert limpet.home.config.stat().st_mode & 0o777 == 0o600
    profile = (limpet.home.workspace("main") / "USER.md").read_text()
    assert "- Name: Ann\n" in profile
    assert "- Language: German\n" in profile
    assert "- Time zone: Europe/Vienna\n" in profile
    assert not (limpet.home.workspace("main") / "BOOTSTRAP.md").exists()
    assert limpet("config", "check").code == 0


def test_doing_it_again_changes_no_byte(limpet: Limpet) -> None:
    limpet(*SCRIPTED)
    before = {path: path.read_bytes() for path in limpet.home.root.rglob("*") if path.is_file()}
    again = limpet(*SCRIPTED, "--json")
    assert again.data["changed"] == []
    assert {path: path.read_bytes() for path in limpet.home.root.rglob("*") if path.is_file()} == before


def test_the_zone_of_the_machine_is_taken_where_none_is_said(limpet: Limpet) -> None:
    assert limpet("init", "--yes").code == 0
    assert "- Time zone: Europe/Berlin\n" in (limpet.home.workspace("main") / "USER.md").read_text()
    assert (limpet.home.workspace("main") / "BOOTSTRAP.md").exists(), "the name is still to be asked"


def test_what_a_person_wrote_stays(limpet: Limpet) -> None:
    limpet(*SCRIPTED)
    profile = limpet.home.workspace("main") / "USER.md"
    mine = "# Me\n- Name: Anna Maria\n- Language:\n\nI keep bees.\n"
    profile.write_text(mine)
    limpet.settings("# mine\n[models]\ndefault = 'a/b'  # why\n[memory]\nlimit = 3\n")
    outcome = limpet("init", "--model", "c/d", "--name", "Ann", "--language", "German")
    assert outcome.code == 0
    assert 'models.default: "a/b" → "c/d"' in outcome.out
    assert limpet.home.config.read_text() == '# mine\n[models]\ndefault = "c/d"  # why\n[memory]\nlimit = 3\n'
    assert "USER.md says Name: Anna Maria, and that stays" in outcome.err
    assert profile.read_text().startswith("# Me\n- Name: Anna Maria\n- Language: German\n\nI keep bees.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--time-zone", "Europe/Berlln"], "'Europe/Berlln' is no time zone — did you mean 'Europe/Berlin'?"),
        (["--model", "gpt"], "not written as provider/model"),
        (["--base-url", "http://127.0.0.1:9"], "add --model NAME"),
        (["--model", "a/b", "--base-url", "127.0.0.1:9"], "must be an address such as"),
        (["--model", "a/b", "--base-url", "http://user:pw@127.0.0.1:9"], "must not hold a password"),
        (["--model", "local/none"], "limpet models pull"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_written(limpet: Limpet, words: list[str], said: str) -> None:
    outcome = limpet("init", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert list(limpet.home.root.iterdir()) == []


def test_all_that_is_wrong_is_said_at_once(limpet: Limpet) -> None:
    outcome = limpet("init", "--time-zone", "Europe/Berlln", "--model", "gpt", "--name", "Ann", "--json")
    assert (outcome.code, outcome.out) == (2, "")
    assert [problem["message"] for problem in outcome.error["problems"]] == [
        "'Europe/Berlln' is no time zone",
        "model 'gpt' is not written as provider/model, and no [models] table has that name",
    ]
    assert all(problem["mend"] for problem in outcome.error["problems"])
    outcome = limpet("init", "--time-zone", "Europe/Berlln", "--base-url", "http://127.0.0.1:9/v1")
    assert [line.partition(" — ")[0] for line in outcome.err.splitlines()] == [
        "'Europe/Berlln' is no time zone",
        "--base-url needs to know which model is there",
    ]
    outcome = limpet("init", "--time-zone", "Europe/Berlln", "--model", "a/b", "--base-url", "127.0.0.1:9")
    assert len(outcome.err.splitlines()) == 2
    assert list(limpet.home.root.iterdir()) == []


def test_a_model_that_can_not_answer_yet_is_set_and_told(limpet: Limpet) -> None:
    outcome = limpet("init", "--model", "openai/gpt-6.1-terra")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1].startswith(
        "Ready, but nothing can answer yet: openai/gpt-6.1-terra needs a key, and OPENAI_API_KEY is not set — add"
    )
    problem = limpet("init", "--model", "openai/gpt-6.1-terra", "--json").data["problem"]
    assert "OPENAI_API_KEY" in problem["message"]
    ready = limpet("init", "--yes", OPENAI_API_KEY="sk-0123456789abcdef0123")
    assert ready.out.splitlines()[-1] == "Ready. Talk: limpet"


def test_a_damaged_weight_file_does_not_stop_the_setup(limpet: Limpet) -> None:
    limpet.home.models.mkdir()
    (limpet.home.models / "tiny.gguf").write_bytes(b"GGUF")
    outcome = limpet("init", "--yes")
    assert outcome.code == 0
    assert "nothing can answer yet: the weights of tiny can't be read" in outcome.out


def test_a_key_in_the_environment_is_found(limpet: Limpet) -> None:
    outcome = limpet("init", "--yes", "--json", OPENAI_API_KEY="sk-0123456789abcdef0123")
    assert outcome.data["model"].startswith("openai/")
    assert "sk-0123" not in limpet.home.config.read_text() + outcome.out + outcome.err


class Ollama(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"models": [{"name": "qwen3:4b"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_mistyped_model_is_asked_again_and_its_key_too(limpet: Limpet) -> None:
    """At a real terminal: no answer is lost to a slip, and a key that is typed is kept in .env and shown nowhere."""
    key = "sk-0123456789abcdef0123"
    child = pexpect.spawn(
        sys.executable, ["-m", "bot", "init"], env=limpet.environ(TERM="dumb"), timeout=60, encoding="utf-8"
    )
    seen = child.logfile_read = io.StringIO()
    for prompt, answer in (
        ("What shall I call you?", "Zoë"),
        ("Which language", "German"),
        ("Your time zone?", ""),
        ("Another model", "gpt"),
        ("is not written as provider/model", None),
        ("Which model?", "openai/gpt-6.1-terra"),
        ("OPENAI_API_KEY is not set.", None),
        ("(Return: later): ", key),
        ("Ready. Talk: limpet", None),
    ):
        child.expect_exact(prompt)
        if answer is not None:
            child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert key not in seen.getvalue()
    assert limpet.home.env_file.read_text() == f"OPENAI_API_KEY={key}\n"
    assert limpet.home.env_file.stat().st_mode & 0o777 == 0o600
    assert tomllib.loads(limpet.home.config.read_text()) == {"models": {"default": "openai/gpt-6.1-terra"}}
    assert "- Name: Zoë\n" in (limpet.home.workspace("main") / "USER.md").read_text()
    assert limpet("status").code == 0


def test_a_person_is_asked_and_corrected(limpet: Limpet) -> None:
    """At a real terminal: a wrong zone is asked again, and a local Ollama is looked for because the person said so."""
    with HTTPServer(("127.0.0.1", 0), Ollama) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        environ = limpet.environ(OLLAMA_HOST=f"127.0.0.1:{server.server_port}", TERM="dumb")
        child = pexpect.spawn(
            sys.executable, ["-m", "bot", "init"], env=os.environ | environ, timeout=20, encoding="utf-8"
        )
        child.expect_exact("What shall I call you?")
        child.sendline("Zoë")
        child.expect_exact("[English]")
        child.sendline("")
        child.expect_exact("[Europe/Berlin]")
        child.sendline("Viena")
        child.expect_exact("[Europe/Vienna]")
        child.sendline("")
        child.expect_exact("Another model")
        child.sendline("ollama")
        child.expect_exact("[ollama/qwen3:4b]")
        child.sendline("")
        child.expect_exact("Ready. Talk: limpet")
        child.expect(pexpect.EOF)
        child.close()
        server.shutdown()
    assert child.exitstatus == 0
    assert tomllib.loads(limpet.home.config.read_text()) == {"models": {"default": "ollama/qwen3:4b"}}
    profile = (limpet.home.workspace("main") / "USER.md").read_text()
    assert "- Name: Zoë\n- Language: English\n- Time zone: Europe/Vienna\n" in profile
