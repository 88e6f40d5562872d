"""What one account knows again after a restart: durable, bounded, and for any thread."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.message import Button
from adapters.whatsapp.heard import Heard, Said
from adapters.whatsapp.identity import Jid
from adapters.whatsapp.notebook import Notebook, Sent

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BUTTONS = (Button("Yes", "approve 1"), Button("No é", "deny 1"))


def test_it_is_all_there_again(tmp_path: Path) -> None:
    first = Notebook(tmp_path)
    numbers = [first.keep(17, data) for data in (b"one", b"\x00two", b"")]
    first.done(numbers[0])
    first.note_sent("a", "1", NOW, BUTTONS)
    first.note_sent("a", "2", NOW + timedelta(seconds=1))
    first.note_sent("a", "3", NOW)
    first.note_gone("a", "3")
    first.note_taken("a", "1", "8")
    first.note_writer("a")
    first.note_writer("a")
    first.close()
    second = Notebook(tmp_path)
    assert second.left() == [(numbers[1], 17, b"\x00two"), (numbers[2], 17, b"")]
    assert second.sent() == [Sent("a", "1", NOW, BUTTONS, "8"), Sent("a", "2", NOW + timedelta(seconds=1))]
    assert second.writers() == {"a"}
    assert second.keep(17, b"later") > numbers[2]
    second.close()


def test_what_is_of_another_account_is_let_go(tmp_path: Path) -> None:
    """A second number, linked in the place of the first: it owes nobody an answer, and nobody wrote to it."""
    notebook = Notebook(tmp_path)
    for account, is_kept in (("+1", False), ("+1", True), ("+2", False)):
        notebook.belongs_to(account)
        assert bool(notebook.left()) is bool(notebook.sent()) is bool(notebook.writers()) is is_kept
        notebook.keep(17, b"one")
        notebook.note_sent("a", "1", NOW)
        notebook.note_writer("a")
    notebook.close()


def test_what_was_sent_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.whatsapp.notebook._MOST", 3)
    notebook = Notebook(tmp_path)
    for number in range(6):
        notebook.note_sent("a", str(number), NOW + timedelta(seconds=number))
    assert [sent.message for sent in notebook.sent()] == ["3", "4", "5"]
    notebook.close()


def test_many_threads_may_write_at_once(tmp_path: Path) -> None:
    notebook = Notebook(tmp_path)

    def write() -> None:
        for _ in range(20):
            notebook.done(notebook.keep(17, b"x"))
        notebook.keep(17, b"left")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [data for _, _, data in notebook.left()] == [b"left"] * 4
    notebook.close()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "notebook.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="notebook"):
        Notebook(tmp_path)


def test_what_was_heard_is_bounded() -> None:
    heard, chat = Heard(), Jid("120363000000000001", "g.us")
    for number in range(3000):
        author = Jid(str(100000 + number % 2), "lid")
        heard.note("chat", str(number), Said(chat, author, "x" * 1000), is_own=False)
    assert heard.said("chat", "0") is None
    assert heard.said("chat", "2999") == Said(chat, Jid("100001", "lid"), "x" * 200)
    unread = heard.take_unread("chat")
    assert [len(one.messages) for one in unread] == [25, 25]
    assert heard.take_unread("chat") == []
    heard.note("chat", "own", Said(chat, Jid("1", "lid"), "by another device of the account"), is_own=True)
    assert heard.take_unread("chat") == [], "WhatsApp knows that it was read"


def test_tries_are_counted_over_restarts_until_it_is_done(tmp_path: Path) -> None:
    first = Notebook(tmp_path)
    number, other = first.keep(17, b"one"), first.keep(17, b"two")
    assert [first.tried(number), first.tried(number)] == [True, True]
    first.untried(number)
    first.close()
    second = Notebook(tmp_path)
    assert [second.tried(number) for _ in range(3)] == [True, True, False]
    assert second.tried(other)
    second.done(number)
    assert second.left() == [(other, 17, b"two")]
    assert [second.tried(each) for each in (number, other, other, other)] == [True, True, True, False]
    second.close()
