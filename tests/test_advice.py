"""Every command that the program advises is one that there is, and its end is seen.

``tests/flows/test_advice.py`` runs each of them in the state in which it is printed.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from bot.cli.app import load
from bot.cli.dispatch import parse
from bot.cli.help import COMMANDS

ROOT = Path(__file__).parent.parent
PACKAGES = ("bot", "agents", "adapters", "workspaces")
_NAMES = "|".join(entry.name for entry in COMMANDS if entry.name != "completion")  # which is for a shell to call
_ADVICE = re.compile(rf"(?<![\w./-])limpet(?: (?:{_NAMES})\b[^\n`)(;,]*| --help| \"[^\"\n]+\"|(?<=: limpet)$)")


@functools.cache
def advised() -> frozenset[str]:
    """The commands in the texts of the program, WORD for what is filled in when they are printed."""
    sources = (p.read_text("utf-8") for name in PACKAGES for p in (ROOT / name).rglob("*.py"))
    texts = (text for source in sources if "limpet" in source for text in _texts(ast.parse(source)))
    return frozenset(match[0].rstrip(" .:'’") for text in texts for match in _ADVICE.finditer(text))


def _texts(tree: ast.Module) -> Iterator[str]:
    """The texts of a module that may be printed: no docstring, and no part of a text that is put together."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for text in joined for part in text.values}
    for text in joined:
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "WORD" for part in text.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | parts:
            yield re.sub(r"\{\w+\}", "WORD", node.value)


@pytest.mark.parametrize("advice", sorted(advised()))
def test_what_is_advised_is_understood(advice: str) -> None:
    """As a whole: a sentence that goes on behind a command, with nothing between, would be words too many."""
    words = parse(shlex.split(advice)[1:]).words
    if words == ["--help"]:
        return
    command, rest = load(words[0]), words[1:]
    if hasattr(command, "get_command"):
        verb = command.get_command(typer.Context(command, info_name=words[0]), rest[0])
        assert verb is not None, f"{words[0]} has no {rest[0]}"
        command, rest = verb, rest[1:]
    command.make_context(words[0], rest)
