"""What a person sees. Three ways to show the same events: alive on a terminal, plain for a pipe, JSON for a program.

An answer goes to standard output and everything else to standard error. A pipe gets the bytes of the answer and one
line end; a terminal gets no control characters from anyone. Knows no connection and no keyboard.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from adapters.adapter import TurnReport
from adapters.terminal.wire import Answer, Failure, Ready
from adapters.terminal.wrapping import Flow, wrapped
from adapters.text import sanitize

SCHEMA = 1
"""The version of the JSON objects."""

NOT_SENT = "Not sent, or sent and not confirmed:"


@dataclass(frozen=True, slots=True)
class Terminal:
    """The three streams of the process and what is at their other end. ``color`` allows colours and dim text."""

    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO
    stdin_is_tty: bool
    stdout_is_tty: bool
    stderr_is_tty: bool
    color: bool

    @classmethod
    def of_process(cls, *, color: bool | None = None, environ: Mapping[str, str] = os.environ) -> Terminal:
        """``color`` None: unless NO_COLOR is set or TERM is dumb."""
        if color is None:
            color = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        return cls(
            stdin=sys.stdin.buffer,
            stdout=sys.stdout.buffer,
            stderr=sys.stderr.buffer,
            stdin_is_tty=sys.stdin.isatty(),
            stdout_is_tty=sys.stdout.isatty(),
            stderr_is_tty=sys.stderr.isatty(),
            color=color,
        )

    @property
    def columns(self) -> int:
        """How wide the terminal at standard error is now; 0 where it isn't known, or is none."""
        return _columns(self.stderr) if self.stderr_is_tty else 0

    @property
    def answer_columns(self) -> int:
        """The same of standard output."""
        return _columns(self.stdout) if self.stdout_is_tty else 0


