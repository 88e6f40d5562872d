"""The index as a whole: its sizes, its spaces of vectors, and being made anew."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.workspaces.memory.home import HOME, Broken, Home, Letters, bump
from workspaces.database import connect
from workspaces.memory import BlockingMemory, MemorySettings, lookups, schema, vectors
from workspaces.memory.index import Index
from workspaces.memory.nearness import Few, Signs, nearness
from workspaces.memory.schema import SPAN
from workspaces.memory.static_embedder import StaticEmbedder
from workspaces.memory.store import Store


def lines(count: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(400)]
    return "".join(f"- {' '.join(rng.choices(words, k=18))}\n" for _ in range(count))


async def test_a_small_workspace_takes_little_room(home: Home) -> None:
    """About 100 chunks of 400 tokens: 600 kB at most, and six times the text."""
    text = lines(1200)
    home.write("memory/a.md", text)
    async with home.open() as memory:
        await memory.sync()
        status = await memory.status()
    assert status.chunks > 80
    assert status.vectors == status.units == 1200
    assert home.index.stat().st_size < 6 * len(text)
    small = Home(home.folder.parent / "b", home.index.with_name("b.sqlite"))
    small.write("memory/a.md", "".join(f"# {n}\n\n{line}\n" for n, line in enumerate(text.splitlines()[:100])))
    async with small.open() as memory:
        await memory.sync()
        assert (await memory.status()).chunks == 100
    assert small.index.stat().st_size < 600_000


async def test_many_vectors_are_chosen_by_their_signs_first(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the signs choose holds what comparing all would find, also after changes and for another area."""
    monkeypatch.setattr(vectors, "FEW", 100)
    home.write("memory/a.md", prose(700))
    home.write("memory/chats/x/b.md", prose(300, seed=2))
    async with home.open() as memory:
        await memory.sync()
        bump(home.write("memory/a.md", prose(700)[:20_000] + prose(300, seed=3)))
        (home.folder / "memory" / "chats" / "x" / "b.md").rename(home.folder / "memory" / "chats" / "x" / "c.md")
        await memory.sync()
    embedder = StaticEmbedder()
    index = Index.open(home.index, cutting="400/80/100", embedders=[(embedder.id, embedder.dims)])
    space = index.serving()
    assert space is not None
    db = connect(home.index, vectors=True)
    signs = Signs()
    queries = vectors.packed(embedder.embed_documents(prose(20, seed=4).splitlines()))
    for areas in (["home"], ["chats/x"], ["home", "chats/x"]):
        extent = lookups.extent(db, areas)
        shared = 0
        for query in queries:
            assert query is not None
            monkeypatch.setattr(vectors, "FEW", 10_000)
            by_all = nearness(db, space, query, extent, signs).nearest(20)
            monkeypatch.setattr(vectors, "FEW", 100)
            by_signs = nearness(db, space, query, extent, signs).nearest(20)
            assert len(by_all) == len(by_signs) == 20
            assert all(any(first <= unit <= last for first, last in extent.ranges) for unit in by_signs)
            shared += len(by_signs.keys() & by_all.keys())
        assert shared > 0.9 * 20 * len(queries)
    db.close()
    index.close()


