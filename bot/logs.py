"""The log: JSON lines in the home's ``logs/limpet.log``, and lines for a person on stderr while a hub runs.

Modules say ``structlog.get_logger(__name__)`` and nothing else; records of libraries that use ``logging`` arrive in the
same places, with the ``turn`` that is bound while one runs. Every line has secrets taken out, tracebacks included, as
the last step before it is written. Nothing is configured until ``configure`` is called; before that, warnings go to
stderr as Python does by itself.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bot.environment import Environment
from bot.errors import BotError
from bot.home import Home
from bot.redaction import Redactor, secrets_of

if TYPE_CHECKING:
    from structlog.typing import EventDict

_QUIET = ("httpx", "httpcore", "telegram", "discord", "aiohttp", "asyncio", "urllib3", "watchdog", "LiteLLM")
"""Libraries whose INFO is not ours to tell: httpx logs the URL of every call, with the bot's token in it."""

_LEVELS = logging.getLevelNamesMapping()

_FILE_BYTES = 5_000_000
_FILES_KEPT = 3


def configure(home: Home, *, secrets: Iterable[str] = (), to_stderr: bool = False) -> None:
    """Send all records of this process to the log file, and with ``to_stderr`` to stderr too. May be called again.

    ``secrets`` are values that must appear nowhere; those of variables that are called like secrets are added.
    """
    import structlog

    redactor = Redactor({*secrets, *secrets_of(Environment.of(home).variables)})
    handlers = [_handler(_File(home.log_file), _json_line, redactor)]
    if to_stderr:
        has_colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        handlers.append(_handler(_Screen(sys.stderr), partial(_human_line, has_colour), redactor))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
        ],
        logger_factory=_Logger,
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _File | _Screen):
            root.removeHandler(handler)
            handler.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # asked for by no line of ours
    logging.raiseExceptions = False  # on a full disk a person would read a traceback for every line that is lost
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Crash:
    """An error that nobody foresaw, secrets taken out. ``file`` is where its traceback is, None where it can't be."""

    summary: str
    trace: str
    file: Path | None


def record_crash(home: Home, error: BaseException) -> Crash:
    """Append the traceback of ``error`` to the log file.

    Works without ``configure`` and with nothing but the standard library, so that it can tell of anything.
    """
    try:
        redactor = Redactor(secrets_of(Environment.of(home).variables))
    except BotError:  # an unreadable .env may be the very reason
        redactor = Redactor(secrets_of(os.environ))
    summary = redactor(f"{type(error).__name__}: {error}")
    trace = redactor("".join(traceback.format_exception(error)))
    moment = _stamp(datetime.now(UTC))
    record = {"timestamp": moment, "event": "crash", "level": "critical", "error": summary, "exception": trace}
    try:
        _make_private(home.log_file)
        with home.log_file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")
    except OSError:
        return Crash(summary, trace, None)
    return Crash(summary, trace, home.log_file)


class _Record(logging.LogRecord):
    """What structlog logged: its message is the whole event."""

    def __init__(self, name: str, event: EventDict) -> None:
        super().__init__(name, _LEVELS[event["level"].upper()], "", 0, event, None, None)
        self.event = event


class _Logger:
    """Where structlog's records go: straight to the handlers. The loggers of ``logging`` would look for the caller of
    each, which costs as much as all the rest."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def info(self, **event: Any) -> None:
        record = _Record(self.name, event)
        for handler in logging.getLogger().handlers:
            if record.levelno >= handler.level:
                handler.handle(record)

    warning = error = critical = info


class _File(logging.handlers.RotatingFileHandler):
    """The log file, 0600, made when the first record is written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=_FILE_BYTES, backupCount=_FILES_KEPT, encoding="utf-8", delay=True)

    def _open(self) -> Any:
        _make_private(Path(self.baseFilename))
        return super()._open()

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: ARG002, N802 - the base class's
        """Without its look at how long the record will be, for which it would be formatted twice."""
        if self.stream is None:
            self.stream = self._open()
        return bool(self.stream.tell() >= self.maxBytes)


class _Screen(logging.StreamHandler[TextIO]):
    """stderr."""


def _make_private(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))


def _handler(handler: logging.Handler, line: Callable[[EventDict], str], redactor: Redactor) -> logging.Handler:
    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return redactor(line(dict(record.event) if isinstance(record, _Record) else _event_of(record)))

    handler.setFormatter(Formatter())
    return handler


_OF_EVERY_RECORD = {*vars(logging.makeLogRecord({})), "taskName"}


def _event_of(record: logging.LogRecord) -> EventDict:
    """A record of a library that uses ``logging``, as structlog would have made it."""
    from structlog.contextvars import get_contextvars

    event = {
        **get_contextvars(),
        "timestamp": _stamp(datetime.fromtimestamp(record.created, UTC)),
        "event": record.getMessage(),
        **{name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD},
        "logger": record.name,
        "level": record.levelname.lower(),
    }
    if record.exc_info:
        event["exception"] = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
    return event


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _json_line(event: EventDict) -> str:
    return json.dumps({"timestamp": event.pop("timestamp", None), **event}, ensure_ascii=False, default=str)


_COLOURS = {"warning": "\033[33m", "error": "\033[31m", "critical": "\033[31m"}


def _human_line(has_colour: bool, event: EventDict) -> str:
    """``12:04:31 info  turn.done  channel=telegram ms=830``, the time of this machine."""
    moment = datetime.fromisoformat(event.pop("timestamp")).astimezone()
    level = event.pop("level", "info")
    exception = event.pop("exception", None)
    message = str(event.pop("event", ""))
    event.pop("logger", None)
    fields = " ".join(f"{name}={_plain(value)}" for name, value in event.items())
    line = f"{moment:%H:%M:%S} {level:<8}{message}"
    if fields:
        line += f"  {fields}"
    if exception:
        line += f"\n{exception}"
    start, end = (_COLOURS[level], "\033[0m") if has_colour and level in _COLOURS else ("", "")
    return f"{start}{line}{end}"


def _plain(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(c.isspace() or c == '"' for c in text) else text
