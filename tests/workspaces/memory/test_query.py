"""What is looked up of what a person types, and what of it is embedded."""

from __future__ import annotations

import pytest

from workspaces.memory import query, words


@pytest.mark.parametrize(
    ("question", "weights"),
    [
        ("What is my name?", {"name": 1.0}),
        ("What do I like?", {"like": 1.0}),
        ("what is my dog called", {"dog": 1.0, "called": query.WEAK}),
        ("Good morning, what is my name?", {"name": 1.0}),
        ("How are you?", {}),
        ("Hello there, thank you!", {}),
        ("hello", {"hello": 1.0}),
        ("-!?", {}),
    ],
)
def test_weak_words_count_fully_where_nothing_else_is_asked(question: str, weights: dict[str, float]) -> None:
    assert {term.word: term.weight for term in query.terms(question)} == weights


def test_a_pasted_text_is_looked_up_by_its_beginning() -> None:
    assert len(query.terms(" ".join(f"word{number}" for number in range(10_000)))) == query.MOST


def test_words_that_may_be_of_a_date_are_marked() -> None:
    found = {term.word: term.dated for term in query.terms("concert on Friday 27 November 2026 with 1234 people")}
    assert [word for word, dated in found.items() if dated] == ["friday", "27", "november", "2026"]


def test_words_that_all_notes_have_are_not_embedded() -> None:
    question = "When did Ada's sister visit Ben?"
    terms = query.terms(question)
    counts = [{"ada": 400, "ben": 390}.get(term.word, 3) for term in terms]
    assert query.meaning(question, terms, counts, 400) == "When did sister visit"
    assert query.meaning(question, terms, [0 for _ in terms], 400) == question


def test_in_a_small_memory_and_where_nothing_is_left_the_whole_question_is_embedded() -> None:
    terms = query.terms("Biscuit?")
    assert query.meaning("Biscuit?", terms, [2], 2) == "Biscuit?"
    assert query.meaning("Biscuit?", terms, [5000], 5000) == "Biscuit?"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("- Ada: we leave at six", "Ada"),
        ("- 10:05 Ada: we leave at six", "Ada"),
        ("- **Shoe size**: 38", "Shoe size"),
        ("* **Name:** Ada", "Name"),
        ("1. Wifi: otterhaven", "Wifi"),
        ("Name: Ada", "Name"),
        ("- see https://example.org/a", ""),
        ("- 10:05 we leave at six", ""),
        ("- it is so long a sentence before the colon that it is none: yes", ""),
        ("no colon", ""),
        ("", ""),
    ],
)
def test_the_name_that_a_line_begins_with(text: str, label: str) -> None:
    assert words.label(text) == label


@pytest.mark.parametrize("text", ["- Ada: where?", "where? ", '"Where?"', "**where?**", "どこ\uff1f"])
def test_a_line_that_asks(text: str) -> None:
    assert words.asks(text)
    assert not words.asks(text + " Here.")
