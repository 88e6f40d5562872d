"""What the documentation says is true: links lead somewhere, commands exist, the reference is current."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli.dispatch import parse

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_reference_is_what_the_program_says() -> None:
    """After a change of a setting or a command: python docs/reference.py"""
    wanted = runpy.run_path(str(ROOT / "docs" / "reference.py"))["wanted"]()
    assert {path.name for path in wanted} == {"configuration.md", "cli.md"}
    for path, content in wanted.items():
        assert path.read_text("utf-8") == content


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    """Every ``limpet …`` in code is a command that there is, with a verb that there is."""
    text = page.read_text("utf-8")
    code = re.findall(r"`(limpet(?: [^`\n]+)?)`", text) + re.findall(r"^(?:\$ )?(limpet(?: .+)?)$", text, re.MULTILINE)
    for line in code:
        if "—" in line or "  " in line.split("#")[0].strip() or line.startswith(("limpet.", "limpet COMMAND")):
            continue  # the head of the help, a file, or a placeholder
        words = shlex.split(line.replace("…", "x"), comments=True)[1:]
        assert parse([word for word in words if word not in ("NAME", "PATH")]).words, line


def test_no_page_names_a_persons_folder() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(?:root|home|Users)/\w", page.read_text("utf-8")), page.name


@pytest.mark.parametrize("number", range(2))
def test_the_examples_of_the_library_run(number: int, tmp_path: Path) -> None:
    example = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "memory.md").read_text("utf-8"), re.DOTALL)[number]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ("Biscuit" if number == 0 else "under the blue pot") in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"notes", "notes-index.sqlite", "history"}
