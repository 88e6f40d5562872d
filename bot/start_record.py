"""What the running hub was started with: the commands beside it can tell that its settings are old, or what it lacks.

A small file beside the hub's lock. It has a digest of what the settings file and ``.env`` say; remarks don't count, and
neither do the variables of a process, which a hub and a shell rarely share. Of no use once that hub is gone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.config_file import read, replace
from bot.environment import Environment
from bot.errors import ConfigError
from bot.lock import Lock

if TYPE_CHECKING:
    from bot.home import Home


@dataclass(frozen=True, slots=True)
class StartRecord:
    """``problems`` are what the hub knew to be amiss when it started: what it is, and the mend ("" for none)."""

    pid: int
    config: str
    settings: str
    stored: str
    problems: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, home: Home, pid: int) -> StartRecord:
        """What the files of ``home`` say now."""
        return cls(pid, str(home.config), _settings(home.config), _stored(home))

    def write(self, home: Home) -> None:
        """Keep it for ``running``. Raises OSError."""
        replace(home.start_record, json.dumps(asdict(self)).encode())

    def changed(self, home: Home) -> Sequence[Path]:
        """The files that say something else now."""
        config = Path(self.config)
        pairs = ((config, self.settings, _settings(config)), (home.env_file, self.stored, _stored(home)))
        return [path for path, before, now in pairs if before != now]


def running(home: Home) -> StartRecord | None:
    """The record of the hub that runs; None where none runs, or where it could leave none."""
    pid = Lock(home.lock).holder()
    if pid is None:
        return None
    try:
        record = json.loads(home.start_record.read_bytes())
        found = StartRecord(**{**record, "problems": tuple((what, mend) for what, mend in record["problems"])})
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found if found.pid == pid else None


def advice(home: Home) -> str | None:
    """What to say after a change of the settings where a hub runs that doesn't know of it; None where none does."""
    record = running(home)
    if record is None or not record.changed(home):
        return None
    return f"The running hub has the settings from before. Restart it to use these: kill {record.pid}, then limpet run"


def _settings(path: Path) -> str:
    try:
        return _digest(read(path).data)
    except ConfigError:
        return ""


def _stored(home: Home) -> str:
    try:
        return _digest(Environment.of(home, {}).stored)
    except ConfigError:
        return ""


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()
