"""Opens every SQLite database of the program, the same way: WAL, a busy timeout, foreign keys, sqlite-vec if wanted.

Many Pythons ship a ``sqlite3`` that can't load extensions (pyenv's, macOS's), and some an old SQLite. The standard
module is taken where it can load sqlite-vec and is SQLite 3.45 or newer, else ``pysqlite3``. Knows no table.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3

OLDEST = (3, 45, 0)
"""Since 3.43 an FTS5 table without contents can be deleted from; the fixes of two more minor versions are asked for."""

BUSY_SECONDS = 10.0


class DatabaseError(Exception):
    """A database could not be opened as it has to be; the message names the file and the mend."""


class DatabaseDamaged(DatabaseError):
    """What is in the file is no database, or not a whole one."""


def is_damage(error: BaseException) -> bool:
    """Whether SQLite says by ``error`` that the file itself is broken: not the disk, the rights, a lock or a query."""
    return type(error) is sqlite().DatabaseError  # all else has a class of its own


@functools.cache
def sqlite() -> ModuleType:
    """The DB-API module in use: ``sqlite3`` or ``pysqlite3``."""
    import sqlite3

    if sqlite3.sqlite_version_info >= OLDEST and hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        return importlib.import_module("pysqlite3")
    except ImportError:  # no wheel for this platform: keyword search still works with the standard module
        return sqlite3


def loads_extensions() -> bool:
    """Whether sqlite-vec can be loaded at all; False means keyword search only."""
    return hasattr(sqlite().Connection, "enable_load_extension")


def connect(path: Path, *, vectors: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode (transactions are begun by hand), usable from any one thread at a time.

    The file is created 0600 in a folder made 0700. ``vectors`` loads sqlite-vec where that is possible; ask
    ``has_vectors`` afterwards. Raises DatabaseError when the file is no database or the journal can't be WAL.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    module = sqlite()
    connection: sqlite3.Connection = module.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        row = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if row is None or str(row[0]).lower() != "wal":
            raise DatabaseError(
                f"{path}: the journal mode is {row and row[0]!r}, not 'wal'. "
                "SQLite's write-ahead log needs a local disk: move the folder off the network share."
            )
        connection.execute("PRAGMA synchronous = NORMAL")  # nothing waits for the disk but a checkpoint,
        connection.execute("PRAGMA checkpoint_fullfsync = ON")  # on macOS for the drive's cache as well
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {4 << 20}")
        if vectors:
            load_vectors(connection)
    except module.OperationalError as error:  # the disk, the rights or a lock: the file may be fine
        connection.close()
        raise DatabaseError(f"{path}: {error}") from error
    except module.DatabaseError as error:
        connection.close()
        raise DatabaseDamaged(f"{path}: {error}") from error
    except DatabaseError:
        connection.close()
        raise
    return connection


def load_vectors(connection: Any) -> None:
    """Load sqlite-vec into ``connection`` where that is possible."""
    if not loads_extensions():
        return
    package = importlib.util.find_spec("sqlite_vec")  # its import would import numpy: 0.1 s of CPU
    if package is None or package.origin is None:
        return
    connection.enable_load_extension(True)
    try:
        connection.load_extension(str(Path(package.origin).with_name("vec0")))
    except sqlite().OperationalError:  # the library of another architecture, or a hardened system: keywords only
        pass
    finally:
        connection.enable_load_extension(False)


def has_vectors(connection: sqlite3.Connection) -> bool:
    """Whether sqlite-vec is loaded into this connection."""
    try:
        connection.execute("SELECT vec_version()").fetchone()
    except sqlite().OperationalError:
        return False
    return True
