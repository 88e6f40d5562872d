"""Everything that is written into the memory, and how it is taken back. Synchronous: called in a thread.

Each write is confined to its scope, freed of secrets, and in the journal before it is in its file. A person's edit
always wins: what changed meanwhile is read anew, and what a person changed since is not taken back. Knows no index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path

from workspaces import files, names, paths
from workspaces.confined import Confined, Located
from workspaces.key_shapes import KEY
from workspaces.memory import edits, notes, redaction, saves
from workspaces.memory.edits import Content, Edit
from workspaces.memory.errors import EmptyNote, TooLong, UnfitName, WriteRefused
from workspaces.memory.history import History, Past, Undo, Write
from workspaces.memory.results import Change, Changed, Kind, Undone, Written
from workspaces.memory.sources import Sources
from workspaces.paths import OutOfReach
from workspaces.scope import Scope

LONGEST_WRITE = 20_000
"""Characters in one write: the cap of a bootstrap file."""


class Writing:
    """Writes to the files of ``sources`` below their root.

    ``clock`` gives aware times; ``zone`` is where days begin, None for the machine's.

    Safe to use from many threads, and beside other processes. Every method raises OutOfReach for a path that the
    scope can't write, whether or not there is such a file; WriteRefused where the text or the name won't do; and
    OSError when it could not be written. Then nothing was. ``by`` is who writes, a free string, for ``changes``.
    """

    def __init__(
        self, sources: Sources, history: History, clock: Callable[[], datetime], zone: Callable[[], tzinfo | None]
    ) -> None:
        self._folder = sources.root
        self._sources = sources
        self._history = history
        self._clock = clock
        self._zone = zone

    def append(self, text: str, scope: Scope, by: str | None = None) -> Written:
        """Add a bullet with the time to the scope's note of today."""
        now = self._now()
        clean, withheld = _clean(text)
        note = notes.bullet(clean, now)
        relative = f"{scope.notes}{now:%Y-%m-%d}.md"
        at = Confined(self._folder, scope).located(relative, write=True)
        first, last = self._add("append", relative, at, notes.heading(f"{now:%Y-%m-%d}"), note, scope, by)
        return Written(relative, first, last, clean.strip(), withheld)

    def add(self, path: str, text: str, scope: Scope, by: str | None = None) -> Written:
        """Add a bullet, or as many as ``text`` lists, at the end of a file; a new one gets a heading from its name."""
        relative, at = self._place(path, scope)
        clean, withheld = _clean(text)
        lines = notes.bullets(clean)
        if not (self._folder / at).exists():
            self._check_name(relative, scope)
        first, last = self._add("add", relative, at, notes.title(relative), lines, scope, by)
        return Written(relative, first, last, clean.strip(), withheld)

    def update(self, path: str, old: str, new: str, scope: Scope, by: str | None = None) -> Changed:
        """Put ``new`` where ``old`` stands, which is looked for as text. Raises NotOnePlace if that isn't one place."""
        relative, at = self._place(path, scope)
        _measured(old)
        fresh = notes.sanitized(_measured(new))
        if not fresh.strip():
            raise EmptyNote("There is nothing to put in its place: the new text is empty. To take it out, delete it.")
        withheld = 0

        def plan(content: Content, _: bytes) -> Edit:
            nonlocal withheld
            edit, start, end = edits.replacement(content, relative, old, fresh)
            added, withheld = redaction.redacted_within(edit.added, start, end)
            if added == edit.removed:
                raise WriteRefused(f"{relative} says that already.")
            return replace(edit, added=added)

        return replace(self._change("update", relative, at, plan, scope, by), withheld=withheld)

    def delete(self, path: str, text: str, scope: Scope, by: str | None = None) -> Changed:
        """Take out the one line, run of lines or bullet, with all below it, that ``text`` names. Raises NotOnePlace."""
        relative, at = self._place(path, scope)
        if not _measured(text).strip():
            raise EmptyNote("There is nothing to delete: the text is empty.")
        return self._change(
            "delete", relative, at, lambda content, _: edits.deletion(content, relative, text), scope, by
        )

    def undo(self, scope: Scope, by: str | None = None) -> Undone | None:
        """Take back the last write in this scope; None when there is none. What a person edited since stays.

        A second call goes on to the write before, unless both are ``by`` the same: then it is the first, asked again
        after a crash, and has the same outcome.
        """
        with self._history.undoing():
            while (undo := self._history.undo(scope.area, by)) is not None:
                if (undone := self._take_back(undo, scope, by)) is not None:
                    return undone
        return None

    def changes(self, scope: Scope, limit: int = 20) -> tuple[Change, ...]:
        """The last writes in this scope, newest first, as far back as the history goes."""
        found: list[Change] = []
        for past, known in self._history.past(scope.area):
            if len(found) >= limit:
                break
            if known or self._is_left(past.write, scope):
                found.append(_as_change(past))
        return tuple(found)

    def _now(self) -> datetime:
        return self._clock().astimezone(self._zone())

    def _place(self, path: str, scope: Scope) -> tuple[str, Located]:
        """What ``path`` is called in the workspace and where it leads, if it is one for a file of the memory."""
        clean = paths.normalised(path)
        if clean is None or not scope.may_write(clean):
            raise OutOfReach(path)
        if not clean.endswith(".md") or not self._sources.includes(clean):
            raise UnfitName(
                f"{path!r} is no file of the memory. Those are MEMORY.md, USER.md and what ends in .md below memory/, "
                "such as memory/people/ada.md."
            )
        at = Confined(self._folder, scope).located(path, write=True)
        if not self._sources.includes(at):
            raise OutOfReach(path)
        return clean, at

    def _check_name(self, path: str, scope: Scope) -> None:
        """Refuse a new file under a name that some system doesn't take, or takes for that of another file."""
        own = path.removeprefix(scope.folder)
        folder = self._folder / path.removesuffix(own)
        if note := next((name for name in own.split("/")[:-1] if name.casefold().endswith(".md")), ""):
            raise UnfitName(f"{note!r} is a name for a note, not for a folder. Choose another folder.")
        for name in own.split("/"):
            if KEY.search(name):
                raise UnfitName("A file's name can't hold a key or token. Choose another name.")
            if flaw := names.flaw(name):
                raise UnfitName(f"A file can't be called {name!r} on every system: {flaw}. Choose another name.")
            there = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
            twin = next((other for other in there if other != name and names.same(other, name)), None)
            if twin and name not in there:
                known = (folder / twin).relative_to(self._folder).as_posix()
                raise UnfitName(f"{name!r} is the same as {known} on some systems. Write to that one.")
            folder /= name

    def _add(
        self, kind: Kind, path: str, at: Located, heading: str, lines: str, scope: Scope, by: str | None
    ) -> tuple[int, int]:
        saved = self._save(kind, path, at, lambda content, _: edits.addition(content, heading, lines), scope, by)
        return saved.edit.lines(saved.content)

    def _change(self, kind: Kind, path: str, at: Located, plan: saves.Plan, scope: Scope, by: str | None) -> Changed:
        saved = self._save(kind, path, at, plan, scope, by)
        first, last = saved.edit.lines(saved.content)
        return Changed(path, first, last, edits.shown(saved.edit.removed), edits.shown(saved.edit.added))

    def _save(self, kind: Kind, path: str, at: Located, plan: saves.Plan, scope: Scope, by: str | None) -> saves.Save:
        """Write what ``plan`` says, in the journal first."""
        write: Write | None = None

        def before(save: saves.Save) -> None:
            nonlocal write
            if write is not None:  # the try before did not stay in the file
                self._history.settle(write, self._now(), taken_back=None)
            edit = save.edit
            above, below = edit.context(save.content)
            write = self._history.begin_write(
                Write(
                    id=0, at=self._now().isoformat(), area=scope.area, path=path, text=edit.added, start=edit.start,
                    kind=kind, removed=edit.removed, offset=edit.at, before=above, after=below,
                    left=files.digest(save.new).hex(), new=save.content.new, by=by,
                )
            )  # fmt: skip
            if edit.removed:
                self._history.keep(write, save.old, kind)

        def after() -> None:
            if write is not None:
                self._history.end_write(write)

        saved = self._put(at, scope, plan, before, after, make=kind in ("append", "add"))
        if saved is None:
            raise WriteRefused(f"There was nothing to write to {path}.")
        return saved

    def _put(
        self,
        at: Located,
        scope: Scope,
        plan: saves.Plan,
        before: Callable[[saves.Save], None],
        after: Callable[[], None] = lambda: None,
        *,
        make: bool = False,
    ) -> saves.Save | None:
        """As ``saves.save``; ``make``: a folder that is missing is made, else there is no file to change."""
        if not make and not (self._folder / at).parent.is_dir():
            plan(Content(new=True), b"")
            return None
        with Confined(self._folder, scope).folder_of(at, make=make) as (folder, name):
            return saves.save(Path(name), plan, before, after, dir_fd=folder)

    def _take_back(self, undo: Undo, scope: Scope, by: str | None) -> Undone | None:
        """What became of the write; None where it never reached its file."""
        write, reason = undo.write, ""
        if undo.taken_back is not None:
            return _as_undone(write, undo.taken_back, "A person's edit stands.")

        def plan(content: Content, old: bytes) -> Edit | None:
            nonlocal reason
            digest = files.digest(old).hex()
            if undo.read and undo.read != digest:  # it was done; whatever is there now is somebody's
                return None
            edit, reason = edits.undone(content, digest, write)
            return edit

        def before(save: saves.Save) -> None:
            self._history.begin(write, self._clock(), by, files.digest(save.old).hex())
            self._history.keep(write, save.old)

        at = Confined(self._folder, scope).located(write.path, write=True)
        done = self._put(at, scope, plan, before) is not None or undo.begun
        if not done:
            if not self._history.was_written(write):
                self._history.settle(write, self._clock(), taken_back=None)
                return None
            self._history.begin(write, self._clock(), by)
        self._history.settle(write, self._clock(), taken_back=done)
        return _as_undone(write, done, reason)

    def _is_left(self, write: Write, scope: Scope) -> bool:
        """Whether a write that was cut off before it could say so is in its file."""
        try:
            reach = Confined(self._folder, scope)
            return files.digest(reach.read(reach.located(write.path, write=True))).hex() == write.left
        except (OutOfReach, OSError):
            return False


def _clean(text: str) -> tuple[str, int]:
    """Fit for a file and without secrets, and how many those were."""
    return redaction.redacted(notes.sanitized(_measured(text)))


def _measured(text: str) -> str:
    if len(text) > LONGEST_WRITE:
        raise TooLong(
            f"One write holds at most {LONGEST_WRITE:,} characters, and this has {len(text):,}. Write it in parts."
        )
    return text


def _as_undone(write: Write, done: bool, reason: str) -> Undone:
    gone, back = edits.shown(write.text), edits.shown(write.removed)
    return Undone(write.path, gone, not done, write.kind, back, "" if done else reason)


def _as_change(past: Past) -> Change:
    write = past.write
    return Change(
        datetime.fromisoformat(write.at),
        write.kind,
        write.path,
        edits.shown(write.removed),
        edits.shown(write.text),
        write.by,
        taken_back=past.taken_back is True,
        taken_back_by=past.taken_back_by if past.taken_back else None,
        edited=past.taken_back is False,
    )
