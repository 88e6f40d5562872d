"""The person's side of the terminal: asks once, chats at a prompt, or takes the lines of a pipe as messages in turn.

It speaks ``wire`` over any connection, so that a running hub and one inside this process are the same to it. Knows no
agent: what it doesn't handle itself (/help, /quit, /exit) it sends on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapters.terminal.endpoint import Dial
from adapters.terminal.keyboard import Keyboard, Pipe, Prompt
from adapters.terminal.link import DELAYS, PATIENT, Event, Gone, Interrupted, Leaving, Link, Lost, ulid
from adapters.terminal.screen import Json, Live, Plain, Screen, Terminal, Turn
from adapters.terminal.wire import (
    STOP_PREFIX,
    VERSION,
    Answer,
    Delta,
    Done,
    Failure,
    Hello,
    Hindered,
    Notice,
    OversizeError,
    Ready,
    Say,
    Stop,
)

INTERRUPTED = 130
"""The exit code after Ctrl-C, by the rule of the shells: 128 and the number of SIGINT."""

_USAGE = 2
_TEMPORARY = 75
_BROKEN_PIPE = 1
_STOP_SECONDS = 1.0
"""How long a single question waits, after Ctrl-C, to see its turn stopped."""

_LEAVING = "Ctrl-D leaves, /help says more."
_KEPT = "Your message is kept: it is answered when the hub runs again."

_HELP = """Enter sends, Alt-Enter starts a new line, the up key brings back what you said before.
Ctrl-C stops an answer. Ctrl-D, /quit and /exit leave; the hub remembers where you were."""

_LOCAL = {"/help": "what the keys do", "/quit": "leave", "/exit": "leave"}
"""The words that never reach a hub: they are about this window, and work whatever the hub does."""


def new_id() -> str:
    """A fresh id of a message."""
    return ulid(time.time_ns() // 1_000_000, secrets.randbits(80))


async def chat(
    dial: Dial,
    terminal: Terminal,
    *,
    once: str | None = None,
    piped: str = "",
    agent: str | None = None,
    history: Path | None = None,
    as_json: bool = False,
    ids: Callable[[], str] = new_id,
    monotonic: Callable[[], float] = time.monotonic,
    delays: Sequence[float] | None = None,
) -> int:
    """Talk to the hub that ``dial`` reaches, until the end of the input; returns the exit code.

    ``once`` is a single question, and ``piped`` what came with it, as data. Without it, a person at a terminal gets a
    prompt; from a pipe (or with ``as_json``) each line is a message that is answered before the next is sent, and only
    answers go to standard output. ``agent`` None leaves the choice to the bindings, ``history`` None keeps none.
    ``delays`` are the seconds between tries to reach the hub, None for as many as whoever waits has patience. Call it
    in the main thread: it takes SIGINT for as long as it runs.

    0 all was answered; 1 standard output was closed; 2 the hub refused the hello, or the message; 75 the hub can't be
    reached; 130 Ctrl-C; otherwise as the last turn that failed says.
    """
    lively = terminal.stdout_is_tty and not as_json
    interactive = lively and terminal.stdin_is_tty and once is None
    screen: Screen = Json(terminal) if as_json else Live(terminal) if lively else Plain(terminal)
    if delays is None:
        delays = PATIENT if interactive else DELAYS
    async with Link(dial, Hello(VERSION, agent, once is not None, interactive), delays=delays) as link:
        console = _Console(link, screen, ids, monotonic, interactive=interactive)
        with _interrupts(link):
            keyboard: Keyboard | None = None
            try:
                ready = await console.meet()
                if once is not None:
                    return await console.ask(once, piped)
                if not interactive:
                    keyboard = Pipe(terminal.stdin)
                    return await console.converse(keyboard)
                keyboard = Prompt(
                    history=history,
                    commands={w: line[len(w) :].lstrip(" —-") for w, line in _words(ready.commands)} | _LOCAL,
                    color=terminal.color,
                    on_interrupt=lambda: screen.notice(_LEAVING),
                )
                with keyboard:
                    await console.converse(keyboard)
                console.give_back(keyboard)
                console.sum_up(agent)
                return 0
            except _BrokenOffError as left:
                screen.failure(left.why)
                if keyboard is not None:  # a single question is still in its shell
                    console.give_back(keyboard)
                return left.why.code
            except BrokenPipeError:
                _discard_output(terminal)
                return _BROKEN_PIPE


class _BrokenOffError(Exception):
    """How a conversation ends before its input does."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.why = Failure(text, code)


