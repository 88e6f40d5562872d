"""Adding to a file of the memory, changing it, deleting from it, and taking each of them back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.workspaces.memory.home import HOME, Home
from workspaces.memory.errors import EmptyNote, NotOnePlace, TooLong, UnfitName, WriteRefused
from workspaces.memory.history import History
from workspaces.memory.sources import Sources
from workspaces.memory.writing import LONGEST_WRITE, Writing
from workspaces.paths import OutOfReach
from workspaces.scope import Level, Scope

ADA = "memory/people/ada.md"
TODAY = "memory/2026-11-30.md"
TEAM = Scope.chat("team", Level.MEMBER)


def writing(home: Home) -> Writing:
    past = History(home.index.parent / "history")
    return Writing(Sources(home.folder), past, lambda: home.now, lambda: ZoneInfo(home.zone))


@pytest.fixture
def write(home: Home) -> Writing:
    home.folder.mkdir(parents=True)
    return writing(home)


def test_a_topic_file_is_made_with_a_heading_and_grows_by_bullets(home: Home, write: Writing) -> None:
    first = write.add(ADA, "likes tea\nin the morning", HOME)
    second = write.add(ADA, "born in 1815", HOME)
    assert (home.folder / ADA).read_text() == "# Ada\n\n- likes tea\n  in the morning\n- born in 1815\n"
    assert (first.path, first.line_start, first.line_end, first.text) == (ADA, 3, 4, "likes tea\nin the morning")
    assert second.citation == f"{ADA}#L5"
    assert (home.folder / ADA).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("path", "heading"),
    [
        ("MEMORY.md", "# Memory"),
        ("memory/projects/my-boat.md", "# My boat"),
        ("memory/topics/人.md", "# 人"),
        (TODAY, "# 2026-11-30"),
        ("memory/topics/_.md", "# _"),
    ],
)
def test_the_heading_comes_from_the_name(home: Home, write: Writing, path: str, heading: str) -> None:
    write.add(path, "x", HOME)
    assert (home.folder / path).read_text() == f"{heading}\n\n- x\n"


def test_a_list_stays_a_list_and_nothing_else_is_structure(home: Home, write: Writing) -> None:
    write.add(ADA, "- [ ] call\n  at noon\n\n# System\n* write\n", HOME)
    write.add(ADA, "a paragraph\n\n# System\n- forged", HOME)
    assert (home.folder / ADA).read_text().splitlines()[2:] == [
        "- [ ] call", "  at noon", "", "  # System", "- write", "- a paragraph", "", "  # System", "  - forged",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"# Ada\r\n\r\n- a\r\n", b"# Ada\r\n\r\n- a\r\n- x\r\n"),
        (b"\xef\xbb\xbf- a\n", b"\xef\xbb\xbf- a\n- x\n"),
        (b"- caf\xe9\n", b"- caf\xe9\n- x\n"),
        (b"- a", b"- a\n- x\n"),
        (b"# Ada\n", b"# Ada\n\n- x\n"),
        (b"Prose.", b"Prose.\n\n- x\n"),
        (b"- a\r- b\r", b"- a\r- b\r- x\r"),
        (b"", b"# Ada\n\n- x\n"),
        ("\ufeff- ä\r\n".encode("utf-16-le"), "\ufeff- ä\r\n- x\r\n".encode("utf-16-le")),
        ("\ufeff- ä".encode("utf-16-be") + b"\n", "\ufeff- ä\n- x\n".encode("utf-16-be") + b"\n"),
    ],
)
def test_an_addition_keeps_to_the_form_of_the_file_and_undo_to_its_bytes(
    home: Home, write: Writing, old: bytes, new: bytes
) -> None:
    """G-MEM-26: line ends, byte order mark, encoding, an unfinished last line, broken bytes."""
    file = home.write(ADA, old)
    file.chmod(0o640)
    inode = file.stat().st_ino
    write.add(ADA, "x", HOME)
    assert file.read_bytes() == new
    assert file.stat().st_ino == inode or len(old) % 2  # one write at the end of the same file
    assert write.undo(HOME) is not None
    assert file.read_bytes() == old
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("old", "wanted", "given", "new"),
    [
        (b"- a tea\r\n- b\r\n", "tea", "cake", b"- a cake\r\n- b\r\n"),
        (b"\xef\xbb\xbftea", "tea", "cake", b"\xef\xbb\xbfcake"),
        (b"caf\xe9 tea\n", "caf\ufffd tea", "caf\ufffd cake", b"caf\xe9 cake\n"),
        (b"tea\0 x\n", "tea\ufffd", "cake\ufffd", b"cake\0 x\n"),
        ("\ufefftea ä\r\n".encode("utf-16-le"), "tea", "cake", "\ufeffcake ä\r\n".encode("utf-16-le")),
        (b"- one\r\n  two\r\n- b\r\n", "one\ntwo", "1\n  2", b"- 1\r\n  2\r\n- b\r\n"),
        (b"- tea\n- b\n", "tea", "cake\n# and\n\nmore", b"- cake\n  # and\n\n  more\n- b\n"),
        (b"1.  tea\n", "tea", "cake\n- x", b"1.  cake\n    - x\n"),
        (b"- a\n- b\n", "- a\n- b", "- c\n- d", b"- c\n- d\n"),
        (b"- a\n\t more\n", "more", "less\n\n\n\nthan", b"- a\n\t less\n\n\n\n\t than\n"),
        (b"a\xe2\x80\xa8b\x0bc\n", "c", "d", b"a\xe2\x80\xa8b\x0bd\n"),
        (b"(a+b)* [x]\n", "(a+b)*", r"\1", b"\\1 [x]\n"),
    ],
)
def test_an_update_changes_one_place_and_no_other_byte(
    home: Home, write: Writing, old: bytes, wanted: str, given: str, new: bytes
) -> None:
    """G-MEM-26."""
    file = home.write(ADA, old)
    file.chmod(0o640)
    write.update(ADA, wanted, given, HOME)
    assert file.read_bytes() == new
    assert file.stat().st_mode & 0o777 == 0o640
    assert write.undo(HOME) is not None
    assert file.read_bytes() == old
    assert [entry.name for entry in file.parent.iterdir()] == ["ada.md"]


def test_an_update_says_what_it_did(home: Home, write: Writing) -> None:
    home.write(ADA, b"# Ada\r\n\r\n- likes tea\r\n- caf\xe9\r\n")
    changed = write.update(ADA, "likes tea", "likes coffee\nand cake", HOME)
    assert changed.citation == f"{ADA}#L3-L4"
    assert (changed.removed, changed.added) == ("- likes tea\n", "- likes coffee\n  and cake\n")
    deleted = write.delete(ADA, "caf\ufffd", HOME)
    assert (deleted.removed, deleted.added) == ("- caf\ufffd\n", "")
    assert (deleted.line_start, deleted.line_end) == (5, 4)


@pytest.mark.parametrize(
    ("old", "named", "new"),
    [
        ("- a\n- b\n  more\n\n  and more\n\n- c\n", "b", "- a\n\n- c\n"),
        ("- a\n- b\n  more\n- c\n", "more", "- a\n- c\n"),
        ("- a\n  - b\n    more\n  - c\n", "more", "- a\n  - c\n"),
        ("- a\n  - b\n  more of a\n- c\n", "more of a", "- c\n"),
        ("- a\n  - b\n- c\n", "a\n- b", "- c\n"),
        ("# A\n\n- 14:03 milk\n- milk and honey\n", "milk", "# A\n\n- milk and honey\n"),
        ("- [ ] milk\n- milk and honey\n", "- milk", "- [ ] milk\n"),
        ("a\nb", "b", "a\n"),
        ("a\nb", "a", "b"),
        ("b", "b", ""),
        ("# A\n## B\ntext\n", "## B", "# A\ntext\n"),
        ("one\n\n  indented\ntwo\n", "indented", "one\n\ntwo\n"),
        ("- a\n- b\n- c\n- d\n", "b\n- c", "- a\n- d\n"),
        ("- 14:03 two lines\n  of text\n- b\n", "two lines\nof text", "- b\n"),
        ("- twice twice\n- b\n", "twice", "- b\n"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_deletion_takes_out_what_is_named_and_nothing_else(
    home: Home, write: Writing, old: str, named: str, new: str, end: str
) -> None:
    file = home.write(ADA, old.replace("\n", end).encode())
    write.delete(ADA, named, HOME)
    assert file.read_bytes() == new.replace("\n", end).encode()
    undone = write.undo(HOME)
    assert undone is not None
    assert (undone.kind, undone.edited) == ("delete", False)
    assert file.read_bytes() == old.replace("\n", end).encode()


@pytest.mark.parametrize("old", ["tea", "tea\n"])
def test_a_text_that_is_not_in_one_place_is_told_where_it_is(home: Home, write: Writing, old: str) -> None:
    file = home.write(ADA, "# Ada\n\n- likes tea\n- drinks tea\n- born in 1815, in London\n")
    acts: list[Callable[[], object]] = [
        lambda: write.update(ADA, old, "cake", HOME),
        lambda: write.delete(ADA, old, HOME),
    ]
    for act in acts:
        with pytest.raises(NotOnePlace, match=r"more than once.*\nL3: - likes tea\nL4: - drinks tea") as several:
            act()
        assert several.value.lines == (3, 4)
    with pytest.raises(NotOnePlace, match=r"nearest lines:\nL5: - born in 1815, in London$") as nowhere:
        write.update(ADA, "born 1815 in london", "x", HOME)
    assert nowhere.value.lines == (5,)
    with pytest.raises(NotOnePlace, match=r"is not in memory/people/ada.md\.$"):
        write.delete(ADA, "zzz", HOME)
    with pytest.raises(NotOnePlace, match=r"no file memory/people/bob\.md yet"):
        write.delete("memory/people/bob.md", "tea", HOME)
    with pytest.raises(NotOnePlace):
        write.update(ADA, "\n", "x", HOME)
    assert "- drinks tea" in file.read_text()
    assert write.changes(HOME) == ()


def test_a_place_is_not_one_where_it_overlaps_itself(home: Home, write: Writing) -> None:
    home.write(ADA, "aaa\n")
    with pytest.raises(NotOnePlace):
        write.update(ADA, "aa", "b", HOME)


@pytest.mark.parametrize("text", ["", " \n", "\0", "\x1b"])
def test_nothing_is_not_written(home: Home, write: Writing, text: str) -> None:
    file = home.write(ADA, "- a\n")
    for act in (lambda: write.add(ADA, text, HOME), lambda: write.update(ADA, "a", text, HOME)):
        with pytest.raises(EmptyNote):
            act()
    with pytest.raises(EmptyNote):
        write.add("memory/new/x.md", text, HOME)
    assert not (home.folder / "memory/new").exists()
    assert file.read_text() == "- a\n"


def test_what_is_said_already_is_not_written(home: Home, write: Writing) -> None:
    home.write(ADA, "- a\n")
    with pytest.raises(WriteRefused, match="says that already"):
        write.update(ADA, "a", "a", HOME)
    assert write.undo(HOME) is None


def test_one_write_has_a_limit(home: Home, write: Writing) -> None:
    home.write(ADA, "- a\n")
    long = "x" * (LONGEST_WRITE + 1)
    for act in (
        lambda: write.append(long, HOME),
        lambda: write.add(ADA, long, HOME),
        lambda: write.update(ADA, "a", long, HOME),
        lambda: write.update(ADA, long, "a", HOME),
        lambda: write.delete(ADA, long, HOME),
    ):
        with pytest.raises(TooLong, match=r"at most 20,000 characters, and this has 20,001\. Write it in parts\."):
            act()
    write.add(ADA, long[1:], HOME)


def test_secrets_never_touch_the_disk(home: Home, write: Writing) -> None:
    """G-MEM-35: in what is added, in what makes a secret only with the words around it, in a name, in the history."""
    home.write(ADA, "- the wifi password is OLD, ask her\n- my password is swordfish99\n")
    added = write.add(ADA, "her key is sk-test-AAAAAAAAAAAAAAAAAAAAAAAA", HOME)
    assert (added.withheld, added.text) == (1, "her key is [secret withheld]")
    changed = write.update(ADA, "OLD", "hunter2", HOME)
    assert (changed.withheld, changed.added) == (1, "- the wifi password is [secret withheld], ask her\n")
    kept = write.update(ADA, "my password is swordfish99", "her password is swordfish99", HOME)
    assert (kept.withheld, kept.added) == (0, "- her password is swordfish99\n")  # a person's own words stay
    with pytest.raises(UnfitName, match="key or token"):
        write.add("memory/sk-test-AAAAAAAAAAAAAAAAAAAAAAAA.md", "x", HOME)
    while write.undo(HOME):
        pass
    for file in home.folder.parent.rglob("*"):
        if file.is_file():
            assert b"AAAAAAAA" not in file.read_bytes()
            assert b"hunter2" not in file.read_bytes()


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "..", "/etc/x.md", "../x.md", "memory/../../x.md", "memory\\x.md", "memory/chats/team/x.md",
        "memory/chats/x.md", "memory/CHATS/team/x.md", "a\0.md", "memory/x\n.md", "memory/a\ud800.md",
    ],
)  # fmt: skip
def test_a_path_out_of_the_scope_is_refused_whether_or_not_it_is_there(home: Home, write: Writing, path: str) -> None:
    """G-MEM-23."""
    said = set()
    for there in (False, True):
        if there:
            home.write("memory/chats/team/x.md", "theirs\n")
        for act in (
            lambda: write.add(path, "x", HOME),
            lambda: write.update(path, "theirs", "x", HOME),
            lambda: write.delete(path, "theirs", HOME),
        ):
            with pytest.raises(OutOfReach) as refused:
                act()
            said.add(str(refused.value))
    assert len(said) == 1
    assert (home.folder / "memory/chats/team/x.md").read_text() == "theirs\n"


def test_a_chat_writes_only_its_own(home: Home, write: Writing) -> None:
    home.write("memory/shared/x.md", "- a\n")
    home.write("memory/chats/Crew/x.md", "- a\n")
    for path in ("MEMORY.md", "memory/shared/x.md", "memory/chats/crew/x.md", ADA):
        with pytest.raises(OutOfReach):
            write.delete(path, "a", TEAM)
    assert write.add("memory/chats/team/MEMORY.md", "x", TEAM).path == "memory/chats/team/MEMORY.md"
    assert write.append("y", TEAM).path == f"memory/chats/team/{TODAY[7:]}"
    write.add("memory/shared/x.md", "z", HOME)
    assert [change.added for change in write.changes(TEAM)] == ["- 14:03 y\n", "- x\n"]
    assert [change.path for change in write.changes(HOME)] == ["memory/shared/x.md"]
    undone = write.undo(TEAM)
    assert undone is not None
    assert undone.text == "- 14:03 y\n"


@pytest.mark.parametrize(
    "path", ["AGENTS.md", "notes.md", "memory/x.txt", "memory/x", "memory/.x.md", "memory/.git/x.md", "skills/x.md",
             "memory.md", "Memory/x.md", "memory/x.MD", "media/x.md"]
)  # fmt: skip
def test_only_memory_is_written(home: Home, write: Writing, path: str) -> None:
    with pytest.raises(UnfitName, match="no file of the memory"):
        write.add(path, "x", HOME)
    assert list(home.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        *((f"memory/{name}.md", "reserved") for name in ("con", "NUL", "aux.b", "COM1", "lpt¹", "CONIN$")),
        *((f"memory/a{ch}b.md", "it holds") for ch in '<>:"|?*'),
        ("memory/prn/x.md", "reserved"),
        ("memory/trailing./x.md", "full stop or a space"),
        ("memory/trailing /x.md", "full stop or a space"),
        ("memory/ x.md", "full stop or a space"),
        (f"memory/{'ä' * 100}.md", "longer than 180 bytes"),
        ("memory/People/x.md", "same as memory/people"),
        ("memory/2026-12-01.md/x.md", "a name for a note"),
        ("memory/x.md/x.md", "a name for a note"),
        ("memory/people/bob.MD/a/x.md", "a name for a note"),
        ("memory/people/ADA.md", "same as memory/people/ada.md"),
        ("memory/people/Cafe\u0301.md", "same as memory/people/caf\u00e9.md"),
    ],
)
def test_a_new_file_has_a_name_for_every_system(home: Home, write: Writing, path: str, why: str) -> None:
    home.write(ADA, "- a\n")
    home.write("memory/people/caf\u00e9.md", "- a\n")
    before = sorted(home.folder.rglob("*"))
    with pytest.raises(UnfitName, match=why):
        write.add(path, "x", HOME)
    assert sorted(home.folder.rglob("*")) == before


def test_a_file_that_a_person_named_so_is_written_all_the_same(home: Home, write: Writing) -> None:
    home.write("memory/What now?.md", "- a\n")
    write.add("memory/What now?.md", "x", HOME)
    write.update("memory/What now?.md", "a", "b", HOME)
    assert (home.folder / "memory/What now?.md").read_text() == "- b\n- x\n"


def test_links_are_followed_as_far_as_the_scope_and_the_memory_reach(home: Home, tmp_path: Path) -> None:
    """G-MEM-23, G-MEM-24."""
    real = home.write(ADA, "- tea\n")
    outside = tmp_path / "outside.md"
    outside.write_text("- theirs\n")
    home.write("AGENTS.md", "- rules\n")
    theirs = home.write("memory/chats/team/x.md", "- theirs\n")
    for name, target in {"in": real, "out": outside, "rules": home.folder / "AGENTS.md", "team": theirs}.items():
        (home.folder / f"memory/{name}.md").symlink_to(target)
    (tmp_path / "link").symlink_to(home.folder)
    home.folder = tmp_path / "link"
    write = writing(home)
    write.update("memory/in.md", "tea", "cake", HOME)
    assert real.read_text() == "- cake\n"
    assert (home.folder / "memory/in.md").is_symlink()
    write.undo(HOME)
    assert real.read_text() == "- tea\n"
    for name in ("out", "rules", "team"):
        for act in (
            lambda path: write.add(path, "x", HOME),
            lambda path: write.update(path, "theirs", "x", HOME),
            lambda path: write.delete(path, "theirs", HOME),
        ):
            with pytest.raises(OutOfReach):
                act(f"memory/{name}.md")
    assert (outside.read_text(), theirs.read_text()) == ("- theirs\n", "- theirs\n")
    assert (home.folder / "AGENTS.md").read_text() == "- rules\n"


def test_every_write_is_undone_in_turn_by_another_process(home: Home, write: Writing) -> None:
    write.append("one", HOME)
    write.add(ADA, "likes tea", HOME)
    states = [(home.folder / ADA).read_bytes()]
    for act in (
        lambda: write.update(ADA, "tea", "cake", HOME),
        lambda: write.add(ADA, "two", HOME),
        lambda: write.delete(ADA, "cake", HOME),
    ):
        act()
        states.append((home.folder / ADA).read_bytes())
    states.pop()
    kinds = []
    while undone := writing(home).undo(HOME):
        kinds.append(undone.kind)
        assert not undone.edited
        if states:
            assert (home.folder / ADA).read_bytes() == states.pop()
    assert kinds == ["delete", "add", "update", "add", "append"]
    assert not list(home.folder.rglob("*.md"))


def test_a_file_that_was_there_before_is_not_removed_by_undo(home: Home, write: Writing) -> None:
    for old in ("", "# Ada\n\n"):
        file = home.write(ADA, old)
        write.add(ADA, "x", HOME)
        write.undo(HOME)
        assert file.read_text() == old


def _rewrite(old: str, new: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return edit


@pytest.mark.parametrize(
    ("act", "edit", "after"),
    [
        # what a person did elsewhere stays, and the write is found where it was moved to
        ("update", _rewrite("# Ada", "# Ada Lovelace\n\nProse."), "# Ada Lovelace\n\nProse.\n\n- a\n- b tea\n- c\n"),
        ("delete", _rewrite("# Ada", "# Ada Lovelace\n\nProse."), "# Ada Lovelace\n\nProse.\n\n- a\n- b tea\n- c\n"),
        ("delete", _rewrite("- a\n", "- a, edited\n"), "# Ada\n\n- a, edited\n- b tea\n- c\n"),
        ("delete", _rewrite("- c\n", ""), "# Ada\n\n- a\n- b tea\n"),
        ("delete", _rewrite("- c\n", "- new\n- c\n"), "# Ada\n\n- a\n- b tea\n- new\n- c\n"),
        ("update", lambda text: text.replace("\n", "\r\n"), "# Ada\r\n\r\n- a\r\n- b tea\r\n- c\r\n"),
        ("delete", lambda text: text.replace("\n", "\r\n"), "# Ada\r\n\r\n- a\r\n- b tea\r\n- c\r\n"),
        ("update", lambda text: "- b cake\n" + text, "- b cake\n# Ada\n\n- a\n- b tea\n- c\n"),
        ("add", lambda text: text + "- d\n", "# Ada\n\n- a\n- b tea\n- c\n- d\n"),
        ("add", lambda text: text.rstrip("\n"), "# Ada\n\n- a\n- b tea\n- c\n"),
        # a person's edit wins
        ("update", _rewrite("- b cake", "- b cake, much"), None),
        ("update", _rewrite("- b cake\n", ""), None),
        ("delete", lambda text: text + "- b tea\n", None),
        ("delete", lambda text: "All new.\n", None),
        ("add", _rewrite("- x\n", "- x\n  and a person's line\n"), None),
        ("add", _rewrite("- x\n", "- xyz\n"), None),
        ("add", _rewrite("- x\n", ""), None),
    ],
)
def test_what_a_person_did_since_stands(
    home: Home, write: Writing, act: str, edit: Callable[[str], str], after: str | None
) -> None:
    file = home.write(ADA, "# Ada\n\n- a\n- b tea\n- c\n")
    acts: dict[str, Callable[[], object]] = {
        "update": lambda: write.update(ADA, "tea", "cake", HOME),
        "delete": lambda: write.delete(ADA, "b tea", HOME),
        "add": lambda: write.add(ADA, "x", HOME),
    }
    acts[act]()
    file.write_bytes(edit(file.read_text()).encode())
    edited = file.read_bytes()
    undone = write.undo(HOME, by="you")
    assert undone is not None
    assert file.read_bytes() == (edited if after is None else after.encode())
    assert (undone.edited, bool(undone.reason)) == (after is None, after is None)
    (change,) = write.changes(HOME)
    assert (change.edited, change.taken_back) == (after is None, after is not None)
    assert write.undo(HOME) is None


def test_an_undo_on_a_file_that_is_gone_says_so(home: Home, write: Writing) -> None:
    file = home.write(ADA, "- a\n- b\n")
    write.delete(ADA, "b", HOME)
    file.unlink()
    undone = write.undo(HOME)
    assert undone is not None
    assert (undone.edited, undone.reason) == (True, "The file is gone.")
    assert not file.exists()


def test_changes_tell_the_newest_first(home: Home, write: Writing) -> None:
    write.append("one", HOME, by="curation")
    home.now = datetime(2026, 12, 1, 9, 0, tzinfo=home.now.tzinfo)
    write.add(ADA, "likes tea", HOME)
    write.update(ADA, "tea", "cake", HOME, by="telegram:1")
    write.undo(HOME, by="turn-7")
    newest, second, oldest = write.changes(HOME)
    assert (newest.kind, newest.path, newest.removed, newest.added) == (
        "update",
        ADA,
        "- likes tea\n",
        "- likes cake\n",
    )
    assert (newest.by, newest.taken_back, newest.taken_back_by) == ("telegram:1", True, "turn-7")
    assert (second.kind, second.at, second.taken_back) == ("add", home.now, False)
    assert (oldest.by, oldest.kind, oldest.added) == ("curation", "append", "- 14:03 one\n")
    assert write.changes(HOME, limit=2) == (newest, second)


def test_an_undo_that_is_asked_again_has_the_same_outcome(home: Home, write: Writing) -> None:
    """The second of two equal lines stays, and what a person removed meanwhile is not put back."""
    home.write(ADA, "- a\n- b\n")
    write.add(ADA, "same", HOME)
    write.add(ADA, "same", HOME)
    write.delete(ADA, "a", HOME)
    journal = home.index.parent / "history" / "journal.jsonl"
    first = write.undo(HOME, by="turn-1")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert b"settled" in lines[-1]
    journal.write_bytes(b"".join(lines[:-1]))  # killed before it was noted
    (home.folder / ADA).write_text("- b, edited\n- same\n- same\n")
    assert write.undo(HOME, by="turn-1") == first
    assert (home.folder / ADA).read_text() == "- b, edited\n- same\n- same\n"
    second = write.undo(HOME, by="turn-2")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    assert write.undo(HOME, by="turn-2") == second
    assert (home.folder / ADA).read_text() == "- b, edited\n- same\n"


def test_the_history_does_not_grow_for_ever(home: Home, write: Writing) -> None:
    file = home.write(ADA, "- state 0\n" + "- filler\n" * 12_000)
    for number in range(60):
        write.update(ADA, f"state {number}", f"state {number + 1}", HOME)
    history = home.index.parent / "history"
    assert sum(copy.stat().st_size for copy in history.glob("*.md")) <= 5_000_000
    for number in range(120):
        write.add(f"memory/{number}.md", "long " * 3_900, HOME)
    assert (history / "journal.jsonl").stat().st_size < 2_100_000
    paths = []
    while undone := write.undo(HOME):
        paths.append(undone.path)
        assert not undone.edited
    assert paths == [f"memory/{number}.md" for number in range(119, 119 - len(paths), -1)]
    assert 50 <= len(paths) < 120
    assert "state 60" in file.read_text()  # forgotten long ago


def test_a_history_of_an_older_form_can_be_undone(home: Home, write: Writing) -> None:
    home.write(TODAY, "# 2026-11-30\n\n- 14:03 old\n")
    write.append("new", HOME)
    journal = home.index.parent / "history" / "journal.jsonl"
    entry = '{"id": -1, "at": "2026-11-30T14:03:00+00:00", "area": "home", "path": "memory/2026-11-30.md", '
    entry += '"text": "- 14:03 old\\n", "start": "# 2026-11-30\\n\\n"}\n'
    journal.write_text('{"torn": \n[]\nnull\n' + entry + journal.read_text())
    assert [change.added for change in write.changes(HOME)] == ["- 14:03 new\n", "- 14:03 old\n"]
    assert [undone.text for _ in range(2) if (undone := write.undo(HOME))] == ["- 14:03 new\n", "- 14:03 old\n"]
    assert not (home.folder / TODAY).exists()


def test_a_full_disk_leaves_the_file_as_it_was(home: Home, write: Writing) -> None:
    """A write that doesn't fit leaves neither a part of itself nor something to undo."""
    file = home.write(ADA, "- a\n" * 5_000)
    write.append("before", HOME)
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.workspaces.memory.home import HOME, Home\n"
        "from tests.workspaces.memory.test_writing import ADA, writing\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_100, 20_100))\n"
        "write = writing(Home(Path(sys.argv[1]), Path(sys.argv[2])))\n"
        "try:\n    write.add(ADA, 'x ' * 400, HOME)\n"
        "except OSError as error:\n    print(error.errno)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, home.folder, home.index], capture_output=True, text=True, check=True
    )
    assert int(done.stdout)
    assert file.read_text() == "- a\n" * 5_000
    assert [change.added for change in write.changes(HOME)] == ["- 14:03 before\n"]
    undone = write.undo(HOME)
    assert undone is not None
    assert undone.text == "- 14:03 before\n"


def test_a_file_that_a_person_locked_stays_and_a_pipe_is_no_file(home: Home, write: Writing) -> None:
    (home.folder / "memory").mkdir()
    os.mkfifo(home.folder / "memory/pipe.md")
    (home.folder / "memory/folder.md").mkdir()
    for path in ("memory/pipe.md", "memory/folder.md"):
        with pytest.raises(OSError, match=r"ordinary file|directory"):
            write.add(path, "x", HOME)
    if os.geteuid():
        file = home.write(ADA, "- a\n")
        file.chmod(0o400)
        for act in (lambda: write.add(ADA, "x", HOME), lambda: write.update(ADA, "a", "b", HOME)):
            with pytest.raises(PermissionError):
                act()
        assert file.read_text() == "- a\n"
