"""When a part fails: the search still answers, says how, and recovers by itself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.workspaces.memory.home import HOME, Broken, Home, Letters
from workspaces import database
from workspaces.memory import MemorySettings
from workspaces.memory.static_embedder import StaticEmbedder

NOTE = "the otters sleep in the harbour\n"


async def test_without_an_embedder_words_are_enough(home: Home) -> None:
    home.write("memory/a.md", NOTE)
    async with home.open(settings=MemorySettings(embedder="none")) as memory:
        result = await memory.search("otters", scope=HOME)
        status = await memory.status()
    assert (result.mode, result.warnings, len(result.hits)) == ("keyword", (), 1)
    assert (status.mode, status.embedder, status.vectors, status.warnings) == ("keyword", "none", 0, ())


async def test_without_the_embedders_package_words_are_enough(home: Home, tmp_path: Path) -> None:
    home.write("memory/a.md", NOTE)
    async with home.open(embedder=StaticEmbedder(tmp_path)) as memory:
        result = await memory.search("otters", scope=HOME)
        status = await memory.status()
    assert (result.mode, len(result.hits)) == ("keyword", 1)
    assert "is missing" in result.warnings[0]
    assert status.warnings == result.warnings


async def test_a_failing_embedder_is_left_alone_for_a_while_and_then_asked_again(home: Home) -> None:
    """G-MEM-17, G-MEM-18: keyword hits and a warning, one try a minute, the index stays, and it recovers."""
    embedder = Broken()
    home.write("memory/a.md", NOTE)
    async with home.open(embedder=embedder) as memory:
        for _ in range(2):
            result = await memory.search("otters", scope=HOME)
            assert (result.mode, len(result.hits)) == ("keyword", 1)
            assert "402 quota exceeded" in result.warnings[0]
        embedder.works = True
        assert (await memory.search("otters", scope=HOME)).mode == "keyword"
        home.now += timedelta(minutes=2)
        recovered = await memory.search("otters", scope=HOME)
        assert (recovered.mode, recovered.warnings, len(recovered.hits)) == ("hybrid", (), 1)
        embedder.works = False
        assert (await memory.search("otters", scope=HOME)).mode == "keyword"
    assert home.rows()["vectors"] == 1


@pytest.mark.parametrize("steps", [[("a", 8), ("a", 16), ("a", 8)], [("a", 8), ("b", 8)], [("a", 8), ("a", 8)]])
async def test_another_embedder_makes_all_vectors_anew(home: Home, steps: list[tuple[str, int]]) -> None:
    """G-MEM-09, G-MEM-10, G-MEM-11: other dims, there and back, and the same dims of another model."""
    home.write("memory/a.md", "one\n\ntwo\n\nthree\n")
    before = None
    for name, dims in steps:
        embedder = Letters(id=name, dims=dims)
        async with home.open(embedder=embedder) as memory:
            result = await memory.search("two", scope=HOME)
        assert (result.mode, result.warnings) == ("hybrid", ())
        assert result.hits[0].vector_score is not None
        assert len(embedder.texts) == (0 if (name, dims) == before else 3)
        before = (name, dims)
    rows = home.rows()
    assert rows["units"] == rows["vectors"] == 3


async def test_another_way_of_cutting_makes_a_new_index(home: Home) -> None:
    home.write("memory/a.md", "word " * 400)
    async with home.open() as memory:
        assert (await memory.status()).chunks == 0
        await memory.sync()
        few = (await memory.status()).vectors
    async with home.open(settings=MemorySettings(unit_tokens=20)) as memory:
        assert (await memory.search("word", scope=HOME)).hits
        assert (await memory.status()).vectors > few


async def test_a_python_that_cannot_load_extensions(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """G-MEM-15: it starts, finds by words, and says that vectors are off; the next Python finds both again."""
    home.write("memory/a.md", NOTE)
    async with home.open() as memory:
        await memory.sync()
    with monkeypatch.context() as patch:
        patch.setattr(database, "loads_extensions", lambda: False)
        home.write("memory/b.md", "the otters left\n")
        (home.folder / "memory" / "a.md").unlink()
        async with home.open() as memory:
            result = await memory.search("otters", scope=HOME)
            status = await memory.status()
    assert (result.mode, [hit.path for hit in result.hits]) == ("keyword", ["memory/b.md"])
    assert "sqlite-vec" in result.warnings[0]
    assert status.mode == "keyword"
    async with home.open() as memory:
        result = await memory.search("otters", scope=HOME)
    assert (result.mode, [hit.path for hit in result.hits]) == ("hybrid", ["memory/b.md"])
    assert home.rows()["vectors"] == 1


@pytest.mark.parametrize("junk", [b"this is no database " * 500, b"SQLite format 3\0" + b"\xff" * 8000])
async def test_a_file_that_is_no_index_is_put_aside(home: Home, junk: bytes) -> None:
    home.write("memory/a.md", NOTE)
    home.index.parent.mkdir()
    home.index.write_bytes(junk)
    async with home.open() as memory:
        result = await memory.search("otters", scope=HOME)
    assert (result.mode, result.warnings, len(result.hits)) == ("hybrid", (), 1)
    assert home.index.with_name("index.sqlite.aside").read_bytes()[:100] == junk[:100]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE units_fts_data SET block = randomblob(40)",
        "DROP TABLE units",
        "DROP TABLE units_fts",
        "DELETE FROM units_fts_config",
    ],
)
async def test_an_index_damaged_while_open_is_made_anew(home: Home, damage: str) -> None:
    """G-MEM-30: the Markdown is untouched and the search answers."""
    file = home.write("memory/a.md", NOTE)
    async with home.open() as memory:
        await memory.sync()
        home.sql(damage)
        home.write("memory/b.md", "otters again\n")
        result = await memory.search("otters", scope=HOME)
        assert {hit.path for hit in result.hits} == {"memory/a.md", "memory/b.md"}
        assert result.mode == "hybrid"
    assert file.read_text() == NOTE


async def test_an_index_that_cannot_be_made_is_done_without(home: Home) -> None:
    home.write("memory/a.md", f"# Sea\n\n{NOTE}\n今天玩成语接龙\n")
    home.write("memory/chats/x/a.md", "otters of another\n")
    home.index.parent.write_text("a file where the folder should be")
    async with home.open(history=home.folder.parent / "history") as memory:
        result = await memory.search("sleeping otter", scope=HOME)
        chinese = await memory.search("成语", scope=HOME)
        nothing = await memory.search("What is the capital of Mongolia?", scope=HOME)
        written = await memory.append("walrus", scope=HOME)
        latest = await memory.latest(scope=HOME, limit=1)
        status = await memory.status()
        assert await memory.sync() == await memory.sync()
    assert (result.mode, [hit.path for hit in result.hits]) == ("scan", ["memory/a.md"])
    assert (result.hits[0].start_line, result.hits[0].trail) == (3, ("Sea",))
    assert "The index can't be used" in result.warnings[0]
    assert [hit.text for hit in chinese.hits] == ["今天玩成语接龙"]
    assert nothing.hits == ()
    assert latest[0].citation == written.citation
    assert (status.mode, status.files, len(status.warnings)) == ("scan", 0, 1)


async def test_a_folder_in_the_place_of_the_index(home: Home) -> None:
    home.write("memory/a.md", NOTE)
    home.index.mkdir(parents=True)
    async with home.open() as memory:
        result = await memory.search("otters", scope=HOME)
    assert (result.mode, len(result.hits)) == ("scan", 1)


async def test_vectors_of_zeros_and_of_no_numbers_are_none(home: Home) -> None:
    """G-MEM-16: such a text is found by its words; k over 4,096 is no error."""

    class Odd(Letters):
        def _vector(self, text: str) -> list[float]:
            return {"zero": [0.0, 0.0], "nan": [float("nan"), 1.0]}.get(text, [1.0, 0.0])

    home.write("memory/a.md", "# 1\n\nzero\n\n# 2\n\nnan\n\n# 3\n\nsome\n")
    settings = MemorySettings(candidates=4096)
    async with home.open(embedder=Odd(dims=2), settings=settings) as memory:
        await memory.sync()
        assert await memory.sync() == await memory.sync()
        zero = await memory.search("zero", scope=HOME)
        many = await memory.search("some", scope=HOME)
    assert [hit.vector_score for hit in zero.hits] == [None]
    assert many.hits[0].vector_score == pytest.approx(1)


@pytest.mark.parametrize("wrong", [np.zeros((1, 3), "f4"), np.zeros((0, 2), "f4"), np.zeros((1, 2), "f8")])
async def test_vectors_of_a_wrong_shape_are_an_embedders_error(home: Home, wrong: npt.NDArray[np.float32]) -> None:
    class Wrong(Letters):
        def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            return wrong

    home.write("memory/a.md", NOTE)
    async with home.open(embedder=Wrong(dims=2)) as memory:
        result = await memory.search("otters", scope=HOME)
    assert (result.mode, len(result.hits)) == ("keyword", 1)
    assert "letters made" in result.warnings[0]


class Slow(Letters):
    """Embeds only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.started = threading.Event()
        self.go = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.started.set()
        assert self.go.wait(20)
        return super().embed_documents(texts)


