"""The ids in a request: unique, of a form that its reader takes, and the same again for the same history."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.call_ids import with_own_ids
from agents.model import AssistantMessage, ChatMessage, ToolCall, ToolResult, UserMessage

SIGNED = "call_1__thought__" + "c2lnbmF0dXJl" * 20


def asked(*ids: str, model: str = "a/x") -> AssistantMessage:
    return AssistantMessage("", tuple(ToolCall(i, "get", f'{{"n":{n}}}') for n, i in enumerate(ids)), model=model)


def results(*ids: str) -> list[ChatMessage]:
    return [ToolResult(i, "get", f"r{n}") for n, i in enumerate(ids)]


def ids_in(messages: list[ChatMessage]) -> tuple[list[str], list[str]]:
    """The ids of the calls and of the results, in order."""
    calls = [c.id for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls]
    return calls, [m.call_id for m in messages if isinstance(m, ToolResult)]


def test_its_own_ids_are_left_alone() -> None:
    """G-MOD-10: some carry what the provider wants back."""
    history = [UserMessage("hi"), asked(SIGNED, "c2"), *results(SIGNED, "c2")]
    assert list(with_own_ids(history, "a/x")) == history


@pytest.mark.parametrize("writer", ["b/y", ""])
def test_those_of_another_model_become_plain(writer: str) -> None:
    """G-MOD-10: when the model changes, a signature in an id is too long and means nothing."""
    history = [asked(SIGNED, "toolu_1", model=writer), *results(SIGNED, "toolu_1")]
    calls, answered = ids_in(list(with_own_ids(history, "a/x")))
    assert calls == answered
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", name) for name in calls)


def test_the_same_id_twice_in_one_message() -> None:
    """G-MOD-05: [a, b, b] stored by whoever: de-duplicated before it is sent, with one result each."""
    history = [asked("a", "b", "b"), *results("a", "b", "b")]
    calls, answered = ids_in(list(with_own_ids(history, "a/x")))
    assert calls == answered == ["a", "b"]


def test_the_same_id_in_two_messages() -> None:
    """G-MOD-05: a server that counts from zero in every answer."""
    history = [asked("call_0"), *results("call_0"), asked("call_0"), *results("call_0")]
    calls, answered = ids_in(list(with_own_ids(history, "a/x")))
    assert calls == answered
    assert len(set(calls)) == 2


def test_a_result_without_its_call_is_left_out() -> None:
    """G-MOD-16: "role tool must follow tool_calls"."""
    assert list(with_own_ids([*results("gone"), UserMessage("hi")], "a/x")) == [UserMessage("hi")]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a/x", "b/y", ""]), st.lists(st.sampled_from(["", "a", "b", "call00001"]), max_size=4)
        ),
        max_size=6,
    )
)
def test_whatever_the_history_every_call_has_one_id_and_its_result(turns: list[tuple[str, list[str]]]) -> None:
    history: list[ChatMessage] = []
    for model, ids in turns:
        history += [UserMessage("q"), asked(*ids, model=model), *results(*ids)]
    sent = list(with_own_ids(history, "a/x"))
    calls, answered = ids_in(sent)
    assert calls == answered
    assert len(set(calls)) == len(calls)
    assert sent == list(with_own_ids(history, "a/x")), "the same bytes every time"
    assert ids_in(list(with_own_ids([*history, UserMessage("more")], "a/x"))) == (calls, answered)
