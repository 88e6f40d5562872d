"""The few facts about the owner that the program itself reads: the ``- Field: value`` lines of USER.md.

Everything else in the file is the person's and stays byte for byte. Knows no question and no chat.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from workspaces import files

FILE = "USER.md"
NAME, LANGUAGE, TIME_ZONE = "Name", "Language", "Time zone"
FIELDS = (NAME, LANGUAGE, TIME_ZONE)

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Profile:
    """What USER.md says; "" where a line is empty or missing."""

    name: str = ""
    language: str = ""
    time_zone: str = ""

    @property
    def zone(self) -> ZoneInfo | None:
        """The zone, None when none is given or it is no name of the tz database."""
        try:
            return ZoneInfo(self.time_zone) if self.time_zone else None
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return None

    @property
    def unknown_zone(self) -> str:
        """What is given for a time zone and is none; "" when all is well."""
        return "" if self.zone else self.time_zone


def read_profile(root: Path) -> Profile:
    """The profile in the workspace at ``root``; an unreadable file is an empty one."""
    path = f"{root}/{FILE}"
    try:
        found = os.stat(path)  # noqa: PTH116 - the time zone alone is asked for ten times a turn
    except OSError:
        return Profile()
    return _read(path, found.st_mtime_ns, found.st_size, found.st_ino)


@functools.lru_cache(maxsize=64)
def _read(path: str, *_: int) -> Profile:
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return Profile()
    found = {field: match[1].strip() if (match := _line(field).search(text)) else "" for field in FIELDS}
    return Profile(found[NAME], found[LANGUAGE], found[TIME_ZONE])


def write_profile(root: Path, values: Mapping[str, str]) -> None:
    """Set fields ("Name", "Language", "Time zone") where their lines are; missing lines are added at the end."""
    path = root / FILE
    for _ in range(_TRIES):
        before = path.read_bytes() if path.exists() else None
        text = (before or b"").decode("utf-8", "surrogateescape")
        for field, value in values.items():
            text = _with(text, field, " ".join(value.split()))
        after = text.encode("utf-8", "surrogateescape")
        if files.create(path, after) if before is None else files.replace(path, after, read=before):
            return  # else a person saved the file meanwhile: begin again from theirs


def _line(field: str) -> re.Pattern[str]:
    return re.compile(rf"^[-*] {re.escape(field)}:[ \t]*(.*?)[ \t]*(\r?)$", re.MULTILINE | re.IGNORECASE)


def _with(text: str, field: str, value: str) -> str:
    line = f"- {field}: {value}"
    if _line(field).search(text):
        return _line(field).sub(lambda match: line + match[2], text, count=1)
    return f"{text.rstrip()}\n{line}\n" if text.strip() else f"{line}\n"
