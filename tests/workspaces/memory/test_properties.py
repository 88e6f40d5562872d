"""What holds for any files, any changes and any question."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workspaces.memory.home import HOME, Home, Letters, bump
from workspaces.database import connect
from workspaces.memory import lookups
from workspaces.memory.index import Index
from workspaces.scope import Level, Scope

NAMES = st.sampled_from(["MEMORY.md", "memory/a.md", "memory/p/b.md", "memory/p/c.md", "memory/chats/x/d.md"])
LINES = st.sampled_from(
    ["# Sea", "## Sea", "- otters swim", "- otters swim", "* 10:05 Ada: badgers dig", "", "plain text", "水獭在睡觉 🎩",
     "| a | b |", "```", "  more of it", "Shopping:", "- Name:", "x" * 700, "\ud800 lone", "ab\0cd"]
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=12).map("\n".join)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, TEXTS),
        st.tuples(st.just("delete"), NAMES, st.just("")),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("move"), st.just("memory/p"), st.just("memory/q")),
        st.tuples(st.just("sync"), st.just(""), st.just("")),
    ),
    max_size=10,
)


@contextmanager
def temporary() -> Iterator[Home]:
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name, "workspace"), Path(name, "state", "index.sqlite"))
        home.folder.mkdir()
        yield home


def change(home: Home, kind: str, first: str, second: str) -> None:
    path = home.folder / first
    if kind == "write":
        bump(home.write(first, second.encode("utf-8", "surrogatepass")))
    elif kind == "delete":
        path.unlink(missing_ok=True)
    elif kind == "rename" and path.exists():
        target = home.folder / second
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    elif kind == "move" and path.exists():
        shutil.rmtree(home.folder / second, ignore_errors=True)
        path.rename(home.folder / second)


def contents(home: Home) -> dict[str, Any]:
    """All that the index says, but for the numbers it gives things, and where each word is found."""
    index = Index.open(home.index, cutting="400/80/100", embedders=[("letters", 32)])
    db = connect(home.index)
    try:
        units = {unit for (unit,) in db.execute("SELECT id FROM units")}
        passages = lookups.passages(db, units, ["home", "shared", "chats/x"])
        places = {
            unit: (p.path, p.start_line, p.end_line, p.text, p.start, p.end, p.trail, p.day)
            for unit, p in passages.items()
        }
        extent = lookups.extent(db, ["home", "shared", "chats/x"])
        words = ["otters", "sea", "badgers", "plain", "ada", '"水獭"', "x" * 700]
        found = lookups.postings(db, words, extent, 1000)
        vectors = dict(db.execute("SELECT id, vector FROM vectors_1"))
        areas = dict(db.execute("SELECT name, units FROM areas WHERE units > 0"))
        tables = ("chunks", "units_fts_docsize")
        rows = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}
        return {
            "places": sorted(places.values(), key=repr),
            "found": [sorted((places[unit] for unit in posting.units), key=repr) for posting in found],
            "vectors": sorted(((places[unit], vector) for unit, vector in vectors.items()), key=repr),
            "areas": areas, "rows": rows, "files": sorted(index.files()),
        }  # fmt: skip
    finally:
        db.close()
        index.close()


@settings(max_examples=25, deadline=None)
@given(CHANGES)
def test_after_any_changes_the_index_is_as_one_built_now(changes: list[tuple[str, str, str]]) -> None:
    async def run() -> None:
        with temporary() as home:
            async with home.open(embedder=Letters()) as memory:
                await memory.sync()
                for kind, first, second in changes:
                    change(home, kind, first, second)
                    if kind == "sync":
                        await memory.sync()
                await memory.sync()
            fresh = Home(home.folder, home.index.with_name("fresh.sqlite"))
            async with fresh.open(embedder=Letters()) as memory:
                await memory.sync()
            assert contents(home) == contents(fresh)

    asyncio.run(run())


@settings(max_examples=30, deadline=None)
@given(st.lists(TEXTS, max_size=3), st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_whatever_is_asked_is_answered(texts: list[str], questions: list[str]) -> None:
    """Nothing raises; scores are numbers from 0 to 1; a hit is a literal part of its file, with its lines."""

    async def run() -> None:
        with temporary() as home:
            for number, text in enumerate(texts):
                home.write(f"memory/{number}.md", text.encode("utf-8", "surrogatepass"))
            async with home.open() as memory:
                for question in [*questions, *(text[:50] for text in texts)]:
                    for scope in (HOME, Scope.chat("x", Level.GUEST)):
                        for hit in (await memory.search(question, scope=scope)).hits:
                            assert 0 <= hit.score <= 1
                            assert all(0 <= s <= 1 for s in (hit.keyword_score, hit.vector_score) if s is not None)
                            count = hit.end_line - hit.start_line + 1
                            excerpt = await memory.get(hit.path, scope=scope, start=hit.start_line, lines=count)
                            assert hit.text in excerpt.text

    asyncio.run(run())
