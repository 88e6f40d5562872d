"""Which tools a turn has, and which of them run: by agent, kind of chat, level, and what has come into the window."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from agents.tools.permission import ChatKind, is_instruction
from agents.tools.settings import ToolName, ToolSettings
from agents.tools.tool import Tool
from tests.agents.tools.conftest import GUEST, HOME, TEAM, Desk
from workspaces.scope import Level, Scope

READING = ["memory_search", "memory_get", "memory_append", "read", "list", "grep", "send_file"]
NOTING = [*READING, "memory_edit"]
ALL = [*NOTING, "write", "edit"]


@pytest.mark.parametrize(
    ("scope", "kind", "settings", "names"),
    [
        (HOME, "direct", {}, ALL),
        (Scope.home(Level.MEMBER), "direct", {}, ALL),
        (TEAM, "direct", {}, ALL),
        (GUEST, "direct", {}, READING),
        (Scope.home(Level.GUEST), "direct", {}, READING),
        (TEAM, "group", {}, NOTING),
        (TEAM, "channel", {}, NOTING),
        (HOME, "group", {}, NOTING),
        (GUEST, "group", {"write_in_groups": True}, READING),
        (TEAM, "group", {"write_in_groups": True}, ALL),
        (HOME, "direct", {"off": ["write", "grep"]}, [name for name in ALL if name not in ("write", "grep")]),
    ],
)
async def test_a_turn_is_offered_what_it_may_use_and_nothing_else_runs(
    desk: Desk, scope: Scope, kind: ChatKind, settings: dict[str, Any], names: list[str]
) -> None:
    tools = desk.tools(scope, kind, **settings)
    assert sorted(tools) == sorted(names)
    permission = tools["read"].permission
    for name, tool in desk.tools().items():
        if name not in names:  # as if it had been offered all the same
            outcome = await replace(tool, permission=permission).call(EXAMPLES[name])
            assert outcome.is_error
            assert outcome.text.startswith("Not run: ")
            assert not outcome.awaits_owner
    assert not (desk.root / "new.txt").exists()
    assert not (desk.root / "memory/people").exists()


EXAMPLES = {
    "memory_edit": '{"path": "memory/people/ada.md", "new": "x"}',
    "write": '{"path": "new.txt", "text": "x"}',
    "edit": '{"path": "SOUL.md", "old": "a", "new": "b"}',
    "grep": '{"text": "x"}',
}


async def test_the_registry_and_the_settings_know_the_same_tools(desk: Desk) -> None:
    assert sorted(desk.tools()) == sorted(get_args(ToolName))
    with pytest.raises(ValidationError, match="memory_search"):
        ToolSettings(off=("memory_serach",))  # type: ignore[arg-type]  # as a person mistypes it


async def test_foreign_text_lowers_the_level_from_the_moment_it_comes_in(desk: Desk) -> None:
    tainted = False
    approved: set[tuple[str, str]] = set()
    tools = desk.tools(is_tainted=lambda: tainted, approved=lambda *call: call in approved)
    assert not (await tools["write"].call(EXAMPLES["write"])).is_error
    tainted = True
    assert sorted(tools) == sorted(
        desk.tools(is_tainted=lambda: True)
    )  # the list stays as it was, and a prefix cache holds
    for name in ("write", "edit", "memory_edit"):
        outcome = await tools[name].call(EXAMPLES[name])
        assert outcome.is_error
        assert outcome.awaits_owner
        assert "waits for the owner's yes" in outcome.text
    for name, arguments in {
        "memory_append": {"text": "Ada likes tea."},
        "memory_search": {"query": "Ada"},
        "read": {"path": "SOUL.md"},
        "list": {},
    }.items():
        assert not (await tools[name].call(json.dumps(arguments))).is_error
    approved.add(("memory_edit", EXAMPLES["memory_edit"]))
    assert not (await tools["memory_edit"].call(EXAMPLES["memory_edit"])).is_error
    other = '{"path": "memory/people/ada.md", "new": "y"}'
    assert (await tools["memory_edit"].call(other)).awaits_owner


async def test_a_yes_of_the_owner_lifts_nothing_that_was_barred_anyway(desk: Desk) -> None:
    (write,) = [tool for name, tool in desk.tools().items() if name == "write"]
    barred = desk.tools(GUEST, is_tainted=lambda: True, approved=lambda *_: True)["read"].permission
    outcome = await replace(write, permission=barred).call('{"path": "memory/chats/team/new.txt", "text": "x"}')
    assert outcome.is_error
    assert not outcome.awaits_owner


INSTRUCTIONS = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md"]


@pytest.mark.parametrize(
    "path", [*INSTRUCTIONS, "agents.md", "./AGENTS.md", "skills/cook/SKILL.md", "Skills/x", "ſoul.md"]
)
def test_a_file_that_instructs_is_known_by_any_name_that_opens_it(path: str) -> None:
    assert is_instruction(path)


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory/AGENTS.md", "work/skills/x", "AGENTS.md.txt", "memory/people/ada.md"]
)
def test_other_files_don_t_instruct(path: str) -> None:
    assert not is_instruction(path)


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("kind", ["group", "channel"])
@pytest.mark.parametrize("path", [*INSTRUCTIONS, "agents.md", "./SOUL.md", "alias.md", "skills/x.md"])
async def test_a_group_never_writes_what_instructs_the_agent(
    desk: Desk, level: Level, kind: ChatKind, path: str
) -> None:
    """Where the workspace is the group's own, and files may be written there."""
    (desk.root / "alias.md").symlink_to("AGENTS.md")
    before = _files(desk)
    tools = desk.tools(Scope.home(level), kind, write_in_groups=True)
    for name, arguments in {
        "write": {"path": path, "text": "obey"},
        "edit": {"path": path, "old": "a", "new": "b"},
        "memory_edit": {"path": path, "new": "obey"},
    }.items():
        if name in tools:
            assert (await tools[name].call(json.dumps(arguments))).is_error
    assert _files(desk) == before


@pytest.mark.parametrize("path", [*INSTRUCTIONS, "skills/x.md"])
async def test_a_guest_never_writes_what_instructs_the_agent(desk: Desk, path: str) -> None:
    before = _files(desk)
    guest = desk.tools(Scope.home(Level.GUEST))["read"].permission
    every: list[Tool] = [replace(tool, permission=guest) for tool in desk.tools().values()]
    for tool in every:
        if tool.spec.name in ("write", "edit", "memory_edit"):
            properties = {"path": path, "text": "x", "old": "a", "new": "b"}
            wanted = {name: properties[name] for name in tool.spec.parameters["properties"]}
            assert (await tool.call(json.dumps(wanted))).is_error
    assert _files(desk) == before


async def test_the_owner_writes_what_instructs_the_agent(desk: Desk) -> None:
    outcome = await desk.call("write", path="SOUL.md", text="Be kind.\n")
    assert not outcome.is_error
    assert (desk.root / "SOUL.md").read_text() == "Be kind.\n"


def _files(desk: Desk) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in desk.root.rglob("*") if path.is_file()}


async def test_all_tools_cost_little_of_a_greeting(desk: Desk) -> None:
    """Of 8 kB for a whole request; in the form that providers take."""
    specs = [
        {"type": "function", "function": {"name": s.name, "description": s.description, "parameters": s.parameters}}
        for s in (tool.spec for tool in desk.tools().values())
    ]
    assert len(json.dumps(specs)) < 3_750
    assert len(json.dumps(specs)) > 3_000  # each is there, with its meaning
