"""The ranking as a function: what holds of its scores whatever the look-ups bring."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.memory import MemorySettings, query
from workspaces.memory.evidence import BESIDE, Asked, Background, Candidate, Scored, Unit, having, promising, scored

TERMS = query.terms("biscuit lantern walnut")
SETTINGS = MemorySettings()
MOST = 100
cosines = st.none() | st.floats(-1, 1)
masks = st.integers(0, 2 ** len(TERMS) - 1)
weights = st.none() | st.floats()


def unit(number: int = 0, text: int = 0, **changes: object) -> Candidate:
    """A line of a list, on its own in its section unless told otherwise."""
    stands = Unit(number, number, number, number, number + 1, number + 1, tokens=20, item=True, asks=False)
    mine = {name: value for name, value in changes.items() if name in Unit._fields}
    words = {name: changes.get(name, 0) for name in ("header", "label")}
    has, cosine = having(text, **words), changes.get("cosine")  # type: ignore[arg-type]  # ints
    return Candidate(stands._replace(**mine), has, cosine)  # type: ignore[arg-type]  # a float or None


def at(one: Candidate, number: int, place: int) -> Candidate:
    return one._replace(unit=one.unit._replace(id=number, place=place))


def ranked(*units: Candidate, background: Background | None = None, **settings: object) -> dict[int, Scored]:
    usual = background or Background(50, (2, 3, 4))
    asked = Asked(TERMS, usual, MemorySettings.model_validate(settings))
    return {one.unit: one for one in scored(units, asked, MOST)}


candidates = st.builds(
    Candidate,
    unit=st.builds(
        Unit,
        id=st.just(0),
        chunk=st.integers(0, 3),
        section=st.integers(0, 1),
        place=st.integers(0, 6),
        line=st.integers(1, 9),
        end_line=st.integers(1, 9),
        tokens=st.integers(0, 5000),
        item=st.booleans(),
        asks=st.booleans(),
    ),
    has=st.builds(having, text=masks, header=masks, label=masks),
    cosine=cosines,
)
backgrounds = st.builds(
    Background,
    units=st.integers(0, 10**7),
    counts=st.tuples(*[st.integers(0, 10**7)] * len(TERMS)),
    cosine=st.floats(-1, 1),
    spread=st.floats(0, 1),
)


@given(st.lists(candidates, max_size=12), backgrounds, weights, weights)
def test_scores_are_finite_and_between_0_and_1(
    found: list[Candidate], background: Background, vector: float | None, keyword: float | None
) -> None:
    """G-MEM-06 to G-MEM-08: whatever the counts, the cosines and the weights are."""
    settings = MemorySettings(vector_weight=vector, keyword_weight=keyword)
    units = [at(one, number, number) for number, one in enumerate(found)]
    result = scored(units, Asked(TERMS, background, settings), MOST)
    assert all(math.isfinite(one.evidence) and 0 < one.score <= 1 for one in result)
    assert all(share is None or 0 < share <= 1 for one in result for share in (one.keyword, one.vector))
    assert [one.evidence for one in result] == sorted((one.evidence for one in result), reverse=True)


@given(candidates, candidates, masks, backgrounds)
def test_one_more_word_never_lowers_a_score(
    one: Candidate, beside: Candidate, more: int, background: Background
) -> None:
    units = [at(one, 0, 0), at(beside, 1, 1)]
    richer = [units[0]._replace(has=one.has | having(more, 0, 0)), units[1]]
    before = ranked(*units, background=background)
    after = ranked(*richer, background=background)
    assert all(after[number].evidence >= found.evidence * (1 - 1e-12) for number, found in before.items())


@given(candidates, st.floats(-1, 1), st.floats(0, 1), backgrounds)
def test_a_nearer_meaning_never_lowers_a_score(
    one: Candidate, cosine: float, nearer: float, background: Background
) -> None:
    far, near = one._replace(cosine=cosine), one._replace(cosine=min(cosine + nearer, 1.0))
    before, after = ranked(far, background=background), ranked(near, background=background)
    assert all(after[number].evidence >= found.evidence * (1 - 1e-12) for number, found in before.items())


def test_more_words_score_strictly_higher() -> None:
    """G-MEM-06."""
    found = ranked(unit(0, 0b111), unit(1, 0b11), unit(2, 0b1))
    assert found[0].score > found[1].score > found[2].score > 0


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    found = ranked(unit(0, 0b1), unit(1, 0b10), background=Background(500, (2, 200, 9)))
    assert found[0].score > found[1].score


@pytest.mark.parametrize("units", [1, 2, 1000])
def test_an_exact_word_passes_in_an_index_of_any_size(units: int) -> None:
    """G-MEM-07."""
    terms = query.terms("biscuit")
    (found,) = scored([unit(0, 1)], Asked(terms, Background(units, (1,)), SETTINGS), MOST)
    assert found.passes
    assert found.keyword == 1
    assert found.score > SETTINGS.min_score


def test_one_leg_alone_passes() -> None:
    """G-MEM-08: only the words, or only the meaning."""
    found = ranked(unit(0, 0b111, cosine=-0.2), unit(1, 0, cosine=0.6), unit(2, 0, cosine=0.1))
    assert [found[number].passes for number in (0, 1, 2)] == [True, True, False]
    assert (found[0].vector, found[1].keyword) == (None, None)


def test_a_weak_word_makes_no_find_beside_a_strong_one() -> None:
    terms = query.terms("what is my goldfish called")
    assert [term.word for term in terms] == ["goldfish", "called"]
    (found,) = scored([unit(0, 0b10)], Asked(terms, Background(20, (0, 1)), SETTINGS), MOST)
    assert not found.passes


def test_lines_of_a_list_lend_to_each_other() -> None:
    """An answer stands below its question, and may have none of its words."""
    together = {"section": 0, "chunk": 0}
    units = [unit(0, 0b111, **together), unit(1, 0, **together), unit(2, 0, **together), unit(3, 0, **together)]
    found = ranked(*units)
    assert found[0].score > found[1].score > found[2].score > 0
    assert 3 not in found
    assert found[1].evidence == pytest.approx(BESIDE[1] * found[0].evidence)
    assert not found[1].passes


@pytest.mark.parametrize(
    "changes",
    [
        {"section": 7},
        {"line": 1, "end_line": 1},  # another piece of the same long line
        {"line": 3, "end_line": 3, "item": False},  # after a gap
    ],
)
def test_what_is_no_neighbour_is_lent_nothing(changes: dict[str, int | bool]) -> None:
    found = ranked(unit(0, 0b111), unit(1, 0, **{"section": 0, **changes}))
    assert set(found) == {0}


def test_the_name_a_line_begins_with_the_date_and_a_question_mark_count() -> None:
    terms = query.terms("walnut in march 2024")
    usual = Background(50, (3, 4, 4))

    def evidence(**changes: object) -> float:
        (found,) = scored([unit(0, 0b1, **changes)], Asked(terms, usual, SETTINGS), MOST)
        return found.evidence

    plain = evidence()
    assert evidence(label=0b1) == pytest.approx(plain * (1 + SETTINGS.label_boost))
    assert evidence(asks=True) < plain
    assert evidence(header=0b110) > evidence(header=0b010) > plain


def test_the_most_promising_are_those_with_the_best_evidence_of_their_own() -> None:
    found = {0: having(0b1, 0, 0), 1: having(0b111, 0, 0), 2: having(0, 0b1, 0)}
    asked = Asked(TERMS, Background(50, (2, 3, 4), 0.0, 0.1), SETTINGS)
    assert promising(found, {}, asked, 10) == [1, 0, 2]
    assert promising(found, {}, asked, 2) == [1, 0]
    assert promising(found, {3: 0.99}, asked, 10) == [3, 1, 0, 2]


@given(
    st.dictionaries(st.integers(0, 40), st.builds(having, masks, masks, masks), max_size=40),
    st.dictionaries(st.integers(0, 40), st.floats(-1, 1), max_size=20),
    backgrounds,
    st.integers(1, 12),
)
def test_the_first_of_many_are_the_first_of_all(
    units: dict[int, int], cosines: dict[int, float], background: Background, most: int
) -> None:
    """Whole kinds are passed over that can't be among them; none that could is."""
    asked = Asked(TERMS, background, SETTINGS)
    assert promising(units, cosines, asked, most) == promising(units, cosines, asked, 100)[:most]


def test_a_word_in_the_headings_counts_less_than_one_in_the_text_and_more_than_none() -> None:
    found = ranked(unit(0, 0b11), unit(1, 0b1, header=0b10), unit(2, 0b1))
    assert found[0].score > found[1].score > found[2].score
    assert 0 not in ranked(unit(0))
    assert ranked(unit(0, header=0b111))[0].passes


def test_a_meaning_below_the_usual_takes_nothing_from_the_words() -> None:
    usual = Background(500, (2, 3, 4), 0.3, 0.1)
    found = ranked(unit(0, 0b1, cosine=-0.5), unit(1, 0b1, cosine=0.2), background=usual)
    assert found[0].evidence == found[1].evidence > 0
