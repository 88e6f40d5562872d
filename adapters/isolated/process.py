"""One life of the process of an adapter, as the hub sees it: it is asked, listened to, watched, and ended.

What it writes besides goes to the log. Knows nothing of what is sent or received, nor what comes after its death.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from adapters.isolated.frames import (
    FROM_CHILD,
    Begin,
    Call,
    Done,
    Ended,
    FrameError,
    Log,
    Run,
    Signal,
    Trouble,
    encode,
    frames,
)
from adapters.message import Receipt

log = logging.getLogger(__name__)

_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|XDG_\w+|SSL_CERT_\w+|LD_LIBRARY_PATH|"
    r"GO(DEBUG|GC|MEMLIMIT|MAXPROCS|TRACEBACK)|MALLOC_\w+|(http|https|all|no)_proxy",
    re.IGNORECASE,
)
"""The variables that the process gets: the tokens of other channels and models may be among the rest."""

_GRACE_SECONDS = 5.0
"""How long the process may take to do what ends it."""

_BURST_SECONDS = 0.3
_BURST_LIMIT = 1 << 14
"""What is written to stdout and stderr within so many seconds is one entry in the log, of at most so many bytes."""


class Lost(Exception):
    """The process died before it answered: one sentence. ``taken``: it may have begun to do what it was asked."""

    def __init__(self, reason: str, *, taken: bool) -> None:
        super().__init__(reason)
        self.taken = taken


@dataclass(slots=True)
class _Asked:
    """A call; None in ``answers`` is the end of the process."""

    answers: asyncio.Queue[bytes | Receipt | Done | Trouble | None] = field(default_factory=asyncio.Queue)
    taken: bool = False


class Life:
    """``hear`` is given the events, what becomes of them, and each new health; it may raise FrameError.

    ``hide`` takes out of what is logged the secrets, and what is not worth a line.
    """

    def __init__(
        self,
        name: str,
        process: Process,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        hear: Callable[[int, object], None],
        hide: Callable[[str], str],
        patience: float,
    ) -> None:
        self._name = name
        self._process = process
        self._reader, self._writer = streams
        self._hear = hear
        self._hide = hide
        self._patience = patience
        self._numbers = count(1)
        self._asked: dict[int, _Asked] = {}
        self._ended: asyncio.Future[Trouble | None] | None = None
        self._answered = asyncio.Event()
        self._doom = ""
        self.death: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done once nothing of the process is left: one sentence that says how it ended."""
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._watch())]

    @classmethod
    async def begin(
        cls,
        name: str,
        begin: Begin,
        hear: Callable[[int, object], None],
        hide: Callable[[str], str],
        patience: float,
    ) -> Life:
        """Start the process. Raises OSError where that can't be done, and FrameError."""
        first = encode(0, begin)
        ours, theirs = socket.socketpair()
        with theirs:
            streams = await asyncio.open_unix_connection(sock=ours)
            command = (sys.executable, "-P", "-m", "adapters.isolated.child", str(theirs.fileno()))
            modules = os.pathsep.join(place or os.getcwd() for place in sys.path)  # noqa: PTH109
            environ = {key: value for key, value in os.environ.items() if _PASSED_ON.fullmatch(key)}
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=PIPE,  # never written to: its end tells the process that we are gone
                    stdout=PIPE,
                    stderr=STDOUT,
                    env={**environ, "PYTHONPATH": modules},
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # Ctrl-C is for us, who then end it in good order
                )
            except BaseException:
                streams[1].close()
                raise
        life = cls(name, process, streams, hear, hide, patience)
        streams[1].write(first)
        return life

    @property
    def is_over(self) -> bool:
        return self.death.done()

    def say(self, number: int, value: object) -> None:
        """Raises FrameError; says nothing to the dead."""
        frame = encode(number, value)
        if not self._writer.is_closing():
            self._writer.write(frame)

    async def run(self, run: Run) -> Trouble | None:
        """Receive until it ends by itself, with what went wrong. Raises Lost."""
        self._ended = asyncio.get_running_loop().create_future()
        self.say(0, run)
        await asyncio.wait(self._ends(), return_when=asyncio.FIRST_COMPLETED)
        if not self._ended.done():
            raise Lost(self.death.result(), taken=True)
        return self._ended.result()

    async def halt(self) -> None:
        """End the receiving; the process with it where it doesn't obey."""
        if self._ended is None or self._ended.done() or self.is_over:
            return
        self.say(0, Signal("halt"))
        try:
            await asyncio.wait(self._ends(), timeout=_GRACE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self._ended.done():
                self.kill("did not stop to receive")

    async def close(self) -> None:
        """End the process; returns once nothing of it is left."""
        self._doom = self._doom or "was closed"
        self.say(0, Signal("close"))
        try:
            await asyncio.wait([self.death], timeout=_GRACE_SECONDS)
        finally:
            self.kill("was closed")
        await asyncio.wait([self.death])

    def kill(self, reason: str) -> None:
        """At once, with all that it started. ``reason`` goes on from "its process"."""
        if self._process.returncode is None:
            self._doom = self._doom or reason
        if not self.is_over:
            with suppress(ProcessLookupError, PermissionError):  # macOS says the latter of a zombie
                os.killpg(self._process.pid, signal.SIGKILL)

    def _ends(self) -> list[asyncio.Future[Any]]:
        return [end for end in (self._ended, self.death) if end is not None]

    async def ask(self, call: Call) -> Receipt | Done | Trouble:
        """The answer. Raises Lost, and FrameError where the call can't be written."""
        async with self._asking(call) as (_, asked):
            answer = await self._answer(asked)
        if isinstance(answer, bytes):
            raise Lost("answered with bytes", taken=True)
        return answer

    async def stream(self, call: Call) -> AsyncGenerator[bytes | Trouble, None]:
        """Pieces, each asked for; or what went wrong, as the last one. Raises as ``ask`` does."""
        async with self._asking(call) as (number, asked):
            while isinstance(answer := await self._answer(asked), bytes):
                yield answer
                self.say(number, Signal("more"))
            if isinstance(answer, Trouble):
                yield answer

    @asynccontextmanager
    async def _asking(self, call: Call) -> AsyncIterator[tuple[int, _Asked]]:
        number = next(self._numbers)
        asked = _Asked()
        if self.is_over:
            raise Lost(self.death.result(), taken=False)
        self.say(number, call)
        self._asked[number] = asked
        try:
            yield number, asked
        except BaseException:  # nobody waits for it any more
            self.say(number, Signal("cancel"))
            raise
        finally:
            del self._asked[number]

    async def _answer(self, asked: _Asked) -> bytes | Receipt | Done | Trouble:
        answer = await asked.answers.get()
        if answer is None:
            raise Lost(self.death.result(), taken=asked.taken)
        return answer

    async def _listen(self) -> None:
        """To all it says, until it is dead."""
        output = asyncio.create_task(self._overhear())
        try:
            async for number, value in frames(self._reader, FROM_CHILD):
                self._take(number, value)
        except FrameError as error:
            self.kill(f"said what makes no sense: {error}")
        finally:
            await self._bury(output)

    def _take(self, number: int, value: object) -> None:
        match value:
            case Signal("pong"):
                self._answered.set()
            case Signal("taken"):
                if asked := self._asked.get(number):
                    asked.taken = True
            case bytes() | Receipt() | Done() | Trouble():
                if asked := self._asked.get(number):
                    if asked.answers.qsize():
                        raise FrameError("an answer that nobody asked for")
                    asked.answers.put_nowait(value)
            case Ended(trouble):
                if self._ended is not None and not self._ended.done():
                    self._ended.set_result(trouble)
            case Log():
                self._log(value)
            case _:
                self._hear(number, value)

    async def _bury(self, output: asyncio.Task[None]) -> None:
        """It said its last word: what follows is its end, wanted or not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await self._process.wait()
        self.kill("closed its connection and went on")  # and what it started and left behind
        self._tasks[1].cancel()
        await asyncio.wait([output], timeout=1.0)  # what was started by it may hold it open
        output.cancel()
        self._writer.close()
        self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        await self._process.wait()
        self.death.set_result(self._doom or _fate(self._process.returncode))
        for asked in self._asked.values():
            asked.answers.put_nowait(None)

    async def _watch(self) -> None:
        """A process that doesn't answer is no use, and is killed."""
        while True:
            await asyncio.sleep(self._patience / 2)
            self._answered.clear()
            self.say(0, Signal("ping"))
            try:
                async with asyncio.timeout(self._patience):
                    await self._answered.wait()
            except TimeoutError:
                await asyncio.sleep(0.1)  # we may have been the ones who were stopped: the answer is read first
                if self._answered.is_set():
                    continue
                self.kill(f"did not answer for {self._patience:.0f} seconds")

    async def _overhear(self) -> None:
        """What it writes, in entries that are as long as it goes on: the trace of a crash is one."""
        output = self._process.stdout
        assert output is not None
        while burst := await output.read(_BURST_LIMIT):
            dropped = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(_BURST_SECONDS):
                    while rest := await output.read(_BURST_LIMIT):
                        room = _BURST_LIMIT - len(burst)
                        burst += rest[:room]
                        dropped += len(rest[room:])
            if text := self._hide(burst.decode("utf-8", "replace")).rstrip():
                more = f"\n({dropped} bytes more)" * bool(dropped)
                log.warning("%s: its process wrote:\n%s%s", self._name, text, more)

    def _log(self, line: Log) -> None:
        """Under the logger of that name, or of what is above it: none is made by what a process says."""
        name = line.logger
        while name and name not in logging.root.manager.loggerDict:
            name = name.rpartition(".")[0]
        logger = logging.getLogger(name or __name__)
        if logger.isEnabledFor(line.level):
            text = f"{self._name}: {self._hide(line.text[:_BURST_LIMIT])}"
            logger.handle(logger.makeRecord(line.logger, line.level, self._name, 0, text, (), None))


def _fate(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
        return f"was ended by {name}"
    return f"ended with exit code {code}"