async def test_nobody_waits_for_an_embedding(home: Home) -> None:
    """G-MEM-28, G-MEM-18: while it lasts another process can write, the loop runs, and words are found."""
    embedder = Slow()
    home.write("memory/a.md", NOTE)
    async with home.open(embedder=embedder) as memory:
        syncing = asyncio.create_task(memory.sync())
        await asyncio.to_thread(embedder.started.wait, 20)
        started = time.perf_counter()
        await asyncio.to_thread(home.sql, "BEGIN IMMEDIATE", "UPDATE meta SET value = value", "COMMIT")
        assert time.perf_counter() - started < 0.2
        assert not syncing.done()
        result = await memory.search("otters", scope=HOME)
        assert (result.mode, len(result.hits)) == ("hybrid", 1)
        assert "still being made" in result.warnings[0]
        embedder.go.set()
        assert (await syncing).embedded == 1
        assert (await memory.search("otters", scope=HOME)).warnings == ()


async def test_closing_while_vectors_are_made_is_clean(home: Home) -> None:
    embedder = Slow()
    home.write("memory/a.md", NOTE)
    async with home.open(embedder=embedder) as memory:
        syncing = asyncio.create_task(memory.sync())
        await asyncio.to_thread(embedder.started.wait, 20)
        syncing.cancel()
        embedder.go.set()
    async with home.open(embedder=Letters()) as memory:
        assert (await memory.search("otters", scope=HOME)).mode == "hybrid"
