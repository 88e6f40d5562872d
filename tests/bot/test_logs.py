"""The log: JSON lines on disk, lines for a person on stderr, and a secret in neither, whoever says it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.home import Home
from bot.logs import record_crash
from bot.redaction import Redactor, masked, names_a_secret, secrets_of

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

PROGRAM = """
import logging, os, sys
from pathlib import Path
import structlog
from bot.home import Home
from bot.logs import configure
log = structlog.get_logger("bot.turns")   # as modules do, before anything is configured
home = Home(Path(sys.argv[1]))
configure(home, secrets=["a plain password"], to_stderr=True)
configure(home, secrets=["a plain password"], to_stderr=True)   # twice is once
{body}
"""


def logged(tmp_path: Path, body: str, **environ: str) -> tuple[list[dict[str, Any]], str, str]:
    """Run ``body`` in a process with a configured log: its records, stderr and stdout."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(body=body), str(tmp_path)],
        env={"PATH": "", "PYTHONPATH": str(Path(__file__).parents[2]), "TZ": "UTC", **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = Home(tmp_path).log_file.read_text().splitlines() if Home(tmp_path).log_file.exists() else []
    return [json.loads(line) for line in lines], done.stderr, done.stdout


def test_a_record_is_a_json_line_and_a_line_for_a_person(tmp_path: Path) -> None:
    records, err, out = logged(
        tmp_path,
        "structlog.contextvars.bind_contextvars(turn='t1')\n"
        "log.info('turn.done', channel='telegram', ms=830, text='two words')\n"
        "log.debug('not this')\n"
        "logging.getLogger('some.library').info('three %s', 3)\n"
        "logging.getLogger('some.library').info({'a': 1}, extra={'b': 2})\n",
    )
    assert out == ""
    first, second, third = records
    assert first["event"] == "turn.done"
    assert (first["level"], first["logger"], first["turn"], first["ms"]) == ("info", "bot.turns", "t1", 830)
    assert first["timestamp"].endswith("Z")
    assert (second["event"], second["level"], second["logger"]) == ("three 3", "info", "some.library")
    assert (third["event"], third["b"]) == ("{'a': 1}", 2)
    assert err.splitlines()[0][9:] == 'info    turn.done  channel=telegram ms=830 text="two words" turn=t1'
    assert Home(tmp_path).log_file.stat().st_mode & 0o777 == 0o600
    assert Home(tmp_path).logs.stat().st_mode & 0o777 == 0o700


def test_a_healthy_start_is_silent_and_chatty_libraries_are_quiet(tmp_path: Path) -> None:
    records, err, _ = logged(
        tmp_path,
        "for name in ('httpx', 'httpcore.http11', 'telegram.ext', 'aiohttp.access'):\n"
        "    logging.getLogger(name).info('HTTP Request: POST https://api.telegram.org/bot1:x/getMe')\n",
    )
    assert (records, err) == ([], "")


def test_no_secret_reaches_a_line(tmp_path: Path) -> None:
    """G-OPS-06: by value and by look, in messages, fields, arguments and the tracebacks of any library."""
    odd = 'pa"ss\\wörd 1'
    body = (
        f"url = 'https://api.telegram.org/bot{TOKEN}/getMe'\n"
        "log.info('start', url=url, secret='a plain password', nested={'key': [url]})\n"
        "logging.getLogger('httpx').warning('failed: %s', url)\n"
        "logging.getLogger('x').error('env', extra={'seen': os.environ['SOME_PASSWORD']})\n"
        "try:\n    raise ValueError(url + os.environ['SOME_PASSWORD'])\n"
        "except ValueError:\n"
        "    log.exception('crashed')\n    logging.getLogger('y').exception('also')\n"
        "log.info('proxy', at='http://ann:hunter22@proxy:3128', auth='Bearer abcdefgh', q='http://x/?key=abcdefgh&b=1')\n"
    )
    records, err, _ = logged(tmp_path, body, SOME_PASSWORD=odd)
    assert len(records) == 6
    text = Home(tmp_path).log_file.read_text() + err
    for secret in (TOKEN, TOKEN[10:], "a plain password", odd, json.dumps(odd)[1:-1], "hunter22", "abcdefgh"):
        assert secret not in text, secret
    assert "Traceback" in records[3]["exception"]
    assert records[5]["at"] == "http://ann:[secret]@proxy:3128"


def test_the_file_is_rolled_over_and_old_ones_go(tmp_path: Path) -> None:
    body = (
        "import bot.logs\nbot.logs._FILE_BYTES = 2000\nconfigure(home)\nfor i in range(20):\n    log.info('x' * 900)\n"
    )
    logged(tmp_path, body)
    files = sorted(path.name for path in Home(tmp_path).logs.iterdir())
    assert files == ["limpet.log", "limpet.log.1", "limpet.log.2", "limpet.log.3"]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in Home(tmp_path).logs.iterdir())


def test_a_crash_is_kept_without_a_configured_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    home.env_file.write_text("MY_TOKEN=stored-secret\n")
    try:
        raise OSError(f"stored-secret and {TOKEN}")
    except OSError as error:
        crash = record_crash(home, error)
    assert crash.summary == "OSError: [secret] and [secret]"
    assert crash.file == home.log_file
    record = json.loads(home.log_file.read_text())
    assert record["event"] == "crash"
    assert "raise OSError" in record["exception"]
    assert "stored-secret and 1" not in home.log_file.read_text()


def test_a_crash_where_nothing_can_be_written_is_still_told(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file in the way")
    assert record_crash(Home(tmp_path), ValueError("x")).file is None


def test_nothing_is_configured_by_importing() -> None:
    code = "import logging, bot.logs; print(logging.getLogger().handlers, logging.getLogger('httpx').level)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] 0\n"


@pytest.mark.parametrize(
    "text",
    [
        "the port is http://127.0.0.1:8080/v1",
        "see 12:30 and 2026-11-30T12:00:00",
        "sk-short",
        "risk-averse-and-very-long-compound-word",
        "an id: 123456789",
        "",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor(["x", "abc"])(text) == text


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("TELEGRAM_BOT_TOKEN", True),
        ("api_key", True),
        ("OPENAI_API_KEY", True),
        ("password", True),
        ("client-secret", True),
        ("keyboard", False),
        ("max_tokens", False),
        ("monkey", False),
        ("tokens", False),
    ],
)
def test_what_is_called_like_a_secret(name: str, secret: bool) -> None:
    assert names_a_secret(name) is secret
    assert secrets_of({name: "value"}) == ({"value"} if secret else set())


def test_a_mask_tells_two_long_secrets_apart_and_short_ones_not_at_all() -> None:
    assert masked(TOKEN) == "…saw"
    assert masked("short") == "…"


def test_importing_it_touches_no_logger() -> None:
    look = "import logging, bot.logs; print(logging.getLogger('httpx').level, logging.getLogger().handlers)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == f"{logging.NOTSET} []\n"


def test_a_line_that_can_not_be_written_is_lost_without_a_word(tmp_path: Path) -> None:
    """On a full disk a traceback for each of them would be all that a person sees."""
    records, err, _ = logged(
        tmp_path,
        "import resource\n"
        "log.info('before')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(home.log_file),) * 2)\n"
        "log.info('lost')\n"
        "logging.getLogger('some.library').error('lost too')\n",
    )
    assert [record["event"] for record in records] == ["before"]
    assert [line.split()[2] for line in err.splitlines()] == ["before", "lost", "lost"], "on the screen they are"
