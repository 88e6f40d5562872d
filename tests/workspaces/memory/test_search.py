"""What a search finds, whatever is typed, and how it scores."""

from __future__ import annotations

import math
import unicodedata
import zlib
from datetime import date
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.workspaces.memory.home import HOME, NOW, Home, Letters
from workspaces.memory import Level, MemorySettings, Scope, retrieval, vectors

WORDS_ONLY = MemorySettings(embedder="none")

TYPED = """pre-edit | don't | a"b | GB/s | C++ | 50% | what? | foo:bar | (edit | edit) | NEAR( | x AND | NOT edit | AND
| * | - | {a} | +"""
TEXT = "Don't pre-edit: a b of 50 GB/s in C++, near what NOT and AND are to x, foo is to bar.\n"
SIGNS = ["", "text:edit", "^edit", "\0edit", '"']


@pytest.mark.parametrize("query", [*(part.strip() for part in TYPED.split("|")), *SIGNS])
async def test_nothing_typed_is_syntax(home: Home, query: str) -> None:
    """G-MEM-01: FTS5 operators, quotes and signs are text; a word that is there is found."""
    home.write("memory/a.md", TEXT)
    async with home.open(settings=WORDS_ONLY) as memory:
        result = await memory.search(query, scope=HOME)
    if any(ch.isalnum() for ch in query):
        assert result.hits
    else:
        assert result.hits == ()


@pytest.mark.parametrize("embedder", ["static", "none"])
async def test_a_question_needs_only_some_of_its_words(home: Home, embedder: Literal["static", "none"]) -> None:
    """G-MEM-02."""
    home.write("memory/a.md", "We chose postgres for the ledger\n")
    async with home.open(settings=MemorySettings(embedder=embedder)) as memory:
        result = await memory.search("Which database did we choose for the ledger?", scope=HOME)
    assert [hit.text for hit in result.hits] == ["We chose postgres for the ledger"]


@pytest.mark.parametrize("query", ["-!?", "🎩🎩", "   ", "", "\n", "()", "''"])
async def test_signs_alone_find_nothing(home: Home, query: str) -> None:
    """G-MEM-03."""
    home.write("memory/a.md", "a plain note about hats\n")
    async with home.open() as memory:
        assert (await memory.search(query, scope=HOME)).hits == ()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("今天玩成语接龙游戏", "成语接龙"),
        ("今天玩成语接龙游戏", "成语"),
        ("今天玩成语接龙游戏", "戏"),
        ("今天玩成语接龙游戏", "今"),
        ("重跑gen-itgc后", "itgc"),
        ("飞书的插件如何配置", "飞书插件配置"),
        ("犬の名前はビスケットです", "ビスケット"),
        ("내 강아지 이름은 비스킷이야", "강아지"),
        ("หมาของฉันชื่อบิสกิต", "บิสกิต"),
        ("मेरे कुत्ते का नाम बिस्कुट है", "बिस्कुट"),
        ("Моя собака зовут Бисквит", "бисквит"),
        ("das Café heißt Übersee", "cafe ubersee"),
        ("the party 🎩 theme", "🎩"),
        ("call `getUserName` in user_name.py", "user_name"),
        ("it runs Go 1.22", "Go"),
        (unicodedata.normalize("NFD", "crème brûlée"), unicodedata.normalize("NFC", "crème brûlée")),
    ],
)
async def test_every_script_is_found(home: Home, text: str, query: str) -> None:
    """G-MEM-04 and G-MEM-05: scripts without spaces, one and two characters, parts that are not contiguous."""
    home.write("memory/a.md", f"{text}\n\nsomething else entirely\n")
    async with home.open(settings=WORDS_ONLY) as memory:
        result = await memory.search(query, scope=HOME)
    assert [hit.text for hit in result.hits] == [text]
    assert (result.hits[0].keyword_score or 0) > 0


async def test_more_words_score_higher(home: Home) -> None:
    """G-MEM-06: a more negative bm25 is better, and scores are not all 1."""
    home.write("memory/a.md", "# 1\n\nred green blue\n\n# 2\n\nred green\n\n# 3\n\nred\n")
    async with home.open(settings=MemorySettings(embedder="none", min_score=0)) as memory:
        result = await memory.search("red green blue", scope=HOME)
    assert [hit.text for hit in result.hits] == ["red green blue", "red green", "red"]
    best, middle, last = (hit.score for hit in result.hits)
    assert 1 >= best > middle > last > 0


