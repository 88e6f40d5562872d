"""What ``limpet doctor`` looks at beside ``limpet status``: the machine, the files and the clock, each with its mend.

Reads only, asks no server, and takes as long as it takes to read the databases once. Knows no platform.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bot.health import Finding
from bot.refusals import MEND_DAMAGE
from bot.salvage import damage
from bot.state import BACKUP_DAYS, State, backups
from bot.version import VERSION
from workspaces.database import DatabaseError, has_vectors, loads_extensions, sqlite
from workspaces.installation import install_package

if TYPE_CHECKING:
    from bot.home import Home
    from bot.settings import Settings

AHEAD = timedelta(minutes=5)
"""How far in the future something may be that was written before now."""

SINCE = timedelta(days=7)
"""How long a message that was given up is shown."""


def versions() -> dict[str, str]:
    """What runs: of the program, Python, SQLite and sqlite-vec ("" where that can't be loaded), and on what system."""
    with closing(sqlite().connect(":memory:")) as database:
        (number,) = database.execute("SELECT sqlite_version()").fetchone()
    return {
        "limpet": VERSION,
        "python": platform.python_version(),
        "sqlite": str(number),
        "sqlite_vec": _vectors(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _vectors() -> str:
    from workspaces import database

    with closing(sqlite().connect(":memory:")) as opened:
        database.load_vectors(opened)
        return str(opened.execute("SELECT vec_version()").fetchone()[0]) if has_vectors(opened) else ""


def features() -> Iterator[Finding]:
    """What this Python's SQLite can't do that the memory needs."""
    install = f"install one that can: {install_package('pysqlite3')}"
    if not loads_extensions():
        yield Finding("search by meaning is off: this Python's SQLite can't load sqlite-vec", install)
    elif not _vectors():
        yield Finding(
            "search by meaning is off: sqlite-vec can't be loaded here", f"install it: {install_package('sqlite-vec')}"
        )
    with closing(sqlite().connect(":memory:")) as database:
        try:
            database.execute("CREATE VIRTUAL TABLE t USING fts5 (a)")
        except sqlite().OperationalError:
            yield Finding("search by words is slow: this Python's SQLite has no FTS5", install)


def rights(home: Home) -> Iterator[Finding]:
    """What this user can't write, and what others can read. The superuser may do anything, and leaves it to himself."""
    user = os.geteuid()
    places = (home.root, home.state, home.database, home.workspaces, home.logs, home.log_file)
    there = [path for path in places if path.exists()]
    foreign = next((path for path in there if path.stat().st_uid != user), None)
    if foreign is not None:
        owner = foreign.stat().st_uid
        if user == 0:
            mend = f"run limpet as that user, or: chown -R {user} {home.root}"
            yield Finding(f"{foreign} belongs to user {owner}, who can't change what root writes there", mend)
        else:
            yield Finding(f"{foreign} belongs to user {owner}", f"sudo chown -R {user} {home.root}")
    for path in there:
        if not os.access(path, os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)):
            yield Finding(f"{path} can't be read and written", f"chmod -R u+rwX {home.root}")
            break
    if home.root.exists() and home.root.stat().st_mode & 0o077:
        for path in (home.state, home.workspaces, home.logs):
            if path.exists() and path.stat().st_mode & 0o077:
                yield Finding(f"{path} can be read by other users of this machine", f"chmod go= {path}")


def databases(settings: Settings, home: Home) -> Iterator[Finding]:
    """Damage in the state and in the indexes, each read as a whole."""
    if (reason := _damage(home.database)) is not None:
        yield Finding(f"{home.database} is damaged: {reason}", MEND_DAMAGE)
    for agent in settings.agents:
        if (reason := _damage(home.index(agent))) is not None:
            rebuild = "limpet memory rebuild" + ("" if len(settings.agents) == 1 else f" --agent {agent}")
            yield Finding(f"the index of {agent} is damaged: {reason}", f"{rebuild}; the notes are files of their own")


def _damage(path: Path) -> str | None:
    try:
        return damage(path)
    except (DatabaseError, sqlite().Error, OSError):  # the disk or the rights: another finding
        return None


def kept(home: Home) -> list[Finding]:
    """The copies of the state from before upgrades, for one who wants to go back."""
    return [
        Finding(f"{copy} is the state from before an upgrade", f"it goes {BACKUP_DAYS} days after that; or: rm {copy}")
        for copy in backups(home.database)
    ]


async def clock(state: State, now: datetime) -> list[Finding]:
    """That this machine's clock has gone back, or was ahead before: what waits for a time would wait for long."""
    row = await state.row(
        "SELECT max(at) FROM (SELECT max(received_at) AS at FROM inbox UNION ALL SELECT max(created_at) FROM outbox"
        " UNION ALL SELECT max(changed_at) FROM health)"
    )
    try:
        last = datetime.fromisoformat(row[0]) if row and row[0] else now
    except ValueError:  # no row of ours
        last = now
    if last - now <= AHEAD:
        return []
    what = f"the clock of this machine says {now:%Y-%m-%d %H:%M} UTC, and something was stored {last:%Y-%m-%d %H:%M}"
    return [Finding(what, "set it right, and let it be kept: timedatectl set-ntp true")]


async def given_up(state: State, now: datetime) -> list[Finding]:
    """The messages of the last days on which three turns failed: each was answered with an apology, and set aside."""
    from bot.inbox import set_aside

    return [
        Finding(
            f"a message to {one.account} (chat {one.chat}) of {one.received_at[:16].replace('T', ' ')} UTC was set "
            "aside: three turns on it failed",
            f"see the log for {one.turn} (limpet where), and say it another way",
        )
        for one in await set_aside(state, now - SINCE)
    ]
