"""What the machine refused (a full disk, no rights, a broken file), as an error that names the path and the mend.

Knows the errors of the operating system and of SQLite; anything else is a fault of ours and is not told here.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import BotError, NotPermitted, Unavailable

if TYPE_CHECKING:
    from bot.home import Home

NO_PLACE = "nothing can be kept there"
"""Of a home on what is no disk."""

MEND_DAMAGE = "the next start puts it aside and keeps what can be read of it: limpet run"
"""Of the state database: whoever does that must be alone."""

_RIGHTS = (errno.EACCES, errno.EPERM)
_ROOM = (errno.ENOSPC, errno.EDQUOT)
_IN_THE_WAY = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP)

_SQLITE = (
    ("readonly database", errno.EACCES),
    ("unable to open database file", errno.EACCES),
    ("database or disk is full", errno.ENOSPC),
    ("disk I/O error", errno.EIO),
    ("database is locked", errno.EBUSY),
)
"""SQLite's words, and what they mean in the system's terms."""


def refusal(error: BaseException, home: Home) -> BotError | None:
    """``error``, or what it was raised from, as what a person is told; None where the machine is not to blame."""
    from workspaces.database import DatabaseDamaged, sqlite

    if isinstance(error, DatabaseDamaged):
        return BotError(str(error), MEND_DAMAGE)
    cause = error
    if type(error).__module__.startswith("workspaces.") and error.__cause__ is not None:  # its own error around it
        cause = error.__cause__
    if isinstance(cause, OSError):
        return _told(cause.errno, Path(os.fsdecode(cause.filename)) if cause.filename else home.root, home)
    if isinstance(cause, sqlite().OperationalError):
        number = next((number for words, number in _SQLITE if words in str(cause)), None)
        return _told(number, home.state, home)
    return None


def _told(number: int | None, path: Path, home: Home) -> BotError | None:
    disk = disk_of(path)
    if number == errno.EIO and disk.f_bavail == 0:  # SQLite doesn't always say which of the two it was
        number = errno.ENOSPC
    if number == errno.EACCES and disk.f_flag & os.ST_RDONLY:  # nor here
        number = errno.EROFS
    if number == errno.ENOENT and not disk.f_blocks:  # /proc and the like
        return NotPermitted(f"{home.root}: {NO_PLACE}", "set LIMPET_HOME to a folder of your own")
    elsewhere = "or set LIMPET_HOME to a folder of your own" if path.is_relative_to(home.root) else "or name another"
    if number in _RIGHTS:
        return NotPermitted(f"{path}: this user may not read or write there", f"change its rights, {elsewhere}")
    if number == errno.EROFS:
        return NotPermitted(f"{path}: the file system is read-only", f"mount it for writing, {elsewhere}")
    if number in _ROOM:
        return Unavailable(f"{path}: no room is left on the disk", f"make room there and try again, {elsewhere}")
    if number == errno.EFBIG:
        return Unavailable(f"{path}: files may not grow any more", "raise the limit: ulimit -f unlimited")
    if number == errno.EIO:
        return Unavailable(f"{path}: the disk reports an error", "see that it is not full and not failing")
    if number == errno.EBUSY:
        return Unavailable(f"{path}: another process is writing there", "try again")
    if number in _IN_THE_WAY:
        return BotError(f"{path}: {os.strerror(number or 0)}", f"move away what stands there, {elsewhere}")
    return None


def disk_of(path: Path) -> os.statvfs_result:
    """The file system that ``path`` is on, or would be on."""
    for place in (path, *path.absolute().parents):
        with suppress(OSError):
            return os.statvfs(place)
    return os.statvfs("/")
