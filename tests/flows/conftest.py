"""The program as a person runs it: a real process in a home of its own, real servers on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model_server import ModelServer
from tests.fakes.telegram_api import TOKEN, TelegramApi

SECONDS = 60
"""Far more than anything takes; a machine under load is slow, and a hang must still end."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a finished command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Hub:
    """A running ``limpet run``; ``log`` is what it said on stderr so far."""

    process: asyncio.subprocess.Process
    log: list[str] = field(default_factory=list)
    _reader: asyncio.Task[None] | None = None

    async def until(self, pattern: str) -> str:
        """The first line of the log that matches, once there is one."""
        async with asyncio.timeout(SECONDS):
            while True:
                for line in self.log:
                    if re.search(pattern, line):
                        return line
                if self.process.returncode is not None:
                    raise AssertionError(f"the hub ended with {self.process.returncode}:\n{''.join(self.log)}")
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """As a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def stop(self, which: signal.Signals = signal.SIGTERM) -> int:
        """As an operator would; the exit code."""
        self.process.send_signal(which)
        async with asyncio.timeout(SECONDS):
            return await self.process.wait()

    async def read(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.log.append(line.decode())


@dataclass
class Limpet:
    """Runs ``limpet`` in ``home`` with nothing of the tester's own environment but the path.

    ``program`` are the arguments of Python that start its hub, None for the usual ones.
    """

    home: Path
    env: dict[str, str] = field(default_factory=dict)
    program: Sequence[str] | None = None

    @property
    def workspace(self) -> Path:
        return self.home / "workspaces" / "main"

    def configure(self, text: str) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "limpet.toml").write_text(text, encoding="utf-8")

    def notes(self) -> str:
        """All daily notes of the owner."""
        return "\n".join(p.read_text("utf-8") for p in sorted((self.workspace / "memory").glob("*.md")))

    async def __call__(self, *args: str, stdin: str = "") -> Done:
        """Run one command to its end."""
        process = await self._start(*args)
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Done(process.returncode, out.decode(), err.decode())

    @asynccontextmanager
    async def hub(self) -> AsyncIterator[Hub]:
        """``limpet run`` for the length of the block."""
        hub = Hub(await self._start("run", program=self.program))
        reader = asyncio.create_task(hub.read())
        try:
            await hub.until("hub.started")
            yield hub
        finally:
            if hub.process.returncode is None:
                hub.process.kill()
                await hub.process.wait()
            await reader

    async def _start(self, *args: str, program: Sequence[str] | None = None) -> asyncio.subprocess.Process:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        environ = {
            **kept,
            "LIMPET_HOME": str(self.home),
            "TZ": "Europe/Berlin",
            "PYTHONWARNINGS": "default",
            **self.env,
        }
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            sys.executable, *(program or ("-m", "bot")), *args, stdin=pipe, stdout=pipe, stderr=pipe, env=environ
        )


@pytest.fixture
def limpet(tmp_path: Path) -> Limpet:
    return Limpet(tmp_path / "home")


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramApi]:
    async with TelegramApi() as api:
        yield api


def connect(limpet: Limpet, telegram: TelegramApi, server: ModelServer, top: str = "", more: str = "") -> None:
    """Settings for a hosted model on ``server`` and a bot on ``telegram``.

    ``top`` goes to the top of the file, ``more`` to the section of the channel.
    """
    limpet.configure(
        f'{top}\n[models]\ndefault = "openai/fake"\nbase_url = "{server.url}"\n\n'
        f'[channels.telegram]\nbase_url = "{telegram.url}"\npoll_seconds = 5\n{more}'
    )
    limpet.env["TELEGRAM_BOT_TOKEN"] = TOKEN
