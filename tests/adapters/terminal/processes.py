"""Consoles as processes of their own: one on pipes, one on a pseudo-terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import sys
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-m", "tests.adapters.terminal.attach")
ENVIRONMENT = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONWARNINGS": "error"}


@dataclass(frozen=True, slots=True)
class Ended:
    stdout: bytes
    stderr: bytes
    code: int


async def piped(*arguments: str | Path, stdin: bytes = b"") -> Ended:
    process = await start(*arguments)
    async with asyncio.timeout(20):
        stdout, stderr = await process.communicate(stdin)
    assert process.returncode is not None
    return Ended(stdout, stderr, process.returncode)


async def start(*arguments: str | Path) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *COMMAND, *map(str, arguments), cwd=ROOT, env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=pipe
    )


class Tty:
    """The far side of a pseudo-terminal: what a person sees and types."""

    def __init__(self, descriptor: int, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.seen = ""
        self._descriptor = descriptor
        self._from = 0
        self._more = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def resize(self, columns: int) -> None:
        termios.tcsetwinsize(self._descriptor, (30, columns))

    async def expect(self, text: str) -> str:
        """Wait until ``text`` has appeared after what was expected last; what came before it."""
        try:
            async with asyncio.timeout(10):
                while (at := self.seen.find(text, self._from)) < 0:
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} never came after {self.seen[self._from :]!r}") from None
        before, self._from = self.seen[self._from : at], at + len(text)
        return before

    async def ended(self) -> int:
        async with asyncio.timeout(10):
            return await self.process.wait()

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 1 << 16)
        except OSError:  # Linux says EIO when the last process has closed its side
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._descriptor)
        self.seen += data.decode("utf-8", "replace")
        self._more.set()


@asynccontextmanager
async def on_tty(
    *arguments: str | Path,
    environ: Mapping[str, str] | None = None,
    columns: int = 0,
    command: Sequence[str] = (*COMMAND, "--own-tty"),
) -> AsyncIterator[Tty]:
    """A console on a terminal of ``columns`` columns, 0 for one that doesn't say."""
    ours, theirs = pty.openpty()
    if columns:
        termios.tcsetwinsize(theirs, (30, columns))
    try:
        process = await asyncio.create_subprocess_exec(
            *(*command, *map(str, arguments)),
            cwd=ROOT,
            env={**ENVIRONMENT, **(environ or {})},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
    finally:
        os.close(theirs)
    tty = Tty(ours, process)
    try:
        yield tty
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        asyncio.get_running_loop().remove_reader(ours)
        os.close(ours)
