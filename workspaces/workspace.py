"""The home of an agent: its folder, made from a template, and the files that are laid before a model.

Which files those are is decided here, by scope: what is home's never reaches another audience. Nothing raises for a
file that is missing, unreadable or too long; it says so beside the text. Knows no model, no memory and no chat.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TypeAlias

from workspaces import files, paths
from workspaces.profile import read_profile
from workspaces.scope import Scope

FILE_CAP = 20_000
"""Characters of one file; what is over is left out of its middle."""

TOTAL_CAP = 60_000
"""Characters of all files together."""

TEMPLATE = Path(__file__).with_name("templates")

INTERVIEW = "BOOTSTRAP.md"
"""The first-run interview: there until it was held."""

_HOME = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", INTERVIEW, "MEMORY.md")
_SHARED = ("AGENTS.md", "SOUL.md", "IDENTITY.md")
"""The files of home that say how the agent is, and so are read in every scope."""

_READ_THROUGH = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md")
"""What a workspace that was made from a template has from there, as long as it has no file of its own."""

_CUT_FIRST = ("TOOLS.md", "USER.md", "daily", "MEMORY.md", "IDENTITY.md", "SOUL.md", INTERVIEW)
"""In which order files give way when all together are too long; AGENTS.md never does."""

_HEAD_SHARE = 0.7
"""How much of what is kept of a long file is its beginning; the end has what was added last."""


Stamp: TypeAlias = tuple[int, int, int] | None
"""Of a file: when it was changed, its size and its inode; None where there is none."""


@dataclass(frozen=True, slots=True)
class BootstrapFile:
    """A file for the prompt. ``name`` is its path in the workspace; ``warning`` is one sentence, "" when all is well.

    ``truncated``: the middle was left out, with a mark in its place that says how much. ``text`` is "" for a file that
    can't be read.
    """

    name: str
    text: str
    truncated: bool = False
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Workspace:
    """An open workspace. ``zone`` is where its days begin and end, asked each time; None means the machine's.

    ``template`` is where files are read that it has none of its own of; None where it has all its files itself.
    """

    root: Path
    clock: Callable[[], datetime]
    zone: Callable[[], tzinfo | None]
    template: Path | None = None

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        template: Path | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        zone: Callable[[], tzinfo | None] | None = None,
    ) -> Workspace:
        """The workspace in ``folder``, which is made (0700) and completed with files of the template that it lacks.

        ``template`` None takes the one that comes with the program, ``zone`` None that of USER.md. The interview is
        put there only with a new workspace. Raises OSError where the folder can't be written.
        """
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        source = template or TEMPLATE
        names = sorted(path.name for path in source.glob("*.md"))
        is_new = not any((folder / name).exists() for name in names)
        # The interview first: a workspace that was left half made is not new any more, and would never get it.
        for name in sorted(names, key=lambda name: name != INTERVIEW):
            if name != INTERVIEW or is_new:
                files.create(folder / name, (source / name).read_bytes())
        (folder / "memory").mkdir(exist_ok=True, mode=0o700)
        return cls(folder, clock, zone or (lambda: read_profile(folder).zone))

    @classmethod
    def made_from(
        cls,
        template: Path,
        folder: Path,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        zone: Callable[[], tzinfo | None] | None = None,
    ) -> Workspace:
        """The workspace in ``folder``, which is made (0700) with nothing but its memory; the rest is the template's,
        which is ``furnished``.

        There is no interview: whoever talks there is not the one who runs it. Raises OSError as ``open`` does.
        """
        (folder / "memory").mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (folder / "MEMORY.md").exists():
            files.create(folder / "MEMORY.md", (template / "MEMORY.md").read_bytes())
        return cls(folder, clock, zone or (lambda: read_profile(folder).zone), template)

    def eject(self) -> list[str]:
        """Copy what the template has and the workspace has not, so that no change there reaches it; what was copied."""
        if self.template is None:
            return []
        found = [name for name in _READ_THROUGH if (self.template / name).exists()]
        return [name for name in found if files.create(self.root / name, (self.template / name).read_bytes())]

    @property
    def today(self) -> date:
        """The day it is where the agent is."""
        return self.clock().astimezone(self.zone()).date()

    def bootstrap(self, scope: Scope, most: int = TOTAL_CAP) -> tuple[BootstrapFile, ...]:
        """What a model is given at the start of a session in ``scope``, in the order in which it is best read.

        Home has its own files, MEMORY.md and the notes of today and yesterday. Every other scope has the three that
        say how the agent is, and its own MEMORY.md and notes; nothing else of home's. ``most`` is in characters, for
        all files together; AGENTS.md is never cut for it.
        """
        home, own = self._names(scope)
        found = [self._read(name, Scope.home(scope.level), expected=name != INTERVIEW) for name in home]
        found += [self._read(name, scope, expected=False) for name in own]
        return _within(min(most, TOTAL_CAP), [file for file in found if file.text.strip() or file.warning])

    def stamps(self, scope: Scope) -> dict[str, Stamp]:
        """By which a change of one of the files of ``bootstrap`` is noticed, by name; None for one that isn't there."""
        return {name: self._stamp(name) for names in self._names(scope) for name in names}

    def _stamp(self, name: str) -> Stamp:
        own = _stamp(f"{self.root}/{name}")
        return _stamp(f"{self.template}/{name}") if own is None and self._is_through(name) else own

    def _is_through(self, name: str) -> bool:
        return self.template is not None and name in _READ_THROUGH

    def _names(self, scope: Scope) -> tuple[Sequence[str], Sequence[str]]:
        """The files of home that ``scope`` is given, and its own."""
        today = self.today
        days = [f"{scope.notes}{day.isoformat()}.md" for day in (today - timedelta(days=1), today)]
        return (_HOME, days) if scope.is_home else (_SHARED, [f"{scope.folder}MEMORY.md", *days])

    @property
    def awaits_interview(self) -> bool:
        """Whether the first-run interview is still to be held."""
        return os.path.exists(f"{self.root}/{INTERVIEW}")  # noqa: PTH110 - asked with each message

    def end_interview(self) -> None:
        """The interview was held, or the person would rather talk: it is not asked for again."""
        (self.root / INTERVIEW).unlink(missing_ok=True)

    def _read(self, name: str, scope: Scope, *, expected: bool) -> BootstrapFile:
        root = self.root
        if self._is_through(name) and not os.path.lexists(root / name):
            assert self.template is not None
            root = self.template
        try:
            read = files.decode(paths.resolve(root, name, scope).read_bytes())
        except FileNotFoundError:
            return BootstrapFile(name, "", warning=f"{name} is missing." if expected else "")
        except paths.OutOfReach:
            return BootstrapFile(name, "", warning=f"{name} is a link that leads out of the workspace: not read.")
        except OSError as error:
            return BootstrapFile(name, "", warning=f"{name} can't be read: {error.strerror}.")
        return BootstrapFile(name, read.text, warning=f"{name}: {read.flaw}." if read.flaw else "")


