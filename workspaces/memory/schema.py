"""The tables of the index, and what makes one fit for use.

The id of a unit says which area it lies in: the number of the area times ``SPAN``, plus a count that never goes back.
So an area is a range of ids, both legs of a search look only into the ranges of their scope, and no id is used twice.
``identity`` says how the text was cut. Runs inside the transaction of whoever calls it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

VERSION = 4
"""Raised whenever a table, or what is written into one, changes its meaning."""

SPAN = 1 << 32
"""Ids of one area: more than are ever used, and few enough that 2**31 areas fit into SQLite's integers."""

TABLES = (
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # next: the count of its next unit. units: how many there are.
    """CREATE TABLE areas(
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
        next INTEGER NOT NULL DEFAULT 0, units INTEGER NOT NULL DEFAULT 0
    )""",
    # day: ISO date or NULL.
    """CREATE TABLE files(
        id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, area INTEGER NOT NULL, day TEXT, hash BLOB NOT NULL,
        mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, flaw TEXT NOT NULL
    )""",
    # trail: headings, one a line. text: compressed.
    """CREATE TABLE chunks(
        id INTEGER PRIMARY KEY, file INTEGER NOT NULL,
        start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, header TEXT NOT NULL, trail TEXT NOT NULL,
        text BLOB NOT NULL
    )""",
    "CREATE INDEX chunks_file ON chunks(file)",
    # section: the same for neighbours below the same headings. place: counts the units of a file. start, length:
    # characters of the chunk's text. item, asks: 1 for an item of a list, for a question. hash: of what is embedded.
    """CREATE TABLE units(
        id INTEGER PRIMARY KEY, file INTEGER NOT NULL, section INTEGER NOT NULL, place INTEGER NOT NULL,
        chunk INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL,
        start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
        tokens INTEGER NOT NULL, item INTEGER NOT NULL, asks INTEGER NOT NULL, hash INTEGER NOT NULL
    )""",
    "CREATE INDEX units_place ON units(file, place)",
    "CREATE INDEX units_hash ON units(hash)",
    # Without contents: the text is in its chunk. Deleting needs no text since SQLite 3.43.
    """CREATE VIRTUAL TABLE units_fts USING fts5(
        text, header, label, grams, content = '', contentless_delete = 1,
        tokenize = 'porter unicode61 remove_diacritics 2'
    )""",
    # One vector space for each embedder. opened: the day it was last in use. filled: its vectors. ready: it had one
    # for every unit. mean: float32s, or NULL while there are too few vectors for signs.
    """CREATE TABLE spaces(
        id INTEGER PRIMARY KEY AUTOINCREMENT, embedder TEXT NOT NULL UNIQUE, dims INTEGER,
        opened TEXT, filled INTEGER NOT NULL DEFAULT 0, ready INTEGER NOT NULL DEFAULT 0, mean BLOB
    )""",
    # The units that have no vector yet.
    "CREATE TABLE waiting(space INTEGER NOT NULL, unit INTEGER NOT NULL, PRIMARY KEY (space, unit)) WITHOUT ROWID",
)

SPACE = (
    # vector: int8s; NULL where there is none for this text.
    "CREATE TABLE vectors_{space}(id INTEGER PRIMARY KEY, vector BLOB)",
    "CREATE TABLE signs_{space}(page INTEGER PRIMARY KEY, bits BLOB NOT NULL)",
)


def prepare(db: sqlite3.Connection, identity: str) -> bool:
    """Make the tables where there are none; False, and nothing done, where the file is another kind of index, or none.

    ``identity`` is written into a new index; that of an old one may differ.
    """
    if not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        for statement in TABLES:
            db.execute(statement)
        set_meta(db, "version", str(VERSION))
        set_meta(db, "birth", secrets.token_hex(8))  # ids of one index mean nothing in another
        set_meta(db, "identity", identity)
    return meta(db, "version") == str(VERSION)


def meta(db: sqlite3.Connection, key: str) -> str | None:
    """A value of ``meta``; None where there is none, or no such table."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        return None
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def set_meta(db: sqlite3.Connection, key: str, value: str) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
