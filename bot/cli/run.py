"""``limpet run``: the hub. Answers on every configured channel, and serves ``limpet chat``, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from bot.cli import output
from bot.cli.spared import without_rich
from bot.errors import HubRunning

if TYPE_CHECKING:
    from adapters.adapter import Adapter
    from bot.home import Home
    from bot.settings import Settings
    from bot.start_record import StartRecord

INTERRUPTED = 130


def command(ctx: typer.Context) -> int:
    """Answer on all configured channels. SIGTERM or Ctrl-C lets running turns end first; twice stops at once."""
    from bot.config import load
    from bot.lock import Lock
    from bot.start_record import StartRecord

    home: Home = ctx.obj
    record = StartRecord.of(home, os.getpid())  # before they are loaded: an edit in between must not pass unseen
    settings = load(home)
    lock = Lock(home.lock)
    if not lock.acquire():
        raise HubRunning(f"a hub is running already (pid {lock.holder()})", "talk to it: limpet chat")
    try:
        return asyncio.run(_serve_mended(settings, home, record))
    finally:
        lock.release()


async def _serve_mended(settings: Settings, home: Home, record: StartRecord) -> int:
    """Serve. A damaged state is put aside before; where the damage is met only later, once more."""
    without_rich()
    from bot.logs import configure
    from bot.settings import secrets_in
    from workspaces.database import DatabaseDamaged

    configure(home, secrets=secrets_in(settings), to_stderr=True)
    await _mend_state(home)
    stop = _Stop()
    try:
        return await _serve(settings, home, record, stop)
    except DatabaseDamaged:
        if not await _mend_state(home):
            raise
        return await _serve(settings, home, record, stop)


async def _mend_state(home: Home) -> bool:
    """Put a damaged state database aside, and take what can be read of it into a new one; False for a sound one."""
    from bot.errors import BotError
    from bot.instance import Instances
    from bot.salvage import damage, mend

    beside = Instances(home.state / "instances").alive()
    if beside and (reason := await asyncio.to_thread(damage, home.database)):
        raise BotError(
            f"{home.database} is damaged ({reason}), and another process has it open",
            "end the consoles that are open first",
        )
    return not beside and await mend(home.database) is not None


async def _serve(settings: Settings, home: Home, record: StartRecord, stop: _Stop) -> int:
    import structlog

    from bot.app import Hub
    from bot.health import amiss
    from bot.terminal import TerminalDoor

    log = structlog.get_logger(__name__)
    channels = _adapters(settings, home)
    findings = amiss(settings, home)
    replace(record, problems=tuple((finding.what, finding.mend) for finding in findings)).write(home)
    for finding in findings:
        log.error("not_ready", reason=finding.what, mend=finding.mend)
    for warning in settings.warnings:
        log.warning("settings", problem=warning.what, mend=warning.mend)
    door = TerminalDoor(home, listen=home.socket)
    async with Hub.open(settings, home, [door.adapter, *channels], watch=True) as hub:
        door.attach(hub)
        if stop.received:  # while a damaged state was put aside
            return stop.code
        serving = asyncio.create_task(hub.run(), name="hub")
        stop.on_signals(serving)
        log.info("hub.started", pid=os.getpid(), channels=", ".join(a.account for a in channels) or "none")
        if not channels:
            output.note(_alone(settings))
        await asyncio.wait([serving])
        if not serving.cancelled() and (error := serving.exception()):
            raise error
        log.info("hub.stopped")
        return stop.code


def _alone(settings: Settings) -> str:
    """Why only the terminal is served, and the mend unless it was said already."""
    if settings.degraded:
        return "No channel could be started: only the terminal is served (limpet chat)."
    if settings.channels:
        return "No channel is enabled: only the terminal is served (limpet chat)."
    return "No channel is configured: only the terminal is served (limpet chat). Add one: limpet channels add telegram"


def _adapters(settings: Settings, home: Home) -> list[Adapter]:
    from adapters import registry

    return [
        registry.build(section.kind, name, section.options, home.channel(section.kind, name))
        for name, section in settings.channels.items()
        if section.enabled
    ]


class _Stop:
    """The first signal drains; the second ends the process where it stands: everything durable is on disk."""

    def __init__(self) -> None:
        self.received: list[signal.Signals] = []
        self._serving: asyncio.Task[None] | None = None

    @property
    def code(self) -> int:
        """The exit code."""
        return INTERRUPTED if signal.SIGINT in self.received else 0

    def on_signals(self, serving: asyncio.Task[None]) -> None:
        """End ``serving`` at a signal."""
        self._serving = serving
        for which in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(which, self._receive, which)

    def _receive(self, which: signal.Signals) -> None:
        self.received.append(which)
        if len(self.received) > 1:
            os._exit(128 + which)
        output.note("Stopping: running turns may end (20 seconds at most). Again stops at once.")
        if self._serving is not None:
            self._serving.cancel()