@pytest.mark.parametrize("embedder", ["static", "none"])
@pytest.mark.parametrize("query", ["Biscuit", "dog", "called"])
async def test_the_first_note_of_all_is_found(home: Home, query: str, embedder: Literal["static", "none"]) -> None:
    """G-MEM-07: with one document bm25 is about zero, and the score is not."""
    home.write("memory/2026-11-30.md", "- 14:03 my dog is called Biscuit\n")
    settings = MemorySettings(embedder=embedder)
    async with home.open(settings=settings) as memory:
        (hit,) = (await memory.search(query, scope=HOME)).hits
    assert hit.score >= settings.min_score
    assert hit.day == date(2026, 11, 30)


@pytest.mark.parametrize(
    ("vector", "keyword"), [(0, 0), (-1, 2), (math.nan, 1), (math.inf, 1), (1, math.nan), (-1, -1), (1e300, 1e300)]
)
async def test_weights_that_are_none_do_no_harm(home: Home, vector: float, keyword: float) -> None:
    """G-MEM-08."""
    home.write("memory/a.md", "xylophone\n")
    settings = MemorySettings(vector_weight=vector, keyword_weight=keyword, min_score=0)
    async with home.open(settings=settings) as memory:
        result = await memory.search("xylophone", scope=HOME)
    assert [math.isfinite(hit.score) and 0 < hit.score <= 1 for hit in result.hits] == [True]


async def test_a_find_of_one_leg_passes(home: Home) -> None:
    """G-MEM-08: an exact word that the embedder sees nothing in."""

    class Blind(Letters):
        def _vector(self, text: str) -> list[float]:
            return [1.0, 0.0] if text == "xylophone lessons" else [0.0, 1.0]

    home.write("memory/a.md", "the xylophone lessons are cancelled\n")
    async with home.open(embedder=Blind(dims=2)) as memory:
        (hit,) = (await memory.search("xylophone lessons", scope=HOME)).hits
    assert hit.vector_score is None
    assert hit.keyword_score is not None


async def test_meaning_finds_what_no_word_does(home: Home) -> None:
    home.write("memory/a.md", "aabbcc\n\nzzzz\n")
    async with home.open(embedder=Letters(), settings=MemorySettings(preset="semantic")) as memory:
        (hit,) = (await memory.search("abcabc", scope=HOME)).hits
    assert (hit.text, hit.keyword_score) == ("aabbcc", None)
    assert hit.vector_score == pytest.approx(1)


async def test_a_scope_finds_its_own_though_others_fit_better(home: Home) -> None:
    """G-MEM-12, G-MEM-13: the area is part of the look-up in both legs; others' notes don't use up its places."""
    for number in range(30):
        home.write(f"memory/{number}.md", "swordfish swordfish\n")
    home.write("memory/chats/team/a.md", "the swordfish is for the team, beside a great deal of other text\n")
    settings = MemorySettings(candidates=10, limit=1)
    async with home.open(settings=settings) as memory:
        team = await memory.search("swordfish", scope=Scope.chat("team", Level.MEMBER))
        other = await memory.search("swordfish", scope=Scope.chat("other", Level.OWNER))
    assert [hit.path for hit in team.hits] == ["memory/chats/team/a.md"]
    assert other.hits == ()


async def test_nothing_of_home_reaches_another_scope(home: Home) -> None:
    """G-MEM-32, G-MEM-33: neither by words nor by meaning, nor the other way round."""
    home.write("MEMORY.md", "secret-XYZ is home's\n")
    home.write("USER.md", "- Name: Ada of secret-XYZ\n")
    home.write("memory/2026-11-30.md", "- 10:00 secret-XYZ\n")
    home.write("memory/chats/a/2026-11-30.md", "- 10:00 secret-XYZ of a\n")
    home.write("memory/shared/all.md", "secret-XYZ for all\n")
    settings = MemorySettings(min_score=0, limit=50)
    async with home.open(settings=settings) as memory:
        home_paths = {hit.path for hit in (await memory.search("secret XYZ", scope=HOME)).hits}
        a_paths = {h.path for h in (await memory.search("secret XYZ", scope=Scope.chat("a", Level.MEMBER))).hits}
        b_paths = {h.path for h in (await memory.search("secret XYZ", scope=Scope.chat("b", Level.MEMBER))).hits}
    assert home_paths == {"MEMORY.md", "USER.md", "memory/2026-11-30.md", "memory/shared/all.md"}
    assert a_paths == {"memory/chats/a/2026-11-30.md", "memory/shared/all.md"}
    assert b_paths == {"memory/shared/all.md"}


