"""The one module that opens databases."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from workspaces import database
from workspaces.database import DatabaseError, connect, has_vectors, sqlite


def test_the_sqlite_in_use_is_new_enough_and_loads_vectors(tmp_path: Path) -> None:
    assert sqlite().sqlite_version_info >= (3, 45, 0)
    connection = connect(tmp_path / "a.sqlite", vectors=True)
    assert has_vectors(connection)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    with pytest.raises(sqlite().OperationalError):  # loading is switched off again behind us
        connection.execute("SELECT load_extension('x')")
    connection.close()


def test_a_python_without_loadable_extensions_still_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G-MEM-15: no enable_load_extension, no AttributeError."""
    monkeypatch.setattr(database, "loads_extensions", lambda: False)
    connection = connect(tmp_path / "a.sqlite", vectors=True)
    assert not has_vectors(connection)
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    connection.close()


def test_a_journal_that_can_not_be_wal_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of PRAGMA journal_mode is read: a memory database answers 'memory'."""
    module = sqlite()
    real = module.connect
    monkeypatch.setattr(module, "connect", lambda path, **options: real(":memory:", **options))
    with pytest.raises(DatabaseError, match="'memory', not 'wal'"):
        connect(tmp_path / "a.sqlite")


def _write(path: str, name: str) -> None:
    connection = connect(Path(path))
    for number in range(200):
        connection.execute("INSERT INTO t VALUES (?)", (f"{name}{number}",))
    connection.close()


def test_two_processes_write_without_an_error(tmp_path: Path) -> None:
    """G-MEM-27: 200 writes each, a reader beside them, no 'database is locked'."""
    path = tmp_path / "a.sqlite"
    connection = connect(path)
    connection.execute("CREATE TABLE t (x)")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(str(path), name)) for name in "ab"]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        connection.execute("SELECT count(*) FROM t").fetchone()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (400,)
    connection.close()
