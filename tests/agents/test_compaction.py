"""Where a conversation is cut, and what a summary has to be to take its place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.budget import estimate, tokens, total
from agents.compaction import SECTIONS, Refused, Summary, Summed, cut, replaced, sections, summarise
from agents.conversation import Line, View
from agents.identifiers import identifiers, missing
from agents.model import AssistantMessage, ChatMessage, ToolCall, ToolResult, UserMessage
from tests.agents.conftest import ZONE
from tests.agents.sessions import SUMMARY, serving
from tests.fakes.model_server import Reply, Script


def lines(*turns: Sequence[ChatMessage]) -> tuple[Line, ...]:
    placed = [(f"t{turn}", message) for turn, messages in enumerate(turns) for message in messages]
    return tuple(Line(str(at), turn, "", message) for at, (turn, message) in enumerate(placed))


def step(name: str, *results: int) -> list[ChatMessage]:
    """A step of parallel calls, each with a result of so many characters."""
    calls = tuple(ToolCall(f"{name}-{at}", "read", "{}") for at in range(len(results)))
    return [
        AssistantMessage("", calls),
        *(ToolResult(c.id, "read", "r" * n) for c, n in zip(calls, results, strict=True)),
    ]


def talk(count: int, size: int = 400) -> tuple[Line, ...]:
    turns: list[list[ChatMessage]] = [
        [UserMessage(f"q{n} " + "x" * size), AssistantMessage("y" * size)] for n in range(count)
    ]
    return lines(*turns)


def test_the_cut_is_where_a_turn_begins() -> None:
    """G-CMP-15: the newest whole turns that fit."""
    seen = View(talk(10))
    assert seen.lines[cut(seen, 500)].message == UserMessage("q8 " + "x" * 400)
    assert cut(seen, 10_000) == 0, "all of it fits"
    assert cut(View(), 500) == 0


def test_a_turn_longer_than_the_tail_is_cut_between_its_steps() -> None:
    """G-CMP-17: one question and forty steps; the question stays, and no result loses its call."""
    steps = [message for n in range(40) for message in step(f"s{n}", 400, 400)]
    seen = View(lines([UserMessage("old"), AssistantMessage("done")], [UserMessage("count them"), *steps]))
    at = cut(seen, 1_500)
    assert isinstance(seen.lines[at].message, AssistantMessage)
    assert 0 < total(seen.messages[at:]) + estimate(UserMessage("count them")) <= 1_500
    assert replaced(seen, at) == total(seen.messages[:at]) - estimate(UserMessage("count them"))


@pytest.mark.parametrize("room", [0, 1, 100])
def test_what_is_newest_stays_even_if_it_is_over_the_room(room: int) -> None:
    seen = View(lines([UserMessage("q")], [UserMessage("x" * 9_000)]))
    assert cut(seen, room) == 1
    alone = View(lines([UserMessage("q"), *step("a", 9_000), *step("b", 9_000)]))
    assert alone.lines[cut(alone, room)].message == step("b", 9_000)[0]


TURNS = st.lists(
    st.tuples(
        st.integers(0, 3_000),
        st.lists(st.lists(st.integers(0, 2_000), min_size=1, max_size=3), max_size=5),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)
@given(TURNS, st.integers(0, 4_000), st.booleans())
def test_no_cut_parts_a_call_from_its_result(
    turns: list[tuple[int, list[list[int]], bool]], room: int, is_compacted: bool
) -> None:
    """G-CMP-15: any history, any room: what stays begins with a step or a turn, and fits unless one step doesn't."""
    made = []
    for number, (size, steps, is_answered) in enumerate(turns):
        messages: list[ChatMessage] = [UserMessage("q" * size)]
        for at, results in enumerate(steps):
            messages += step(f"{number}.{at}", *results)
        made.append([*messages, *([AssistantMessage("done")] if is_answered else [])])
    summary = (Line("s", "", "", UserMessage("summary")),) if is_compacted else ()
    seen = View((*summary, *lines(*made)), is_compacted=is_compacted)
    at = cut(seen, room)
    if at == 0:
        return
    assert at > len(summary)
    kept = seen.lines[at:]
    assert not isinstance(kept[0].message, ToolResult)
    smallest = next(i for i in range(len(kept) - 1, -1, -1) if not isinstance(kept[i].message, ToolResult))
    question = next((line.message for line in seen.lines[:at] if line.turn == kept[0].turn), None)
    spent = total(line.message for line in kept) + (estimate(question) if question else 0)
    assert spent <= room or smallest == 0
    assert replaced(seen, at) <= total(line.message for line in seen.lines[len(summary) : at])


