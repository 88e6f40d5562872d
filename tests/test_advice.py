"""Every command that the program advises is one that there is, with verbs and options that there are."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from bot.cli.app import load
from bot.cli.dispatch import parse

ROOT = Path(__file__).parent.parent
_ADVICE = re.compile(
    r"limpet (?:chat|run|demo|init|config|channels|models|pairing|memory|status|where|route)\b[^\n`)(;,]*"
)


def advised() -> Iterator[str]:
    """The commands in the texts of the program, with a stand-in for what is filled in."""
    for package in ("bot", "agents", "adapters", "workspaces"):
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            quiet = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr):
                    text = "".join(str(v.value) if isinstance(v, ast.Constant) else "WORD" for v in node.values)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet:
                    text = re.sub(r"\{\w+\}", "WORD", node.value)
                else:
                    continue
                yield from (match[0].rstrip(" .:'\"’") for match in _ADVICE.finditer(text))


@pytest.mark.parametrize("advice", sorted(set(advised())))
def test_what_is_advised_exists(advice: str) -> None:
    words = parse(shlex.split(advice.split(" — ")[0].split(". ")[0])[1:]).words
    command = load(words[0])
    context = typer.Context(command, info_name=words[0])
    rest = words[1:]
    if hasattr(command, "get_command") and rest:
        verb = command.get_command(context, rest[0])
        assert verb is not None, f"{words[0]} has no {rest[0]}"
        command, rest = verb, rest[1:]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= known
