"""The file that an account is linked by: where it lies, that nobody else can read it, and whose it is.

Whoever has it is the account. The library writes it, as a database of its own; here it is only looked into.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from adapters.errors import AdapterError, AuthFailed, Unreachable
from adapters.whatsapp.identity import Jid
from adapters.whatsapp.settings import BotIdentity

_BUSY_SECONDS = 5.0
"""How long the library may take to write to it."""

LOGIN = "limpet channels login whatsapp"
"""The mend, for an account that is called like its platform."""


def named(error: AuthFailed, account: str) -> AuthFailed:
    """``error`` with the mend for ``account``."""
    return AuthFailed(str(error).replace(LOGIN, f"{LOGIN.rpartition(' ')[0]} {account}"))


def session_of(folder: Path) -> Path:
    """The file in ``folder``, which is an account's own."""
    return folder / "session.db"


def prepare(folder: Path) -> Path:
    """Make ``folder`` and the file, or what they lack of being for their owner only. Raises AuthFailed."""
    path = session_of(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise AuthFailed(f"{path} can't be written ({error.strerror}): whoever runs limpet has to own it") from None
    return path


@contextmanager
def held(folder: Path, otherwise: AdapterError) -> Iterator[None]:
    """For one process at a time: two clients with one link throw each other out. Raises ``otherwise`` to the second."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise otherwise from None
        yield
    finally:
        os.close(descriptor)


def identity(folder: Path) -> BotIdentity:
    """Whose account is linked. Raises AuthFailed, with the mend, where none is; Unreachable where it is busy."""
    path = session_of(folder)
    found = None
    if path.exists() and path.stat().st_size:
        try:
            # Not read-only: after a kill it has to be rolled back before it can be read.
            with closing(
                sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS)
            ) as session:
                found = session.execute("SELECT jid, lid, push_name FROM whatsmeow_device").fetchone()
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise Unreachable(f"{path} is being written to: it is tried again") from None
            raise AuthFailed(f"{path} can't be read ({error}): move it away, and link again: {LOGIN}") from None
    jid = Jid.parse(str(found[0])) if found else None
    if found is None or jid is None:
        raise AuthFailed(f"not linked to an account: {LOGIN}")
    lid = Jid.parse(str(found[1] or ""))
    device = str(found[0]).partition("@")[0].partition(":")[2]
    name = str(found[2] or "") or jid.id
    return BotIdentity(jid.id, name, lid.id if lid else "", int(device) if device.isdecimal() else 0)
