"""Makes the index say what the Markdown says: compares, reads what changed, fills in the vectors.

A file of the same size and time is taken as unchanged, otherwise its hash decides. One transaction a file, so a crash
at any moment leaves an index that the next comparison completes. Knows no search.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workspaces import files
from workspaces.memory import documents
from workspaces.memory.index import FileState, Index
from workspaces.memory.results import SyncReport

if TYPE_CHECKING:
    from workspaces.memory.encoder import Encoder
    from workspaces.memory.settings import MemorySettings
    from workspaces.memory.sources import Sources
    from workspaces.memory.store import Store

Progress: TypeAlias = Callable[[int, int], None]
"""Called in the loop with how many of the changed files are done, and how many there are."""

BATCH = 64
"""Units that are embedded and stored at once: what one call of a slow embedder loses when it fails."""

FRESH_NS = 100_000_000
"""A file changed less than this before it was read may change again within the same tick of its file system's clock
(4 ms on Linux): its time is not remembered, so that it is read once more."""


LARGEST = 64 << 20
"""Bytes of the largest file that is read; a larger one is no note, and said to be left out."""


async def reconcile(
    sources: Sources, store: Store, settings: MemorySettings, progress: Progress | None = None
) -> tuple[SyncReport, tuple[str, ...]]:
    """Bring the words up to date. Also returns a sentence for each file that can't be read, which is left as it was."""
    listed = await asyncio.to_thread(sources.found)
    known = await store.run(Index.files)
    added = [path for path in listed if path not in known]
    touched = [path for path in listed if path in known and not _is_same(listed[path], known[path])]
    removed = [path for path in known if path not in listed]
    changed, troubles = 0, []
    for done, path in enumerate([*added, *touched], 1):
        try:
            file, stat = sources.file(path), listed[path]
            state, document = await asyncio.to_thread(_read, file, path, stat, known.get(path), settings)
        except OSError as error:
            troubles.append(f"{path} can't be read: {error.strerror}.")
            continue
        if document is None:
            await store.run(Index.touch, path, state)
        else:
            await store.run(Index.put, document, state)
            changed += path in known
        if progress:
            progress(done, len(added) + len(touched))
    for path in removed:
        await store.run(Index.remove, path)
    if added or changed or removed:
        await store.run(Index.shrink_log)
    unchanged = len(listed) - len(added) - changed
    return SyncReport(len(added), changed, len(removed), unchanged), tuple(troubles)


async def fill(store: Store, encoder: Encoder, known: Store | None = None) -> int:
    """Give every unit that waits for a vector its own; how many were embedded. Raises EmbedderError.

    What an index beside it (``known``) has a vector for is not embedded again.
    """
    name, embedded = encoder.identity[0], 0
    while units := await store.run(Index.pending, name, BATCH):
        vectors = await known.run(Index.known, name, [unit.hash for unit in units]) if known else {}
        missing = {unit.hash: unit.text for unit in units if unit.hash not in vectors}
        if missing:
            vectors |= zip(missing, await encoder.documents(list(missing.values())), strict=True)
            embedded += len(missing)
        await store.run(Index.fill, name, {unit.id: vectors[unit.hash] for unit in units})
    await store.run(Index.settle, name)
    if embedded:
        await store.run(Index.shrink_log)
    return embedded


def _is_same(stat: os.stat_result, state: FileState) -> bool:
    return (stat.st_mtime_ns, stat.st_size) == (state.mtime_ns, state.size)


def _read(
    file: Path, path: str, stat: os.stat_result, known: FileState | None, settings: MemorySettings
) -> tuple[FileState, documents.Document | None]:
    """The file's state, and its document where the bytes are not the known ones. Raises OSError."""
    if stat.st_size > LARGEST:
        raise OSError(errno.EFBIG, f"it is larger than {LARGEST >> 20} MB", str(file))
    data = file.read_bytes()
    text = files.decode(data)
    settled = time.time_ns() - stat.st_mtime_ns > FRESH_NS
    state = FileState(files.digest(data), stat.st_mtime_ns if settled else -1, stat.st_size, text.flaw)
    if known is not None and known.hash == state.hash:
        return state, None
    return state, documents.document(path, text.text, settings)
