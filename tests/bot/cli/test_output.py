"""The manners themselves: plain columns, colour only where it is wanted, questions only to a person, bars on time."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pexpect
import pytest

from bot.cli import output
from bot.errors import BotError, NotPermitted, Unavailable, UsageError


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "colour"),
    [
        (Tty(), {}, True),
        (Tty(), {"NO_COLOR": "1"}, False),
        (Tty(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (Tty(), {"NO_COLOR": ""}, True),
    ],
)
def test_colour(stream: io.StringIO, environ: dict[str, str], colour: bool) -> None:
    assert output.has_colour(stream, environ) is colour


def test_columns_are_as_wide_as_they_look() -> None:
    rows = [("日本", "x", "1"), ("a", "long cell", ""), ("👩‍👩‍👧", "y", "3")]
    assert output.table(rows).splitlines() == ["日本  x          1", "a     long cell", "👩‍👩‍👧    y          3"]
    assert output.table([]) == ""


def test_a_result_is_text_or_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    output.result("Zoë", {"name": "Zoë"}, as_json=False)
    output.result("Zoë", {"name": "Zoë"}, as_json=True)
    output.result("", {}, as_json=False)
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == "Zoë"
    assert json.loads(captured.out.splitlines()[1]) == {"schema": 1, "name": "Zoë"}
    assert len(captured.out.splitlines()) == 2
    assert captured.err == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [(BotError("x"), 1), (UsageError("x"), 2), (Unavailable("x"), 75), (NotPermitted("x"), 77)],
)
def test_an_error_has_its_code(error: BotError, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    output.report(error, as_json=True)
    assert json.loads(capsys.readouterr().err)["error"]["exit_code"] == error.exit_code == code


def test_failing_is_a_sentence_with_its_mend() -> None:
    with pytest.raises(BotError) as caught:
        output.fail("the cellar is locked", "limpet open cellar", code=77)
    assert (str(caught.value), caught.value.exit_code) == ("the cellar is locked — limpet open cellar", 77)


def test_nobody_is_asked_where_nobody_is() -> None:
    with pytest.raises(UsageError, match="no terminal to ask at"):
        output.ask("Name?")
    with pytest.raises(UsageError, match="--yes"):
        output.confirm("Really?")
    assert output.confirm("Really?", yes=True)


def at_a_terminal(code: str, *exchanges: tuple[str, str]) -> str:
    """All that a person sees of ``code`` at a real terminal, answering each prompt of ``exchanges``."""
    environ = {**os.environ, "TERM": "xterm"}
    child = pexpect.spawn(sys.executable, ["-c", code], env=environ, timeout=20, encoding="utf-8")
    child.logfile_read = io.StringIO()
    for prompt, answer in exchanges:
        child.expect_exact(prompt)
        child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.logfile_read.getvalue()
    return child.logfile_read.getvalue()


def test_a_secret_is_not_echoed() -> None:
    code = "from bot.cli import output\nprint(len(output.ask('Token', secret=True)))"
    seen = at_a_terminal(code, ("Token: ", "hunter2222"))
    assert "hunter" not in seen
    assert "10" in seen


def test_an_empty_answer_is_the_default() -> None:
    code = "from bot.cli import output\nprint(output.ask('Name', 'Ann'), output.confirm('Sure?', default=True))"
    assert "Ann True" in at_a_terminal(code, ("Name [Ann]: ", ""), ("Sure? (Y/n): ", ""))


BAR = """
import sys, threading
from bot.cli import output
output._PATIENCE_SECONDS = {patience}
with output.progress("Reading notes", 10) as advance:
    advance(4)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer) and not {patience}:
            thread.join()
    advance(1)
print("loaded" if "rich.progress" in sys.modules else "not loaded")
"""


def test_a_bar_is_shown_for_long_work_only() -> None:
    long = at_a_terminal(BAR.format(patience=0))
    assert "Reading notes" in long
    assert "not loaded" not in long
    short = at_a_terminal(BAR.format(patience=60))
    assert short.strip() == "not loaded"


def test_a_pipe_sees_no_bar() -> None:
    done = subprocess.run([sys.executable, "-c", BAR.format(patience=0)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("not loaded\n", "")
