"""The audience of a turn, as the part of a workspace that it may read and write.

A workspace is divided into areas, and every path in it lies in exactly one: ``memory/chats/<id>/`` is the area of one
chat, ``memory/shared/`` is read by all and written by the home area only, and everything else is home. A ``Scope`` is
made once a turn, outside this package, and is a required argument of everything that takes a path. It knows no
platform: which chat is which area is decided in ``bot/scope.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

HOME = "home"
SHARED = "shared"
CHATS = "memory/chats/"


class Level(IntEnum):
    """How far a person is trusted. The level of a turn is the lowest of those whose words it answers."""

    GUEST = 1
    MEMBER = 2
    OWNER = 3


def area_of(path: str) -> str:
    """The area that a workspace-relative, normalised POSIX path lies in."""
    if path.startswith(CHATS):
        return "chats/" + path[len(CHATS) :].split("/", 1)[0]
    return SHARED if path.startswith("memory/shared/") else HOME


@dataclass(frozen=True, slots=True)
class Scope:
    """What one turn may read and write: sets of areas. ``area`` is the one its own notes go to."""

    area: str
    read: frozenset[str]
    write: frozenset[str]
    level: Level

    @classmethod
    def home(cls, level: Level = Level.OWNER) -> Scope:
        """The owner's own: every file outside ``memory/chats/``."""
        return cls(HOME, frozenset({HOME, SHARED}), frozenset({HOME, SHARED}), level)

    @classmethod
    def chat(cls, name: str, level: Level) -> Scope:
        """One other audience; ``name`` is a portable file name (see ``workspaces.names``)."""
        area = f"chats/{name}"
        return cls(area, frozenset({area, SHARED}), frozenset({area}), level)

    @property
    def is_home(self) -> bool:
        return self.area == HOME

    @property
    def folder(self) -> str:
        """Where this scope's MEMORY.md lies, relative to the workspace: "" for home, else ending in "/"."""
        return "" if self.is_home else f"memory/{self.area}/"

    @property
    def notes(self) -> str:
        """The folder of this scope's daily notes, relative to the workspace, ending in "/"."""
        return "memory/" if self.is_home else self.folder

    def may_read(self, path: str) -> bool:
        return area_of(path) in self.read

    def may_write(self, path: str) -> bool:
        return area_of(path) in self.write
