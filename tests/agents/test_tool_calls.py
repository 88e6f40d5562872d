"""Streamed tool calls are put together as they were meant, whatever a provider does with ids and indices."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agents.model import ToolCall
from agents.tool_calls import CallAssembler


def piece(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


def assembled(*pieces: dict[str, Any], taken: tuple[str, ...] = ()) -> tuple[ToolCall, ...]:
    assembler = CallAssembler(taken)
    for each in pieces:
        assembler.add(each)
    return assembler.calls()


def test_one_call_in_pieces() -> None:
    calls = assembled(
        piece(0, "c1", "get", ""),
        piece(0, arguments='{"ci'),
        piece(0, arguments='ty": "Oslo"}'),
        piece(0, arguments=""),
    )
    assert calls == (ToolCall("c1", "get", '{"city": "Oslo"}'),)


def test_parallel_calls_that_all_have_index_0() -> None:
    """G-MOD-04: two ids are two calls, each with its own arguments."""
    calls = assembled(
        piece(0, "c1", "get", '{"city":'),
        piece(0, arguments='"SF"}'),
        piece(0, "c2", "get", '{"city":'),
        piece(0, arguments='"NY"}'),
    )
    assert calls == (ToolCall("c1", "get", '{"city":"SF"}'), ToolCall("c2", "get", '{"city":"NY"}'))


def test_pieces_of_two_calls_in_turns() -> None:
    calls = assembled(
        piece(0, "c1", "get", "{"), piece(1, "c2", "put", "{"), piece(0, "c1", None, '"a":1}'), piece(1, arguments="}")
    )
    assert calls == (ToolCall("c1", "get", '{"a":1}'), ToolCall("c2", "put", "{}"))


def test_the_same_id_twice() -> None:
    """G-MOD-05: [a, b, b]: the exact repetition is dropped."""
    calls = assembled(piece(0, "a", "x", "{}"), piece(1, "b", "y", '{"n":1}'), piece(2, "b", "y", '{"n":1}'))
    assert [c.id for c in calls] == ["a", "b"]


def test_one_id_for_two_different_calls() -> None:
    """G-MOD-05: both are kept, with ids that differ."""
    calls = assembled(piece(0, "b", "y", '{"n":1}'), piece(1, "b", "y", '{"n":2}'))
    assert [c.arguments for c in calls] == ['{"n":1}', '{"n":2}']
    assert calls[0].id == "b"
    assert calls[1].id not in ("", "b")


def test_calls_without_id() -> None:
    """G-MOD-06: distinct ids, both there, in their order; with separate indices and with none."""
    for first, second in ((0, 1), (0, 0), (None, None)):
        calls = assembled(piece(first, None, "get", '{"n":1}'), piece(second, None, "get", '{"n":2}'))
        assert [c.arguments for c in calls] == ['{"n":1}', '{"n":2}']
        assert len({c.id for c in calls}) == 2
        assert all(c.id for c in calls)


def test_two_tools_without_id_or_index() -> None:
    """G-MOD-06: a new name begins a new call, even when the first has no arguments."""
    calls = assembled(piece(None, None, "now", ""), piece(None, None, "get", '{"n":'), piece(None, arguments="2}"))
    assert [(c.name, c.arguments) for c in calls] == [("now", "{}"), ("get", '{"n":2}')]


def test_ids_of_earlier_turns_are_not_used_again() -> None:
    calls = assembled(piece(0, "call_0", "get", "{}"), piece(1, None, "put", "{}"), taken=("call_0", "call00001"))
    assert len({"call_0", "call00001", *(c.id for c in calls)}) == 4


def test_a_name_and_an_id_repeated_in_every_piece() -> None:
    calls = assembled(piece(0, "c1", "get", '{"a"'), piece(0, "c1", "get", ":1"), piece(0, "c1", "get", "}"))
    assert calls == (ToolCall("c1", "get", '{"a":1}'),)


def test_a_name_in_pieces() -> None:
    assert assembled(piece(0, "c1", "get_", ""), piece(0, None, "city", "{}")) == (ToolCall("c1", "get_city", "{}"),)


def test_an_id_that_comes_late() -> None:
    assert assembled(piece(0, None, "get", "{"), piece(0, "c1", None, "}")) == (ToolCall("c1", "get", "{}"),)


def test_cut_and_broken_arguments_stay_as_they_are() -> None:
    """G-MOD-01, G-MOD-02: they are judged where they are run, and never become ``{}`` here."""
    assert assembled(piece(0, "c1", "write", '{"city": "Par'))[0].arguments == '{"city": "Par'


def test_arguments_that_came_as_an_object() -> None:
    assert assembled(piece(0, "c1", "get", {"city": "Århus"}))[0].arguments == '{"city": "Århus"}'


def test_what_is_no_call_is_passed_over() -> None:
    assert assembled({}, {"index": "0", "id": 7, "function": None}, piece(0)) == ()
    assert assembled(piece(0, "c1", None, '{"a":1}'))[0].name == "unknown"


calls_in = st.lists(
    st.tuples(st.sampled_from(["get", "put"]), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)),
    min_size=1,
    max_size=4,
)


@given(calls_in, st.booleans(), st.integers(1, 5))
def test_calls_with_ids_survive_any_cutting(calls: list[tuple[str, Any]], all_index_0: bool, size: int) -> None:
    """G-MOD-04: the right arguments belong to the right id, even where every index is 0."""
    assembler = CallAssembler()
    for position, (name, arguments) in enumerate(calls):
        index, text = 0 if all_index_0 else position, json.dumps(arguments)
        assembler.add(piece(index, f"c{position}", name, ""))
        for start in range(0, len(text), size):
            assembler.add(piece(index, arguments=text[start : start + size]))
    expected = [(f"c{n}", name, arguments) for n, (name, arguments) in enumerate(calls)]
    assert [(c.id, c.name, json.loads(c.arguments)) for c in assembler.calls()] == expected
