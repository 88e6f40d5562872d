"""What the hub and its commands say when something can't be done.

BotError             one sentence and its mend; exit code 1 unless said otherwise
├── UsageError       2    the command line asks for something that does not exist
├── ConfigError      2    every problem of a configuration at once; the file is never touched
├── HubRunning       3    another process answers the channels of this home
├── Unavailable      75   not now: trying again later may work
└── NotPermitted     77   whoever asks may not do this

A command raises one of these and ends; ``bot.cli.app`` prints it, in words or as JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar


class BotError(Exception):
    """``mend`` is what to do about it, as one command or one clause; None where nothing is known to help."""

    kind: ClassVar[str] = "failure"
    exit_code: int = 1

    def __init__(self, message: str, mend: str | None = None, *, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend
        if exit_code is not None:
            self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message} — {self.mend}" if self.mend else self.message


class UsageError(BotError):
    kind = "usage"
    exit_code = 2


class HubRunning(BotError):
    kind = "hub_running"
    exit_code = 3


class Unavailable(BotError):
    kind = "unavailable"
    exit_code = 75


class NotPermitted(BotError):
    kind = "not_permitted"
    exit_code = 77


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the configuration.

    ``key`` is the dotted path ("channels.telegram.token"), "" for a problem of the file as a whole. ``value`` is what
    was seen, masked where it looks secret. ``line`` and ``column`` count from 1 (columns in characters); they are None
    where the value came from the environment or is missing. ``excerpt`` is the line with a caret, for broken syntax.
    """

    message: str
    mend: str | None = None
    key: str = ""
    value: str | None = None
    file: Path | None = None
    line: int | None = None
    column: int | None = None
    excerpt: str = ""

    def as_dict(self) -> dict[str, str | int | None]:
        """For JSON; the keys are the fields' names."""
        return {**asdict(self), "file": str(self.file) if self.file else None}

    @property
    def what(self) -> str:
        """The place and the message, without the mend."""
        place = [str(part) for part in (self.file, self.line, self.column) if part is not None]
        return " ".join([":".join(place), self.message] if place else [self.message])

    def __str__(self) -> str:
        text = f"{self.what} — {self.mend}" if self.mend else self.what
        return f"{text}\n{self.excerpt}" if self.excerpt else text


class ConfigError(BotError):
    """``problems`` holds all of them, in the order of the file."""

    kind = "config"
    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
