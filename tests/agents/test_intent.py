"""What a person wants, read from the words alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.intent import EVERYTHING, Forget, ListNotes, Question, Remember, TakeBack, Talk, intent


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Remember that my dog is called Biscuit", "my dog is called Biscuit"),
        ("please remember: buy milk", "buy milk"),
        ("Hey Limpet, remember my dog is Biscuit.", "my dog is Biscuit."),
        ("note that I moved to Rome", "I moved to Rome"),
        ("note: the gate code is 4411", "the gate code is 4411"),
        ("save this: abc def", "abc def"),
        ("Don't forget my flight is at 9", "my flight is at 9"),
        ("keep in mind that I like tea", "I like tea"),
        ("can you remember that my mum's birthday is 3 May?", "my mum's birthday is 3 May"),
        ("my locker code is 4411, remember that", "my locker code is 4411"),
        ("My wifi is called foo. Please remember it.", "My wifi is called foo"),
        ("The meeting is on Friday - can you note that please", "The meeting is on Friday"),
        (
            "Remember:\n- the gate code is 4411\n- the key is under the pot",
            "- the gate code is 4411\n- the key is under the pot",
        ),
        ("Merke dir, dass ich Tee mag", "ich Tee mag"),
        ("recuerda que me gusta el té", "me gusta el té"),
        ("请记住：我的猫叫团子", "我的猫叫团子"),
        ("记住我的车牌是 B-123", "我的车牌是 B-123"),
        ("Bitte merke dir: Anna mag Tee", "Anna mag Tee"),
        ("запомни: код 4411", "код 4411"),
    ],
)
def test_an_explicit_request_keeps_the_persons_own_words(text: str, kept: str) -> None:
    assert intent(text) == Remember(kept)


@pytest.mark.parametrize(
    "text",
    [
        "What is my dog called?",
        "Do you remember my dog's name?",
        "remember when we went to Rome?",
        "name of my dog",
        "tell me the name of my dog",
        "Is my flight tomorrow",
        "狗叫什么名字？",
        "do you know where my keys are?",
        "What did Ann tell you about the flat she said she wants?",
    ],
)
def test_a_question_is_never_taken_for_a_fact(text: str) -> None:
    assert intent(text) == Question(text)


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "My dog is called Biscuit.",
        "I will remember this",
        "I remember that day well",
        "save me some time",
        "note",
        "remember me",
        "Remember what I said",
        "Write a poem about remembering",
        "hi there, how are you?",
        "Who are you?",
    ],
)
def test_whatever_is_not_explicit_is_talk(text: str) -> None:
    assert intent(text) == Talk(text)


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("forget that my dog is called Biscuit", "dog is called Biscuit"),
        ("Forget: the gate code is 4411", "gate code is 4411"),
        ("please forget my address!", "address"),
        ("can you forget my address?", "address"),
        ("forget about tea", "tea"),
        ("forget what I told you about Tom", "Tom"),
        ("forget everything about my job", "job"),
        ("delete the note about tea", "tea"),
        ("Could you delete the note about the wifi, please?", "wifi"),
        ("remove the note that says I like tea", "like tea"),
        ("erase any memory of my ex", "ex"),
        ("get rid of all notes about work", "work"),
        ("remove tea from my notes", "tea"),
        ("take the gate code out of your memory", "gate code"),
        ("vergiss, dass ich Tee mag", "ich Tee mag"),
        ("forget that", ""),
        ("forget it", ""),
        ("Forget what I just said.", ""),
        ("delete that note", ""),
        ("scratch that", ""),
        ("take that back", ""),
        ("forget everything", EVERYTHING),
        ("forget all my notes, please", EVERYTHING),
        ("delete all memories", EVERYTHING),
        ("forget everything you know about me", EVERYTHING),
    ],
)
def test_a_request_to_forget_says_what_it_is_about(text: str, about: str) -> None:
    assert intent(text) == Forget(about)


@pytest.mark.parametrize(
    "text",
    ["undo", "Undo that.", "forget the last note", "delete my last note please", "Forget the last thing I told you"],
)
def test_the_last_note_can_be_taken_back(text: str) -> None:
    assert intent(text) == TakeBack()


@pytest.mark.parametrize(
    "text",
    [
        "I forgot my keys",
        "never forget this",
        "Did you forget my name?",
        "What did I forget?",
        "forget-me-nots are blue",
        "forgetting is human",
        "delete my account",
        "remove the stain from my shirt",
        "Take notes",
        "undo the zip " + "and so on " * 60,
    ],
)
def test_other_talk_of_forgetting_is_no_request(text: str) -> None:
    assert not isinstance(intent(text), Forget | TakeBack)


@pytest.mark.parametrize(
    "text", ["remember this", "Please note that down", "Remember it, please!", "save this for me."]
)
def test_a_request_to_keep_what_came_with_it_has_no_words_of_its_own(text: str) -> None:
    assert intent(text) == Remember("")


@pytest.mark.parametrize(
    "text", ["what do you know about me?", "list my notes", "Show me all my notes.", "What do you remember?"]
)
def test_the_notes_can_be_asked_for(text: str) -> None:
    assert intent(text) == ListNotes()


@given(st.text(max_size=300))
def test_anything_a_person_types_has_an_intent(text: str) -> None:
    found = intent(text)
    if isinstance(found, Remember):
        assert found.text in text
    if isinstance(found, Forget) and found.text != EVERYTHING:
        assert found.text in text


BEFORE_BLANKS = (
    "note", "save", "notiere", "note this", "save for me", "please note", "hey", "can you", "undo", "undo that", "the",
)  # fmt: skip
"""Where a request may go on behind blanks, and doesn't."""


@pytest.mark.parametrize(
    "text",
    [
        "a" + "," * 50_000 + "b",
        "\n" * 50_000 + "x",
        "please " * 20_000,
        "hi" + "." * 50_000,
        "forget that " * 10_000,
        "delete " + "note " * 20_000,
        *(f"{word}{blank * 100_000}{end}" for word in BEFORE_BLANKS for blank in " \n" for end in ("x", "x that")),
    ],
    ids=lambda text: f"{text[:20].strip()}…{text[-5:].strip()}",
)
def test_a_long_message_costs_no_time(text: str) -> None:
    """A guest must not stall everyone: the cost grows with the length and not with its square."""
    from agents.interview import is_greeting

    assert intent(text) == Talk(text.strip())
    assert not is_greeting(text)


def test_a_closing_request_keeps_a_long_text_whole() -> None:
    text = "word " * 500 + "end"
    assert intent(f"{text}. Remember that, please.") == Remember(text)