async def test_few_and_many_say_the_same_of_the_same_units(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What all are compared for once is what is asked of many piece by piece; some numbers are of no unit any more."""
    monkeypatch.setattr(vectors, "FEW", 50)
    home.write("memory/a.md", lines(300))
    home.write("memory/chats/x/b.md", lines(100, seed=2))
    async with home.open() as memory:
        await memory.sync()
        bump(home.write("memory/a.md", "".join(lines(300).splitlines(keepends=True)[::3])))
        await memory.sync()
    embedder = StaticEmbedder()
    index = Index.open(home.index, cutting="400/80/100", embedders=[(embedder.id, embedder.dims)])
    query = vectors.packed_query(embedder.embed_query(lines(1, seed=4)))
    assert query is not None
    with index.snapshot() as db:
        space = index.serving()
        assert space is not None
        units = [unit for (unit,) in db.execute("SELECT id FROM units")]
        for areas in (["home"], ["home", "chats/x"]):
            extent = lookups.extent(db, areas)
            inside = [unit for unit in units if any(first <= unit <= last for first, last in extent.ranges)]
            monkeypatch.setattr(vectors, "FEW", 50)
            many = nearness(db, space, query, extent, Signs())
            monkeypatch.setattr(vectors, "FEW", 1000)
            few = nearness(db, space, query, extent, Signs())
            assert isinstance(few, Few)
            assert not isinstance(many, Few)
            assert few.of(inside) == many.of(inside)
            assert sorted(few.sample()) == sorted(many.sample())
            assert few.nearest(len(units)) == few.of(inside)
            assert few.nearest(7) == dict(sorted(few.of(inside).items(), key=lambda item: (-item[1], item[0]))[:7])
    index.close()


async def test_signs_are_read_again_after_any_change(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the index is made anew, of which SQLite counts no change; one by another process; one by this one. None of
    them changes the range of ids."""
    monkeypatch.setattr(vectors, "FEW", 50)
    other = Home(home.folder.parent / "b", home.index.with_name("b.sqlite"))
    for place, seed in ((home, 1), (other, 3)):
        place.write("memory/a.md", lines(200, seed))
        place.write("memory/b.md", lines(200, seed + 1))
        async with place.open() as memory:
            await memory.sync()
    embedder = StaticEmbedder()
    index, made = (
        Index.open(place.index, cutting="400/80/100", embedders=[(embedder.id, embedder.dims)])
        for place in (home, other)
    )
    seen: list[list[int]] = []

    def look() -> None:
        with index.snapshot() as db:
            extent, space = lookups.extent(db, ["home"]), index.serving()
            assert space is not None
            assert extent.ranges == ((SPAN, SPAN + 399),)
            kept, afresh = (
                signs.near(db, space, b"\xff" * 32, extent.ranges, 40) for signs in (index.state().signs, Signs())
            )
        assert kept == afresh
        assert kept not in seen
        seen.append(kept)

    look()
    index.become(made)
    look()
    bump(home.write("memory/a.md", "".join(lines(200, seed=3).splitlines(keepends=True)[:100])))
    bump(home.write("memory/b.md", lines(200, seed=4)))
    async with home.open() as memory:
        await memory.sync()
    look()
    index.remove("memory/b.md")
    look()
    index.close()
    made.close()


def prose(count: int, seed: int = 1) -> str:
    """Bullets of English words."""
    rng = random.Random(seed)
    words = sorted({*(__doc__ or "").split(), *(schema.__doc__ or "").split(), *(vectors.__doc__ or "").split()})
    return "".join(f"- {' '.join(rng.choices(words, k=8))}\n" for _ in range(count))


@pytest.mark.parametrize("row", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_what_is_no_vector_is_packed_as_none(row: list[float]) -> None:
    """G-MEM-16."""
    good = [0.6, -0.8]
    assert vectors.packed(np.array([row, good], dtype=np.float32)) == [None, bytes([95, 129])]
    assert vectors.packed_query(np.array(row, dtype=np.float32)) is None
    assert vectors.packed_query(np.array(good, dtype=np.float32)) == bytes([95, 129])


async def test_only_what_is_new_in_a_file_gets_new_rows(home: Home) -> None:
    """A day's note is saved again with each line: what was there keeps its ids, words and vectors."""
    home.write("memory/a.md", "- one otter\n- two otters\n- one otter\n")
    async with home.open(embedder=Letters()) as memory:
        await memory.sync()
        before = ids(home)
        bump(home.write("memory/a.md", "- zero\n- two otters\n- one otter\n- one otter\n- three\n"))
        await memory.sync()
        after = ids(home)
        assert set(before) < set(after)
        assert after[0] == SPAN + 3
        hits = (await memory.search("three", scope=HOME)).hits
        assert hits[0].end_line == 5


def ids(home: Home) -> list[int]:
    db = connect(home.index)
    try:
        return [unit for (unit,) in db.execute("SELECT id FROM units ORDER BY place")]
    finally:
        db.close()


class Slow(Letters):
    """Embeds documents only when it is let go."""

    def __init__(self) -> None:
        super().__init__(id="slow", dims=16)
        self.started = threading.Event()
        self.go = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.started.set()
        assert self.go.wait(20)
        return super().embed_documents(texts)


async def test_a_better_embedder_takes_over_when_it_is_complete(home: Home) -> None:
    """Search never waits for it, and its stand-in's vectors go."""
    home.write("memory/a.md", "otters\n\nbadgers\n")
    slow = Slow()
    async with home.open(embedder=slow, stand_in=Letters()) as memory:
        result = await memory.search("otters", scope=HOME)
        assert (result.mode, (await memory.status()).embedder) == ("hybrid", "letters")
        slow.go.set()
        await memory.sync()
        assert ((await memory.status()).embedder, (await memory.status()).vectors) == ("slow", 2)
        slow.go.clear()
        home.write("memory/b.md", "otters again\n")
        result = await memory.search("otters", scope=HOME)
        assert {hit.path for hit in result.hits} == {"memory/a.md", "memory/b.md"}
        assert "still being made" in result.warnings[0]
        slow.go.set()
    async with home.open(embedder=Letters()) as memory:
        await memory.search("otters", scope=HOME)
        assert (await memory.status()).embedder == "letters"
    assert home.rows()["vectors"] == 3


async def test_a_better_embedder_that_fails_is_stood_in_for(home: Home) -> None:
    """G-MEM-17."""
    home.write("memory/a.md", "otters\n")
    async with home.open(embedder=Broken(id="broken"), stand_in=Letters()) as memory:
        await memory.sync()
        result = await memory.search("otters", scope=HOME)
    assert result.mode == "hybrid"
    assert result.hits[0].vector_score == pytest.approx(1)
    assert "stands in" in result.warnings[0]


async def test_a_stand_in_stays_while_nothing_has_a_vector_of_the_other(home: Home) -> None:
    """The first note of a new home, without the key or the package that the better one needs."""
    async with home.open(embedder=Broken(id="broken"), stand_in=Letters()) as memory:
        await memory.sync()
        await memory.append("otters", scope=HOME)
        assert (await memory.search("otters", scope=HOME)).mode == "hybrid"
        assert (await memory.status()).embedder == "letters"


async def test_processes_with_different_embedders_leave_each_others_vectors(home: Home) -> None:
    """As when a setting is changed while a hub runs; what nobody opens for a week goes."""
    home.write("memory/a.md", "otters\n\nbadgers\n")
    better, simple = Letters(id="better", dims=16), Letters(id="simple")
    async with home.open(embedder=better, stand_in=Letters()) as hub:
        await hub.sync()
        async with home.open(embedder=simple) as other:
            assert (await other.search("otters", scope=HOME)).mode == "hybrid"
        assert ((await hub.search("otters", scope=HOME)).mode, (await hub.status()).embedder) == ("hybrid", "better")
    assert (len(better.texts), len(simple.texts)) == (2, 2)
    home.now += timedelta(days=8)
    async with home.open(embedder=better) as memory:
        await memory.sync()
    assert spaces(home) == ["better"]


def spaces(home: Home) -> list[str]:
    db = connect(home.index)
    try:
        return [name for (name,) in db.execute("SELECT embedder FROM spaces ORDER BY id")]
    finally:
        db.close()


async def test_a_space_that_another_process_dropped_is_made_anew(home: Home) -> None:
    home.write("memory/a.md", "otters\n")
    async with home.open(embedder=Letters()) as memory:
        await memory.sync()
        number = _table(home, "letters").removeprefix("vectors_")
        home.sql(
            f"DROP TABLE vectors_{number}", f"DROP TABLE signs_{number}", "DELETE FROM spaces", "DELETE FROM waiting"
        )
        home.write("memory/b.md", "badgers\n")
        await memory.sync()
        result = await memory.search("otters", scope=HOME)
        assert (result.mode, result.warnings) == ("hybrid", ())
        assert (await memory.status()).vectors == 2


async def test_vectors_go_to_their_texts_though_the_index_was_made_anew_meanwhile(home: Home) -> None:
    """Numbers given out before an embedding mean other notes after it."""
    home.write("memory/b.md", "".join(f"- otter number {number}\n" for number in range(10)))
    slow = Slow()
    async with home.open(embedder=slow) as memory:
        filling = asyncio.create_task(memory.sync())
        await asyncio.to_thread(slow.started.wait, 20)
        home.write("memory/a.md", "".join(f"- badger with {number} names\n" for number in range(10)))
        slow.go.set()
        async with home.open(embedder=Letters(id="other")) as other:
            await other.rebuild()
        await filling
        await memory.sync()
    db = connect(home.index)
    try:
        texts = dict(db.execute(f"SELECT hash, vector FROM units JOIN {_table(home)} USING (id)"))
    finally:
        db.close()
    embedder = Letters(dims=16)
    wanted = {text: vectors.packed(embedder.embed_documents([text]))[0] for text in slow.texts}
    assert sorted(texts.values()) == sorted(vector for vector in wanted.values() if vector)
    assert len(texts) == 20


def _table(home: Home, embedder: str = "slow") -> str:
    db = connect(home.index)
    try:
        ((number,),) = db.execute("SELECT id FROM spaces WHERE embedder = ?", (embedder,))
        return f"vectors_{number}"
    finally:
        db.close()


async def test_rebuilds_at_once_wait_for_each_other(home: Home) -> None:
    for number in range(60):
        home.write(f"memory/{number}.md", lines(3, seed=number))
    async with home.open(embedder=Letters()) as memory, home.open(embedder=Letters()) as other:
        await memory.sync()
        await asyncio.gather(memory.rebuild(), other.rebuild(), memory.rebuild())
        assert ((await memory.status()).files, (await other.status()).vectors) == (60, 180)
    assert [path.name for path in home.index.parent.iterdir()] == ["index.sqlite"]


async def test_two_ways_of_cutting_do_not_chase_each_other(home: Home) -> None:
    home.write("memory/a.md", lines(20))
    embedders = [Letters(), Letters()]
    longer = MemorySettings(unit_tokens=60)
    async with (
        home.open(embedder=embedders[0]) as memory,
        home.open(embedder=embedders[1], settings=longer) as other,
    ):
        births = set()
        for _ in range(5):
            await memory.sync()
            births.add(birth(home))
            await other.sync()
            births.add(birth(home))
        assert (await memory.search("word", scope=HOME)).mode == "hybrid"
    assert len(births) <= 3, "each of them made it anew once at most"


def birth(home: Home) -> str:
    db = connect(home.index)
    try:
        return str(db.execute("SELECT value FROM meta WHERE key = 'birth'").fetchone()[0])
    finally:
        db.close()


async def test_a_rebuild_while_the_embedder_fails_keeps_the_vectors_there_are(home: Home) -> None:
    embedder = Broken()
    embedder.works = True
    home.write("memory/a.md", lines(30))
    async with home.open(embedder=embedder) as memory:
        await memory.sync()
        embedder.works = False
        home.write("memory/b.md", "otters\n")
        await memory.rebuild()
        status = await memory.status()
    assert (status.vectors, status.waiting) == (30, 1)


async def test_a_rebuild_mends_an_index_that_is_damaged_where_no_search_looks(home: Home) -> None:
    home.write("memory/a.md", lines(30))
    async with home.open(embedder=Letters()) as memory:
        await memory.sync()
        home.sql("PRAGMA writable_schema = ON", "UPDATE sqlite_master SET rootpage = 1 WHERE name = 'units_hash'")
    async with home.open(embedder=Letters()) as memory:
        await memory.rebuild()
        status = await memory.status()
        assert (status.units, status.vectors) == (30, 30)
        assert (await memory.search("word", scope=HOME)).mode == "hybrid"


async def test_a_text_that_had_no_vector_is_tried_again_by_a_rebuild(home: Home) -> None:
    """And is not counted among those that have one."""

    class Moody(Letters):
        works = False

        def _vector(self, text: str) -> list[float]:
            return super()._vector(text) if self.works or text != "badgers" else [float("nan")] * self.dims

    home.write("memory/a.md", "otters\n\nbadgers\n")
    embedder = Moody()
    async with home.open(embedder=embedder) as memory:
        await memory.sync()
        assert (await memory.status()).vectors == 1
        embedder.works = True
        await memory.rebuild()
        assert (await memory.status()).vectors == 2


async def test_gaps_in_the_numbers_leave_no_gap_in_what_is_usual(home: Home) -> None:
    """A file that is saved again and again uses up numbers."""
    for number in range(12):
        bump(home.write("memory/a.md", lines(100, seed=number)))
        async with home.open(embedder=Letters()) as memory:
            await memory.sync()
    index = Index.open(home.index, cutting="400/80/100", embedders=[("letters", 32)])
    space, db = index.serving(), connect(home.index, vectors=True)
    assert space is not None
    query = vectors.packed_query(Letters().embed_query("otters"))
    assert query is not None
    assert len(nearness(db, space, query, lookups.extent(db, ["home"]), Signs()).sample()) > 20
    db.close()
    index.close()


async def test_another_way_of_cutting_is_made_beside_the_old(home: Home) -> None:
    """The old index serves until then, and what is cut as before is not embedded again."""
    home.write("memory/a.md", lines(50) + "word " * 400)
    async with home.open(embedder=Letters()) as memory:
        await memory.sync()
    embedder = Letters()
    async with home.open(embedder=embedder, settings=MemorySettings(unit_tokens=60)) as memory:
        await memory.sync()
        assert (await memory.search("word", scope=HOME)).hits
    assert 0 < len(embedder.texts) < 30
    assert [path.name for path in home.index.parent.iterdir()] == ["index.sqlite"]


async def test_rebuilt_while_another_process_reads(home: Home) -> None:
    """The other sees the new index with its next look, and needs not be told."""
    home.write("memory/a.md", "otters\n")
    async with home.open(embedder=Letters()) as memory, home.open(embedder=Letters()) as other:
        await memory.sync()
        assert (await other.search("otters", scope=HOME)).hits
        home.sql("DELETE FROM units_fts", "DELETE FROM vectors_1")
        assert (await memory.rebuild()).embedded == 1
        assert (await other.search("otters", scope=HOME)).mode == "hybrid"
        assert len((await other.search("otters", scope=HOME)).hits) == 1
        home.index.unlink()
        assert len((await other.search("otters", scope=HOME)).hits) == 1
        assert len((await memory.search("otters", scope=HOME)).hits) == 1


class Meddler(Letters):
    """Does something of another's in the middle of a search, once."""

    def __init__(self) -> None:
        super().__init__()
        self.deeds: list[Callable[[], object]] = []

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        if self.deeds:
            self.deeds.pop()()
        return super().embed_query(text)


async def test_an_index_made_anew_in_the_middle_of_a_search_shows_no_other_scope(home: Home) -> None:
    """Numbers of the old one may mean another area's notes in the new one."""
    mine = home.write("memory/a.md", "otters are mine\n")
    home.write("memory/chats/x/a.md", "otters are theirs\n")
    meddler = Meddler()
    async with home.open(embedder=meddler) as memory:
        await memory.sync()
        assert [hit.path for hit in (await memory.search("otters", scope=HOME)).hits] == ["memory/a.md"]

        def rebuild() -> None:
            mine.unlink()
            with BlockingMemory.open(home.folder, home.index, embedder=Letters()) as other:
                other.rebuild()

        meddler.deeds.append(rebuild)
        assert (await memory.search("otters", scope=HOME)).hits == ()
        assert meddler.deeds == []


async def test_an_index_that_can_not_be_made_anew_is_not_tried_with_every_search(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write("memory/a.md", "otters\n")
    async with home.open(embedder=Letters()) as memory:
        await memory.sync()
    home.index.with_name("index.sqlite.new").mkdir()  # in the way of the new one
    tried: list[Path] = []
    monkeypatch.setattr(Store, "discard", _noted(tried, Store.discard))
    async with home.open(embedder=Letters(), settings=MemorySettings(unit_tokens=60)) as memory:
        for _ in range(3):
            assert (await memory.search("otters", scope=HOME)).hits
        few = len(tried)
        home.now += timedelta(minutes=2)
        assert (await memory.search("otters", scope=HOME)).hits
        assert 0 < few < len(tried)


def _noted(seen: list[Path], method: Callable[[Store], Coroutine[Any, Any, None]]) -> Callable[[Store], Any]:
    async def noting(store: Store) -> None:
        seen.append(store.path)
        await method(store)

    return noting


async def test_the_log_is_bounded(home: Home) -> None:
    """G-MEM-29: while a reader lasts it may grow; afterwards it is small again, and nobody holds a cursor open."""
    async with home.open(embedder=Letters()) as memory:
        home.write("memory/a.md", lines(10))
        await memory.sync()
        reader = connect(home.index)
        cursor = reader.execute("SELECT id FROM units")
        cursor.fetchone()
        for number in range(60):
            bump(home.write("memory/a.md", lines(200, seed=number)))
            await memory.sync()
        cursor.close()
        reader.close()
        bump(home.write("memory/a.md", lines(10, seed=99)))
        await memory.sync()
        assert home.index.with_name("index.sqlite-wal").stat().st_size < 4 << 20


WRITER = """
import asyncio, sys
from pathlib import Path
from workspaces.memory import Memory, Scope
async def main():
    async with Memory.open(Path(sys.argv[1]), Path(sys.argv[2])) as memory:
        for number in range(25):
            await memory.append(f"{sys.argv[3]} says {number}", scope=Scope.home())
            assert (await memory.search(f"{sys.argv[3]} {number}", scope=Scope.home())).mode == "hybrid"
asyncio.run(main())
"""


async def test_processes_that_write_and_search_at_once(home: Home) -> None:
    """G-MEM-27: none is told that the database is locked, and no note is lost."""
    command = [sys.executable, "-c", WRITER, str(home.folder), str(home.index)]
    pipe = asyncio.subprocess.PIPE
    names = ("otter", "badger", "heron")
    started = [await asyncio.create_subprocess_exec(*command, name, stderr=pipe) for name in names]
    for process in started:
        _, errors = await process.communicate()
        assert (process.returncode, errors) == (0, b"")
    async with home.open() as memory:
        await memory.sync()
        status = await memory.status()
    assert (status.units, status.vectors, status.warnings) == (75, 75, ())
