"""How commands speak: results on stdout and nothing else there, all other words on stderr, no decoration in a pipe.

One place for the manners: JSON with a schema number, plain columns, colour only for a person who wants it, questions
only to a terminal, progress only for work that lasts. rich is imported when a bar is really shown.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TextIO

from bot.errors import BotError, ConfigError, Unavailable, UsageError

SCHEMA = 1
"""The version of every JSON object that commands print. Raised when a key is removed or changes its meaning."""

_PATIENCE_SECONDS = 1.0
"""Work that is done sooner than this shows no progress."""


def result(text: str, data: Mapping[str, Any], *, as_json: bool) -> None:
    """The outcome of a command: ``text`` for a person, or ``data`` as one JSON object. An empty text prints nothing."""
    if as_json:
        text = json.dumps({"schema": SCHEMA, **data}, ensure_ascii=False, default=str)
    if not text:
        return
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_stdout()
        raise Unavailable(f"standard output can't be written: {error.strerror}", "is that disk full?") from error


def silence_stdout() -> None:
    """Nothing more is written to a stream that can't take it, not even what is left over at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """Something worth saying that is not the result."""
    print(_fitting(text), file=sys.stderr, flush=True)


def _fitting(text: str) -> str:
    """``text`` with lines that end between words where standard error is a terminal, and as it is elsewhere."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else 0
    except (OSError, ValueError):
        columns = 0
    if not columns or len(text) < columns // 2:  # a character has two columns at most
        return text
    from adapters.terminal.wrapping import wrapped

    return wrapped(text, columns)


def fail(message: str, mend: str | None = None, code: int = 1) -> NoReturn:
    """End the command with an exit code. ``mend`` is what to do about it, best one command that can be pasted."""
    raise BotError(message, mend, exit_code=code)


def report(error: BotError, *, as_json: bool) -> None:
    """Say on stderr why a command ended."""
    if not as_json:
        note(str(error) if isinstance(error, ConfigError) else f"limpet: {error}")
        return
    body: dict[str, Any] = {
        "kind": error.kind,
        "message": error.message,
        "mend": error.mend,
        "exit_code": error.exit_code,
    }
    if isinstance(error, ConfigError):
        body["problems"] = [problem.as_dict() for problem in error.problems]
    print(json.dumps({"schema": SCHEMA, "error": body}, ensure_ascii=False), file=sys.stderr, flush=True)


def table(rows: Sequence[Sequence[str]]) -> str:
    """``rows`` as plain columns, two spaces apart, as wide as their widest cell; no lines, no wrapping."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell + " " * (wide - _width(cell)) for cell, wide in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _width(cell: str) -> int:
    """Columns on a terminal."""
    if cell.isascii():
        return len(cell)
    from wcwidth import wcswidth

    return max(wcswidth(cell), 0)  # -1 for text with control characters: it can't be aligned


def has_colour(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether ``stream`` takes colour: a terminal, unless NO_COLOR or TERM=dumb say no; FORCE_COLOR says yes."""
    environ = os.environ if environ is None else environ
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


def bold(text: str) -> str:
    """``text`` for stdout, in bold where that takes colour."""
    return f"\033[1m{text}\033[0m" if has_colour(sys.stdout) else text


def is_interactive() -> bool:
    """Whether there is a person to ask: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, default: str = "", *, secret: bool = False) -> str:
    """A line from the person, ``default`` where it is empty; a secret is not echoed. Raises UsageError without one."""
    if not is_interactive():
        raise UsageError(f"{question}: there is no terminal to ask at", "give it as an option, see --help")
    prompt = f"{question} [{default}]: " if default else f"{question} " if question.endswith("?") else f"{question}: "
    if secret:
        import getpass

        answer = getpass.getpass(_fitting(prompt), stream=sys.stderr)
    else:
        print(_fitting(prompt), end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if not answer:
            raise EOFError
    return answer.strip() or default


def confirm(question: str, *, yes: bool = False, default: bool = False) -> bool:
    """A yes or no; ``yes`` is the option ``--yes``, which answers beforehand. Without a terminal: UsageError."""
    if yes:
        return True
    if not is_interactive():
        raise UsageError(f"{question}: there is no terminal to ask at", "add --yes")
    while True:
        answer = ask(f"{question} ({'Y/n' if default else 'y/N'})").casefold()
        if answer in ("", "y", "yes", "n", "no"):
            return default if not answer else answer.startswith("y")
        note("Please say yes or no.")


@contextmanager
def progress(description: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
    """A bar on stderr while the block runs; the value is called with how much more is done.

    Shown only at a terminal, and only once the work has lasted a second. ``total`` None: how much there is to do is
    not known.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    bar = _Bar(description, total)
    timer = threading.Timer(_PATIENCE_SECONDS, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar.advance
    finally:
        timer.cancel()
        bar.close()


class _Bar:
    """A rich bar that is built when it is first shown; the work and the timer call it from two threads."""

    def __init__(self, description: str, total: float | None) -> None:
        self._description = description
        self._total = total
        self._done = 0.0
        self._lock = threading.Lock()
        self._closed = False
        self._update: Callable[[float], None] | None = None
        self._stop: Callable[[], None] | None = None

    def show(self) -> None:
        with self._lock:
            if self._closed:
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
            display = Progress(*columns, console=Console(stderr=True), transient=True)
            task = display.add_task(self._description, total=self._total)
            display.update(task, completed=self._done)
            display.start()
            self._stop = display.stop
            self._update = lambda done: display.update(task, completed=done)

    def advance(self, amount: float) -> None:
        with self._lock:
            self._done += amount
            if self._update is not None:
                self._update(self._done)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._stop is not None:
                self._stop()
