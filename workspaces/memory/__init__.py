"""Memory over a folder of Markdown: search, read, write, take back. Usable alone, without a bot or an agent.

async with Memory.open(folder, index) as memory:
    result = await memory.search("name of my dog", scope=Scope.home())

``BlockingMemory`` is the same for scripts that don't use asyncio. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workspaces.memory.blocking import BlockingMemory
    from workspaces.memory.embedder import Embedder, EmbedderError
    from workspaces.memory.engine import Memory
    from workspaces.memory.errors import EmptyNote, NotOnePlace, TooLong, UnfitName, WriteRefused
    from workspaces.memory.index import IndexUnavailable
    from workspaces.memory.results import (
        Change,
        Changed,
        Excerpt,
        Hit,
        Listed,
        MemoryStatus,
        Mode,
        SearchResult,
        SyncReport,
        Undone,
        Written,
    )
    from workspaces.memory.settings import MemorySettings
    from workspaces.memory.sources import ANY, WORKSPACE
    from workspaces.paths import OutOfReach
    from workspaces.scope import Level, Scope

_PLACES = {
    "workspaces.memory.blocking": ("BlockingMemory",),
    "workspaces.memory.embedder": ("Embedder", "EmbedderError"),
    "workspaces.memory.engine": ("Memory",),
    "workspaces.memory.errors": ("EmptyNote", "NotOnePlace", "TooLong", "UnfitName", "WriteRefused"),
    "workspaces.memory.index": ("IndexUnavailable",),
    "workspaces.memory.results": (
        "Change", "Changed", "Excerpt", "Hit", "Listed", "MemoryStatus", "Mode", "SearchResult", "SyncReport", "Undone",
        "Written",
    ),
    "workspaces.memory.settings": ("MemorySettings",),
    "workspaces.memory.sources": ("ANY", "WORKSPACE"),
    "workspaces.paths": ("OutOfReach",),
    "workspaces.scope": ("Level", "Scope"),
}  # fmt: skip

__all__ = [
    "ANY",
    "WORKSPACE",
    "BlockingMemory",
    "Change",
    "Changed",
    "Embedder",
    "EmbedderError",
    "EmptyNote",
    "Excerpt",
    "Hit",
    "IndexUnavailable",
    "Level",
    "Listed",
    "Memory",
    "MemorySettings",
    "MemoryStatus",
    "Mode",
    "NotOnePlace",
    "OutOfReach",
    "Scope",
    "SearchResult",
    "SyncReport",
    "TooLong",
    "Undone",
    "UnfitName",
    "WriteRefused",
    "Written",
]


def __getattr__(name: str) -> Any:
    """The public names, each from its module when it is first used (PEP 562)."""
    from importlib import import_module

    for module, names in _PLACES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
