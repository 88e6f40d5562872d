"""From a function to a tool, and what every tool does with a call."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from agents.quoting import quoted
from agents.tools.permission import Permission
from agents.tools.tool import Outcome, Tell, ToolError, tool
from workspaces.scope import Scope

SAID: list[object] = []


async def pick(
    names: list[str],
    kinds: list[Literal["a", "b"]] | None = None,
    most: int | None = None,
    *,
    tell: Tell,
    room: int,
    permission: Permission,
) -> Outcome:
    """Pick some.

    most: how many
    """
    tell(f"picking {len(names)}")
    SAID[:] = [names, kinds, most, room, permission]
    return Outcome("picked")


def test_a_schema_holds_lists_and_optional_values_and_nothing_that_is_given() -> None:
    made = tool(pick, name="choose")
    assert made.spec.name == "choose"
    assert made.spec.parameters == {
        "type": "object",
        "properties": {
            "names": {"type": "array", "items": {"type": "string"}},
            "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "most": {"type": "integer", "description": "how many"},
        },
        "required": ["names"],
        "additionalProperties": False,
    }


async def test_a_tool_tells_how_far_it_is_and_knows_its_room_and_permission() -> None:
    permission, told = Permission(Scope.home()), list[str]()
    made = replace(tool(pick), permission=permission)
    outcome = await made.call('{"names": ["x", "y"], "kinds": ["b"], "most": null}', told.append)
    assert outcome == Outcome("picked")
    assert told == ["picking 2"]
    assert [["x", "y"], ["b"], None, 15_600, permission] == SAID


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"names": "x"}', "'names' must be of type array"),
        ('{"names": [1]}', "'names' must be of type string, not 1"),
        ('{"names": [], "kinds": ["c"]}', "'kinds' must be one of a, b"),
        ('{"names": null}', "'names' must be of type array, not null"),
        ('{"names": [], "tell": "x"}', "no argument is called 'tell'. There are: names, kinds, most."),
        ('{"names": [], "permission": {}}', "no argument is called 'permission'"),
        ("[" * 100_000, "not valid JSON"),
        ('{"names": ["x"', "not valid JSON"),
    ],
)
async def test_what_is_wrong_with_a_call_is_told_and_nothing_is_run(arguments: str, said: str) -> None:
    """G-MOD-02, G-MOD-03."""
    SAID.clear()
    outcome = await tool(pick).call(arguments)
    assert outcome.is_error
    assert said in outcome.text
    assert not SAID


async def long_lines() -> Outcome:
    return Outcome("\n".join(f"line {n}" for n in range(10_000)), is_foreign=True)


async def long_fence() -> Outcome:
    return Outcome(quoted("a line of a page\n" * 10_000, "page") + "\nafter")


async def long_error() -> Outcome:
    raise ToolError("no " * 20_000)


@pytest.mark.parametrize("function", [long_lines, long_fence, long_error])
async def test_no_result_is_longer_than_it_may_be(function: object) -> None:
    made = tool(function)  # type: ignore[arg-type]  # three of one kind
    outcome = await made.call("{}")
    assert len(outcome.text) <= made.longest
    assert "characters are shown. Ask for less at once.)" in outcome.text
    assert outcome.is_foreign == (function is long_lines)
    assert outcome.text.count("<note ") == outcome.text.count("</note>")
    assert outcome.is_error == (function is long_error)


async def test_a_cut_falls_between_lines_and_counts_what_is_shown() -> None:
    outcome = await tool(long_lines).call("{}")
    *lines, said = outcome.text.split("\n")
    assert lines == [f"line {n}" for n in range(len(lines))]
    assert said == f"(Cut: {len(chr(10).join(lines)):,} of 98,889 characters are shown. Ask for less at once.)"