async def test_the_nearest_by_angle_comes_first(home: Home) -> None:
    """G-MEM-14: cosine, not distance, picks the candidates."""

    class Plane(Letters):
        def _vector(self, text: str) -> list[float]:
            known = {"alpha": [1.0, 0.0], "beta": [10.0, 0.1], "gamma": [0.0, 1.0], "delta": [0.9, 0.5]}
            return known.get(text, [1.0, 0.05])

    home.write("memory/a.md", "alpha\n\nbeta\n\ngamma\n\ndelta\n")
    settings = MemorySettings(vector_weight=1, keyword_weight=0, max_characters=100, unit_tokens=20, min_score=0.9)
    async with home.open(embedder=Plane(dims=2), settings=settings) as memory:
        result = await memory.search("question", scope=HOME)
    assert result.hits[0].vector_score is not None
    assert "beta" in result.hits[0].text
    assert "gamma" not in result.hits[0].text


async def test_age_costs_a_daily_note_and_no_curated_file(home: Home) -> None:
    for day in ("2026-11-30", "2026-10-31", "2025-11-30"):
        home.write(f"memory/{day}.md", f"- 10:00 the lantern of {day}\n")
    home.write("memory/topics/lantern.md", "the lantern\n")
    async with home.open(settings=WORDS_ONLY) as memory:
        result = await memory.search("lantern", scope=HOME, now=NOW)
        scores = {hit.path: hit.score for hit in result.hits}
        asked = await memory.search("lantern in november", scope=HOME, now=NOW)
    today, month, year = (scores[f"memory/{day}.md"] for day in ("2026-11-30", "2026-10-31", "2025-11-30"))
    assert scores["memory/topics/lantern.md"] >= today
    assert month == pytest.approx(today / 2, rel=0.02)
    assert year == pytest.approx(today / 2, rel=0.02)  # the floor
    assert {hit.score for hit in asked.hits if hit.day and hit.day.month == 11} == {asked.hits[0].score}


async def test_a_day_is_found_by_its_name(home: Home) -> None:
    home.write("memory/2026-11-27.md", "- 10:00 went swimming\n")
    home.write("memory/2026-11-28.md", "- 10:00 went hiking\n")
    async with home.open(settings=WORDS_ONLY) as memory:
        result = await memory.search("what did I do on Friday 27 November", scope=HOME)
    assert "swimming" in result.hits[0].text


async def test_headings_find_what_is_below_them(home: Home) -> None:
    home.write("MEMORY.md", "# Memory\n\n## Garage\n\n- it is behind the freezer\n\nShopping list:\n- oat milk\n")
    async with home.open(settings=WORDS_ONLY) as memory:
        garage = (await memory.search("what is behind the freezer in the garage", scope=HOME)).hits[0]
        (list_,) = (await memory.search("shopping list", scope=HOME)).hits
    assert garage.trail == ("Memory", "Garage")
    assert (list_.text, list_.trail[-1]) == ("- oat milk", "Shopping list")


async def test_an_untouched_template_is_no_find(home: Home) -> None:
    home.write("USER.md", "# User\n\n- Name:\n- Language:\n- Time zone:\n")
    home.write("MEMORY.md", "# Memory\n\n<!-- What should always be known: the name of the user -->\n")
    async with home.open(settings=MemorySettings(min_score=0)) as memory:
        for query in ("name", "What is my name?", "language", "time zone", "memory", "user"):
            assert (await memory.search(query, scope=HOME)).hits == ()
        home.write("USER.md", "# User\n\n- Name: Ada\n- Language:\n- Time zone:\n")
        assert [hit.text for hit in (await memory.search("my name", scope=HOME)).hits] == ["- Name: Ada"]


async def test_hits_are_short_literal_and_do_not_overlap(home: Home) -> None:
    lines = [f"- {number:03} the otter number {number} swam past the pier at dawn" for number in range(200)]
    file = home.write("memory/otters.md", "\n".join(lines) + "\n")
    async with home.open() as memory:
        result = await memory.search("otter", scope=HOME, limit=6)
    written = file.read_text().split("\n")
    seen: set[int] = set()
    for hit in result.hits:
        assert len(hit.text) <= MemorySettings().max_characters
        assert hit.text == "\n".join(written[hit.start_line - 1 : hit.end_line])
        numbers = set(range(hit.start_line, hit.end_line + 1))
        assert not numbers & seen
        seen |= numbers
    assert len(result.hits) == 6


