"""Any order of writes, a person's edits and undos: nothing of the person's is lost, and undo restores every byte."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.workspaces.memory.home import HOME, Home
from tests.workspaces.memory.test_writing import ADA, writing
from workspaces.memory.edits import Content
from workspaces.memory.errors import WriteRefused
from workspaces.memory.writing import Writing

WORDS = st.text(st.sampled_from("ab cä人🎩-#`*1.\n\t\ud800\0"), min_size=1, max_size=12)
LINES = st.lists(
    st.sampled_from(
        ["- a", "- b", "  c", "\tc", "", "# h", "text", "- a b", "    - d", "```", "2. e", "caf\udce9", "a\0"]
    ),
    max_size=8,
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
FORMS: dict[str, Callable[[str], bytes]] = {
    "utf-8": lambda text: text.encode("utf-8", "surrogateescape"),
    "bom": lambda text: b"\xef\xbb\xbf" + text.encode("utf-8", "surrogateescape"),
    "utf-16": lambda text: b"\xff\xfe" + text.encode("utf-16-le", "surrogatepass"),
    "odd": lambda text: b"\xfe\xff" + text.encode("utf-16-be", "surrogatepass") + b"x",
}


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    lines = draw(LINES)
    text = "".join(line + draw(ENDS) for line in lines)
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    return FORMS[draw(st.sampled_from(sorted(FORMS)))](text)


@given(st.binary(max_size=40) | contents())
def test_every_file_is_read_and_written_exactly(data: bytes) -> None:
    content = Content.decoded(data)
    assert content.encoded() == data
    assert "".join(content.lines) == content.text


def act(write: Writing, kind: str, one: str, other: str) -> bool:
    """Whether something was written."""
    with suppress(WriteRefused):
        match kind:
            case "add":
                write.add(ADA, one, HOME)
            case "update":
                write.update(ADA, one, other, HOME)
            case _:
                write.delete(ADA, one, HOME)
        return True
    return False


ACTS = st.tuples(st.sampled_from(["add", "update", "update", "delete"]), WORDS | st.sampled_from("abcdeh"), WORDS)


@settings(max_examples=150, deadline=None)
@given(contents() | st.none(), st.lists(ACTS, min_size=1, max_size=6))
def test_undo_restores_every_byte(start: bytes | None, acts: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "workspace", Path(folder) / "state" / "index.sqlite")
        home.folder.mkdir()
        write = writing(home)
        file = home.folder / ADA
        if start is not None:
            home.write(ADA, start)
        states = [start]
        for kind, one, other in acts:
            if act(write, kind, one, other):
                states.append(file.read_bytes())
        while len(states) > 1:
            assert file.read_bytes() == states.pop()
            undone = write.undo(HOME)
            assert undone is not None
            assert not undone.edited
        assert (file.read_bytes() if file.exists() else None) == states[0]
        assert write.undo(HOME) is None
        assert len(list(home.folder.rglob("*.*"))) == (0 if start is None else 1)


@settings(max_examples=300, deadline=None)
@given(contents(), ACTS.filter(lambda act: act[0] != "add"))
def test_an_edit_touches_the_lines_it_says_and_no_byte_elsewhere(start: bytes, doing: tuple[str, str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "workspace", Path(folder) / "state" / "index.sqlite")
        file = home.write(ADA, start)
        write = writing(home)
        kind, one, other = doing
        before = Content.decoded(start)
        try:
            changed = write.update(ADA, one, other, HOME) if kind == "update" else write.delete(ADA, one, HOME)
        except WriteRefused:
            assert file.read_bytes() == start
            return
        after = Content.decoded(file.read_bytes())
        first, gone = changed.line_start - 1, len(re.findall(r".*\n|.+", changed.removed))
        assert after.lines[:first] == before.lines[:first]
        assert after.lines[changed.line_end :] == before.lines[first + gone :]
        assert (after.mark, after.tail, after.encoding) == (before.mark, before.tail, before.encoding)
        assert gone >= 1


class PersonAndAgent(RuleBasedStateMachine):
    """Each line that a person types has a word of its own; where it has to be is followed."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Home(Path(self.folder.name) / "workspace", Path(self.folder.name) / "state" / "index.sqlite")
        self.home.folder.mkdir()
        self.write = writing(self.home)
        self.file = self.home.folder / ADA
        self.count = 0
        self.live: set[str] = set()
        self.deleted: set[str] = set()  # by the agent: an undo may put them back
        self.removed: set[str] = set()  # by the person: nothing may

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize(start=st.sampled_from(sorted(FORMS)), end=ENDS)
    def begin(self, start: str, end: str) -> None:
        self.home.write(ADA, FORMS[start](f"# Ada{end}{end}- p0q tea{end}"))
        self.live.add("p0q")

    def content(self) -> Content:
        return Content.decoded(self.file.read_bytes()) if self.file.exists() else Content()

    def save(self, lines: list[str]) -> None:
        content = self.content()
        fresh = Content("".join(lines), content.encoding, content.mark, content.tail)
        beside = self.file.with_suffix(".new")
        beside.write_bytes(fresh.encoded())
        beside.replace(self.file)

    @rule(data=st.data(), indent=st.sampled_from(["- ", "  ", "", "  - "]))
    def person_types_a_line(self, data: st.DataObject, indent: str) -> None:
        lines = self.content().lines
        if lines and not lines[-1].endswith(("\n", "\r")):
            lines[-1] += "\n"
        self.count += 1
        word = f"p{self.count}q"
        lines.insert(data.draw(st.integers(0, len(lines))), f"{indent}{word} tea\n")
        self.save(lines)
        self.live.add(word)

    @rule(data=st.data())
    def person_removes_a_line(self, data: st.DataObject) -> None:
        lines = self.content().lines
        if lines:
            gone = lines.pop(data.draw(st.integers(0, len(lines) - 1)))
            self.save(lines)
            words = set(re.findall(r"p\d+q", gone))
            self.live -= words
            self.removed |= words

    @rule(data=st.data())
    def person_edits_a_line(self, data: st.DataObject) -> None:
        lines = self.content().lines
        if lines:
            n = data.draw(st.integers(0, len(lines) - 1))
            lines[n] = re.sub(r"[\r\n]*$", lambda end: "!" + end[0], lines[n], count=1)
            self.save(lines)

    @rule(end=ENDS)
    def person_saves_with_other_line_ends(self, end: str) -> None:
        self.save([re.sub(r"\r\n|\r|\n", end, line) for line in self.content().lines])

    @rule()
    def person_strips_the_last_line_end(self) -> None:
        self.save([*self.content().lines[:-1], *(line.rstrip("\r\n") for line in self.content().lines[-1:])])

    @rule(text=st.sampled_from(["note", "- one\n- two", "with\nmore"]))
    def agent_adds(self, text: str) -> None:
        self.write.add(ADA, text, HOME)

    @precondition(lambda self: self.live)
    @rule(data=st.data(), new=st.sampled_from(["cake", "cake\nand more"]))
    def agent_updates(self, data: st.DataObject, new: str) -> None:
        word = data.draw(st.sampled_from(sorted(self.live)))
        with suppress(WriteRefused):
            self.write.update(ADA, f"{word} tea", f"{word} {new}", HOME)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def agent_deletes(self, data: st.DataObject) -> None:
        word = data.draw(st.sampled_from(sorted(self.live)))
        changed = self.write.delete(ADA, word, HOME)
        words = set(re.findall(r"p\d+q", changed.removed))
        assert word in words
        self.live -= words
        self.deleted |= words

    @rule()
    def agent_undoes(self) -> None:
        before = self.content().text
        undone = self.write.undo(HOME)
        if undone is not None and undone.edited:
            assert self.content().text == before
        elif undone is not None and undone.kind == "delete":
            words = set(re.findall(r"p\d+q", undone.removed))
            self.deleted -= words
            self.live |= words

    @invariant()
    def nothing_of_the_persons_is_lost_or_comes_back(self) -> None:
        found = re.findall(r"p\d+q", self.content().text)
        assert sorted(found) == sorted(self.live)
        assert not self.removed & set(found)


def test_a_person_and_an_agent_share_a_file() -> None:
    run_state_machine_as_test(PersonAndAgent, settings=settings(max_examples=60, stateful_step_count=25, deadline=None))
