"""The embedders that work on this machine alone, by the names that ``[memory] embedder`` has for them.

Any other name is a model that a server embeds with: whoever knows servers builds it and passes it in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workspaces.memory.embedder import Embedder

STATIC = "static"
"""English and instant; it stands in for any other until that is complete."""

NONE = "none"
"""Search by words only."""

NAMES = (STATIC, "local", NONE)


def embedded(name: str) -> Embedder | None:
    """The embedder called ``name``, None for "none"; nothing is read yet. Raises ValueError for any other name."""
    if name == STATIC:
        from workspaces.memory.static_embedder import StaticEmbedder

        return StaticEmbedder()
    if name == "local":
        from workspaces.memory.local_embedder import LocalEmbedder

        return LocalEmbedder()
    if name == NONE:
        return None
    raise ValueError(f"no embedder of this machine is called {name!r}: {', '.join(NAMES)}")
