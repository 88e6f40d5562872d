"""A real workspace and memory, and the tools of a turn in it, called as a model calls them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agents.tools.permission import ChatKind, Permission
from agents.tools.registry import offered, toolbox
from agents.tools.settings import LONGEST_RESULT, ToolSettings
from agents.tools.tool import Outcome, Tool
from workspaces.copies import Copies
from workspaces.memory import Memory, MemorySettings
from workspaces.scope import Level, Scope
from workspaces.workspace import Workspace

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOME = Scope.home()
TEAM = Scope.chat("team", Level.MEMBER)
GUEST = Scope.chat("team", Level.GUEST)


@dataclass
class Desk:
    """``root`` is the workspace; what is replaced goes to ``kept``. ``longest`` is that of a result."""

    root: Path
    kept: Path
    memory: Memory
    longest: int = LONGEST_RESULT

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def tools(
        self,
        scope: Scope = HOME,
        kind: ChatKind = "direct",
        *,
        is_tainted: Callable[[], bool] = lambda: False,
        approved: Callable[[str, str], bool] = lambda _name, _arguments: False,
        **settings: Any,
    ) -> dict[str, Tool]:
        permission = Permission(scope, kind, ToolSettings(**settings), is_tainted, approved)
        every = toolbox(self.root, self.memory, Copies(self.kept, lambda: NOW))
        return {tool.spec.name: tool for tool in offered(every, permission)}

    async def call(self, name: str, scope: Scope = HOME, /, **arguments: Any) -> Outcome:
        """One call in a direct chat."""
        return await self.tools(scope, longest_result=self.longest)[name].call(json.dumps(arguments))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    Workspace.open(tmp_path / "home", clock=lambda: NOW, zone=lambda: UTC)
    async with Memory.open(
        tmp_path / "home", tmp_path / "index.sqlite", settings=MemorySettings(), clock=lambda: NOW, zone=lambda: UTC
    ) as memory:
        yield Desk(tmp_path / "home", tmp_path / "kept", memory)
