"""Runs real command lines in an empty home and an environment that holds nothing else.

``limpet(...)`` runs them within this process, which is quick; ``limpet.process(...)`` in one of their own, which is the
truth about imports, signals and streams.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from bot.__main__ import run
from bot.home import Home


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """stdout as the one JSON object that it must be."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """stderr as the JSON object of an error."""
        return json.loads(self.err)["error"]


class Limpet:
    """Call it with the words of a command line."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def environ(self, **more: str) -> dict[str, str]:
        usual = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**usual, "LIMPET_HOME": str(self.home.root), "TZ": "Europe/Berlin", **more}

    def __call__(self, *words: str, **environ: str) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environ(**environ), clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run(list(words))
        return Outcome(code, out.getvalue(), err.getvalue())

    def process(self, *words: str, stdin: str = "", **environ: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "bot", *words],
            input=stdin,
            env=self.environ(**environ),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def settings(self, text: str) -> None:
        """Put ``text`` into the settings file."""
        self.home.config.write_text(text, encoding="utf-8")


@pytest.fixture
def limpet(tmp_path: Path) -> Limpet:
    return Limpet(Home(tmp_path))
