"""What one account has to know again after a restart, in a small database beside its session.

What was reported and not stored yet, so that a kill between the two loses nothing; what was sent lately, with what it
offered to choose from; and who wrote first. Each is durable when its call returns; losing the file loses no more.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from adapters.message import Button

_TABLES = """
CREATE TABLE IF NOT EXISTS reported (number INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER, data BLOB);
CREATE TABLE IF NOT EXISTS tries (number INTEGER PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sent (chat TEXT, message TEXT, at REAL NOT NULL, buttons TEXT, taken TEXT,
 PRIMARY KEY (chat, message));
CREATE TABLE IF NOT EXISTS writers (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_MOST = 2000
"""Sent messages that are kept."""
_MOST_TRIES = 3
"""Of one event, after a start each."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of ours, and what it offered to choose from; ``taken`` is the message that did, "" for none."""

    chat: str
    message: str
    at: datetime
    buttons: tuple[Button, ...] = ()
    taken: str = ""


class Notebook:
    """The file, for any thread."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is there. Raises OSError where it can't be written to, or the file can't be read."""
        path = folder / "notebook.db"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        self._lock = threading.Lock()
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5)
        try:
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = FULL")
            self._file.executescript(_TABLES)
        except sqlite3.Error as error:
            self._file.close()
            raise OSError(f"{path}: {error}") from error

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def belongs_to(self, account: str) -> None:
        """It is about ``account``: what stands in it of another one, which was linked here before, is let go."""
        with self._lock:
            if self._file.execute("SELECT id FROM account").fetchall() == [(account,)]:
                return
            for table in ("reported", "sent", "writers", "account"):
                self._file.execute(f"DELETE FROM {table}")  # noqa: S608  # no input
            self._file.execute("INSERT INTO account (id) VALUES (?)", (account,))

    # Reported ---------------------------------------------------------------------------------------------------------

    def keep(self, kind: int, data: bytes) -> int:
        """What an event is kept under until ``done``. Raises sqlite3.Error."""
        with self._lock:
            number = self._file.execute("INSERT INTO reported (kind, data) VALUES (?, ?)", (kind, data)).lastrowid
            return number or 0

    def done(self, number: int) -> None:
        with self._lock:
            self._file.execute("DELETE FROM reported WHERE number = ?", (number,))

    def tried(self, number: int) -> bool:
        """Count a try of it, before it is made; False where it was tried too often: the process may have died on it."""
        with self._lock:
            (count,) = self._file.execute(
                "INSERT INTO tries VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count", (number,)
            ).fetchone()
            return bool(count <= _MOST_TRIES)

    def untried(self, number: int) -> None:
        """The process outlived the try: it could not be stored, which is no fault of the event's."""
        with self._lock:
            self._file.execute("UPDATE tries SET count = count - 1 WHERE number = ?", (number,))

    def left(self) -> list[tuple[int, int, bytes]]:
        """What was kept and is not done: number, kind and event, in order."""
        with self._lock:
            self._file.execute("DELETE FROM tries WHERE number NOT IN (SELECT number FROM reported)")
            return self._file.execute("SELECT number, kind, data FROM reported ORDER BY number").fetchall()

    # Sent -------------------------------------------------------------------------------------------------------------

    def note_sent(self, chat: str, message: str, at: datetime, buttons: Sequence[Button] = ()) -> None:
        offered = json.dumps([(button.label, button.data) for button in buttons]) if buttons else None
        with self._lock:
            row = (chat, message, at.timestamp(), offered)
            self._file.execute("INSERT OR REPLACE INTO sent (chat, message, at, buttons) VALUES (?, ?, ?, ?)", row)
            keep = "SELECT rowid FROM sent ORDER BY at DESC LIMIT ?"
            self._file.execute(f"DELETE FROM sent WHERE rowid NOT IN ({keep})", (_MOST,))  # noqa: S608  # no input

    def note_taken(self, chat: str, message: str, by: str) -> None:
        """What it offered was chosen from."""
        with self._lock:
            self._file.execute("UPDATE sent SET taken = ? WHERE chat = ? AND message = ?", (by, chat, message))

    def note_gone(self, chat: str, message: str) -> None:
        """It was taken back, by whomever."""
        with self._lock:
            self._file.execute("DELETE FROM sent WHERE chat = ? AND message = ?", (chat, message))

    def sent(self) -> list[Sent]:
        """Oldest first."""
        with self._lock:
            rows = self._file.execute("SELECT chat, message, at, buttons, taken FROM sent ORDER BY at").fetchall()
        return [
            Sent(
                chat,
                message,
                datetime.fromtimestamp(at, UTC),
                tuple(Button(*one) for one in json.loads(offered or "[]")),
                taken or "",
            )
            for chat, message, at, offered, taken in rows
        ]

    # Writers ----------------------------------------------------------------------------------------------------------

    def note_writer(self, person: str) -> None:
        """Somebody wrote to the account in a chat of their own."""
        with self._lock:
            self._file.execute("INSERT OR IGNORE INTO writers (id) VALUES (?)", (person,))

    def writers(self) -> set[str]:
        with self._lock:
            return {person for (person,) in self._file.execute("SELECT id FROM writers")}