@dataclass(slots=True)
class _Tally:
    """What the line at the end says. ``seconds`` were spent on answers; ``cost`` is in US dollars, None unknown."""

    turns: int = 0
    seconds: float = 0.0
    remembered: int = 0
    cost: float | None = None

    def add(self, turn: Turn, seconds: float, *, counts: bool = True) -> None:
        """``counts`` False for a command: only what it did to the memory is told of."""
        if counts:
            self.turns += 1
            self.seconds += seconds
        if turn.report is not None:
            self.remembered = max(0, self.remembered + turn.report.remembered)  # what is undone may be older
            if turn.report.cost is not None:
                self.cost = (self.cost or 0.0) + turn.report.cost

    def __str__(self) -> str:
        minutes, seconds = divmod(round(self.seconds), 60)
        words = [_count(self.turns, "turn"), f"{minutes} min {seconds} s" if minutes else f"{seconds} s"]
        if self.cost is not None:
            words.append(f"${self.cost:.3f}")
        if self.remembered:
            words.append(f"{_count(self.remembered, 'thing')} remembered")
        return " · ".join(words)


class _Console:
    """One conversation: what was said, what came, and the screen between them."""

    def __init__(
        self,
        link: Link,
        screen: Screen,
        ids: Callable[[], str],
        monotonic: Callable[[], float],
        *,
        interactive: bool,
    ) -> None:
        self._link = link
        self._screen = screen
        self._ids = ids
        self._monotonic = monotonic
        self._interactive = interactive
        self._ready = Ready("")
        self._tally = _Tally()
        self._lost = False
        self._leaving = False
        self._untaken = ""

    async def meet(self) -> Ready:
        """Wait for the hub's Ready and show what it has to say."""
        while True:
            event = await self._link.events.get()
            if isinstance(event, Ready):
                break
            self._beside(event)
        self._ready, self._lost = event, False
        if self._interactive:
            self._screen.notice(" · ".join(word for word in (event.agent, event.model, _LEAVING) if word))
        for notice in event.notices:
            self._screen.notice(notice)
        return event

    async def ask(self, text: str, piped: str) -> int:
        """One question, with what a pipe brought beside it, and the exit code."""
        return (await self._turn(text, piped)).code

    async def converse(self, keyboard: Keyboard) -> int:
        """One turn after the other until the input ends; the code of the last turn that failed."""
        code = 0
        while not self._leaving and (text := await self._next(keyboard)) is not None:
            match text.strip():
                case "/quit" | "/exit":
                    break
                case "quit" | "exit" if self._interactive:  # what the shells taught; nobody says just that to a person
                    break
                case "/help":
                    others = (line for word, line in _words(self._ready.commands) if word not in _LOCAL)
                    self._screen.notice("\n".join((_HELP, *others)))
                case "":
                    continue
                case _:
                    with keyboard.meanwhile(lambda: self._link.events.put_nowait(Leaving())):
                        turn = await self._turn(text)
                    code = turn.code or code
        return code

    def give_back(self, keyboard: Keyboard) -> None:
        """Show what would be lost with this window: what the hub has not confirmed, and what was not yet sent."""
        for text in (*(say.text for say in self._link.unconfirmed()), self._untaken, keyboard.draft):
            if text.strip():
                self._screen.given_back(text)

    def sum_up(self, agent: str | None) -> None:
        if self._tally.turns:
            again = f"limpet chat --agent {agent}" if agent else "limpet chat"
            self._screen.notice(f"{self._tally} · to go on where you left: {again}")

    async def _next(self, keyboard: Keyboard) -> str | None:
        """The next message typed, while what arrives meanwhile is shown beside it."""
        typing = asyncio.ensure_future(keyboard.line())
        try:
            while True:
                coming = asyncio.ensure_future(self._link.events.get())
                try:
                    await asyncio.wait({typing, coming}, return_when=asyncio.FIRST_COMPLETED)
                    if not coming.done():
                        return await typing
                    if isinstance(coming.result(), Leaving):
                        return None  # typed when the turn had just ended
                    async with keyboard.aside():
                        await self._idle(coming.result())
                finally:
                    coming.cancel()
        except _BrokenOffError:
            if typing.done() and not typing.cancelled():
                self._untaken = typing.result() or ""  # entered in the very moment in which it was over
            raise
        finally:
            typing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await typing  # the prompt puts the terminal back before anything else is written

    async def _idle(self, event: Event) -> None:
        match event:
            case Answer():
                await self._show(event)
            case Interrupted():
                raise _BrokenOffError("Stopped.", INTERRUPTED)
            case Delta() | Done():
                pass  # of a turn that was given up here
            case _:
                self._beside(event)

    async def _turn(self, text: str, piped: str = "") -> Turn:
        """Say it and follow to the end of its turn. On Ctrl-C the hub is told to stop; without a prompt we leave."""
        turn = Turn(self._ids(), self._monotonic())
        try:
            await self._link.say(Say(turn.id, text, piped))
        except OversizeError as error:
            turn.failure = Failure(f"Not sent: {error}.", _USAGE, turn.id)
            self._screen.failure(turn.failure)
            return turn
        if self._interactive and not self._link.is_up:
            self._screen.notice("Held here until the hub is back; Ctrl-C takes it back.")
        self._screen.waiting()
        while not turn.is_over:
            event = await self._link.events.get()
            match event:
                case Interrupted():
                    await self._stop(turn)
                    if not self._interactive:
                        await self._leave(turn)
                case Leaving():
                    await self._leave_after(turn)
                case _:
                    await self._follow(turn, event)
        self._screen.finish(turn, self._ready)
        if turn.report is not None and turn.report.advice not in ("", *self._ready.notices):
            self._screen.notice(turn.report.advice)
        self._tally.add(turn, self._monotonic() - turn.began, counts=not text.startswith("/"))
        return turn

    async def _stop(self, turn: Turn) -> None:
        """Tell the hub; the second time, and where there is none to be told, don't wait for it any more."""
        if self._interactive and not self._link.is_up and not self._link.kept(turn.id):
            self._link.take_back(turn.id)
            turn.failure = Failure("Taken back: the hub did not confirm it. The up key shows it again.", _TEMPORARY)
            self._screen.failure(turn.failure)
            return
        if turn.stop is not None or not self._link.is_up:
            turn.given_up = True
            self._screen.notice("Not waiting any more: if an answer comes, it is shown here.")
            return
        turn.stop = STOP_PREFIX + self._ids()
        await self._link.say(Stop(turn.stop))

    async def _leave_after(self, turn: Turn) -> None:
        """Ctrl-D: go when the answer has come, and at once where none can come; the second time it is a Ctrl-C."""
        if self._leaving:
            await self._stop(turn)
        elif self._link.is_up:
            self._screen.notice("Leaving after this answer; Ctrl-C stops it.")
        else:
            turn.given_up = True
            if self._link.kept(turn.id):
                self._screen.notice(_KEPT)
        self._leaving = True

    async def _leave(self, turn: Turn) -> None:
        """Give the hub a moment to end the turn, so that nothing of it waits for the next console."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                while True:
                    match await self._link.events.get():
                        case Done(in_reply_to=turn.id) | Failure(in_reply_to=turn.id) | Gone() | Interrupted():
                            break
                        case Answer(in_reply_to=turn.id) as answer:
                            await self._link.got(answer)
        raise _BrokenOffError("Stopped.", INTERRUPTED)

    async def _follow(self, turn: Turn, event: Event) -> None:
        """Take what belongs to ``turn``; show the rest beside it."""
        match event:
            case Delta(text):
                self._screen.delta(text)
            case Answer(text=text, in_reply_to=message_id):
                if message_id == turn.id:
                    turn.answers.append(text)
                elif turn.stop is not None and message_id == turn.stop:
                    turn.given_up = True
                await self._show(event)
            case Done(in_reply_to=turn.id):
                turn.report = event.meta
            case Failure(in_reply_to=turn.id):
                turn.failure = event
                self._screen.failure(event)
            case Done(in_reply_to=message_id) | Failure(in_reply_to=message_id) if message_id == turn.stop is not None:
                turn.given_up = True
            case Hindered(text, code) if self._link.kept(turn.id):
                turn.failure = Failure(text, code, turn.id)
                self._screen.failure(turn.failure)
            case Gone(reason, code, mend) if self._link.kept(turn.id):
                raise _BrokenOffError(f"{reason} {_KEPT} {mend}", code)
            case _:
                self._beside(event)

    async def _show(self, answer: Answer) -> None:
        self._screen.answer(answer, ours=self._link.said(answer.in_reply_to))
        await self._link.got(answer)

    def _beside(self, event: Event) -> None:
        """What is no part of an answer."""
        match event:
            case Notice(text):
                self._screen.notice(text)
            case Failure():
                self._screen.failure(event)
            case Lost(reason):
                self._lost = True
                self._screen.notice(f"The hub can't be reached ({reason}); trying again …")
            case Ready() if self._lost:
                self._ready, self._lost = event, False
                self._screen.notice("The hub is back.")
            case Interrupted():
                raise _BrokenOffError("Stopped.", INTERRUPTED)
            case Gone(reason, code, mend):
                raise _BrokenOffError(f"{reason} {mend}".rstrip(), code)
            case _:
                pass


def _words(commands: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The first word of each line of a hub's commands, and the line."""
    return ((line.split(maxsplit=1)[0], line) for line in commands if line.strip())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@contextlib.contextmanager
def _interrupts(link: Link) -> Iterator[None]:
    """SIGINT becomes an event among the others."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, link.events.put_nowait, Interrupted())
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _discard_output(terminal: Terminal) -> None:
    """Point standard output at nothing, else the interpreter complains of the closed pipe once more at its end."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, terminal.stdout.fileno())
        os.close(nowhere)