def furnished(template: Path) -> Path:
    """The folder of a template, which is made (0700) and completed with the files it lacks: a new workspace's."""
    template.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in (*_READ_THROUGH, "MEMORY.md"):
        files.create(template / name, (TEMPLATE / name).read_bytes())
    return template


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked for each file before each call of a model
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _within(total: int, found: Sequence[BootstrapFile]) -> tuple[BootstrapFile, ...]:
    """The files, each within ``FILE_CAP`` and all within ``total`` characters."""
    room = [min(len(file.text), FILE_CAP) for file in found]
    kinds = [_kind(file.name) for file in found]
    over = sum(room) - total
    for kind in _CUT_FIRST:
        for at in (at for at, its in enumerate(kinds) if its == kind):
            given = min(max(over, 0), room[at])
            room[at] -= given
            over -= given
    return tuple(_shortened(file, most) for file, most in zip(found, room, strict=True))


def _kind(name: str) -> str:
    base = name.rpartition("/")[2]
    return base if base in _HOME else "daily"


def _shortened(file: BootstrapFile, most: int) -> BootstrapFile:
    """The head and the tail of ``file`` within ``most`` characters, and a mark between them that says what is gone."""
    size = len(file.text)
    if size <= most:
        return file
    room = most - len(_mark(size, file.name))
    if room <= 0:
        warning = f"{file.name} ({size:,} characters) is left out: all files together are too long."
        return replace(file, text="", truncated=True, warning=warning)
    head = int(room * _HEAD_SHARE)
    tail = room - head
    gone = size - room
    text = file.text[:head] + _mark(gone, file.name) + file.text[size - tail :]
    return replace(file, text=text, truncated=True, warning=f"{file.name}: {gone:,} of {size:,} characters left out.")


def _mark(count: int, name: str) -> str:
    return f"\n\n[… {count:,} characters of {name} are left out here …]\n\n"