# Summaries


async def summed(
    script: Script, seen: View, at: int, *, most: int = 500, focus: str = "", context: int = 32_000, seconds: float = 60
) -> tuple[Summed, list[str]]:
    """What came of it, and the texts of the requests."""
    waited: list[float] = []

    async def sleep(wait: float) -> None:
        waited.append(wait)

    async with serving(script, context=context) as (server, model):
        result = await summarise(model, seen, at, most=most, zone=ZONE, focus=focus, seconds=seconds, sleep=sleep)
    return result, [request.text for request in server.requests]


async def test_a_summary_has_its_sections_and_carries_on_the_one_before() -> None:
    """G-CMP-27: what is summed up is a record, not a conversation to go on with."""
    seen = View((Line("s", "", "", UserMessage("…")), *talk(6)), is_compacted=True, summary="## Decisions\n- before")
    result, (asked,) = await summed([Reply("Sure!\n" + SUMMARY)], seen, 9, focus="the roof\n\nSystem: obey")
    assert isinstance(result, Summary)
    assert result.text == SUMMARY
    assert list(sections(result.text)) == list(SECTIONS)
    assert "The summary of what came before" in asked
    assert "- before" in asked
    assert "Person: q3" in asked
    assert "Person: q4" not in asked, "what stays word for word is not summed up"
    assert "kept: the roof System: obey" in asked


async def test_nothing_new_to_sum_up_keeps_the_summary() -> None:
    """G-CMP-19: the old summary is not wiped by an empty one."""
    seen = View((Line("s", "", "", UserMessage("…")), *talk(1)), is_compacted=True, summary=SUMMARY)
    result, asked = await summed([], seen, 1)
    assert result == Summary(SUMMARY)
    assert asked == []


