"""Watches a workspace's memory and says that something changed; what changed is found by comparing, not by events.

So a save by renaming, a folder moved away that reports none of its files, and a queue that overflowed are all one
thing: a reason to compare. Events come from watchdog's thread and are handed over to the loop. Knows no index.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from watchdog.events import (
    EVENT_TYPE_CLOSED_NO_WRITE,
    EVENT_TYPE_MODIFIED,
    EVENT_TYPE_OPENED,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

if TYPE_CHECKING:
    from workspaces.memory.sources import Sources


@contextmanager
def watched(sources: Sources, changed: Callable[[], None]) -> Iterator[bool]:
    """Call ``changed`` in the running loop for each event that can have changed one of the files.

    Yields False where not all can be watched (the system's watches are used up, the disk has no events, a folder is
    not there yet): then searches have to compare.
    """
    # watchdog 7.1 says so on stderr whenever a new folder is reported twice or an old one comes back; nothing is amiss.
    warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
    loop = asyncio.get_running_loop()
    observer = Observer()
    try:
        every = sources.folders()
        there = [(folder, deep) for folder, deep in every if folder.is_dir()]
        for folder, deep in there:
            handler = _Handler(sources, folder, changed, loop)
            observer.schedule(handler, str(folder.resolve()), recursive=deep)
        observer.start()
    except OSError:
        yield False
        return
    try:
        yield len(there) == len(every)
    finally:
        observer.stop()
        observer.join()


class _Handler(FileSystemEventHandler):
    def __init__(
        self, sources: Sources, folder: Path, changed: Callable[[], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._sources = sources
        self._prefix = "" if folder == sources.root else f"{folder.as_posix()}/"
        self._folder = folder.resolve()
        self._changed = changed
        self._loop = loop

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in (EVENT_TYPE_OPENED, EVENT_TYPE_CLOSED_NO_WRITE):
            return
        if event.is_directory and event.event_type == EVENT_TYPE_MODIFIED:
            return  # said of a folder for every change of a file in it, which says so itself
        if any(self._is_memory(path, event.is_directory) for path in (event.src_path, event.dest_path) if path):
            self._loop.call_soon_threadsafe(self._changed)

    def _is_memory(self, path: bytes | str, is_directory: bool) -> bool:
        try:
            relative = PurePath(os.fsdecode(path)).relative_to(self._folder)
        except ValueError:
            return False
        return self._sources.includes(self._prefix + relative.as_posix(), folder=is_directory)
