"""``limpet init``: a script sets all up in one line, a person is asked, and nobody's words are ever overwritten."""

from __future__ import annotations

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
        (["--model", "local/none"], "limpet models pull"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_written(limpet: Limpet, words: list[str], said: str) -> None:
    outcome = limpet("init", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert list(limpet.home.root.iterdir()) == []


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
