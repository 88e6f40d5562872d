"""A program that a test starts, tells what to do and hears from: one JSON a line on its stdin and stdout.

Commands are answered by their number, in any order; events come by themselves. ``Process`` is the side of the test,
``Lines`` that of the program.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeAlias

ROOT = Path(__file__).parents[3]
SECONDS = 30
"""Far more than anything takes; a machine under load is slow, and a hang must still end."""

_LONGEST_LINE = 64 << 20

Event: TypeAlias = dict[str, Any]
Carry: TypeAlias = Callable[..., Awaitable[Any]]


class ToldError(Exception):
    """The program could not do what it was told; its words."""


class Process:
    """``python -m module`` with ``settings``. ``events`` are all that it told, in order, ``log`` is what it said."""

    def __init__(self, module: str, settings: Mapping[str, Any], environment: Mapping[str, str], log: Path) -> None:
        self.events: list[Event] = []
        self.log = log
        self._module = module
        self._settings = settings
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, *before: str) -> Self:
        """``before`` are words to start it with, as those of a tracer."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        words = (*before, sys.executable, "-m", self._module, json.dumps(dict(self._settings)))
        pipe = asyncio.subprocess.PIPE
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *words,
                cwd=ROOT,
                env={**kept, **self._environment},
                stdin=pipe,
                stdout=pipe,
                stderr=log,
                limit=_LONGEST_LINE,
            )
        self._reading = asyncio.create_task(self._read())
        return self

    async def do(self, command: str, **arguments: Any) -> Any:
        """What the program answers. Raises ToldError where it could not do it."""
        assert self._process is not None
        assert self._process.stdin is not None
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"number": number, "do": command, **arguments}).encode() + b"\n")
        try:
            async with asyncio.timeout(SECONDS):
                return await answer
        finally:
            del self._answers[number]

    def told(self, event: str, /, **fields: Any) -> list[Event]:
        """The events of that name that have these fields."""
        return [
            one
            for one in self.events
            if one["event"] == event and all(one.get(name) == v for name, v in fields.items())
        ]

    async def until(self, event: str, number: int = 1, /, **fields: Any) -> Event:
        """The ``number``-th event of that name with these fields, once there is one."""
        await self.until_true(lambda: len(self.told(event, **fields)) >= number, f"{event} {fields or ''}")
        return self.told(event, **fields)[number - 1]

    async def until_true(self, condition: Callable[[], bool], what: str) -> None:
        """Looks after each event; ``what`` is for whoever waited in vain."""
        try:
            async with asyncio.timeout(SECONDS):
                while not condition():
                    if not self.is_running:
                        raise AssertionError(f"the program ended before {what}: {self._last_words()}")
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"there was no {what}, but {self.events}: {self._last_words()}") from None

    async def stop(self) -> None:
        """It lets go of what it holds, and ends."""
        if self.is_running:
            with suppress(ToldError):
                await self.do("stop")
        await self._over()

    async def kill(self) -> None:
        """As a power cut would."""
        if self._process is not None and self.is_running:
            self._process.kill()
        await self._over()

    async def _over(self) -> None:
        if self._process is None or self._reading is None:
            return
        async with asyncio.timeout(SECONDS):
            await self._process.wait()
            await self._reading

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            said = json.loads(line)
            if "answers" not in said:
                self.events.append(said)
            elif answer := self._answers.get(said["answers"]):
                if "error" in said:
                    answer.set_exception(ToldError(said["error"]))
                else:
                    answer.set_result(said["result"])
            self._change()
        await self._process.wait()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ToldError(f"the program ended: {self._last_words()}"))
        self._change()

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _last_words(self) -> str:
        return self.log.read_text("utf-8", "replace")[-3000:]


class Lines:
    """The program's side. What others print to stdout goes to stderr from now on."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = json.loads(sys.argv[1])
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)

    def tell(self, event: str, **fields: Any) -> None:
        self._say({"event": event, **fields})

    async def serve(self, commands: Mapping[str, Carry]) -> None:
        """Carry out what the test says, all at once, until ``stop`` was done, or nobody is there any more."""
        reader = asyncio.StreamReader(_LONGEST_LINE)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async with asyncio.TaskGroup() as working:
            while line := await reader.readline():
                told = json.loads(line)
                command = told.pop("do")
                task = working.create_task(self._carry(commands[command], told.pop("number"), told))
                if command == "stop":
                    await task
                    return

    async def _carry(self, command: Carry, number: int, arguments: dict[str, Any]) -> None:
        try:
            result = await command(**arguments)
        except Exception as error:
            self._say({"answers": number, "error": f"{type(error).__name__}: {error}"})
        else:
            self._say({"answers": number, "result": result})

    def _say(self, what: dict[str, Any]) -> None:
        self._out.write(json.dumps(what).encode() + b"\n")