async def test_lines_that_touch_are_one_find(home: Home) -> None:
    """A line is handed out with its answer below it; a blank line, and the length, part finds."""
    home.write(
        "memory/a.md", "## Talk\n\n- Ada: which hotel has the sauna?\n- Bo: the Alder\n\n- the dentist is in Kiel\n"
    )
    async with home.open(settings=WORDS_ONLY) as memory:
        (talk, *_) = (await memory.search("hotel with sauna", scope=HOME)).hits
    assert (talk.text, talk.citation) == ("- Ada: which hotel has the sauna?\n- Bo: the Alder", "memory/a.md#L3-L4")
    home.write("memory/a.md", "\n".join(f"- the otter of pier {number} eats at dawn" for number in range(40)))
    async with home.open(settings=MemorySettings(embedder="none", max_characters=150)) as memory:
        hits = (await memory.search("otter pier", scope=HOME)).hits
    assert [hit.end_line - hit.start_line + 1 for hit in hits] == [4] * 6


async def test_the_same_words_twice_are_one_find(home: Home) -> None:
    home.write("memory/2026-11-29.md", "- the gate code is blue\n")
    home.write("memory/2026-11-30.md", "- the gate code is blue\n")
    async with home.open() as memory:
        assert [hit.path for hit in (await memory.search("gate code", scope=HOME)).hits] == ["memory/2026-11-30.md"]


async def test_limit_of_none_zero_and_more(home: Home) -> None:
    for number in range(9):
        home.write(f"memory/{number}.md", f"otter {number}\n")
    async with home.open() as memory:
        assert len((await memory.search("otter", scope=HOME)).hits) == 6
        assert len((await memory.search("otter", scope=HOME, limit=9)).hits) == 9
        assert (await memory.search("otter", scope=HOME, limit=0)).hits == ()


async def test_no_text_a_person_can_type_raises(home: Home) -> None:
    home.write("memory/a.md", '# Notes\n\n- 今天 don\'t "quote" (AND) หมา 🎩 x:y *\n')
    async with home.open() as memory:
        await memory.sync()

        @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
        @given(st.text(max_size=60))
        def typed(query: str) -> None:
            queries.append(query)

        queries: list[str] = []
        typed()
        for query in queries:
            for hit in (await memory.search(query, scope=HOME)).hits:
                assert 0 < hit.score <= 1


ABOUT = "the spare key|the parcel|Ada|of Ben|is paid|on Friday|by the door|ok|thanks|rice and ginger|in 2026|and|was"


@given(
    notes=st.lists(st.lists(st.sampled_from(ABOUT.split("|")), min_size=1, max_size=4).map(" ".join), max_size=8),
    question=st.lists(st.sampled_from(ABOUT.split("|")), max_size=4).map(" ".join),
    min_score=st.sampled_from([0, 0.3, 1]),
    min_cosine=st.sampled_from([-1, 0.1, 0.3]),
    preset=st.sampled_from(["best", "keyword"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
async def test_what_is_not_looked_at_would_have_been_no_find(
    tmp_path_factory: pytest.TempPathFactory,
    notes: list[str],
    question: str,
    min_score: float,
    min_cosine: float,
    preset: Literal["best", "keyword"],
) -> None:
    """A search ends where no unit passes, before any is read: with the same finds as if it had gone on."""
    folder = tmp_path_factory.mktemp("home")
    home = Home(folder, folder / "index.sqlite")
    home.write("memory/2026-11-27.md", "".join(f"- {note}\n" for note in notes))
    chosen = MemorySettings(preset=preset, min_score=min_score, min_cosine=min_cosine)
    async with home.open(settings=chosen) as memory:
        await memory.sync()
        ended = await memory.search(question, scope=HOME, now=NOW)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(retrieval, "may_find", lambda *_: True)
            went_on = await memory.search(question, scope=HOME, now=NOW)
    assert ended == went_on


async def test_what_the_signs_of_many_do_not_tell_ends_no_search(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest of many are those that look so; another, beside a line with one of the words, may be nearer."""
    monkeypatch.setattr(vectors, "FEW", 100)

    class Misleading(Letters):
        def _vector(self, text: str) -> list[float]:
            about = np.random.default_rng(7).normal(size=self.dims)
            match text:
                case "question about pepper":
                    return [20.0, *about[1:]]
                case "the ONE":
                    return [20.0, *-about[1:]]
                case _:
                    return list(np.random.default_rng(zlib.crc32(text.encode())).normal(size=self.dims))

    lines = [f"- filler {number}" for number in range(400)]
    lines[200:202] = ["- pepper", "- the ONE"]
    home.write("memory/2026-11-27.md", "\n".join(lines) + "\n")
    settings = MemorySettings(min_cosine=0.6, min_score=0.9, candidates=10)
    async with home.open(embedder=Misleading(dims=64), settings=settings) as memory:
        await memory.sync()
        result = await memory.search("question about pepper", scope=HOME, now=NOW)
    assert any("the ONE" in hit.text for hit in result.hits)
