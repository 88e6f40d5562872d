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
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workspaces import files
from workspaces.memory import documents
from workspaces.memory.index import FileState, Index, IndexUnavailable
from workspaces.memory.results import SyncReport

if TYPE_CHECKING:
    from workspaces.memory.encoder import Encoder
    from workspaces.memory.settings import MemorySettings
    from workspaces.memory.sources import Sources
    from workspaces.memory.store import Store

Progress: TypeAlias = Callable[[int, int], None]
"""Called in the loop with how many of the changed files are done, and how many there are."""

LEAST, MOST, LONG = 8, 256, 1.0
"""Units that are embedded and stored at once, as many as take about ``LONG`` seconds: so much is lost when a process
ends, and so long its end may have to wait."""

FRESH_NS = 100_000_000
"""A file changed less than this before it was read may change again within the same tick of its file system's clock
(4 ms on Linux): its time is not remembered, so that it is read once more."""


LARGEST = 64 << 20
"""Bytes of the largest file that is read; a larger one is no note, and said to be left out."""


async def reconcile(
    sources: Sources, store: Store, settings: MemorySettings, progress: Progress | None = None
) -> tuple[SyncReport, tuple[str, ...]]:
    """Bring the words up to date. Also returns a sentence for each file that can't be read, which is left as it was."""
    known = await store.run(Index.files)  # first: what another process adds after this is not taken for gone
    found = await asyncio.to_thread(sources.found)
    listed, troubles = found.files, list(found.troubles)
    todo = [path for path in listed if path not in known or not _is_same(listed[path], known[path])]
    removed = [path for path in known if path not in listed and not path.startswith(found.unread)]
    added = changed = 0
    for done, path in enumerate(todo, 1):
        try:
            file, stat = sources.file(path), listed[path]
            state, document = await asyncio.to_thread(_read, file, path, stat, known.get(path), settings)
        except OSError as error:
            troubles.append(f"{path} can't be read: {error.strerror}.")
            continue
        if document is not None:
            await store.run(Index.put, document, state)
            added += path not in known
            changed += path in known
        elif state != known.get(path):
            await store.run(Index.touch, path, state)
        if progress:
            progress(done, len(todo))
    for path in removed:
        await store.run(Index.remove, path)
    if added or changed or removed:
        await store.run(Index.shrink_log)
    return SyncReport(added, changed, len(removed), len(listed) - added - changed), tuple(troubles)


async def fill(store: Store, encoder: Encoder) -> int:
    """Give every unit that waits for a vector its own; how many were embedded. Raises EmbedderError."""
    name, embedded, size = encoder.identity[0], 0, LEAST
    while units := await store.run(Index.pending, name, size):
        texts = {unit.hash: unit.text for unit in units}
        started = time.monotonic()
        made = dict(zip(texts, await encoder.documents(list(texts.values())), strict=True))
        if time.monotonic() - started < LONG / 2:
            size = min(2 * size, MOST)
        elif time.monotonic() - started > LONG:
            size = max(size // 2, LEAST)
        await store.run(Index.fill, name, made)
        embedded += len(made)
    await store.run(Index.settle, name)
    if embedded:
        await store.run(Index.shrink_log)
    return embedded


async def carry(store: Store, known: Store, name: str) -> None:
    """Take along the vectors that an index beside it has for the same texts. What is damaged there is left there."""
    after = 0
    with suppress(IndexUnavailable):
        while units := await store.run(Index.pending, name, MOST, after):
            await store.run(Index.fill, name, await known.run(Index.known, name, [unit.hash for unit in units]))
            after = units[-1].id


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
    settled = abs(time.time_ns() - stat.st_mtime_ns) > FRESH_NS
    state = FileState(files.digest(data), stat.st_mtime_ns if settled else -1, stat.st_size, text.flaw)
    if known is not None and known.hash == state.hash:
        return state, None
    return state, documents.document(path, text.text, settings)
