"""The tables of the index, and what makes one fit for use.

``identity`` says how the text was cut: an index of another identity is made anew as a whole. ``embedder`` says whose
the vectors are: of another embedder's index only they are made anew. Runs inside the transaction of whoever calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

VERSION = 1
"""Raised whenever a table, or what is written into one, changes its meaning."""

TABLES = (
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE files(
        path TEXT PRIMARY KEY, area TEXT NOT NULL, hash BLOB NOT NULL,
        mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, flaw TEXT NOT NULL
    ) WITHOUT ROWID""",
    # trail: headings, one a line. day: ISO date or NULL.
    """CREATE TABLE chunks(
        id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, area TEXT NOT NULL,
        start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
        text TEXT NOT NULL, header TEXT NOT NULL, trail TEXT NOT NULL, day TEXT
    )""",
    "CREATE INDEX chunks_path ON chunks(path)",
    # start, length: characters of the chunk's text. vector: 0 not yet, 1 in units_vec, 2 there is none for this text.
    """CREATE TABLE units(
        id INTEGER PRIMARY KEY AUTOINCREMENT, chunk INTEGER NOT NULL REFERENCES chunks, area TEXT NOT NULL,
        start INTEGER NOT NULL, length INTEGER NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
        grams TEXT NOT NULL, hash BLOB NOT NULL, vector INTEGER NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX units_chunk ON units(chunk)",
    "CREATE INDEX units_area ON units(area)",
    "CREATE INDEX units_pending ON units(id) WHERE vector = 0",
    "CREATE INDEX units_embedded ON units(vector) WHERE vector = 1",
    # With a rowid: without one, each vector would take an overflow page of its own, 4 kB for 1.
    """CREATE TABLE embedding_cache(
        embedder TEXT NOT NULL, hash BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (embedder, hash)
    )""",
    """CREATE VIEW unit_text AS
        SELECT units.id AS id, substr(chunks.text, units.start + 1, units.length) AS text,
            chunks.header AS header, units.grams AS grams
        FROM units JOIN chunks ON chunks.id = units.chunk""",
    """CREATE VIRTUAL TABLE units_fts USING fts5(
        text, header, grams, content = 'unit_text', content_rowid = 'id',
        tokenize = 'porter unicode61 remove_diacritics 2'
    )""",
)

VECTORS = """CREATE VIRTUAL TABLE units_vec USING vec0(
    area TEXT PARTITION KEY, embedding float[{dims}] distance_metric=cosine, chunk_size=32
)"""
"""vec0 reserves room for ``chunk_size`` vectors in every area: its default of 1,024 makes a new workspace 1.6 MB."""


def prepare(db: sqlite3.Connection, identity: str) -> bool:
    """Make the tables where there are none; False, and nothing done, where the file is another index, or none."""
    if not db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        for statement in TABLES:
            db.execute(statement)
        set_meta(db, "identity", identity)
    return meta(db, "identity") == identity


def prepare_vectors(db: sqlite3.Connection, embedder: str, dims: int) -> None:
    """Make the vector table fit ``embedder``.

    It is made anew, and every unit waits for its vector, where it is another embedder's, and where a process without
    sqlite-vec changed the units behind its back: then the counts differ, and the cache still has what is needed.
    """
    if meta(db, "embedder") == embedder:
        stored = db.execute("SELECT count(*) FROM units_vec_rowids").fetchone()
        if stored == db.execute("SELECT count(*) FROM units WHERE vector = 1").fetchone():
            return
    db.execute("DROP TABLE IF EXISTS units_vec")
    db.execute(VECTORS.format(dims=dims))
    db.execute("UPDATE units SET vector = 0 WHERE vector <> 0")
    db.execute("DELETE FROM embedding_cache WHERE embedder <> ?", (embedder,))
    set_meta(db, "embedder", embedder)


def meta(db: sqlite3.Connection, key: str) -> str | None:
    """A value of ``meta``; None where there is none, or no such table yet."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        return None
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def set_meta(db: sqlite3.Connection, key: str, value: str) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
