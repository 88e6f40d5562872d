"""Memory over a folder of Markdown: search, read, note, take back. Usable alone, without a bot or an agent.

async with Memory.open(folder, index) as memory:
    result = await memory.search("name of my dog", scope=Scope.home())
"""

from workspaces.memory.embedder import Embedder, EmbedderError
from workspaces.memory.engine import Memory
from workspaces.memory.notes import EmptyNote
from workspaces.memory.results import Excerpt, Hit, MemoryStatus, Mode, SearchResult, SyncReport, Undone, Written
from workspaces.memory.settings import MemorySettings
from workspaces.paths import OutOfReach
from workspaces.scope import Level, Scope

__all__ = [
    "Embedder",
    "EmbedderError",
    "EmptyNote",
    "Excerpt",
    "Hit",
    "Level",
    "Memory",
    "MemorySettings",
    "MemoryStatus",
    "Mode",
    "OutOfReach",
    "Scope",
    "SearchResult",
    "SyncReport",
    "Undone",
    "Written",
]
