"""``limpet demo``: a fact told, shown on disk, recalled by a new process, forgotten; in a temporary home, offline."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import typer

from bot.cli import output
from bot.home import Home

FACT = "Remember that my dog is called Biscuit"
QUESTION = "What is my dog called?"


def command(ctx: typer.Context) -> None:
    """Show in a minute how it remembers and forgets. Needs no key; touches nothing of yours; leaves nothing behind."""
    home: Home = ctx.obj
    with tempfile.TemporaryDirectory(prefix="limpet-demo-") as folder:
        demo = Home(Path(folder))
        if home.models.is_dir():
            demo.models.symlink_to(home.models, target_is_directory=True)
        print("A demo in a temporary home: nothing of yours is touched, nothing leaves this machine.\n")
        _ask(demo, FACT)
        _show_notes(demo)
        print("\n(A new process: it knows what the files say, and nothing else.)\n")
        _ask(demo, QUESTION)
        print("\n(You take it back: limpet memory undo)\n")
        print(_limpet(demo, "memory", "undo"))
        print()
        _ask(demo, QUESTION)
    print("\nThe temporary home is gone. Begin with your own: limpet")


def _ask(home: Home, text: str) -> None:
    print(f"You:     {text}")
    answer = _limpet(home, "chat", "--once", text).replace("\n", "\n         ")
    print(f"Limpet:  {answer}", flush=True)


def _show_notes(home: Home) -> None:
    for note in sorted(home.workspace("main").glob("memory/*.md")):
        print(f"\n{note.relative_to(home.workspace('main'))} is plain Markdown on your disk:")
        print("\n".join(f"  | {line}" for line in note.read_text(encoding="utf-8").splitlines()))


def _limpet(home: Home, *args: str) -> str:
    """Run one real command in the demo's home; what it says on stdout. The environment names no model and no key."""
    from agents.catalog import found_keys

    dropped = {*found_keys(os.environ), *(name for name in os.environ if name.startswith("LIMPET_"))}
    environ = {name: value for name, value in os.environ.items() if name not in dropped}
    environ["LIMPET_HOME"] = str(home.root)
    with output.progress("Thinking"):
        done = subprocess.run(  # noqa: S603 - this very program, with words of ours
            [sys.executable, "-m", "bot", *args],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode not in (0, 1):  # 1: it could not answer, which the last question is meant to show
        output.fail(f"the demo failed: {done.stderr.strip() or done.returncode}", "please report it")
    return done.stdout.rstrip("\n")