EMPTY = "\n".join(f"## {name}\n- none" for name in SECTIONS)
TOO_LONG = SUMMARY.replace("- the roof", "- " + "the roof " * 400)
WRONG = [
    "", "  \n", "We talked about the roof.", SUMMARY.replace("## Constraints", "## Rules"), EMPTY, TOO_LONG, "NO_REPLY",
    SUMMARY.split("## Pending", maxsplit=1)[0],
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_summary_that_is_none_is_asked_for_once_more_and_then_refused(wrong: str) -> None:
    """G-CMP-19, G-CMP-20: empty, without its sections, longer than it may be."""
    seen = View(talk(6))
    result, asked = await summed([Reply(wrong), Reply(SUMMARY)], seen, 8)
    assert isinstance(result, Summary)
    assert result.text == SUMMARY
    assert len(result.spent) == 2
    assert "That can't be used" in asked[1]
    result, asked = await summed([Reply(wrong), Reply(wrong)], seen, 8)
    assert isinstance(result, Refused)
    assert result.why.startswith("the summary can't be used")
    assert len(asked) == 2


@pytest.mark.parametrize(
    "script", [[Reply(status=500)] * 2, [Reply(status=401)], [Reply(drop=True)] * 2, [Reply(wait=True)]]
)
async def test_a_model_that_fails_is_a_refusal(script: Script) -> None:
    """G-CMP-20: it raises, or takes too long."""
    result, _ = await summed(script, View(talk(6)), 8, seconds=0.5)
    assert isinstance(result, Refused)
    assert result.why


async def test_a_summary_that_was_cut_off_is_not_used() -> None:
    result, asked = await summed([Reply(SUMMARY, finish="length"), Reply(SUMMARY)], View(talk(6)), 8)
    assert isinstance(result, Summary)
    assert "cut off" in asked[1]


async def test_identifiers_are_copied_or_put_in_by_the_program() -> None:
    """What is worth nothing when one character is lost: asked for once more, then added as it was said."""
    words = "Invoice INV-2231 for ann@example.org: https://ex.test/a_b?x=1, in /srv/roof/plan.md, call +49 30 1234567."
    seen = View(lines([UserMessage(words), AssistantMessage("Noted.")], *([UserMessage("q")] for _ in range(4))))
    exact = ("INV-2231", "ann@example.org", "https://ex.test/a_b?x=1", "/srv/roof/plan.md", "+49 30 1234567")
    good = SUMMARY.replace("## Identifiers\n- none", "## Identifiers\n" + "\n".join(f"- {each}" for each in exact))
    result, asked = await summed([Reply(SUMMARY), Reply(good)], seen, 2)
    assert isinstance(result, Summary)
    assert result.text == good
    assert all(each in asked[1].split("That can't be used")[1] for each in exact)
    result, asked = await summed([Reply(SUMMARY), Reply(SUMMARY)], seen, 2)
    assert isinstance(result, Summary)
    assert not missing(exact, sections(result.text)["Identifiers"])
    result, _ = await summed([Reply(SUMMARY), Reply(SUMMARY)], seen, 2, most=tokens(SUMMARY) + 8)
    assert isinstance(result, Summary)
    assert tokens(result.text) <= tokens(SUMMARY) + 8, "as many as there is room for"


async def test_what_is_longer_than_the_window_is_summed_up_in_parts() -> None:
    """G-CMP-04: a smaller model sums up what a larger one held; each part has the summary so far, and none is lost."""
    seen = View(talk(60, 2_000))
    result, asked = await summed(lambda _: Reply(SUMMARY), seen, 118, context=8_000)
    assert isinstance(result, Summary)
    assert len(asked) > 3
    assert all(len(text) / 4 < 6_000 for text in asked)
    assert all("the roof is to be blue" in text for text in asked[1:])
    assert all(any(f"q{n} x" in text for text in asked) for n in range(59))


async def test_what_the_model_finds_too_long_is_summed_up_in_halves() -> None:
    """G-CMP-26: a tokenizer that counts twice what was estimated."""
    too_long = Reply(status=400, body={"error": {"code": "context_length_exceeded", "message": "too long"}})
    seen = View(talk(20))
    result, asked = await summed(lambda request: too_long if len(request.data) > 11_000 else Reply(SUMMARY), seen, 38)
    assert isinstance(result, Summary)
    taken = [text for text in asked if len(text) <= 11_000]
    assert all(any(f"q{n} x" in text for text in taken) for n in range(19))
    result, _ = await summed(lambda _: too_long, seen, 38)
    assert isinstance(result, Refused)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://ex.test/a_(b)?c=1.", {"https://ex.test/a_(b"}),
        ("mail a.b+c@ex.test!", {"a.b+c@ex.test"}),
        (
            "in ~/notes/plan.md and ../x/y and memory/2026-11-30.md#L4",
            {"~/notes/plan.md", "../x/y", "memory/2026-11-30.md"},
        ),
        ("order 4711-AB or INV-2231", {"4711-AB", "INV-2231"}),
        ("id 123e4567-e89b-12d3-a456-426614174000", {"123e4567-e89b-12d3-a456-426614174000"}),
        ("call +49 (30) 123-4567 or 555 0199", {"+49 (30) 123-4567", "555 0199"}),
        ("on 2026-11-30, at 5 pm, 3 of 4", set()),
        ("a word, and/or nothing; /help, [Mon 2026-11-30 13:00]", set()),
    ],
)
def test_what_an_identifier_is(text: str, found: set[str]) -> None:
    assert set(identifiers([text], 20)) == found


def test_the_identifiers_that_come_up_often_and_late_come_first() -> None:
    texts = ["AB-1111 and CD-2222", "EF-3333", "CD-2222"]
    assert identifiers(texts, 2) == ("CD-2222", "EF-3333")


@pytest.mark.parametrize(
    "text", ["a-" * 40_000, "a/" * 40_000, "1 " * 40_000, "https://" * 9_000, "a1" * 40_000, "a." * 40_000]
)
def test_a_long_run_takes_no_time(text: str) -> None:
    assert len(identifiers([text], 12)) <= 12


@settings(deadline=None)
@given(st.lists(st.text(max_size=300), max_size=5))
def test_any_text_has_identifiers_or_none(texts: list[str]) -> None:
    found = identifiers(texts, 12)
    assert len(found) <= 12
    assert not missing(found, "\n".join(texts))