def _columns(stream: BinaryIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


@dataclass(slots=True)
class Turn:
    """A message said here and what has come of it. ``began`` is monotonic, in seconds; ``stop`` the id of its Stop."""

    id: str
    began: float
    answers: list[str] = field(default_factory=list)
    report: TurnReport | None = None
    failure: Failure | None = None
    stop: str | None = None
    given_up: bool = False

    @property
    def is_over(self) -> bool:
        if self.failure is not None or self.given_up:
            return True
        return self.report is not None and len(self.answers) >= self.report.parts

    @property
    def code(self) -> int:
        """The exit code: that of the failure, else that of the report."""
        if self.failure is not None:
            return self.failure.code
        return self.report.code if self.report is not None else 0


class Screen(Protocol):
    """Raises BrokenPipeError when nobody reads standard output any more, and nothing else."""

    def waiting(self) -> None:
        """A message was said and nothing has come yet."""

    def delta(self, text: str) -> None:
        """A piece of the answer that ``answer`` will bring whole."""

    def answer(self, answer: Answer, *, ours: bool) -> None:
        """An answer; ``ours`` when it was asked for here."""

    def notice(self, text: str) -> None:
        """One sentence beside the answers."""

    def failure(self, failure: Failure) -> None:
        """What went wrong, and the mend."""

    def given_back(self, text: str) -> None:
        """A person's own words that were not sent, as they were, so that they can be sent again."""

    def finish(self, turn: Turn, ready: Ready, /) -> None:
        """The turn is over."""


def _write(stream: BinaryIO, text: str) -> None:
    stream.write(text.encode("utf-8", "replace"))
    stream.flush()


def _dim(text: str, allowed: bool) -> str:
    return f"\x1b[2m{text}\x1b[0m" if allowed else text


def _from_before(answer: Answer) -> str:
    return f"An answer from before{_to(answer)}"


def _to(answer: Answer) -> str:
    """The question that it answers, where it is known."""
    return f', to "{sanitize(answer.question)}"' if answer.question else ""


class Plain:
    """For a pipe, a file, and a terminal that something else writes to: whole answers only."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def waiting(self) -> None:
        """Nothing."""

    def delta(self, text: str) -> None:
        """Nothing: only the whole answer is sure."""

    def answer(self, answer: Answer, *, ours: bool) -> None:
        if ours:
            _write(self._terminal.stdout, answer.text + "\n")
        else:
            self.notice(f"{_from_before(answer)}: {answer.text}")

    def notice(self, text: str) -> None:
        if self._terminal.stderr_is_tty:
            text = _dim(wrapped(sanitize(text), self._terminal.columns), self._terminal.color)
        _write(self._terminal.stderr, text + "\n")

    def failure(self, failure: Failure) -> None:
        text = failure.text
        if self._terminal.stderr_is_tty:
            text = wrapped(sanitize(text), self._terminal.columns)
        _write(self._terminal.stderr, text + "\n")

    def given_back(self, text: str) -> None:
        text = sanitize(text) if self._terminal.stderr_is_tty else text
        _write(self._terminal.stderr, f"{NOT_SENT}\n{text}\n")

    def finish(self, turn: Turn, ready: Ready, /) -> None:
        """Nothing."""


class Json:
    """For a program: an object for each turn on standard output, and on standard error one a line for the rest.

    A turn that failed without an answer has its ``error`` there and nothing on standard output.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def waiting(self) -> None:
        """Nothing."""

    def delta(self, text: str) -> None:
        """Nothing."""

    def answer(self, answer: Answer, *, ours: bool) -> None:
        if not ours:
            self.notice(f"{_from_before(answer)}: {answer.text}")

    def notice(self, text: str) -> None:
        self._put(self._terminal.stderr, {"notice": text})

    def failure(self, failure: Failure) -> None:
        self._put(self._terminal.stderr, {"error": {"message": failure.text, "code": failure.code}})

    def given_back(self, text: str) -> None:
        self._put(self._terminal.stderr, {"not_sent": text})

    def finish(self, turn: Turn, ready: Ready, /) -> None:
        if turn.failure is not None and not turn.answers:
            return
        report = turn.report or TurnReport(parts=0)
        result: dict[str, Any] = {
            "answer": "\n".join(turn.answers) if turn.answers else None,
            "agent": ready.agent,
            "model": report.model if turn.report else ready.model,
            "session": report.session,
            "tokens": {"input": report.input_tokens, "output": report.output_tokens},
            "cost": report.cost,
            "memories": list(report.memories),
        }
        if turn.failure is not None:
            result["error"] = {"message": turn.failure.text, "code": turn.failure.code}
        self._put(self._terminal.stdout, result)

    def _put(self, stream: BinaryIO, value: dict[str, Any]) -> None:
        _write(stream, json.dumps({"schema": SCHEMA, **value}, ensure_ascii=False) + "\n")


class Live:
    """For a person at a terminal: an answer appears while it is written, and is never shown a second time."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._flow = Flow()
        self._streamed = ""
        self._broken = False
        self._at_line_start = True
        self._waiting = False

    def waiting(self) -> None:
        self._end_line()
        self._put(_dim("…", self._terminal.color))
        self._waiting = True

    def delta(self, text: str) -> None:
        self._streamed += text
        self._broken = False
        self._show(text)

    def answer(self, answer: Answer, *, ours: bool) -> None:
        if ours:
            rest = _unshown(self._streamed, answer.text)
            if rest is None or (rest and self._broken):
                self._end_line()
                rest = answer.text
            self._streamed = ""
        else:
            self._end_line()
            if answer.in_reply_to is not None:
                whence = "while you were away" if answer.late else "for another terminal"
                self._line(f"{whence}{_to(answer)}:")
            rest = answer.text
        self._show(rest)
        self._end_line()
        self._flow = Flow()

    def notice(self, text: str) -> None:
        waiting = self._waiting
        self._put(self._flow.rest(self._terminal.answer_columns))
        self._broken = self._broken or not (self._at_line_start or waiting)
        self._end_line()
        self._line(sanitize(text))
        if waiting:
            self.waiting()

    def failure(self, failure: Failure) -> None:
        self._end_line()
        _write(self._terminal.stderr, wrapped(sanitize(failure.text), self._terminal.columns) + "\n")

    def given_back(self, text: str) -> None:
        self._end_line()
        self._line(NOT_SENT)
        _write(self._terminal.stderr, sanitize(text) + "\n")

    def finish(self, _turn: Turn, _ready: Ready, /) -> None:
        self._end_line()
        self._streamed, self._broken = "", False

    def _line(self, text: str) -> None:
        _write(self._terminal.stderr, _dim(wrapped(text, self._terminal.columns), self._terminal.color) + "\n")

    def _show(self, text: str) -> None:
        text = sanitize(text)
        if text:
            self._vanish()
            self._put(self._flow.feed(text, self._terminal.answer_columns))

    def _end_line(self) -> None:
        self._vanish()
        self._put(self._flow.rest(self._terminal.answer_columns))
        if not self._at_line_start:
            self._put("\n")

    def _vanish(self) -> None:
        if self._waiting:
            self._waiting = False
            self._put("\r \r")
            self._at_line_start = True

    def _put(self, text: str) -> None:
        if text:
            _write(self._terminal.stdout, text)
            self._at_line_start = text.endswith("\n")


def _unshown(streamed: str, answer: str) -> str | None:
    """What of ``answer`` is still to be shown after ``streamed``; None when the stream was another text.

    The stream may hold more than the answer before it: what the model said before it called a tool.
    """
    if answer.startswith(streamed):
        return answer[len(streamed) :]
    if streamed.rstrip().endswith(answer.strip()):
        return ""
    return None
